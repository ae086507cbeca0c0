#include "analyzer/reasoning/wait_graph.h"

#include <algorithm>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "analyzer/reasoning/wait_graph_roots.h"

namespace ringscope::reasoning::graph {
namespace {

using OpKey = std::tuple<int, int, uint64_t>;                  // comm, rank, position
using MessageKey = std::tuple<int, int, int, bool, uint64_t>;  // comm, rank, peer, send, number

bool Terminal(Host host) { return host != Host::kSync && host != Host::kApi; }
bool NotRunning(Host host) {
  return host == Host::kFrozen || host == Host::kDead || host == Host::kLost ||
         host == Host::kExited;
}

class Builder {
 public:
  Builder(const Input& input, Result* result) : in_(input), out_(*result) {
    for (size_t i = 0; i < in_.ops.size(); ++i) {
      const Participation& op = in_.ops[i];
      ops_[{op.comm, op.rank, op.position}] = static_cast<int>(i);
      of_rank_[op.rank].push_back(static_cast<int>(i));
      for (const Message& m : op.messages) {
        messages_[{op.comm, op.rank, m.peer, m.send, m.number}] = static_cast<int>(i);
      }
    }
    for (size_t c = 0; c < in_.comms.size(); ++c) {
      const Comm& comm = in_.comms[c];
      for (size_t i = 0; i < comm.ranks.size() && i < comm.entered.size(); ++i) {
        entered_[{static_cast<int>(c), comm.ranks[i]}] = comm.entered[i];
      }
    }
    for (const MessageTotal& t : in_.totals)
      totals_[{t.comm, t.rank, t.peer, t.send, 0}] = t.number;
    for (size_t i = 0; i < in_.edges.size(); ++i) {
      const EdgeView& e = in_.edges[i];
      if (in_.comms[e.comm].p2p) {
        p2p_edges_[{e.comm, e.from, e.to}].push_back(static_cast<int>(i));
      } else {
        edges_[{e.comm, -1, e.send_position}].push_back(static_cast<int>(i));
      }
    }
  }

  void Run() {
    for (size_t i = 0; i < in_.ops.size(); ++i) {
      const Participation& op = in_.ops[i];
      // What only waits in its stream leads to the operation before it; starting there is enough.
      if (!op.stuck || op.progress.Reached(Stage::kFinished) || op.progress.Before(Stage::kEntered))
        continue;
      if (op.progress.Before(Stage::kStarted) && !Unfinished(op.after).empty()) continue;
      out_.starts.push_back(OpNode(op.comm, op.rank, op.position));
    }
    while (done_ < out_.nodes.size()) Expand(static_cast<int>(done_++));
  }

 private:
  // ---- nodes
  int Make(Node node) {
    const int unit =
        node.unit.empty()
            ? 0
            : units_.try_emplace(node.unit, static_cast<int>(units_.size()) + 1).first->second;
    const auto key = std::make_tuple(static_cast<int>(node.kind), node.comm, node.position,
                                     node.rank, node.peer, unit);
    const auto [it, fresh] = index_.try_emplace(key, static_cast<int>(out_.nodes.size()));
    if (fresh) {
      out_.nodes.push_back(std::move(node));
      out_.next.emplace_back();
    } else {
      Node& known = out_.nodes[it->second];
      known.weak = known.weak && node.weak;
      for (int e : node.edges) {
        if (std::find(known.edges.begin(), known.edges.end(), e) == known.edges.end())
          known.edges.push_back(e);
      }
    }
    return it->second;
  }
  int OpNode(int comm, int rank, uint64_t position) {
    return Make({.kind = Node::kOp, .comm = comm, .position = position, .rank = rank});
  }
  int HostNode(int rank) { return Make({.kind = Node::kHost, .rank = rank}); }
  int GpuNode(int rank) { return Make({.kind = Node::kGpu, .rank = rank}); }
  // The GPU, or, where that cannot be known, what stands in front of it.
  int GpuNode(int rank, int comm, uint64_t position) {
    if (!in_.ranks[rank].queue_hidden) return GpuNode(rank);
    return Make({.kind = Node::kComm, .comm = comm, .position = position, .rank = rank});
  }
  int RecordNode(int rank) { return Make({.kind = Node::kMissingRecord, .rank = rank}); }
  void Link(int from, int to) {
    auto& list = out_.next[from];
    if (std::find(list.begin(), list.end(), to) == list.end()) list.push_back(to);
  }
  // For lists that may be as long as the communicator: the caller sees to it that nothing repeats.
  void LinkNew(int from, int to) { out_.next[from].push_back(to); }

