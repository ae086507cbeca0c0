#include "analyzer/reasoning/machines.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "analyzer/model/views.h"

namespace ringscope::reasoning {
namespace {

using model::PathType;
using model::RankPlan;
using model::TopologyMatrix;
using model::TopologySystem;

constexpr uint64_t kBusMask = (uint64_t{1} << 56) - 1;
constexpr int kMostLanes = 18;  // of one GPU, to Blackwell

// Rates of one lane in NCCL's plans, GB/s (src/graph/topo.h 2.6-2.30), those in use longest first.
constexpr double kLaneRates[] = {20.6, 20.0, 18.0, 12.0, 22.0, 21.0, 40.1, 40.0};

// ---- which plans share a machine

struct HostGroups {
  std::vector<std::string> key_of_plan;
  std::map<std::string, std::string> name_of_key;
};

// Two ranks of one communicator cannot share a device. (They can share a localRank: without P2P and shared memory NCCL takes
// every process for a node of its own.)
bool Conflict(const std::vector<RankPlan>& plans, const std::vector<int>& group) {
  std::map<std::tuple<std::string, int, model::BusId>, int> seen;
  for (const int i : group) {
    const RankPlan& p = plans[i];
    if (p.rank < 0 || !p.has_bus_id) continue;
    const auto [it, fresh] = seen.emplace(std::make_tuple(p.communicator, p.n_ranks, p.bus_id), p.rank);
    if (!fresh && it->second != p.rank) return true;
  }
  return false;
}

std::string HostIdOf(const model::Evidence& evidence, const RankPlan& plan) {
  for (const model::Setting& s : evidence.settings) {
    if (s.name == "NCCL_HOSTID" && s.where.file == plan.where.file && s.by.pid == plan.by.pid && s.by.host == plan.by.host)
      return s.value;
  }
  return "";
}

HostGroups GroupHosts(const model::Evidence& evidence) {
  const std::vector<RankPlan>& plans = evidence.plan.plans;
  HostGroups groups;
  groups.key_of_plan.resize(plans.size());
  std::map<std::string, std::vector<int>> by_host;
  for (size_t i = 0; i < plans.size(); ++i) by_host[plans[i].by.host].push_back(static_cast<int>(i));
  for (const auto& [host, group] : by_host) {
    if (!Conflict(plans, group)) {
      for (const int i : group) groups.key_of_plan[i] = host;
      groups.name_of_key[host] = host;
      continue;
    }
    // Containers often carry the same name on every machine. NCCL's own host id tells them apart, else the files' names do,
    // else processes are taken in the order of their ranks and a new machine begins where a device comes again.
    std::map<std::string, std::vector<int>> finer;
    for (const int i : group) {
      std::string id = HostIdOf(evidence, plans[i]);
      if (id.empty() && plans[i].where.file >= 0) id = evidence.files[plans[i].where.file].host;
      finer[id].push_back(i);
    }
    for (auto& [id, part] : finer) {
      const std::string name = id.empty() ? host : id;
      if (!Conflict(plans, part)) {
        const std::string key = absl::StrCat(host, "\x1f", id);
        for (const int i : part) groups.key_of_plan[i] = key;
        groups.name_of_key[key] = name;
        continue;
      }
      std::stable_sort(part.begin(), part.end(), [&](int a, int b) { return plans[a].rank < plans[b].rank; });
      std::map<int64_t, std::string> of_process;
      std::vector<std::vector<int>> machines(1);
      for (const int i : part) {
        int at = -1;
        if (const auto it = of_process.find(plans[i].by.pid); it != of_process.end() && plans[i].by.pid >= 0) {
          groups.key_of_plan[i] = it->second;
          continue;
        }
        std::vector<int>& last = machines.back();
        last.push_back(i);
        if (Conflict(plans, last)) {
          last.pop_back();
          machines.push_back({i});
        }
        at = static_cast<int>(machines.size());
        const std::string key = absl::StrCat(host, "\x1f", id, "\x1f", at);
        groups.key_of_plan[i] = of_process[plans[i].by.pid] = key;
        groups.name_of_key[key] = absl::StrCat(name.empty() ? "host" : name, " #", at);
      }
    }
  }
  return groups;
}

// ---- joining what tells of one machine

class Builder {
 public:
  Builder(const model::Evidence& evidence, Machines* out) : evidence_(evidence), facts_(evidence.plan), out_(*out) {}

