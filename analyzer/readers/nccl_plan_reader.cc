// Rings, trees, transports, topology and search results from NCCL's log (SUBSYS INIT, GRAPH), kept apart by rank and
// communicator.
//
// Lines between a rank's "Init START" and "Init COMPLETE" come from one thread; connections made later (at first use, 2.22 and
// later) come from others of that process, whose newest communicator is taken. Logs of several ranks may be interleaved line by
// line: everything hangs on who speaks.
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "analyzer/ingest/readers.h"
#include "analyzer/ingest/scan.h"
#include "analyzer/model/views.h"
#include "analyzer/readers/nccl_plan_lines.h"

namespace ringscope::ingest {
namespace {

using model::RankPlan;
using model::TopologySystem;
using model::TransportLine;

constexpr uint64_t kBusMask = (uint64_t{1} << 56) - 1;

class NcclPlan : public LineReader {
 public:
  explicit NcclPlan(const FileContext& context) : context_(context) {}

  bool Line(const TextLine& line) override {
    Take(line);
    return false;
  }

 private:
  using Thread = std::tuple<std::string, int64_t, int64_t, int>;  // host, pid, tid, device
  using Process = std::tuple<std::string, int64_t, int>;          // host, pid, device
  struct Open {
    int plan = -1;                                          // index in plans
    int system = -1;                                        // of which lines are being read
    size_t gpu = SIZE_MAX;                                  // the device whose links follow: index in its gpus
    std::vector<std::pair<size_t, model::BusId>> switches;  // PCIe switches above, with their indent
    int numa = -1;
    model::BusId nic = 0;
    std::map<std::tuple<int, int, std::string, int>, size_t> transports;  // from, to, via, direction -> index
  };

  model::PlanFacts& facts() { return context_.evidence->plan; }
  Thread ThreadOf(const TextLine& line) const { return {line.by.host, line.by.pid, line.by.tid, line.by.device}; }
  Process ProcessOf(const TextLine& line) const { return {line.by.host, line.by.pid, line.by.device}; }

  // The plan that this line belongs to; made when there is none. Releases up to 2.16 do not say where a communicator starts:
  // there a line that only stands in the setup (`setup`) begins the next one.
  Open& PlanOf(const TextLine& line, bool setup = false) {
    auto [it, fresh] = open_.try_emplace(ThreadOf(line));
    if (it->second.plan >= 0) return it->second;
    if (const auto last = newest_.find(ProcessOf(line)); last != newest_.end()) {
      const RankPlan& plan = Plan(*last->second);
      // A machine is described once a communicator: again, and the line that began the next one is lost.
      const bool next = plan.completed && plan.system >= 0 && line.text.starts_with("=== System");
      if (!next && (!setup || plan.started || !plan.completed)) return *last->second;
    }
    Begin(line, &it->second);
    return it->second;
  }

  void Begin(const TextLine& line, Open* open) {
    *open = Open{};
    open->plan = static_cast<int>(facts().plans.size());
    RankPlan plan;
    plan.where = line.where;
    plan.by = line.by;
    facts().plans.push_back(std::move(plan));
    newest_[ProcessOf(line)] = open;
  }
  RankPlan& Plan(const Open& open) { return facts().plans[open.plan]; }

  void Take(const TextLine& line) {
    const std::string_view text = line.text;
    if (TransportLine transport; transport.where = line.where, transport.by = line.by, TransportShape(text, &transport)) {
      AddTransport(line, std::move(transport));
    } else if (TakeInit(line)) {
    } else if (TakeRing(line)) {
    } else if (TakeTopology(line)) {
    } else {
      TakeFact(line);
    }
  }

  void AddTransport(const TextLine& line, TransportLine transport) {
    Open& open = PlanOf(line);
    // A line is written by the sender; network lines also by the receiver. Releases and pastes without init lines say no more.
    if (RankPlan& plan = Plan(open); plan.rank < 0 && line.by.pid >= 0)
      plan.rank = transport.receive ? transport.to : transport.from;
    const auto key = std::make_tuple(transport.from, transport.to, transport.via, transport.send ? 1 : transport.receive ? 2 : 0);
    const auto [it, fresh] = open.transports.try_emplace(key, facts().transports.size());
    if (!fresh) {
      ++facts().transports[it->second].channels;
      return;
    }
    transport.plan = open.plan;
    facts().transports.push_back(std::move(transport));
  }

