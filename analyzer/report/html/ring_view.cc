#include "analyzer/report/html/ring_view.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <stdlib.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyzer/report/cursors.h"

namespace ringscope::report::html {
namespace {

using model::RankPlan;

RingEdge::Path PathOf(std::string_view via) {
  if (via.starts_with("P2P") || via.starts_with("direct pointer")) return RingEdge::Path::kP2p;
  if (via.starts_with("SHM") || via.starts_with("direct shared memory")) return RingEdge::Path::kShm;
  if (via.starts_with("NET") || via.starts_with("COLLNET")) return RingEdge::Path::kNet;
  return RingEdge::Path::kUnknown;
}

const char* Waits(trace::StepState state) {
  switch (state) {
    case trace::SEND_GPU_WAIT:
      return "waits for its GPU to fill the buffer";
    case trace::SEND_PEER_WAIT:
      return "waits for the receiver's clear-to-send";
    case trace::SEND_WAIT:
      return "has given data to the network, which has not delivered it";
    case trace::RECV_WAIT:
      return "waits for data";
    case trace::RECV_FLUSH_WAIT:
      return "waits for arrived data to reach GPU memory";
    case trace::RECV_GPU_WAIT:
      return "waits for its GPU to take the data";
    default:
      return "has no step open";
  }
}

class Builder {
 public:
  explicit Builder(const Context& c) : c_(c), plan_(c.job.evidence.plan) {}

  RingView Build() {
    Members();
    if (v_.nodes.empty()) return std::move(v_);
    Plans();
    Operation();
    if (!tree_ || !Tree()) Ring();
    Transports();
    Records();
    Accuse();
    return std::move(v_);
  }

 private:
  void Members() {
    if (c_.stalled == nullptr) return FromPlansAlone();
    v_.label = c_.stalled->Label();
    for (const model::Member& m : c_.stalled->members) {
      const std::string host = m.has_record()    ? c_.job.processes[static_cast<size_t>(m.process)].host
                               : m.job_rank >= 0 ? c_.job.HostOf(m.job_rank)
                                                 : "";
      v_.nodes.push_back({m.rank, m.job_rank, host});
    }
  }

  // Without records: the largest communicator that the logs tell of.
  void FromPlansAlone() {
    const RankPlan* largest = nullptr;
    for (const RankPlan& p : plan_.plans) {
      if (p.n_ranks > 1 && p.rank >= 0 && (largest == nullptr || p.n_ranks > largest->n_ranks)) largest = &p;
    }
    if (largest == nullptr || largest->n_ranks > kMostFromLogs) return;
    key_ = largest->communicator;
    v_.label = key_.empty() ? "the largest communicator of the logs" : key_;
    const bool world = !largest->split;
    for (int r = 0; r < largest->n_ranks; ++r) v_.nodes.push_back({r, world ? r : -1, ""});
    for (const RankPlan& p : plan_.plans) {
      if (p.communicator == key_ && p.n_ranks == largest->n_ranks && p.rank >= 0 && p.rank < p.n_ranks)
        v_.nodes[static_cast<size_t>(p.rank)].host = p.by.host;
    }
  }

  bool Ours(const RankPlan& p) const {
    if (p.rank < 0 || p.rank >= static_cast<int>(v_.nodes.size()) || p.n_ranks != static_cast<int>(v_.nodes.size())) return false;
    if (c_.stalled == nullptr) return p.communicator == key_;
    if (c_.stalled->id == 0) return false;
    char* end = nullptr;
    const uint64_t id = strtoull(p.communicator.c_str(), &end, 16);
    return end != p.communicator.c_str() && *end == 0 && id == c_.stalled->id;
  }

  void Plans() {
    mine_.resize(v_.nodes.size());
    for (size_t i = 0; i < plan_.plans.size(); ++i) {
      if (!Ours(plan_.plans[i])) continue;
      mine_[static_cast<size_t>(plan_.plans[i].rank)] = &plan_.plans[i];
      of_.insert(static_cast<int>(i));
      v_.channels = std::max(v_.channels, plan_.plans[i].channels);
    }
  }

  // The oldest operation that is open on any rank, and by which algorithms ranks run it.
  void Operation() {
    if (c_.stalled == nullptr) return;
    uint64_t oldest = 0;
    const auto open = [](const model::Op& op) {
      return !op.p2p() && op.full && op.raw.unfinished() && op.finished != model::Truth::kYes;
    };
    for (const model::Member& m : c_.stalled->members) {
      for (const model::Op& op : m.ops) {
        if (open(op) && (oldest == 0 || op.position() < oldest)) oldest = op.position();
      }
    }
    if (oldest == 0) return;
    std::map<std::string, std::vector<int>> by;
    for (const model::Member& m : c_.stalled->members) {
      const model::Op* op = m.has_record() ? m.Collective(oldest) : nullptr;
      if (op == nullptr) continue;
      if (v_.operation.empty()) v_.operation = absl::StrCat(FuncName(op->raw.func()), " #", oldest);
      if (op->raw.algo() == trace::ALGO_UNKNOWN) continue;
      by[absl::AsciiStrToLower(trace::Algo_Name(op->raw.algo()))].push_back(m.job_rank >= 0 ? m.job_rank : m.rank);
    }
    v_.algorithms.assign(by.begin(), by.end());
    tree_ = by.size() == 1 && by.begin()->first == "tree";
  }