  // ---- facts
  const Participation* Find(int comm, int rank, uint64_t position) const {
    const auto it = ops_.find({comm, rank, position});
    return it == ops_.end() ? nullptr : &in_.ops[it->second];
  }
  Progress ProgressOf(int comm, int rank, uint64_t position) const {
    if (const Participation* op = Find(comm, rank, position)) return op->progress;
    if (in_.ranks[rank].host == Host::kNoRecord) return {};
    const auto it = entered_.find({comm, rank});
    if (it != entered_.end() && position <= it->second) return {Stage::kFinished, Stage::kFinished};
    return {Stage::kNotEntered, Stage::kNotEntered};
  }
  // Those known to be unfinished; only if there are none, those that may be.
  std::vector<int> Unfinished(const std::vector<int>& indices) const {
    std::vector<int> open, perhaps;
    for (int i : indices) {
      const Progress& p = in_.ops[i].progress;
      if (p.Before(Stage::kFinished)) {
        open.push_back(i);
      } else if (!p.Reached(Stage::kFinished)) {
        perhaps.push_back(i);
      }
    }
    return open.empty() ? perhaps : open;
  }

  // ---- expand
  void Expand(int n) {
    const Node node = out_.nodes[n];
    switch (node.kind) {
      case Node::kOp:
        return ExpandOp(n, node);
      case Node::kHost:
        return ExpandHost(n, node.rank);
      case Node::kLateHub:
        return ExpandLate(n, node);
      case Node::kAbsentHub:
        return ExpandAbsent(n, node);
      case Node::kBodyHub:
        return ExpandBody(n, node);
      case Node::kGroupHub:
        return ExpandGroup(n, node);
      // A rank that lacks a message may still come to it: it waits for that rank's host. Only if
      // that leads back here the message has no partner (End::kUnmatched).
      case Node::kUnmatched:
        return Link(n, HostNode(node.rank));
      default:
        return;
    }
  }

  void ExpandHost(int n, int rank) {
    const Rank& r = in_.ranks[rank];
    if (r.host == Host::kNoRecord) return Link(n, RecordNode(rank));
    if (!r.waits_for.empty() && !NotRunning(r.host)) {
      for (int peer : r.waits_for) Link(n, HostNode(peer));
      return;
    }
    if (Terminal(r.host)) return;
    int found = 0;
    const auto it = of_rank_.find(rank);
    if (it != of_rank_.end()) {
      for (int i : it->second) {
        const Participation& op = in_.ops[i];
        if (!op.stuck || !op.progress.Reached(Stage::kEnqueued) ||
            op.progress.Reached(Stage::kFinished))
          continue;
        LinkNew(n, OpNode(op.comm, op.rank, op.position));
        ++found;
      }
    }
    if (found == 0 && r.host == Host::kApi && it != of_rank_.end()) {
      for (int i : it->second) {
        const Participation& op = in_.ops[i];
        if (op.stuck && Inside(op.progress) && CallWaits(op)) {
          LinkNew(n, OpNode(op.comm, op.rank, op.position));
        }
      }
    }
    // A launch can block because the queue of the GPU is full: then what is enqueued is the reason,
    // not the call.
    if (found == 0 && r.host == Host::kSync) Link(n, GpuNode(rank));
  }