  void Build() {
    World();
    const HostGroups groups = GroupHosts(evidence_);
    std::map<std::string, int> of_key;
    std::map<std::tuple<std::string, int64_t, int, int>, int> generations;
    out_.of_plan.assign(facts_.plans.size(), -1);
    for (size_t i = 0; i < facts_.plans.size(); ++i) {
      const RankPlan& plan = facts_.plans[i];
      const auto [it, fresh] = of_key.emplace(groups.key_of_plan[i], static_cast<int>(out_.list.size()));
      if (fresh) {
        out_.list.emplace_back().name = groups.name_of_key.at(groups.key_of_plan[i]);
        hints_.emplace_back();
      }
      Machine& machine = out_.list[it->second];
      machine.plans.push_back(static_cast<int>(i));
      out_.of_plan[i] = it->second;
      // Communicators of one process, one after the other: what a later one saw of the machine is newer.
      const int generation = generations[{plan.by.host, plan.by.pid, plan.by.device, plan.where.file}]++;
      if (plan.system >= 0 && !facts_.systems[plan.system].gpus.empty()) {
        machine.logs.push_back(&facts_.systems[plan.system]);
        generation_[&facts_.systems[plan.system]] = generation;
      }
      out_.generation.push_back(generation);
      std::set<std::string>& hints = hints_[it->second];
      hints.insert(machine.name);
      hints.insert(plan.by.host);
      if (plan.where.file >= 0) hints.insert(evidence_.files[plan.where.file].host);
    }
    for (const TopologySystem& system : facts_.systems) {
      if (system.from_file && !system.gpus.empty()) PlaceFile(system);
    }
    for (const TopologyMatrix& matrix : facts_.matrices) PlaceMatrix(matrix);
    transports_.resize(out_.list.size());
    for (const model::TransportLine& t : facts_.transports) {
      if (t.plan >= 0 && out_.of_plan[t.plan] >= 0) transports_[out_.of_plan[t.plan]].push_back(&t);
    }
    for (size_t m = 0; m < out_.list.size(); ++m) Join(static_cast<int>(m));
    JobRanks();
  }

 private:
  void World() {
    for (const RankPlan& p : facts_.plans) {
      if (!p.split) out_.world = std::max(out_.world, p.n_ranks);
    }
    for (const RankPlan& p : facts_.plans) out_.is_world.push_back(!p.split && p.rank >= 0 && p.n_ranks == out_.world);
  }

  int MachineOfHint(std::string_view hint) const {
    int found = -1;
    if (hint.empty()) return -1;
    for (size_t m = 0; m < out_.list.size(); ++m) {
      if (hints_[m].count(std::string(hint)) == 0) continue;
      if (found >= 0) return -1;
      found = static_cast<int>(m);
    }
    return found;
  }

  int NewMachine(std::string name) {
    out_.list.emplace_back().name = std::move(name);
    hints_.emplace_back().insert(out_.list.back().name);
    return static_cast<int>(out_.list.size()) - 1;
  }

  void PlaceFile(const TopologySystem& system) {
    int at = MachineOfHint(system.by.host);
    if (at < 0) {
      // The ranks that it gives to its GPUs say whose it is.
      for (size_t m = 0; m < out_.list.size() && at < 0; ++m) {
        for (const int i : out_.list[m].plans) {
          const RankPlan& p = facts_.plans[i];
          for (const model::TopologyGpu& gpu : system.gpus) {
            if (p.has_bus_id && gpu.bus_id == p.bus_id && gpu.rank == p.rank && gpu.rank >= 0) at = static_cast<int>(m);
          }
        }
      }
    }
    if (at < 0 && out_.list.size() == 1 && !HasBusIds(out_.list[0])) at = 0;
    if (at < 0) at = NewMachine(system.by.host);
    if (out_.list[at].file == nullptr) out_.list[at].file = &system;
  }

  bool HasBusIds(const Machine& machine) const {
    return std::any_of(machine.plans.begin(), machine.plans.end(), [&](int i) { return facts_.plans[i].has_bus_id; });
  }

