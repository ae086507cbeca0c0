#include "analyzer/reasoning/plan_edges.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "analyzer/model/views.h"

namespace ringscope::reasoning {
namespace {

// Whether NVLink joined two GPUs when the plan was made, by what the planning rank saw: links come and go between two
// communicators. Empty: it does not list both.
std::optional<bool> JoinedThen(const model::TopologySystem& system, uint64_t a, uint64_t b) {
  const model::TopologyGpu *from = nullptr, *to = nullptr;
  for (const model::TopologyGpu& gpu : system.gpus) {
    if (gpu.node == a) from = &gpu;
    if (gpu.node == b) to = &gpu;
  }
  if (from == nullptr || to == nullptr) return std::nullopt;
  const auto leads = [](const model::TopologyGpu& gpu, uint64_t peer) {
    return std::any_of(gpu.links.begin(), gpu.links.end(), [&](const model::TopologyLink& link) {
      return peer == 0 ? link.nvswitch : !link.nvswitch && link.peer == peer;
    });
  };
  return leads(*from, b) || leads(*to, a) || (leads(*from, 0) && leads(*to, 0));
}

Carrier CarrierOf(const Machine& machine, const model::TopologySystem* planned, const model::TransportLine& line, int a, int b) {
  const std::string_view via = line.via;
  if (via.starts_with("NET")) return Carrier::kNet;
  if (via.starts_with("SHM") || via.starts_with("direct shared memory")) return Carrier::kShm;
  if (via.starts_with("P2P/indirect")) return Carrier::kRelay;
  if (via.starts_with("P2P/MNNVL")) return Carrier::kNvlink;
  // Only Ampere reads over NVLink (src/transport/p2p.cc).
  if (via.ends_with("/read") && !machine.links_told) return Carrier::kNvlink;
  if (!machine.links_told || a < 0 || b < 0 || !machine.gpus[a].links_told || !machine.gpus[b].links_told)
    return Carrier::kP2pUnknown;
  std::optional<bool> joined;
  if (planned != nullptr) joined = JoinedThen(*planned, machine.gpus[a].node, machine.gpus[b].node);
  return joined.value_or(machine.NvlinkJoins(a, b)) ? Carrier::kNvlink : Carrier::kPcie;
}

class EdgeFinder {
 public:
  EdgeFinder(const model::Job& job, const Machines& machines) : facts_(job.evidence.plan), machines_(machines) {
    for (size_t i = 0; i < facts_.plans.size(); ++i) {
      const model::RankPlan& p = facts_.plans[i];
      if (p.rank >= 0) plan_of_.emplace(std::make_tuple(p.communicator, p.n_ranks, p.rank), static_cast<int>(i));
    }
  }

  std::vector<PlanEdge> Find() {
    for (const model::TransportLine& line : facts_.transports) Add(line);
    return std::move(edges_);
  }

 private:
  void Add(const model::TransportLine& line) {
    if (line.plan < 0 || machines_.of_plan[line.plan] < 0) return;
    const int m = machines_.of_plan[line.plan];
    const Machine& machine = machines_.list[m];
    const model::RankPlan& plan = facts_.plans[line.plan];
    const bool net = line.via.starts_with("NET");
    const auto [from_machine, from_gpu, from] = End(plan, line.plan, line.from, line.from_bracket, net, m);
    const auto [to_machine, to_gpu, to] = End(plan, line.plan, line.to, line.to_bracket, net, m);
    if (from_machine != m || to_machine != m || from == to) return;
    PlanEdge edge;
    edge.from = from;
    edge.to = to;
    edge.machine = m;
    edge.from_gpu = from_gpu;
    edge.to_gpu = to_gpu;
    edge.carrier = CarrierOf(machine, plan.system < 0 ? nullptr : &facts_.systems[plan.system], line, from_gpu, to_gpu);
    edge.channels = line.channels;
    edge.line = &line;
    const auto [it, fresh] = seen_.try_emplace(std::make_tuple(m, from, to, edge.carrier), edges_.size());
    if (fresh) edges_.push_back(edge);
    PlanEdge& known = edges_[it->second];
    known.channels = std::max(known.channels, edge.channels);
    known.lines.push_back(&line);
  }