  void ExpandOp(int n, const Node& node) {
    const Progress p = ProgressOf(node.comm, node.rank, node.position);
    if (p.Reached(Stage::kFinished)) return;
    if (in_.ranks[node.rank].host == Host::kNoRecord &&
        Find(node.comm, node.rank, node.position) == nullptr) {
      return Link(n, RecordNode(node.rank));
    }
    if (p.Before(Stage::kEntered)) return Link(n, HostNode(node.rank));
    if (p.Before(Stage::kEnqueued))
      return ExpandCall(n, *Find(node.comm, node.rank, node.position));
    const Participation& op = *Find(node.comm, node.rank, node.position);
    const std::vector<int> before = Unfinished(op.after);
    if (p.Before(Stage::kStarted) || (!p.Reached(Stage::kStarted) && !before.empty())) {
      // A process that is dead or frozen starts nothing and reports nothing: its cursors are those
      // of its last moment.
      if (NotRunning(in_.ranks[node.rank].host)) return Link(n, HostNode(node.rank));
      for (int i : before) Link(n, OpNode(in_.ops[i].comm, in_.ops[i].rank, in_.ops[i].position));
      if (before.empty()) Link(n, GpuNode(node.rank, node.comm, node.position));
      return;
    }
    if (in_.comms[node.comm].p2p) return ExpandMessages(n, op);
    const int late = Make({.kind = Node::kLateHub, .comm = node.comm, .position = node.position});
    Expand(late);  // at once: whether anybody is late decides what else is asked
    if (!out_.next[late].empty()) return Link(n, late);
    if (p.Before(Stage::kFinished)) {
      Link(n, Make({.kind = Node::kBodyHub, .comm = node.comm, .position = node.position}));
    }
  }

  // A call that does not return while others have not come may be setting up the connection to them
  // (first use). Where all that are known have come, it may wait for those that are not.
  static bool Inside(const Progress& p) {
    return p.Reached(Stage::kEntered) && p.Before(Stage::kEnqueued);
  }
  int AbsentHub(const Participation& op) {
    const int hub = Make({.kind = Node::kAbsentHub, .comm = op.comm, .position = op.position});
    Expand(hub);
    return hub;
  }
  bool CallWaits(const Participation& op) {
    if (!in_.comms[op.comm].p2p) return !out_.next[AbsentHub(op)].empty();
    return std::any_of(op.messages.begin(), op.messages.end(), [&](const Message& m) {
      return m.peer != op.rank && !PartnerEntered(op, m);
    });
  }
  void ExpandCall(int n, const Participation& op) {
    if (!NotRunning(in_.ranks[op.rank].host) && CallWaits(op)) {
      if (!in_.comms[op.comm].p2p) return Link(n, AbsentHub(op));
      for (const Message& m : op.messages) {
        if (m.peer != op.rank && !PartnerEntered(op, m)) LinkPartner(n, op, m);
      }
      return;
    }
    Link(n, HostNode(op.rank));
  }
  bool PartnerEntered(const Participation& op, const Message& m) const {
    const auto found = messages_.find({op.comm, m.peer, op.rank, !m.send, m.number});
    if (found != messages_.end()) return !in_.ops[found->second].progress.Before(Stage::kEntered);
    const auto total = totals_.find({op.comm, m.peer, op.rank, !m.send, 0});
    return total != totals_.end() && total->second >= m.number;
  }
  void ExpandAbsent(int n, const Node& node) {
    if (!hub_known_.insert(n).second) return;
    std::vector<int> unknown;
    for (int rank : in_.comms[node.comm].ranks) {
      if (in_.ranks[rank].host == Host::kNoRecord &&
          Find(node.comm, rank, node.position) == nullptr) {
        unknown.push_back(rank);
      } else if (ProgressOf(node.comm, rank, node.position).Before(Stage::kEntered)) {
        LinkNew(n, OpNode(node.comm, rank, node.position));
      }
    }
    if (!out_.next[n].empty()) return;
    for (int rank : unknown) LinkNew(n, RecordNode(rank));
  }

