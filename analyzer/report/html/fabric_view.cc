#include "analyzer/report/html/fabric_view.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <set>

namespace ringscope::report::html {
namespace {

using State = model::LinkReading::State;
constexpr uint64_t kBusMask = (uint64_t{1} << 56) - 1;  // NodeId: system << 56 | bus id

class Builder {
 public:
  explicit Builder(const Context& c) : c_(c), e_(c.job.evidence) {}

  FabricView Build() {
    v_.host = Host();
    Planned();
    Readings();
    Ports();
    Ranks();
    Faults();
    std::stable_sort(v_.gpus.begin(), v_.gpus.end(), [](const FabricGpu& a, const FabricGpu& b) {
      const auto bus = [](const FabricGpu& g) { return g.bus_id.value_or(UINT64_MAX); };
      return bus(a) != bus(b) ? bus(a) < bus(b) : a.index < b.index;
    });
    Links();
    if (v_.gpus.size() > kMostGpus) v_.gpus.resize(kMostGpus);
    return std::move(v_);
  }

 private:
  // Text names none where there is but one host.
  bool Here(const std::string& host) const {
    return v_.host.empty() ? host.empty() : model::SameHost(host, v_.host) || (host.empty() && only_host_);
  }

  std::string Host() {
    std::set<std::string> told;
    for (const auto& s : e_.plan.systems) told.insert(s.by.host);
    for (const auto& s : e_.hardware.snapshots) told.insert(s.by.host);
    std::set<std::string> hosts = told;
    for (const model::Process& p : c_.job.processes) hosts.insert(p.host);
    hosts.erase("");
    only_host_ = hosts.size() <= 1;
    if (!c_.host.empty()) return c_.host;
    told.erase("");
    return told.empty() ? "" : *told.begin();
  }

  FabricGpu& Gpu(std::optional<model::BusId> bus, int index) {
    for (FabricGpu& gpu : v_.gpus) {
      if ((bus && gpu.bus_id == bus) || (index >= 0 && gpu.index == index && (!bus || !gpu.bus_id))) {
        if (bus) gpu.bus_id = bus;
        if (index >= 0 && gpu.index < 0) gpu.index = index;
        return gpu;
      }
    }
    v_.gpus.emplace_back();
    v_.gpus.back().bus_id = bus;
    v_.gpus.back().index = index;
    return v_.gpus.back();
  }

  // The newest picture with the most GPUs; what earlier ones saw else is told beside it.
  void Planned() {
    for (const model::TopologySystem& s : e_.plan.systems) {
      if (!Here(s.by.host) || s.gpus.empty()) continue;
      if (system_ == nullptr || s.gpus.size() >= system_->gpus.size()) system_ = &s;
    }
    if (system_ == nullptr) return;
    v_.source = e_.PlaceText(system_->where);
    v_.nvswitch = system_->nvswitch;
    for (const model::TopologyGpu& g : system_->gpus) {
      FabricGpu& gpu = Gpu(g.bus_id, -1);
      gpu.planned = true;
      gpu.parent = g.parent;
      gpu.numa = g.numa;
      gpu.nvlink_gbps = Bandwidth(g);
      for (const model::TopologyLink& link : g.links) v_.nvswitch |= link.nvswitch;
    }
    for (const model::TopologySystem& s : e_.plan.systems) {
      if (!Here(s.by.host) || s.gpus.size() != system_->gpus.size()) continue;
      v_.nvswitch |= s.nvswitch;
      for (const model::TopologyGpu& g : s.gpus) {
        FabricGpu& gpu = Gpu(g.bus_id, -1);
        if (Bandwidth(g) > gpu.nvlink_gbps) gpu.before_gbps = std::max(gpu.before_gbps, Bandwidth(g));
      }
    }
    const std::vector<std::string> adapters = Adapters();
    for (const model::TopologyNic& n : system_->nics) {
      const bool listed = adapters.size() == system_->nics.size() && n.id < adapters.size();
      v_.nics.push_back({!n.name.empty() ? n.name
                         : listed        ? adapters[static_cast<size_t>(n.id)]
                                         : absl::StrCat("NET/", n.id),
                         n.parent, n.numa, n.bw, ""});
    }
  }
  // The adapters in NCCL's order ("Using [0]mlx5_0:1/IB [1]…"), as one process of the host listed them.
  std::vector<std::string> Adapters() const {
    std::vector<std::string> names;
    const model::Where* line = nullptr;
    for (const model::AdapterUse& use : e_.network.adapters) {
      if (!Here(use.by.host) || (line != nullptr && use.where != *line)) continue;
      line = &use.where;
      names.push_back(use.device);
    }
    return names;
  }
  static double Bandwidth(const model::TopologyGpu& gpu) {
    double sum = 0;
    for (const model::TopologyLink& link : gpu.links) sum += link.bw;
    return sum;
  }