  // Ring order of each channel for which all ranks' neighbours are told and make one circle.
  std::map<int, std::pair<std::vector<int>, model::Where>> Orders() const {
    const size_t n = v_.nodes.size();
    std::map<int, std::pair<std::vector<int>, model::Where>> orders;
    std::map<int, std::vector<int>> next;
    for (const RankPlan* p : mine_) {
      if (p == nullptr) continue;
      for (const model::PlanRing& ring : p->rings) {
        if (Permutation(ring.order)) orders[ring.channel] = {ring.order, p->where};
        if (ring.next < 0 || ring.next >= static_cast<int>(n)) continue;
        auto& of = next[ring.channel];
        of.resize(n, -1);
        of[static_cast<size_t>(p->rank)] = ring.next;
      }
    }
    for (const auto& [channel, of] : next) {
      if (orders.contains(channel)) continue;
      std::vector<int> order;
      for (int at = 0; at >= 0 && order.size() < n; at = of[static_cast<size_t>(at)]) order.push_back(at);
      if (Permutation(order) && of[static_cast<size_t>(order.back())] == 0) orders[channel] = {order, mine_[0]->where};
    }
    return orders;
  }
  bool Permutation(const std::vector<int>& order) const {
    std::vector<bool> seen(v_.nodes.size());
    for (const int r : order) {
      if (r < 0 || r >= static_cast<int>(seen.size()) || seen[static_cast<size_t>(r)]) return false;
      seen[static_cast<size_t>(r)] = true;
    }
    return order.size() == seen.size() && order.size() > 1;
  }

  // How many of the accused edges follow each other in this order.
  size_t Holds(const std::vector<int>& order) const {
    size_t n = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      const int a = v_.nodes[static_cast<size_t>(order[i])].job_rank;
      const int b = v_.nodes[static_cast<size_t>(order[(i + 1) % order.size()])].job_rank;
      n += c_.edges.contains({a, b}) || c_.other_edges.contains({a, b});
    }
    return n;
  }

  void Ring() {
    const auto orders = Orders();
    if (orders.empty()) return;
    auto best = orders.begin();
    std::set<std::vector<int>> different;
    for (auto it = orders.begin(); it != orders.end(); ++it) {
      different.insert(it->second.first);
      if (Holds(it->second.first) > Holds(best->second.first)) best = it;
    }
    v_.order = RingView::Order::kRing;
    v_.channel = best->first;
    v_.orders = static_cast<int>(different.size());
    v_.channels = std::max(v_.channels, static_cast<int>(orders.size()));
    v_.source = c_.job.evidence.PlaceText(best->second.second);
    const std::vector<int>& order = best->second.first;
    // From the ring's smallest rank, which is 0.
    const auto begin = std::find(order.begin(), order.end(), 0) - order.begin();
    std::vector<RingNode> nodes;
    for (size_t i = 0; i < order.size(); ++i)
      nodes.push_back(v_.nodes[static_cast<size_t>(order[(static_cast<size_t>(begin) + i) % order.size()])]);
    v_.nodes = std::move(nodes);
    for (size_t i = 0; i < order.size(); ++i) Edge(v_.nodes[i].rank, v_.nodes[(i + 1) % order.size()].rank);
  }

  bool Tree() {
    for (int channel = 0; channel < kMostChannels; ++channel) {
      std::vector<int> parent(v_.nodes.size(), -2);
      for (const RankPlan* p : mine_) {
        if (p == nullptr) continue;
        for (const model::PlanTree& tree : p->trees) {
          if (tree.channel == channel) parent[static_cast<size_t>(p->rank)] = tree.up;
        }
      }
      if (!IsTree(parent)) continue;
      v_.order = RingView::Order::kTree;
      v_.channel = channel;
      v_.parent = parent;
      v_.source = c_.job.evidence.PlaceText(mine_[0]->where);
      // A tree carries data both ways: up to reduce, down to hand out.
      for (size_t i = 0; i < parent.size(); ++i) {
        if (parent[i] >= 0) Edge(static_cast<int>(i), parent[i]);
      }
      return true;
    }
    return false;
  }
  static bool IsTree(const std::vector<int>& parent) {
    int roots = 0;
    for (size_t i = 0; i < parent.size(); ++i) {
      if (parent[i] < -1 || parent[i] >= static_cast<int>(parent.size())) return false;
      roots += parent[i] == -1;
      int at = static_cast<int>(i);
      for (size_t steps = 0; at != -1; at = parent[static_cast<size_t>(at)]) {
        if (++steps > parent.size()) return false;
      }
    }
    return roots == 1;
  }