  void ExpandLate(int n, const Node& node) {
    if (!hub_known_.insert(n).second) return;
    for (int rank : in_.comms[node.comm].ranks) {
      if (ProgressOf(node.comm, rank, node.position).Before(Stage::kStarted)) {
        LinkNew(n, OpNode(node.comm, rank, node.position));
      }
    }
  }

  // All members that are known have started.
  void ExpandBody(int n, const Node& node) {
    bool halted = false;
    std::vector<int> unknown;
    const Participation* some = nullptr;
    for (int rank : in_.comms[node.comm].ranks) {
      const Progress p = ProgressOf(node.comm, rank, node.position);
      if (in_.ranks[rank].host == Host::kNoRecord && !p.Reached(Stage::kStarted))
        unknown.push_back(rank);
      if (const Participation* op = Find(node.comm, rank, node.position)) {
        if (some == nullptr || op->pattern != Pattern::kOther) some = op;
      }
      if (!p.Reached(Stage::kFinished) && NotRunning(in_.ranks[rank].host)) {
        LinkNew(n, HostNode(rank));
        halted = true;
      }
    }
    const auto it = edges_.find({node.comm, -1, node.position});
    if (it != edges_.end()) halted |= LinkHaltedDrivers(n, it->second);
    if (halted) return;

    PivotQuery query;
    if (some != nullptr) {
      query.pattern = some->pattern;
      query.chain = some->chain;
    }
    query.ranks = in_.comms[node.comm].ranks;
    query.hosts_complete = unknown.empty();
    query.host = [this](int rank) { return HostName(rank); };
    if (it != edges_.end()) {
      for (int e : it->second) query.edges.push_back(in_.edges[e]);
    }
    for (Suspect& s : FindSuspects(query)) {
      for (int& e : s.edges) e = it->second[e];
      const int instead = s.kind == Suspect::kWire ? UnseenBeyond(s, query) : -1;
      const int hidden = QueueHiddenAt(s);
      Link(n, instead >= 0  ? RecordNode(instead)
              : hidden >= 0 ? Make({.kind = Node::kComm, .comm = node.comm, .position = node.position, .rank = hidden})
                            : SuspectNode(std::move(s)));
    }
    if (!out_.next[n].empty()) return;
    for (int rank : unknown) LinkNew(n, RecordNode(rank));
    if (unknown.empty() && !LinkLastOnes(n, node, query.chain))
      Link(n, Make({.kind = Node::kComm, .comm = node.comm, .position = node.position}));
  }

  // A fault near the end of an operation: nothing is under way on any edge, and all members have finished but some of one host.
  // Who has finished has given all that others need. (In a chain the first ones are always done early.)
  bool LinkLastOnes(int n, const Node& node, bool chain) {
    if (chain) return false;
    std::vector<int> left;
    size_t finished = 0;
    for (int rank : in_.comms[node.comm].ranks) {
      const Progress p = ProgressOf(node.comm, rank, node.position);
      if (p.Reached(Stage::kFinished)) {
        ++finished;
      } else if (p.Before(Stage::kFinished)) {
        left.push_back(rank);
      } else {
        return false;
      }
    }
    if (finished == 0 || left.empty()) return false;
    const std::string host = HostName(left.front());
    for (int rank : left) {
      if (HostName(rank) != host) return false;
    }
    if (left.size() == 1) {
      Link(n, Make({.kind = Node::kGpu, .comm = node.comm, .position = node.position, .rank = left.front(), .weak = true}));
    } else {
      Link(n, Make({.kind = Node::kUnit, .comm = node.comm, .position = node.position, .unit = host, .weak = true}));
    }
    return true;
  }