  void Readings() {
    // NVML's index and the bus id of the same GPU, as its process logged them.
    for (const model::RankPlan& p : e_.plan.plans) {
      if (Here(p.by.host) && p.has_bus_id && p.nvml_device >= 0) Gpu(p.bus_id, p.nvml_device);
    }
    for (const model::HardwareSnapshot* s : SnapshotsInOrder(c_.job)) {
      if (!Here(s->by.host)) continue;
      for (const model::GpuReading& g : s->gpus) {
        if (!g.bus_id && g.index < 0) continue;
        FabricGpu& gpu = Gpu(g.bus_id, g.index);
        if (!g.product.empty()) gpu.product = g.product;
        if (g.lost) gpu.faults.push_back("does not answer");
        const bool states = g.all_links_inactive ||
                            std::any_of(g.links.begin(), g.links.end(), [](const auto& l) { return l.state != State::kUnknown; });
        if (!states) continue;
        v_.lanes_source = e_.PlaceText(s->where);
        if (g.all_links_inactive) std::fill(gpu.lanes.begin(), gpu.lanes.end(), State::kInactive);
        for (const model::LinkReading& link : g.links) {
          if (link.link < 0 || link.link >= kMostLanes || link.state == State::kUnknown) continue;
          if (gpu.lanes.size() <= static_cast<size_t>(link.link))
            gpu.lanes.resize(static_cast<size_t>(link.link) + 1, State::kUnknown);
          gpu.lanes[static_cast<size_t>(link.link)] = link.state;
        }
      }
    }
  }

  void Ports() {
    for (const model::RdmaPort& port : e_.network.ports) {
      if (!Here(port.by.host) || port.device.empty()) continue;
      const auto known = std::find_if(v_.nics.begin(), v_.nics.end(), [&](const FabricNic& n) { return n.name == port.device; });
      if (known == v_.nics.end() && v_.nics.size() >= kMostNics) continue;
      FabricNic& nic = known != v_.nics.end() ? *known : v_.nics.emplace_back(FabricNic{port.device, 0, -1, 0, ""});
      if (port.Down()) nic.fault = absl::StrCat("port ", port.port, " ", port.state);
    }
  }

  void Ranks() {
    for (const model::RankPlan& p : e_.plan.plans) {
      if (Here(p.by.host) && p.has_bus_id && !p.split && p.by.rank >= 0) Gpu(p.bus_id, -1).rank = p.by.rank;
    }
    for (const model::LogRank& r : e_.log_ranks) {
      if (Here(r.by.host) && r.bus_id && r.by.rank >= 0) Gpu(r.bus_id, -1).rank = r.by.rank;
    }
  }

  void Faults() {
    for (const model::XidFact& x : e_.kernel.xids) {
      if (!Here(x.by.host) || x.nvswitch || !x.bus_id) continue;
      FabricGpu& gpu = Gpu(x.bus_id, -1);
      std::string text = absl::StrCat("Xid ", x.number);
      if (x.link >= 0) {
        absl::StrAppend(&text, ", link ", x.link);
        Bad(x.link, &gpu);
      }
      if (std::find(gpu.faults.begin(), gpu.faults.end(), text) == gpu.faults.end() && gpu.faults.size() < 4)
        gpu.faults.push_back(text);
    }
    if (c_.first == nullptr || v_.host != c_.host) return;
    // "GPU 0000:9d:00.0", "GPU 3 (0000:61:00.0)", "GPU 2 link 3".
    const auto named = [&](const std::string& text) -> FabricGpu* {
      int index = -1;
      std::optional<model::BusId> bus;
      for (const absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(" (),"))) {
        const std::string_view w(word.data(), word.size());
        if (w.find(':') != w.npos) {
          bus = bus ? bus : model::ParseBusId(w);
        } else if (index < 0) {
          (void)absl::SimpleAtoi(word, &index);
        }
      }
      for (FabricGpu& gpu : v_.gpus) {
        if (bus ? gpu.bus_id == bus : index >= 0 && gpu.index == index) return &gpu;
      }
      return nullptr;
    };
    for (const std::string& text : c_.first->who().gpus()) {
      if (FabricGpu* gpu = named(text); gpu != nullptr) gpu->accused = true;
    }
    for (const std::string& text : c_.first->who().links()) {
      const size_t at = text.find(" link ");
      int link = -1;
      if (at == text.npos || !absl::SimpleAtoi(text.substr(at + 6), &link)) continue;
      if (FabricGpu* gpu = named(text.substr(0, at)); gpu != nullptr) {
        gpu->accused = true;
        Bad(link, gpu);
      }
    }
    for (FabricGpu& gpu : v_.gpus) gpu.accused |= gpu.rank >= 0 && c_.named.contains(gpu.rank);
  }
  static void Bad(int link, FabricGpu* gpu) {
    if (link < 0 || link >= kMostLanes) return;
    if (gpu->bad_lanes.size() <= static_cast<size_t>(link)) gpu->bad_lanes.resize(static_cast<size_t>(link) + 1);
    gpu->bad_lanes[static_cast<size_t>(link)] = true;
  }

  void Links() {
    if (system_ == nullptr) return;
    const auto at = [&](model::BusId bus) {
      for (size_t i = 0; i < v_.gpus.size(); ++i) {
        if (v_.gpus[i].bus_id == bus) return static_cast<int>(i);
      }
      return -1;
    };
    for (const model::TopologyGpu& g : system_->gpus) {
      for (const model::TopologyLink& link : g.links) {
        const int a = at(g.bus_id), b = link.nvswitch ? -1 : at(link.peer & kBusMask);
        if (a >= 0 && b > a) v_.links.push_back({a, b, link.bw, link.lanes});
      }
    }
  }

  static constexpr size_t kMostGpus = 16, kMostNics = 32;
  static constexpr int kMostLanes = 36;
  const Context& c_;
  const model::Evidence& e_;
  const model::TopologySystem* system_ = nullptr;
  bool only_host_ = false;
  FabricView v_;
};

}  // namespace

int FabricGpu::LanesUp() const { return static_cast<int>(std::count(lanes.begin(), lanes.end(), State::kActive)); }

FabricView FabricOf(const Context& c) { return Builder(c).Build(); }

}  // namespace ringscope::report::html