  RingEdge& Edge(int from, int to) {
    const auto [it, fresh] = index_.try_emplace({from, to}, v_.edges.size());
    if (fresh) {
      v_.edges.emplace_back();
      v_.edges.back().from = from;
      v_.edges.back().to = to;
    }
    return v_.edges[it->second];
  }
  bool Inside(int rank) const { return rank >= 0 && rank < static_cast<int>(v_.nodes.size()); }

  void Transports() {
    for (const model::TransportLine& line : plan_.transports) {
      if (!of_.contains(line.plan) || !Inside(line.from) || !Inside(line.to) || line.from == line.to) continue;
      RingEdge& edge = Edge(line.from, line.to);
      // Both ends of a network connection log it; of several paths the one of most channels is told.
      if (line.channels <= edge.channels) continue;
      edge.via = line.via;
      edge.path = PathOf(line.via);
      edge.channels = line.channels;
    }
  }

  void Records() {
    if (c_.stalled == nullptr) return;
    for (const model::Edge& e : c_.job.edges) {
      if (e.communicator != c_.stalled->index || e.p2p || !Inside(e.from) || !Inside(e.to) || e.from == e.to) continue;
      RingEdge& edge = Edge(e.from, e.to);
      if (edge.path == RingEdge::Path::kUnknown) edge.path = RingEdge::Path::kNet;  // steps are of proxies
      const bool open = (e.sender && e.sender->open) || (e.receiver && e.receiver->open);
      if (!open || !edge.said.empty()) continue;
      edge.tone = RingEdge::Tone::kOpen;
      const auto side = [&](const char* who, const std::optional<model::EdgeSide>& s, const char* moved) {
        if (!s || s->raw == nullptr) return absl::StrCat(who, ": no record");
        return absl::StrCat(who, " ", Waits(s->raw->state()), ", ", s->raw->transmitted(), " of ", s->raw->n_steps(), " steps ",
                            moved);
      };
      edge.said = absl::StrCat("channel ", e.channel, ": ", side("sender", e.sender, "sent"), "; ",
                               side("receiver", e.receiver, "arrived"));
    }
  }

  void Accuse() {
    std::map<int, int> rank_of;
    for (const RingNode& node : v_.nodes) {
      if (node.job_rank >= 0) rank_of[node.job_rank] = node.rank;
    }
    const auto accuse = [&](std::pair<int, int> job, RingEdge::Tone tone, int finding) {
      const auto from = rank_of.find(job.first), to = rank_of.find(job.second);
      if (from == rank_of.end() || to == rank_of.end()) return;
      RingEdge& edge = Edge(from->second, to->second);
      if (edge.tone == RingEdge::Tone::kBroken) return;
      edge.tone = tone;
      edge.finding = finding;
    };
    // What an accused rank owes: its edges on which something is not done.
    for (RingEdge& edge : v_.edges) {
      const int from = NodeJob(edge.from);
      if (edge.tone == RingEdge::Tone::kOpen && c_.edges.empty() && c_.named.contains(from)) edge.tone = RingEdge::Tone::kStarved;
    }
    for (const auto& edge : c_.edges) accuse(edge, RingEdge::Tone::kBroken, 0);
    for (const auto& [edge, finding] : c_.other_edges) accuse(edge, RingEdge::Tone::kSuspect, finding);
  }

  int NodeJob(int rank) const {
    const int at = v_.NodeOf(rank);
    return at < 0 ? -1 : v_.nodes[static_cast<size_t>(at)].job_rank;
  }

  static constexpr int kMostChannels = 64, kMostFromLogs = 16384;
  const Context& c_;
  const model::PlanFacts& plan_;
  RingView v_;
  std::string key_;                    // the communicator, where there are only logs
  std::vector<const RankPlan*> mine_;  // newest plan of each rank
  std::set<int> of_;                   // indices of plans that are this communicator's
  bool tree_ = false;                  // the open operation runs over the tree
  std::map<std::pair<int, int>, size_t> index_;
};

}  // namespace

int RingView::NodeOf(int rank) const {
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].rank == rank) return static_cast<int>(i);
  }
  return -1;
}

RingView RingOf(const Context& c) { return Builder(c).Build(); }

}  // namespace ringscope::report::html