  // An edge that stands by its counts alone (its sender waits for the GPU, not for the wire) may
  // stand because the receiver's proxy is held up by its own send, whose other end is not seen:
  // then that rank's record decides. -1: no such send.
  int UnseenBeyond(const Suspect& s, const PivotQuery& query) const {
    for (int e : s.edges) {
      if (in_.edges[e].send.state == trace::SEND_WAIT && in_.edges[e].send.phase == EdgeEnd::kOpen)
        return -1;
    }
    for (const EdgeView& edge : query.edges) {
      if (edge.from == s.to && edge.recv.phase == EdgeEnd::kUnseen &&
          edge.send.phase == EdgeEnd::kOpen && edge.send.state == trace::SEND_WAIT &&
          in_.ranks[edge.to].host == Host::kNoRecord) {
        return edge.to;
      }
    }
    return -1;
  }

  std::string HostName(int rank) const {
    return static_cast<size_t>(rank) < in_.hosts.size() && !in_.hosts[rank].empty()
               ? in_.hosts[rank]
               : "only rank " + std::to_string(rank);
  }

  // An edge whose proxy belongs to a process that does not run stands still because of that
  // process.
  bool LinkHaltedDrivers(int n, const std::vector<int>& edges) {
    bool any = false;
    for (int e : edges) {
      for (const EdgeEnd* end : {&in_.edges[e].send, &in_.edges[e].recv}) {
        if (end->phase != EdgeEnd::kOpen || end->driver < 0 ||
            !NotRunning(in_.ranks[end->driver].host))
          continue;
        Link(n, HostNode(end->driver));
        any = true;
      }
    }
    return any;
  }

  // A rank of the suspected GPU or host whose queue holds what is not visible; -1: none.
  int QueueHiddenAt(const Suspect& s) const {
    if (s.kind == Suspect::kGpu) return in_.ranks[s.rank].queue_hidden ? s.rank : -1;
    if (s.kind != Suspect::kUnit) return -1;
    for (size_t r = 0; r < in_.ranks.size(); ++r) {
      if (in_.ranks[r].queue_hidden && HostName(static_cast<int>(r)) == s.unit) return static_cast<int>(r);
    }
    return -1;
  }

  int SuspectNode(Suspect s) {
    Node node;
    node.rank = s.from;
    node.peer = s.to;
    node.edges = std::move(s.edges);
    node.weak = s.weak;
    switch (s.kind) {
      case Suspect::kWire:
        node.kind = Node::kEdge;
        break;
      case Suspect::kControl:
        node.kind = Node::kControl;
        break;
      case Suspect::kFlush:
        node.kind = Node::kFlush;
        break;
      case Suspect::kUnequal:
        node.kind = Node::kUnequal;
        break;
      case Suspect::kGpu:
        node.kind = Node::kGpu;
        node.rank = s.rank;
        node.peer = -1;
        break;
      case Suspect::kUnit:
        node.kind = Node::kUnit;
        node.rank = node.peer = -1;
        node.unit = std::move(s.unit);
        break;
    }
    return Make(std::move(node));
  }

  // ---- send and receive
  void ExpandMessages(int n, const Participation& op) {
    for (const Message& m : op.messages) {
      if (m.peer != op.rank) LinkPartner(n, op, m);
    }
    if (out_.next[n].empty()) {
      for (int queued : QueuedPartners(op)) Link(n, queued);
    }
    if (!out_.next[n].empty() || !op.progress.Before(Stage::kFinished)) return;
    if (op.group != 0) {
      Link(n, Make({.kind = Node::kGroupHub,
                    .comm = op.comm,
                    .position = op.group,
                    .rank = op.rank,
                    .peer = n}));
    } else {
      Link(n,
           Make({.kind = Node::kComm, .comm = op.comm, .position = op.position, .rank = op.rank}));
    }
  }