  void PlaceMatrix(const TopologyMatrix& matrix) {
    int at = MachineOfHint(matrix.by.host);
    if (at < 0 && out_.list.size() == 1) at = 0;
    if (at < 0 && (out_.list.empty() || !matrix.by.host.empty())) at = NewMachine(matrix.by.host);
    if (at < 0) return;  // several machines and nothing says which
    Machine& machine = out_.list[at];
    if (matrix.kind == TopologyMatrix::Kind::kP2p)
      machine.p2p.push_back(&matrix);
    else if (machine.matrix == nullptr)
      machine.matrix = &matrix;
  }

  void Join(int at) {
    Machine* machine = &out_.list[at];
    // A smaller communicator's topology lists the links among its own GPUs only.
    std::stable_sort(machine->logs.begin(), machine->logs.end(), [this](const TopologySystem* a, const TopologySystem* b) {
      if (a->gpus.size() != b->gpus.size()) return a->gpus.size() > b->gpus.size();
      return generation_.at(a) > generation_.at(b);
    });
    for (const TopologySystem* log : machine->logs) {
      const TopologySystem& first = *machine->logs[0];
      if (log->gpus.size() == first.gpus.size() && generation_.at(log) < generation_.at(&first) && SameGpus(*log, first)) {
        machine->earlier.push_back(log);
        continue;
      }
      AddSystem(*log, machine);
    }
    if (machine->file != nullptr) AddSystem(*machine->file, machine);
    for (const int i : machine->plans) AddPlan(facts_.plans[i], i, machine);
    AddTransports(transports_[at], machine);
    NumberByBus(machine);
    if (machine->matrix != nullptr) AddMatrix(machine);
    LaneRate(machine);
  }

  static bool SameGpus(const TopologySystem& a, const TopologySystem& b) {
    std::set<uint64_t> nodes;
    for (const model::TopologyGpu& gpu : a.gpus) nodes.insert(gpu.node);
    return std::all_of(b.gpus.begin(), b.gpus.end(), [&](const model::TopologyGpu& gpu) { return nodes.count(gpu.node) != 0; });
  }

  // The file has the counts of lanes and links to GPUs outside the job; the log has what NCCL reckoned with.
  void AddSystem(const TopologySystem& system, Machine* machine) {
    std::vector<int> at(system.gpus.size());
    for (size_t g = 0; g < system.gpus.size(); ++g) {
      const model::TopologyGpu& told = system.gpus[g];
      int index = machine->GpuOfNode(told.node);
      if (index < 0) {
        index = static_cast<int>(machine->gpus.size());
        machine->gpus.emplace_back();
      }
      at[g] = index;
      MachineGpu& gpu = machine->gpus[index];
      gpu.node = told.node;
      gpu.has_bus_id = true;
      gpu.bus_id = told.bus_id;
      if (told.device >= 0) gpu.index = told.device;
      if (told.sm > 0) gpu.sm = told.sm;
      if (told.product != 0) gpu.product = told.product;
      if (told.pci_bw > 0) gpu.pci_bw = told.pci_bw;
      gpu.numa = told.numa;
      gpu.parent = told.parent;
      if (gpu.where.file < 0) gpu.where = told.where;
      // The communicator's rank in the file is the job's only if nobody says otherwise (below).
      if (gpu.rank < 0) gpu.rank = told.rank;
    }
    for (size_t g = 0; g < system.gpus.size(); ++g) {
      MachineGpu& gpu = machine->gpus[at[g]];
      const bool again = gpu.links_told && !system.from_file;
      gpu.links_told = true;
      std::vector<MachineGpu::Link> links;
      if (again) links = gpu.links;
      for (const model::TopologyLink& told : system.gpus[g].links) {
        MachineGpu::Link link;
        link.peer = MachineGpu::kSwitch;
        if (!told.nvswitch) {
          const int peer = machine->GpuOfNode(told.peer);
          link.peer = peer >= 0 ? peer : MachineGpu::kOutside;
        }
        link.bw = told.bw;
        link.lanes = told.lanes;
        link.where = told.where;
        for (const MachineGpu::Link& known : gpu.links) {
          if (link.bw > 0 || known.peer != link.peer) continue;
          link.bw = known.bw;
          link.where = known.where;
        }
        if (again &&
            std::any_of(links.begin(), links.end(), [&](const MachineGpu::Link& known) { return known.peer == link.peer; }))
          continue;
        links.push_back(link);
      }
      gpu.links = std::move(links);
    }
    machine->links_told = true;
    machine->nvswitch |= system.nvswitch;
    machine->links_complete |= system.from_file || system.gpus.size() >= 8;
  }