  bool TakeInit(const TextLine& line) {
    RankPlan told;
    bool done = false;
    if (!InitShape(line.text, &told, &done)) return false;
    Open& open = open_[ThreadOf(line)];
    // COMPLETE closes what START or, up to 2.16, the plan's first line opened.
    if (open.plan < 0 || (!done && Plan(open).started) ||
        (!Plan(open).communicator.empty() && Plan(open).communicator != told.communicator))
      Begin(line, &open);
    RankPlan& plan = Plan(open);
    plan.rank = told.rank;
    plan.n_ranks = told.n_ranks;
    plan.communicator = told.communicator;
    plan.split |= told.split;
    plan.cuda_device = told.cuda_device;
    plan.nvml_device = told.nvml_device;
    if (told.has_bus_id) plan.has_bus_id = true, plan.bus_id = told.bus_id;
    plan.init = line.where;
    (done ? plan.completed : plan.started) = true;
    // What the thread says next is about another communicator; what other threads say may still be about this one.
    if (done) Close(line, &open);
    return true;
  }

  void Close(const TextLine& line, Open* open) {
    closed_.push_back(std::make_unique<Open>(std::move(*open)));
    newest_[ProcessOf(line)] = closed_.back().get();
    *open = Open{};
    if (closed_.size() > 4096) Forget();
  }

  // Keeps the newest of every process only.
  void Forget() {
    std::vector<std::unique_ptr<Open>> kept;
    for (auto& old : closed_) {
      for (const auto& [process, open] : newest_) {
        if (open == old.get()) {
          kept.push_back(std::move(old));
          break;
        }
      }
    }
    closed_ = std::move(kept);
  }

  bool TakeRing(const TextLine& line) {
    int channel = 0, channels = 0, me = -1;
    std::vector<int> order;
    if (RingOrderShape(line.text, &channel, &channels, &order)) {
      RankPlan& plan = Plan(PlanOf(line, true));
      if (channels > 0) plan.channels = channels;
      model::PlanRing& ring = RingOf(&plan, channel);
      ring.order.insert(ring.order.end(), order.begin(), order.end());
      return true;
    }
    if (model::PlanRing told; RingShape(line.text, &me, &told)) {
      RankPlan& plan = Plan(PlanOf(line, true));
      model::PlanRing& ring = RingOf(&plan, told.channel);
      ring.prev = told.prev;
      ring.next = told.next;
      if (plan.rank < 0) plan.rank = me;
      return true;
    }
    if (std::vector<model::PlanTree> trees; TreesShape(line.text, &me, &trees)) {
      RankPlan& plan = Plan(PlanOf(line, true));
      plan.trees.insert(plan.trees.end(), trees.begin(), trees.end());
      if (plan.rank < 0) plan.rank = me;
      return true;
    }
    return false;
  }

  model::PlanRing& RingOf(RankPlan* plan, int channel) {
    if (!plan->rings.empty() && plan->rings.back().channel == channel) return plan->rings.back();
    for (model::PlanRing& ring : plan->rings) {
      if (ring.channel == channel) return ring;
    }
    plan->rings.emplace_back().channel = channel;
    return plan->rings.back();
  }

  bool TakeTopology(const TextLine& line) {
    const std::string_view text = line.text;
    if (text.starts_with("=== System")) {
      Open& open = PlanOf(line, true);
      TopologySystem system;
      system.where = line.where;
      system.by = line.by;
      open.system = static_cast<int>(facts().systems.size());
      Plan(open).system = open.system;
      open.gpu = SIZE_MAX;
      open.switches.clear();
      facts().systems.push_back(std::move(system));
      return true;
    }
    TopologyShape shape;
    DeviceName name;
    std::string_view rest = text;
    if (TopologyLinkShape(text, &shape)) {
      Open& open = PlanOf(line);
      if (open.system >= 0) AddLink(line, shape, &open);
      return true;
    }
    if (std::vector<model::TopologyPath> paths; PathRowShape(text, &paths)) {
      Open& open = PlanOf(line);
      if (open.system < 0) return true;
      for (model::TopologyPath& path : paths) {
        path.where = line.where;
        facts().systems[open.system].paths.push_back(path);
      }
      return true;
    }
    if (TakeDevice(&rest, &name) && name.type == "CPU" && !Contains(rest, ":")) {
      Open& open = PlanOf(line);
      open.numa = static_cast<int>(name.id & 0xffff);
      open.switches.clear();
      open.gpu = SIZE_MAX;
      return true;
    }
    return false;
  }