  // Nothing is linked when nothing is missing on the other side and no edge says anything.
  void LinkPartner(int n, const Participation& op, const Message& m) {
    const int peer = m.peer;
    const auto found = messages_.find({op.comm, peer, op.rank, !m.send, m.number});
    if (found != messages_.end()) {
      const Participation& partner = in_.ops[found->second];
      if (partner.progress.Before(Stage::kStarted)) {
        Link(n, OpNode(partner.comm, partner.rank, partner.position));
      } else if (NotRunning(in_.ranks[peer].host) && !partner.progress.Reached(Stage::kFinished)) {
        Link(n, HostNode(peer));
      } else {
        LinkMessageEdge(n, op, m, &partner);
      }
      return;
    }
    if (in_.ranks[peer].host == Host::kNoRecord) return Link(n, RecordNode(peer));
    const auto total = totals_.find({op.comm, peer, op.rank, !m.send, 0});
    if (total != totals_.end() && total->second >= m.number)
      return LinkMessageEdge(n, op, m, nullptr);
    Link(n, Make({.kind = Node::kUnmatched,
                  .comm = op.comm,
                  .position = m.number,
                  .rank = peer,
                  .peer = op.rank,
                  .unit = m.send ? "recv" : "send"}));
  }

  // Messages that share a row and show no steps, as inside a host: with whom they are exchanged is known, and which of those have not
  // begun theirs.
  std::vector<int> QueuedPartners(const Participation& op) {
    std::vector<int> queued;
    if (!op.shared || op.progress.Reached(Stage::kFinished)) return queued;
    for (int peer : in_.comms[op.comm].ranks) {
      if (peer == op.rank || totals_.count({op.comm, peer, op.rank, true, 0}) + totals_.count({op.comm, peer, op.rank, false, 0}) == 0)
        continue;
      if (const int node = QueuedShared(op, peer); node >= 0) queued.push_back(node);
    }
    return queued;
  }

  // `partner`: nullptr when it is over.
  void LinkMessageEdge(int n, const Participation& op, const Message& m,
                       const Participation* partner) {
    const auto it =
        p2p_edges_.find({op.comm, m.send ? op.rank : m.peer, m.send ? m.peer : op.rank});
    if (it == p2p_edges_.end()) return;
    std::vector<int> mine;
    PivotQuery query;
    for (int e : it->second) {
      EdgeView edge = in_.edges[e];
      const uint64_t here = m.send ? edge.send_position : edge.recv_position;
      const uint64_t there = m.send ? edge.recv_position : edge.send_position;
      if (here != op.position) continue;
      EdgeEnd& other = m.send ? edge.recv : edge.send;
      // The other end may be at an earlier or later message of this direction.
      if (partner == nullptr && other.phase == EdgeEnd::kOpen && edge.in_step) {
        // The partner is one of several messages in a row of its own; the counts say that it is
        // this one.
      } else if (other.phase != EdgeEnd::kUnseen &&
                 (partner == nullptr || there > partner->position)) {
        other.phase = EdgeEnd::kOver;
      } else if (partner != nullptr && there != 0 && there < partner->position) {
        other.phase = EdgeEnd::kNotBegun;
      }
      mine.push_back(e);
      query.edges.push_back(edge);
    }
    if (LinkHaltedDrivers(n, mine)) return;
    const size_t before = out_.next[n].size();
    for (Suspect& s : FindSuspects(query)) {
      for (int& e : s.edges) e = mine[e];
      const int queued = s.kind == Suspect::kGpu && partner == nullptr ? QueuedShared(op, s.rank) : -1;
      Link(n, queued >= 0 ? queued : SuspectNode(std::move(s)));
    }
    // One pair, one direction: the pivot is the GPU that owes, or the one that does not take.
    for (size_t i = 0; i < mine.size() && out_.next[n].size() == before; ++i) {
      const EdgeView& edge = query.edges[i];
      if (edge.recv.phase != EdgeEnd::kOpen) continue;
      const EdgeVerdict verdict = Judge(edge);
      if (verdict != EdgeVerdict::kStarved && verdict != EdgeVerdict::kBackedUp) continue;
      const int gpu = verdict == EdgeVerdict::kStarved ? edge.from : edge.to;
      const Participation* owner = gpu == op.rank ? &op : partner;
      if (owner != nullptr && owner->group != 0) {
        // The kernel of a group moves all its messages: another of them may hold this one up.
        Link(
            n,
            Make(
                {.kind = Node::kGroupHub, .comm = op.comm, .position = owner->group, .rank = gpu}));
      } else {
        const int queued = partner == nullptr ? QueuedShared(op, gpu) : -1;
        Link(n, queued >= 0 ? queued : GpuNode(gpu, op.comm, op.position));
      }
    }
  }
  // The partner of a message that stands is in a row that several messages share: the oldest of that rank that has not started. Its
  // GPU does not owe what is not its turn yet. -1: none.
  int QueuedShared(const Participation& op, int rank) {
    const auto it = of_rank_.find(rank);
    if (rank == op.rank || it == of_rank_.end()) return -1;
    const Participation* oldest = nullptr;
    for (int i : it->second) {
      const Participation& other = in_.ops[i];
      if (!other.shared || other.comm != op.comm || other.progress.Reached(Stage::kFinished)) continue;
      if (oldest == nullptr || other.position < oldest->position) oldest = &other;
    }
    if (oldest == nullptr || !oldest->progress.Before(Stage::kStarted)) return -1;
    return OpNode(oldest->comm, oldest->rank, oldest->position);
  }