  void AddPlan(const RankPlan& plan, int index, Machine* machine) {
    const int device = plan.nvml_device >= 0 ? plan.nvml_device : -1;
    int g = plan.has_bus_id ? machine->GpuOfBus(plan.bus_id) : -1;
    if (g < 0 && plan.has_bus_id) {
      g = static_cast<int>(machine->gpus.size());
      MachineGpu& gpu = machine->gpus.emplace_back();
      gpu.node = gpu.bus_id = plan.bus_id;
      gpu.has_bus_id = true;
      gpu.where = plan.init;
    }
    if (g < 0) return;
    if (device >= 0)
      machine->gpus[g].index = device;
    else if (machine->gpus[g].index < 0 && !HasDeviceClash(*machine, plan))
      machine->gpus[g].index = plan.cuda_device;
    if (out_.is_world[index]) machine->gpus[g].rank = plan.rank;
  }

  // CUDA's device numbers of different processes are all 0 where each sees one GPU.
  bool HasDeviceClash(const Machine& machine, const RankPlan& plan) const {
    return std::any_of(machine.plans.begin(), machine.plans.end(), [&](int i) {
      const RankPlan& other = facts_.plans[i];
      return other.cuda_device == plan.cuda_device && other.has_bus_id && plan.has_bus_id && other.bus_id != plan.bus_id;
    });
  }

  // "0[0] -> 1[1] via P2P/IPC": ranks whose own logs are missing. Both ends are on the speaker's machine.
  void AddTransports(const std::vector<const model::TransportLine*>& transports, Machine* machine) {
    for (const model::TransportLine* line : transports) {
      const model::TransportLine& t = *line;
      const RankPlan& plan = facts_.plans[t.plan];
      const bool world = out_.is_world[t.plan] || (out_.world == 0 && !plan.split);
      if (!world || t.via.starts_with("NET") || t.via.starts_with("P2P/MNNVL")) continue;
      Name(t.from, t.from_bracket, machine);
      Name(t.to, t.to_bracket, machine);
    }
  }

  void Name(int rank, const std::string& bracket, Machine* machine) {
    if (rank < 0 || bracket.empty() || machine->GpuOfRank(rank) >= 0) return;
    // Up to 2.18.1 the bracket is a bus id, never below 0x1000; later a device index.
    int g = -1;
    uint64_t device = 0;
    const auto bus = model::ParseNcclBusId(bracket);
    if (bracket.size() >= 4 && bus) {
      g = machine->GpuOfBus(*bus);
      if (g < 0) {
        g = static_cast<int>(machine->gpus.size());
        MachineGpu& gpu = machine->gpus.emplace_back();
        gpu.node = gpu.bus_id = *bus;
        gpu.has_bus_id = true;
      }
    } else if (absl::SimpleAtoi(bracket, &device) && device < 1024) {
      g = machine->GpuOfIndex(static_cast<int>(device));
      if (g < 0) {
        g = static_cast<int>(machine->gpus.size());
        machine->gpus.emplace_back().index = static_cast<int>(device);
      }
    }
    if (g >= 0 && machine->gpus[g].rank < 0) machine->gpus[g].rank = rank;
  }

  // GPUs known by bus id alone and GPUs known by index alone: NVML counts in the order of bus ids. Only where all that is known
  // of both agrees.
  void NumberByBus(Machine* machine) {
    std::vector<int> order;
    for (size_t g = 0; g < machine->gpus.size(); ++g) {
      if (machine->gpus[g].has_bus_id) order.push_back(static_cast<int>(g));
    }
    std::sort(order.begin(), order.end(), [&](int a, int b) { return machine->gpus[a].node < machine->gpus[b].node; });
    for (size_t i = 0; i < order.size(); ++i) {
      const int index = machine->gpus[order[i]].index;
      if (index >= 0 && index != static_cast<int>(i)) return;
    }
    for (const MachineGpu& gpu : machine->gpus) {
      if (!gpu.has_bus_id && gpu.index >= static_cast<int>(order.size())) return;
    }
    if (order.empty()) return;
    for (size_t i = 0; i < order.size(); ++i) {
      MachineGpu& gpu = machine->gpus[order[i]];
      for (const MachineGpu& bare : machine->gpus) {
        if (!bare.has_bus_id && bare.index == static_cast<int>(i) && gpu.rank < 0) gpu.rank = bare.rank;
      }
      gpu.index = static_cast<int>(i);
    }
    // Links hold indices in gpus: bare ones stand behind all others and no link names them.
    machine->gpus.erase(
        std::remove_if(machine->gpus.begin(), machine->gpus.end(), [](const MachineGpu& gpu) { return !gpu.has_bus_id; }),
        machine->gpus.end());
  }

