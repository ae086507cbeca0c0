#include "analyzer/reasoning/lanes.h"
#include "catalog/gpu_products.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>


namespace ringscope::reasoning {
namespace {

// Eight GPUs joined directly: lanes between i and j of the hybrid cube mesh, in the order of NVML's indices. Two quads, fully
// connected each, and i to i + 4. V100 boards double some links (six lanes a GPU), P100 boards none (four).
constexpr int kCubeMesh[8][8] = {{0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0}, {1, 2, 0, 2, 0, 0, 1, 0},
                                 {2, 1, 2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1},
                                 {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0}};

bool Known(const Machine& machine) {
  return std::all_of(machine.gpus.begin(), machine.gpus.end(), [](const MachineGpu& gpu) {
    return std::all_of(gpu.links.begin(), gpu.links.end(), [](const MachineGpu::Link& link) { return link.lanes > 0; });
  });
}

// GPUs of one product. Where nothing but nvidia-smi's matrix tells (which lists a workstation's display card too), boards have a
// power of two of them.
bool Comparable(const Machine& machine) {
  uint32_t product = 0;
  for (const MachineGpu& gpu : machine.gpus) {
    // A rack that is one NVLink domain: every host's log lists all GPUs, and nothing says which are its own.
    if (gpu.node >> 56 != machine.gpus[0].node >> 56) return false;
    if (gpu.product != 0 && product != 0 && gpu.product != product) return false;
    if (gpu.product != 0) product = gpu.product;
  }
  const size_t n = machine.gpus.size();
  return !machine.logs.empty() || machine.file != nullptr || (n >= 4 && (n & (n - 1)) == 0);
}

int Most(const Machine& machine) {
  int most = 0;
  for (const MachineGpu& gpu : machine.gpus) most = std::max(most, gpu.Lanes());
  return most;
}

std::string OthersText(const Machine& machine, size_t others) {
  return absl::StrCat("on the other ", others, others == 1 ? " GPU" : " GPUs", machine.name.empty() ? "" : " of ", machine.name);
}

// ---- GPUs on switches: every lane of a GPU ends in a switch, so all GPUs of a product have as many.
void Switched(const Machine& machine, LaneReport* report) {
  const int most = Most(machine);
  size_t full = 0;
  for (const MachineGpu& gpu : machine.gpus) full += gpu.Lanes() == most || !gpu.links_told;
  if (most == 0 || full == machine.gpus.size()) return;
  report->expected = most;
  report->why = OthersText(machine, full);
  for (size_t g = 0; g < machine.gpus.size(); ++g) {
    const int lanes = machine.gpus[g].Lanes();
    if (lanes < most && machine.gpus[g].links_told) report->gpus.push_back({static_cast<int>(g), lanes, most});
  }
}

// ---- GPUs joined directly

size_t LargestIsland(const Machine& machine) {
  std::vector<int> island(machine.gpus.size(), -1);
  size_t largest = 0;
  for (size_t start = 0; start < machine.gpus.size(); ++start) {
    if (island[start] >= 0) continue;
    std::vector<int> open = {static_cast<int>(start)};
    island[start] = static_cast<int>(start);
    size_t size = 0;
    while (!open.empty()) {
      const int g = open.back();
      open.pop_back();
      ++size;
      for (const MachineGpu::Link& link : machine.gpus[g].links) {
        if (link.peer >= 0 && island[link.peer] < 0) {
          island[link.peer] = static_cast<int>(start);
          open.push_back(link.peer);
        }
      }
    }
    largest = std::max(largest, size);
  }
  return largest;
}

// The cube mesh that this machine is when nothing is missing: its indices are known, and it has no link that the mesh lacks.
std::optional<std::vector<MissingLink>> AgainstCubeMesh(const Machine& machine, int doubled) {
  if (machine.gpus.size() != 8) return std::nullopt;
  int at[8];
  for (int i = 0; i < 8; ++i) {
    at[i] = machine.GpuOfIndex(i);
    if (at[i] < 0) return std::nullopt;
  }
  std::vector<MissingLink> missing;
  int present = 0;
  for (int i = 0; i < 8; ++i) {
    for (int j = i + 1; j < 8; ++j) {
      const int want = doubled ? kCubeMesh[i][j] : kCubeMesh[i][j] > 0;
      // Both ends tell; a link that one end alone lists is up for NCCL in that direction only.
      const int have = std::min(machine.gpus[at[i]].LanesTo(at[j]), machine.gpus[at[j]].LanesTo(at[i]));
      if (std::max(machine.gpus[at[i]].LanesTo(at[j]), machine.gpus[at[j]].LanesTo(at[i])) > want) return std::nullopt;
      present += have;
      if (have < want) missing.push_back({at[i], at[j], have, want});
    }
  }
  if (present == 0) return std::nullopt;
  return missing;
}

void Direct(const Machine& machine, LaneReport* report) {
  const size_t n = machine.gpus.size();
  const int most = Most(machine);
  // Bridges join pairs and are fitted or not; a log lists links among the job's GPUs only, so that a job on some of a machine's
  // GPUs sees unequal sums by design.
  if (most == 0 || n < 3 || LargestIsland(machine) <= 2 || !machine.links_complete) return;
  if (std::any_of(machine.gpus.begin(), machine.gpus.end(), [](const MachineGpu& gpu) { return !gpu.links_told; })) return;
  const bool equal = std::all_of(machine.gpus.begin(), machine.gpus.end(), [&](const MachineGpu& g) { return g.Lanes() == most; });
  if (equal) return;
  for (const int doubled : {1, 0}) {
    if (!doubled && most > 4) break;
    const auto missing = AgainstCubeMesh(machine, doubled);
    if (!missing) continue;
    report->expected = doubled ? 6 : 4;
    report->why = "by the symmetry of the eight-GPU cube mesh";
    for (size_t g = 0; g < n; ++g) {
      if (machine.gpus[g].Lanes() == 0) report->gpus.push_back({static_cast<int>(g), 0, report->expected});
    }
    for (const MissingLink& link : *missing) report->links.push_back(link);
    return;
  }
  report->expected = most;
  size_t full = 0;
  int dead_lanes = 0, lost = 0;
  std::vector<int> lacking;
  for (size_t g = 0; g < n; ++g) {
    const int lanes = machine.gpus[g].Lanes();
    full += lanes == most;
    if (lanes == 0)
      dead_lanes += most, report->gpus.push_back({static_cast<int>(g), 0, most});
    else if (lanes < most)
      lacking.push_back(static_cast<int>(g)), lost += most - lanes;
  }
  report->why = OthersText(machine, full);
  // What the others lack is the other end of what a dead GPU lost.
  if (dead_lanes > 0 && lost <= dead_lanes) {
    for (const ShortGpu& dead : std::vector<ShortGpu>(report->gpus)) {
      for (const int g : lacking) {
        if (report->gpus.size() == 1)
          report->links.push_back({std::min(dead.gpu, g), std::max(dead.gpu, g), 0, most - machine.gpus[g].Lanes()});
      }
    }
    return;
  }
  if (lacking.size() == 2 && machine.gpus[lacking[0]].Lanes() == machine.gpus[lacking[1]].Lanes()) {
    const int have = std::min(machine.gpus[lacking[0]].LanesTo(lacking[1]), machine.gpus[lacking[1]].LanesTo(lacking[0]));
    report->links.push_back({lacking[0], lacking[1], have, have + most - machine.gpus[lacking[0]].Lanes()});
    return;
  }
  for (const int g : lacking) report->gpus.push_back({g, machine.gpus[g].Lanes(), most});
}

// A board that is sold with NVLink, where NCCL looked and found none on any GPU. Only a whole board tells: a virtual machine or
// container that was given a few of its GPUs may have been given no links with them.
constexpr size_t kWholeBoard = 8;
void NoneAtAll(const Machine& machine, LaneReport* report) {
  if (machine.gpus.size() < kWholeBoard || machine.LinksAnywhere()) return;
  const catalog::GpuProduct* product = nullptr;
  for (const MachineGpu& gpu : machine.gpus) {
    const catalog::GpuProduct* one = catalog::BoardProduct(gpu.product);
    if (one == nullptr || !gpu.links_told || (product != nullptr && product->lanes != one->lanes)) return;
    product = one;
  }
  report->none_at_all = true;
  report->product = std::string(product->name);
  // The compute capability of a topology file outranks the device number: files are edited by hand.
  const int sm = machine.gpus[0].sm;
  report->switched = product->switched && machine.gpus.size() >= 8 && (sm == 0 || sm >= 80);
  report->expected = sm == 70 ? 6 : sm == 60 ? 4 : product->lanes;
  report->why = absl::StrCat("by the product, ", report->product);
}

// Machines of one product against each other: all GPUs of one short of lanes is seen only from another.
void AcrossMachines(const Machines& machines, std::vector<LaneReport>* reports) {
  std::map<uint32_t, std::pair<int, const Machine*>> most;
  const auto product_of = [](const Machine& machine) -> uint32_t {
    std::set<uint32_t> products;
    for (const MachineGpu& gpu : machine.gpus) products.insert(gpu.product);
    return products.size() == 1 ? *products.begin() : 0;
  };
  for (const Machine& machine : machines.list) {
    const uint32_t product = product_of(machine);
    if (product == 0 || !machine.nvswitch || !Known(machine)) continue;
    const int lanes = Most(machine);
    auto& best = most[product];
    if (lanes > best.first) best = {lanes, &machine};
  }
  for (size_t m = 0; m < machines.list.size(); ++m) {
    const Machine& machine = machines.list[m];
    LaneReport& report = (*reports)[m];
    const auto it = most.find(product_of(machine));
    if (it == most.end() || !machine.links_told || !Known(machine) || it->second.second == &machine || machine.gpus.empty())
      continue;
    const auto& [lanes, best] = it->second;
    if (Most(machine) >= lanes || report.none_at_all) continue;
    report.gpus.clear();
    report.expected = lanes;
    report.why = absl::StrCat("on GPUs of the same product", best->name.empty() ? "" : " on ", best->name);
    for (size_t g = 0; g < machine.gpus.size(); ++g) {
      if (machine.gpus[g].links_told) report.gpus.push_back({static_cast<int>(g), machine.gpus[g].Lanes(), lanes});
    }
  }
}

}  // namespace

bool LaneReport::Dead(int gpu) const {
  return std::any_of(gpus.begin(), gpus.end(), [&](const ShortGpu& s) { return s.gpu == gpu && s.lanes == 0; });
}

std::vector<LaneReport> LaneReports(const Machines& machines) {
  std::vector<LaneReport> reports(machines.list.size());
  for (size_t m = 0; m < machines.list.size(); ++m) {
    const Machine& machine = machines.list[m];
    // A matrix without NV# may be an old tool's, or a container's view: only NCCL's own look says "none at all".
    if (!machine.links_told || !Known(machine) || !Comparable(machine)) continue;
    if (machine.nvswitch)
      Switched(machine, &reports[m]);
    else if (machine.LinksAnywhere())
      Direct(machine, &reports[m]);
    else if (!machine.logs.empty() || machine.file != nullptr)
      NoneAtAll(machine, &reports[m]);
  }
  AcrossMachines(machines, &reports);
  return reports;
}

bool WouldReach(const Machine& machine, const LaneReport& report, int a, int b) {
  if (a < 0 || b < 0 || a == b) return false;
  if (machine.NvlinkReaches(a, b)) return true;
  if (report.none_at_all) return true;
  if (machine.nvswitch) {
    const auto ends_in_switch = [&](int g) {
      return report.Dead(g) || std::any_of(machine.gpus[g].links.begin(), machine.gpus[g].links.end(),
                                           [](const MachineGpu::Link& link) { return link.peer == MachineGpu::kSwitch; });
    };
    return ends_in_switch(a) && ends_in_switch(b);
  }
  // Direct links, and relays over one GPU, with the missing links put back.
  const auto joined = [&](int x, int y) {
    return machine.gpus[x].LanesTo(y) > 0 || std::any_of(report.links.begin(), report.links.end(), [&](const MissingLink& l) {
             return l.expected > 0 && ((l.a == x && l.b == y) || (l.a == y && l.b == x));
           });
  };
  if (joined(a, b)) return true;
  for (int g = 0; g < static_cast<int>(machine.gpus.size()); ++g) {
    if (g != a && g != b && joined(a, g) && joined(g, b)) return true;
  }
  return false;
}

}  // namespace ringscope::reasoning