  // Of the open messages of one kernel: those that wait for something outside of it. Nothing: its
  // GPU.
  void ExpandGroup(int n, const Node& node) {
    bool outside = false;
    const auto it = of_rank_.find(node.rank);
    if (it != of_rank_.end()) {
      for (int i : it->second) {
        const Participation& op = in_.ops[i];
        if (op.comm != node.comm || op.group != node.position ||
            op.progress.Reached(Stage::kFinished))
          continue;
        for (const Message& m : op.messages) {
          if (m.peer == op.rank) continue;
          const auto found = messages_.find({op.comm, m.peer, op.rank, !m.send, m.number});
          const auto total = totals_.find({op.comm, m.peer, op.rank, !m.send, 0});
          const bool there = found != messages_.end()
                                 ? !in_.ops[found->second].progress.Before(Stage::kStarted)
                                 : total != totals_.end() && total->second >= m.number && QueuedShared(op, m.peer) < 0;
          if (there) continue;
          Link(n, OpNode(op.comm, op.rank, op.position));
          outside = true;
          break;
        }
        if (!outside && !QueuedPartners(op).empty()) {
          Link(n, OpNode(op.comm, op.rank, op.position));
          outside = true;
        }
      }
    }
    if (outside) return;
    if (node.peer >= 0) {
      Link(n, Make({.kind = Node::kComm,
                    .comm = node.comm,
                    .position = out_.nodes[node.peer].position,
                    .rank = node.rank}));
    } else {
      Link(n, GpuNode(node.rank, node.comm, 0));
    }
  }

  const Input& in_;
  Result& out_;
  size_t done_ = 0;
  absl::flat_hash_map<std::tuple<int, int, uint64_t, int, int, int>, int> index_;
  absl::flat_hash_map<std::string, int> units_;
  absl::flat_hash_map<OpKey, int> ops_;
  absl::flat_hash_map<MessageKey, int> messages_;
  absl::flat_hash_map<MessageKey, uint64_t> totals_;
  absl::flat_hash_map<std::pair<int, int>, uint64_t> entered_;
  absl::flat_hash_map<OpKey, std::vector<int>> edges_;  // comm, -1, position
  absl::flat_hash_map<std::tuple<int, int, int>, std::vector<int>> p2p_edges_;
  absl::flat_hash_map<int, std::vector<int>> of_rank_;
  absl::flat_hash_set<int> hub_known_;
};

}  // namespace

Result Analyse(const Input& input) {
  Result result;
  if (AddEarlyRoots(input, &result)) return result;
  Builder(input, &result).Run();
  AddRoots(input, &result);
  return result;
}

}  // namespace ringscope::reasoning::graph