  // machine, GPU, job rank of one end.
  std::tuple<int, int, int> End(const model::RankPlan& plan, int index, int rank, const std::string& bracket, bool net,
                                int m) const {
    const Machine& machine = machines_.list[m];
    if (const auto it = plan_of_.find(std::make_tuple(plan.communicator, plan.n_ranks, rank)); it != plan_of_.end()) {
      const model::RankPlan& peer = facts_.plans[it->second];
      const int at = machines_.of_plan[it->second];
      const int g = at >= 0 && peer.has_bus_id ? machines_.list[at].GpuOfBus(peer.bus_id) : -1;
      const int job = machines_.job_rank[it->second];
      // Without init lines every speaker's communicator looks the same.
      if (!plan.communicator.empty()) return {at, g >= 0 ? g : at == m ? machine.GpuOfRank(job) : -1, job};
    }
    if (net && plan.n_nodes != 1) return {-1, -1, -1};
    const bool world = machines_.is_world[index] || machines_.world == 0;
    int g = world ? machine.GpuOfRank(rank) : -1;
    if (g < 0) {
      uint64_t device = 0;
      const auto bus = model::ParseNcclBusId(bracket);
      if (bracket.size() >= 4 && bus)
        g = machine.GpuOfBus(*bus);
      else if (!bracket.empty() && bracket.size() < 4 && bracket.find_first_not_of("0123456789") == bracket.npos)
        device = std::stoul(bracket), g = machine.GpuOfIndex(static_cast<int>(device));
    }
    return {m, g, world ? rank : g >= 0 ? machine.gpus[g].rank : -1};
  }

  const model::PlanFacts& facts_;
  const Machines& machines_;
  std::map<std::tuple<std::string, int, int>, int> plan_of_;
  std::map<std::tuple<int, int, int, Carrier>, size_t> seen_;
  std::vector<PlanEdge> edges_;
};

}  // namespace

std::vector<PlanEdge> LocalEdges(const model::Job& job, const Machines& machines) { return EdgeFinder(job, machines).Find(); }

std::string CarrierText(const PlanEdge& edge) {
  switch (edge.carrier) {
    case Carrier::kShm:
      return "SHM (host memory)";
    case Carrier::kNet: {
      const std::string_view via = edge.line->via;
      return std::string(via.substr(0, via.find('/', 4)));
    }
    case Carrier::kPcie:
      return "PCIe P2P";
    case Carrier::kRelay:
      return "a relay over NVLink";
    default:
      return "P2P";
  }
}

std::string LineText(const model::TransportLine& line) {
  const auto end = [](int rank, const std::string& bracket) {
    return absl::StrCat(rank, bracket.empty() ? "" : absl::StrCat("[", bracket, "]"));
  };
  return absl::StrFormat("Channel %02d : %s -> %s%s via %s%s", line.channel, end(line.from, line.from_bracket),
                         end(line.to, line.to_bracket),
                         line.send      ? " [send]"
                         : line.receive ? " [receive]"
                                        : "",
                         line.via, line.channels > 1 ? absl::StrCat(" (", line.channels, " channels)") : "");
}

std::string EdgesText(const std::vector<const PlanEdge*>& edges) {
  std::set<std::pair<int, int>> pairs;
  for (const PlanEdge* edge : edges) pairs.insert({std::min(edge->from, edge->to), std::max(edge->from, edge->to)});
  std::string text;
  size_t n = 0;
  for (const auto& [a, b] : pairs) {
    if (n++ == 8) break;
    absl::StrAppend(&text, text.empty() ? "" : ", ", a, "-", b);
  }
  if (pairs.size() > 8) absl::StrAppend(&text, " and ", pairs.size() - 8, " more");
  return text;
}

void AddEdges(const std::vector<const PlanEdge*>& edges, size_t most, Finding* finding) {
  std::set<std::pair<int, int>> pairs;
  for (const PlanEdge* edge : edges) {
    if (edge->from >= 0 && edge->to >= 0) pairs.insert({edge->from, edge->to});
  }
  for (const auto& [from, to] : pairs) {
    if (static_cast<size_t>(finding->who().edges_size()) >= most) return;
    EdgeName& name = *finding->mutable_who()->add_edges();
    name.set_from(from);
    name.set_to(to);
  }
}

}  // namespace ringscope::reasoning