  void AddLink(const TextLine& line, const TopologyShape& shape, Open* open) {
    TopologySystem& system = facts().systems[open->system];
    const std::string_view type = shape.device.type;
    while (!open->switches.empty() && open->switches.back().first >= shape.indent) open->switches.pop_back();
    const model::BusId parent = open->switches.empty() ? 0 : open->switches.back().second;
    if (shape.link == "NVL") {
      if (open->gpu >= system.gpus.size()) return;
      model::TopologyLink link;
      link.nvswitch = type == "NVS";
      if (!link.nvswitch) link.peer = shape.device.id;
      link.bw = shape.bw;
      link.where = line.where;
      system.nvswitch |= link.nvswitch;
      system.gpus[open->gpu].links.push_back(link);
    } else if (shape.link == "PCI" && type == "PCI") {
      open->switches.push_back({shape.indent, shape.device.id & kBusMask});
      open->gpu = SIZE_MAX;
    } else if (shape.link == "PCI" && (type == "GPU" || type == "DEV")) {
      model::TopologyGpu gpu;
      gpu.node = shape.device.id;
      gpu.bus_id = shape.device.id & kBusMask;
      gpu.parent = parent;
      gpu.numa = open->numa;
      gpu.pci_bw = shape.bw;
      gpu.where = line.where;
      Scan s(shape.rest);
      int64_t rank = 0;
      // "(10de233010de16c1)": the board; "(3)": the rank, up to 2.25.
      if (s.Char('(')) {
        if (type == "DEV" && s.rest.size() >= 8) {
          for (int i = 0; i < 8; ++i) {
            const char c = s.rest[i];
            const int digit = Scan::Digit(c) ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : 0;
            gpu.product = gpu.product << 4 | static_cast<uint32_t>(digit);
          }
        } else if (type == "GPU" && s.Number(&rank, 1, 7) && s.Char(')')) {
          gpu.rank = static_cast<int>(rank);
        }
      }
      open->gpu = system.gpus.size();
      system.gpus.push_back(std::move(gpu));
    } else if (shape.link == "PCI" && type == "NIC") {
      open->nic = shape.device.id & kBusMask;
      open->gpu = SIZE_MAX;
    } else if (type == "NET") {
      model::TopologyNic nic;
      nic.id = shape.device.id;
      nic.bus_id = open->nic;
      nic.parent = parent;
      nic.numa = open->numa;
      nic.bw = shape.bw;
      nic.where = line.where;
      system.nics.push_back(std::move(nic));
    }
  }

  void TakeFact(const TextLine& line) {
    const std::string_view text = line.text;
    if (model::PlanPattern pattern; PatternShape(text, &pattern)) {
      pattern.where = line.where;
      Plan(PlanOf(line)).patterns.push_back(pattern);
    } else if (RankPlan counts; ChannelCountsShape(text, &counts)) {
      RankPlan& plan = Plan(PlanOf(line));
      plan.coll_channels = counts.coll_channels;
      plan.nvls_channels = counts.nvls_channels;
      plan.p2p_channels = counts.p2p_channels;
      plan.counts = line.where;
    } else if (RankPlan nodes; NodesShape(text, &nodes)) {
      RankPlan& plan = Plan(PlanOf(line));
      if (plan.rank >= 0 && plan.rank != nodes.rank) return;
      plan.rank = nodes.rank;
      plan.n_ranks = nodes.n_ranks;
      plan.n_nodes = nodes.n_nodes;
      plan.local_ranks = nodes.local_ranks;
      plan.local_rank = nodes.local_rank;
      plan.mnnvl = nodes.mnnvl;
    } else if (text.starts_with("Using network ")) {
      RankPlan& plan = Plan(PlanOf(line));
      plan.network = std::string(text.substr(14, 40));
      plan.network_at = line.where;
    } else if (text.starts_with("NVLS multicast support is ")) {
      RankPlan& plan = Plan(PlanOf(line));
      plan.nvls_support = !Contains(text, "not available");
      plan.nvls_at = line.where;
    } else if (text.starts_with("Rank ") && Contains(text, " Net devices")) {
      Scan s(text.substr(5));
      int64_t rank = 0, devices = 0;
      if (!s.Number(&rank, 1, 8) || !s.Literal(": ") || !s.Number(&devices, 1, 5) || !s.Literal(" Net devices")) return;
      RankPlan& plan = Plan(PlanOf(line));
      if (plan.rank >= 0 && plan.rank != rank) return;
      plan.net_devices = static_cast<int>(devices);
      plan.net_devices_at = line.where;
    }
  }

  const FileContext& context_;
  std::map<Thread, Open> open_;  // nodes stay where they are
  std::map<Process, Open*> newest_;
  std::vector<std::unique_ptr<Open>> closed_;
};

const RegisterReader kRegister(LineReaderType{
    "NCCL plan",
    {R"((?:Channel|Ring)\s+\d+(?:/\d+)? :)", R"(comm 0x\w+ .*(?:Init (?:START|COMPLETE)|nNodes ))", R"(Trees \[\d)",
     R"(=== System)", R"(\+ (?:PCI|NVL|NET|LOC|SYS|C2C)\[ *[\d.]+\] - [A-Z]{3}/)", R"([A-Z]{3}/[0-9a-fA-F-]+ :[A-Z]{3}/)",
     R"(CPU/[0-9a-f-]+ \(\d)", R"(Pattern \d+, crossNic )", R"(\d+ coll channels)", R"(Using network )",
     R"(NVLS multicast support is )", R"(Rank \d+: \d+ Net devices)"},
    [](const FileContext& context) -> std::unique_ptr<LineReader> { return std::make_unique<NcclPlan>(context); }});

}  // namespace
}  // namespace ringscope::ingest