  void AddMatrix(Machine* machine) {
    const TopologyMatrix& matrix = *machine->matrix;
    std::vector<int> columns;
    for (const std::string& name : matrix.columns) {
      int index = 0;
      columns.push_back(name.starts_with("GPU") && absl::SimpleAtoi(name.substr(3), &index) ? index : -1);
    }
    if (machine->gpus.empty()) {
      for (const int index : columns) {
        if (index >= 0) machine->gpus.emplace_back().index = index;
      }
    }
    if (machine->links_told) return;
    // A GPU whose pairs add up to more lanes than one GPU has is joined to the others by switches.
    std::vector<std::pair<int, std::vector<std::pair<int, int>>>> lanes;  // gpu, (peer, lanes)
    bool switched = false;
    for (const TopologyMatrix::Row& row : matrix.rows) {
      int index = -1, sum = 0;
      if (!row.name.starts_with("GPU") || !absl::SimpleAtoi(row.name.substr(3), &index)) continue;
      const int g = machine->GpuOfIndex(index);
      if (g < 0) continue;
      machine->gpus[g].where = row.where;
      machine->gpus[g].links_told = true;
      auto& [at, pairs] = lanes.emplace_back(g, std::vector<std::pair<int, int>>{});
      for (size_t c = 0; c < row.cells.size() && c < columns.size(); ++c) {
        int n = 0;
        if (columns[c] < 0 || !row.cells[c].starts_with("NV") || !absl::SimpleAtoi(row.cells[c].substr(2), &n) || n <= 0)
          continue;
        const int peer = machine->GpuOfIndex(columns[c]);
        pairs.push_back({peer >= 0 ? peer : MachineGpu::kOutside, n});
        sum += n;
      }
      switched |= sum > kMostLanes;
    }
    for (const auto& [g, pairs] : lanes) {
      int most = 0;
      for (const auto& [peer, n] : pairs) {
        most = std::max(most, n);
        if (!switched) machine->gpus[g].links.push_back({peer, 0, n, machine->gpus[g].where});
      }
      if (switched && most > 0) machine->gpus[g].links.push_back({MachineGpu::kSwitch, 0, most, machine->gpus[g].where});
    }
    machine->nvswitch |= switched;
    machine->links_told |= !lanes.empty();
    machine->links_complete |= !lanes.empty();
  }

  // Lanes from rates: the one rate that divides all of them.
  static void LaneRate(Machine* machine) {
    for (const double rate : kLaneRates) {
      bool all = true, any = false;
      for (const MachineGpu& gpu : machine->gpus) {
        int sum = 0;
        for (const MachineGpu::Link& link : gpu.links) {
          if (link.bw <= 0) continue;
          const double n = std::round(link.bw / rate);
          all &= n >= 1 && std::fabs(link.bw - n * rate) < 0.11 && (link.lanes == 0 || link.lanes == static_cast<int>(n));
          sum += static_cast<int>(n);
          any = true;
        }
        all &= sum <= kMostLanes;
      }
      if (!any) return;
      if (!all) continue;
      machine->lane_bw = rate;
      for (MachineGpu& gpu : machine->gpus) {
        for (MachineGpu::Link& link : gpu.links) {
          if (link.lanes == 0 && link.bw > 0) link.lanes = static_cast<int>(std::round(link.bw / rate));
        }
      }
      return;
    }
  }

  // Ranks in smaller communicators to ranks of the job, by the GPU.
  void JobRanks() {
    for (size_t i = 0; i < facts_.plans.size(); ++i) {
      const RankPlan& plan = facts_.plans[i];
      int rank = out_.is_world[i] || out_.world == 0 ? plan.rank : -1;
      if (rank < 0 && plan.has_bus_id && out_.of_plan[i] >= 0) {
        const Machine& machine = out_.list[out_.of_plan[i]];
        if (const int g = machine.GpuOfBus(plan.bus_id); g >= 0) rank = machine.gpus[g].rank;
      }
      if (rank < 0) rank = plan.by.rank;
      out_.job_rank.push_back(rank);
    }
  }

  const model::Evidence& evidence_;
  const model::PlanFacts& facts_;
  Machines& out_;
  std::map<const TopologySystem*, int> generation_;
  std::vector<std::set<std::string>> hints_;  // of each machine: names by which files may speak of it
  std::vector<std::vector<const model::TransportLine*>> transports_;
};

}  // namespace

int MachineGpu::Lanes() const {
  int sum = 0;
  for (const Link& link : links) sum += link.lanes;
  return sum;
}
double MachineGpu::Bandwidth() const {
  double sum = 0;
  for (const Link& link : links) sum += link.bw;
  return sum;
}
int MachineGpu::LanesTo(int peer) const {
  int sum = 0;
  for (const Link& link : links) sum += link.peer == peer ? link.lanes : 0;
  return sum;
}

int Machine::GpuOfRank(int rank) const {
  for (size_t g = 0; g < gpus.size(); ++g) {
    if (rank >= 0 && gpus[g].rank == rank) return static_cast<int>(g);
  }
  return -1;
}
int Machine::GpuOfIndex(int index) const {
  for (size_t g = 0; g < gpus.size(); ++g) {
    if (index >= 0 && gpus[g].index == index) return static_cast<int>(g);
  }
  return -1;
}
int Machine::GpuOfNode(uint64_t node) const {
  for (size_t g = 0; g < gpus.size(); ++g) {
    if (gpus[g].has_bus_id && gpus[g].node == node) return static_cast<int>(g);
  }
  return -1;
}
int Machine::GpuOfBus(model::BusId bus) const {
  int found = -1;
  for (size_t g = 0; g < gpus.size(); ++g) {
    if (!gpus[g].has_bus_id || (gpus[g].node & kBusMask) != bus) continue;
    if (found >= 0) return -1;  // MNNVL: the same address on several hosts
    found = static_cast<int>(g);
  }
  return found;
}
bool Machine::LinksAnywhere() const {
  return std::any_of(gpus.begin(), gpus.end(), [](const MachineGpu& gpu) { return !gpu.links.empty(); });
}
bool Machine::NvlinkJoins(int a, int b) const {
  if (a < 0 || b < 0) return false;
  const auto has = [&](int g, int peer) {
    return std::any_of(gpus[g].links.begin(), gpus[g].links.end(),
                       [&](const MachineGpu::Link& link) { return link.peer == peer; });
  };
  return has(a, b) || has(b, a) || (has(a, MachineGpu::kSwitch) && has(b, MachineGpu::kSwitch));
}
bool Machine::NvlinkReaches(int a, int b) const {
  if (a < 0 || b < 0) return false;
  if (NvlinkJoins(a, b)) return true;
  const auto has = [&](const MachineGpu& gpu, int peer) {
    return std::any_of(gpu.links.begin(), gpu.links.end(), [&](const MachineGpu::Link& link) { return link.peer == peer; });
  };
  return std::any_of(gpus.begin(), gpus.end(), [&](const MachineGpu& relay) { return has(relay, a) && has(relay, b); });
}

Machines MachinesOf(const model::Job& job) {
  Machines machines;
  Builder(job.evidence, &machines).Build();
  return machines;
}

std::string GpuText(const MachineGpu& gpu) {
  if (gpu.index < 0 && gpu.has_bus_id) return absl::StrCat("GPU ", model::BusIdText(gpu.bus_id));
  return absl::StrCat("GPU ", gpu.index, gpu.has_bus_id ? absl::StrCat(" (", model::BusIdText(gpu.bus_id), ")") : "");
}

std::string GpuText(const Machine& machine, const MachineGpu& gpu) {
  std::string text = GpuText(gpu);
  if (gpu.rank >= 0) {
    if (text.back() == ')')
      text.pop_back(), absl::StrAppend(&text, ", rank ", gpu.rank, ")");
    else
      absl::StrAppend(&text, " (rank ", gpu.rank, ")");
  }
  if (!machine.name.empty()) absl::StrAppend(&text, " on ", machine.name);
  return text;
}

}  // namespace ringscope::reasoning
