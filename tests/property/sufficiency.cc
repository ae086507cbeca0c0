#include "tests/property/sufficiency.h"

#include <algorithm>
#include <map>

#include "tests/property/operation_steps.h"

namespace ringscope::property {
namespace {

size_t Index(int i) { return static_cast<size_t>(i); }

// The thresholds below which a slowness is no finding (docs/localisation.md, Stragglers and Slow
// edges), with a margin.
constexpr int kEnoughInstances = 12;
constexpr uint64_t kEnoughSteps = 130;
constexpr int kUsualCalls = 4;

class Judge {
 public:
  Judge(const World& w, const Played& played, const Recorded& recorded)
      : w_(w), played_(played), plans_(recorded.plans) {
    for (const RecordPlan& plan : plans_) all_seen_ &= plan.exists;
  }

  Label Run() {
    Label all;
    all.healthy = true;
    all.fault = w_.faults.empty() ? FaultKind::kNone : w_.faults[0].kind;
    bool enough = true;
    for (size_t f = 0; f < w_.faults.size(); ++f) {
      if (!Bites(f)) continue;
      Label one;
      Decide(w_.faults[f], &one);
      all.healthy = false;
      if (all.why.empty()) all.fault = w_.faults[f].kind;
      all.why += (all.why.empty() ? "" : "; ") + one.why;
      enough &= one.sufficient;
      for (auto& a : one.right) (one.sufficient ? all.right : all.also_true).push_back(a);
      for (auto& a : one.also_true) all.also_true.push_back(a);
    }
    all.sufficient = all.healthy || enough;
    // Two faults of one kind may be told together.
    if (all.right.size() == 2 && all.right[0].kinds == all.right[1].kinds) {
      Who both = all.right[0].who[0];
      for (const Who& who : all.right[1].who) {
        both.ranks.insert(who.ranks.begin(), who.ranks.end());
        both.edges.insert(who.edges.begin(), who.edges.end());
        break;
      }
      all.right.push_back({all.right[0].kinds, {both}});
    }
    if (all.healthy) all.why = "nothing is wrong";
    // A job that hangs although no fault is known would be a fault of the generator.
    if (all.healthy && played_.hangs)
      all.why = "hangs without a fault", all.healthy = all.sufficient = false;
    return all;
  }

 private:
  bool Seen(int rank) const { return plans_[Index(rank)].exists; }
  bool CommSeen(int comm) const {
    const auto& ranks = w_.comms[Index(comm)].ranks;
    return std::all_of(ranks.begin(), ranks.end(), [this](int r) { return Seen(r); });
  }
  // Somebody of the same host whose recorder lived on, and whose record is there.
  bool Witnessed(int rank) const {
    for (int r = 0; r < w_.ranks; ++r) {
      if (r != rank && w_.SameHost(r, rank) && Seen(r) && played_.ranks[Index(r)].gone == kNever &&
          !plans_[Index(r)].clean)
        return true;
    }
    return false;
  }
  bool Bites(size_t f) const {
    const Fault& fault = w_.faults[f];
    const HostState host =
        fault.rank >= 0 ? played_.ranks[Index(fault.rank)].host : HostState::kDone;
    switch (fault.kind) {
      case FaultKind::kNone:
      case FaultKind::kSlowStart:
      case FaultKind::kLateStart:
      case FaultKind::kCheckpoint:
      case FaultKind::kIdle:
      case FaultKind::kCount:
        return false;
      case FaultKind::kStuckHost:
        return host == HostState::kStuck;
      case FaultKind::kKilled:
        return host == HostState::kKilled;
      case FaultKind::kFrozen:
        return host == HostState::kFrozen;
      case FaultKind::kExited:
        return host == HostState::kExited;
      case FaultKind::kCollective:
      case FaultKind::kOrder:
        return true;
      // Different calls are a fact once they are made, whether their operation ever runs or not.
      case FaultKind::kSize:
        return CallsTell(fault, 1) > 0 || played_.bites[f];
      case FaultKind::kGpuBefore:
      case FaultKind::kGpuMid:
      case FaultKind::kWire:
      case FaultKind::kControl:
      case FaultKind::kFlush:
        return played_.bites[f];
      case FaultKind::kCycle2:
      case FaultKind::kCycle3:
        return played_.hangs;
      case FaultKind::kUnmatched:
      case FaultKind::kEdgeSlow:
      case FaultKind::kHostSlow:
      case FaultKind::kGpuSlow:
        return true;
    }
    return false;
  }
  // Some living rank's record shows that it waits: an operation that certainly did not finish, or
  // steps of a connection that stand.
  bool WaitingIsVisible() const {
    for (int r = 0; r < w_.ranks; ++r) {
      if (!Seen(r) || played_.ranks[Index(r)].gone != kNever) continue;
      for (const OpRun& op : played_.ranks[Index(r)].ops) {
        if (op.finished != kNever || op.entered == kNever) continue;
        if (w_.recording.api_events() && op.enqueued == kNever) return true;
        if (op.enqueued == kNever) continue;
        if (w_.recording.completion_visible() || w_.comms[Index(op.call.comm)].over_network)
          return true;
      }
    }
    return false;
  }
  // Positions of the communicator that are still in the rank's record.
  bool Kept(int rank, int comm, uint64_t position) const {
    const RecordPlan& plan = plans_[Index(rank)];
    const double now = std::min(plan.cut, plan.written);
    size_t later = 0;
    bool there = false;
    for (const OpRun& op : played_.ranks[Index(rank)].ops) {
      if (op.call.comm != comm || op.enqueued > now) continue;
      if (!op.call.p2p() && op.position == position) there = true;
      later += there ? 1 : 0;
    }
    // Below v5 what is kept first may have been launched together with what is gone.
    const size_t rows =
        Index(w_.recording.kept) - (!w_.recording.api_events() && position > 1 ? 1 : 0);
    return plan.exists && there && later <= rows;
  }
  // 0: cannot be told. 1: that there is a difference. 2: also who is alone with his call.
  int CallsTell(const Fault& f, uint64_t positions) const {
    const Comm& comm = w_.comms[Index(f.comm)];
    for (uint64_t p = f.position; p < f.position + positions; ++p) {
      if (!Kept(f.rank, f.comm, p)) return 0;
    }
    int others = 0;
    for (int r : comm.ranks) {
      bool all = r != f.rank;
      for (uint64_t p = f.position; p < f.position + positions; ++p)
        all = all && Kept(r, f.comm, p);
      others += all ? 1 : 0;
    }
    return others == 0 ? 0 : others == 1 ? 1 : 2;
  }
  static Who Ranks(std::set<int> ranks) {
    return {.ranks = std::move(ranks), .edges = {}, .hosts = {}};
  }
  static Who Edge(int from, int to) { return {.ranks = {}, .edges = {{from, to}}, .hosts = {}}; }
  Who Host(int rank) const {
    Who who = {.ranks = {}, .edges = {}, .hosts = {HostName(w_.host_of[Index(rank)])}};
    for (int r = 0; r < w_.ranks; ++r) {
      if (w_.SameHost(r, rank)) who.ranks.insert(r);
    }
    who.any_of = true;
    return who;
  }
  // Both of its connections on some channel go over the network, so that its own GPU is what lies
  // between them.
  bool BetweenEdges(int comm_index, int rank) const {
    const Comm& comm = w_.comms[Index(comm_index)];
    for (int r : comm.ranks) {
      if (r != rank && w_.SameHost(r, rank)) return false;
    }
    return comm.n() > 1;
  }

  // Whatever message of the rank lacks its partner.
  std::vector<Who> MessagesOf(int rank) const {
    std::vector<Who> all;
    for (const OpRun& op : played_.ranks[Index(rank)].ops) {
      if (!op.call.p2p()) continue;
      const int peer = w_.comms[Index(op.call.comm)].ranks[Index(op.call.peer)];
      all.push_back(op.call.func == trace::SEND ? Edge(rank, peer) : Edge(peer, rank));
      all.back().ranks = {rank};
    }
    return all;
  }
  // It waits for a message of that rank, whose turn is only after the one that was left out.
  bool WaitsForMessageOf(int rank, int peer) const {
    for (const OpRun& op : played_.ranks[Index(rank)].ops) {
      if (op.call.p2p() && op.finished == kNever &&
          w_.comms[Index(op.call.comm)].ranks[Index(op.call.peer)] == peer)
        return true;
    }
    return false;
  }
  // Without kernel events nothing shows what a GPU has before an operation in its queue, if that
  // may be of a communicator that has no connections over the network there.
  bool QueueVisible(int rank) const {
    if (w_.recording.completion_visible()) return true;
    for (const Comm& comm : w_.comms) {
      const int self = comm.RankOf(rank);
      if (self < 0) continue;
      bool network = false;
      for (const auto& ring : comm.rings) {
        const auto at =
            static_cast<size_t>(std::find(ring.begin(), ring.end(), self) - ring.begin());
        for (const size_t other : {(at + 1) % ring.size(), (at + ring.size() - 1) % ring.size()}) {
          network |= !w_.SameHost(rank, comm.ranks[Index(ring[other])]);
        }
      }
      if (!network) return false;
    }
    return true;
  }

  void Different(const Fault& f, uint64_t positions, std::set<Kind::Value> kinds, Label* l) {
    const int tell = CallsTell(f, positions);
    l->sufficient = tell > 0;
    l->why = tell == 2   ? "calls differ and are in the records"
             : tell == 1 ? "calls differ, one against one"
                         : "the calls are not in the records";
    Answer a = {.kinds = std::move(kinds), .who = {Ranks({f.rank})}};
    if (tell < 2) {
      Who side =
          Ranks({w_.comms[Index(f.comm)].ranks.begin(), w_.comms[Index(f.comm)].ranks.end()});
      side.any_of = true;
      a.who.push_back(side);
      a.who.push_back({});
    }
    l->right = {a};
    l->also_true = {
        {{Kind::collective_mismatch, Kind::size_mismatch, Kind::order_mismatch}, a.who}};
  }

  void Decide(const Fault& f, Label* l) {
    switch (f.kind) {
      case FaultKind::kStuckHost:
        l->right = {{{Kind::missing_rank}, {Ranks({f.rank})}}};
        l->sufficient = all_seen_ && WaitingIsVisible();
        l->why = l->sufficient ? "all records: one rank has not come, and lives"
                               : "records missing, or waiting not visible";
        break;
      case FaultKind::kKilled:
      case FaultKind::kFrozen: {
        const bool witnessed = Witnessed(f.rank);
        std::set<Kind::Value> kinds = {f.kind == FaultKind::kKilled ? Kind::process_exited
                                                                    : Kind::process_stopped};
        // A heartbeat that ended is all there is: killed or frozen.
        if (!witnessed) kinds = {Kind::process_exited, Kind::process_stopped};
        l->right = {{kinds, {Ranks({f.rank})}}};
        l->also_true = {{{Kind::missing_rank}, {Ranks({f.rank})}}};
        l->sufficient = (witnessed || Seen(f.rank)) && WaitingIsVisible();
        l->why = witnessed      ? "neighbours saw its end"
                 : Seen(f.rank) ? "its heartbeat ended long before the others'"
                                : "no record of it";
        break;
      }
      case FaultKind::kExited:
        l->right = {{{Kind::process_exited, Kind::missing_rank}, {Ranks({f.rank})}}};
        l->also_true = {{{Kind::p2p_unmatched}, MessagesOf(f.rank)}};
        l->sufficient = Seen(f.rank) && WaitingIsVisible();
        l->why = l->sufficient ? "its last record says that it ended in order" : "no record of it";
        break;
      case FaultKind::kCollective: {
        std::set<Kind::Value> kinds = {Kind::collective_mismatch};
        // Launch events of older tables tell an all-gather in bytes: another type is another size
        // there.
        if (!w_.recording.api_events()) kinds.insert(Kind::size_mismatch);
        Different(f, 1, kinds, l);
        break;
      }
      case FaultKind::kSize:
        Different(f, 1, {Kind::size_mismatch}, l);
        break;
      case FaultKind::kOrder:
        Different(f, 2, {Kind::order_mismatch}, l);
        break;
      case FaultKind::kUnmatched: {
        const bool stands = played_.hangs;
        l->right = {{{Kind::p2p_unmatched}, {Ranks({f.rank}), Edge(f.from, f.to)}},
                    {{Kind::missing_rank}, {Ranks({f.rank})}}};
        // To end before its last message, or without it, is the same.
        if (plans_[Index(f.rank)].clean) {
          l->right.push_back({{Kind::process_exited}, {Ranks({f.rank})}});
        }
        if (f.from >= 0) {
          const int peer = f.rank == f.from ? f.to : f.from;
          if (WaitsForMessageOf(f.rank, peer)) {
            // Each waits for the other's message: which of the two was left out is the program's
            // intent.
            Who both = {
                .ranks = {f.from, f.to}, .edges = {{f.from, f.to}, {f.to, f.from}}, .hosts = {}};
            Who no_edges = Ranks({f.from, f.to});
            l->right.push_back({{Kind::p2p_unmatched}, {both, no_edges}});
          }
        }
        l->sufficient = all_seen_ && stands && WaitingIsVisible();
        l->why = !stands         ? "a small message ends in buffers, both go on"
                 : l->sufficient ? "all records: messages counted"
                                 : "records missing";
        break;
      }
      case FaultKind::kCycle2:
      case FaultKind::kCycle3: {
        Who all;
        all.any_of = true;
        for (int c : f.comms)
          all.ranks.insert(w_.comms[Index(c)].ranks.begin(), w_.comms[Index(c)].ranks.end());
        l->right = {{{Kind::communicator_cycle}, {Ranks({f.rank}), all, {}}}};
        l->also_true = {{{Kind::missing_rank}, {Ranks({f.rank})}}};
        l->sufficient = all_seen_ && w_.recording.completion_visible();
        l->why = l->sufficient ? "all records: which kernels run is seen"
                               : "records missing, or kernels not visible";
        break;
      }
      case FaultKind::kGpuBefore:
        l->right = {{{Kind::gpu_stalled}, {Ranks({f.rank})}}};
        if (w_.recording.completion_visible()) {
          l->sufficient = all_seen_;
          l->why = "its kernel alone has not started";
        } else {
          MidKernel(f, l);
        }
        break;
      case FaultKind::kGpuMid:
        MidKernel(f, l);
        break;
      case FaultKind::kWire:
        l->right = {{{Kind::edge_stalled}, {Edge(f.from, f.to)}}};
        EdgeSeen(f, l);
        break;
      case FaultKind::kControl:  // what does not come through goes the other way
        l->right = {{{Kind::edge_stalled}, {Edge(f.to, f.from), Edge(f.from, f.to)}}};
        EdgeSeen(f, l);
        break;
      case FaultKind::kFlush: {
        Who receiver = Edge(f.from, f.to);
        receiver.ranks = {f.to};
        l->right = {{{Kind::edge_stalled}, {Edge(f.from, f.to), receiver, Ranks({f.to})}}};
        EdgeSeen(f, l);
        break;
      }
      case FaultKind::kEdgeSlow:
        SlowEdge(f, l);
        break;
      case FaultKind::kHostSlow:
      case FaultKind::kGpuSlow:
        Straggler(f, l);
        break;
      default:
        break;
    }
  }

  void MidKernel(const Fault& f, Label* l) {
    const Comm& comm = w_.comms[Index(f.comm)];
    l->also_true = {{{Kind::gpu_stalled}, {Ranks({f.rank}), Host(f.rank)}}};
    if (!comm.over_network || comm.tree) {
      l->sufficient = false;
      l->also_true = {{{Kind::gpu_stalled}, {Ranks({f.rank}), Host(f.rank), {}}}};
      l->why = comm.tree ? "trees: candidates only" : "inside a host nothing shows who stopped";
      return;
    }
    l->sufficient = all_seen_ && QueueVisible(f.rank);
    const bool alone = BetweenEdges(f.comm, f.rank);
    l->right = {{{Kind::gpu_stalled}, {alone ? Ranks({f.rank}) : Host(f.rank)}}};
    l->why = !all_seen_       ? "records missing"
             : !l->sufficient ? "what its queue holds before is not visible"
             : alone          ? "fed and owing: its GPU"
                              : "fed and owing: one of its host's GPUs";
  }
  void EdgeSeen(const Fault& f, Label* l) {
    l->sufficient = all_seen_;
    l->why = l->sufficient ? "both ends of the edge are recorded" : "records missing";
    l->also_true = l->right;
    (void)f;
  }

  void SlowEdge(const Fault& f, Label* l) {
    const Comm& comm = w_.comms[Index(f.comm)];
    l->right = {{{Kind::edge_slow}, {Edge(f.from, f.to)}}};
    const RecordPlan& plan = plans_[Index(f.from)];
    uint64_t steps = 0;
    for (const OpRun& op : played_.ranks[Index(f.from)].ops) {
      if (op.call.comm == f.comm && !op.call.p2p() && op.finished <= plan.cut)
        steps += static_cast<uint64_t>(RulesOf(w_, comm, op.call.func).steps);
    }
    // Compared with the other connections of the communicator over the network.
    std::set<std::pair<int, int>> others;
    for (int ch = 0; ch < comm.channels(); ++ch) {
      const auto& ring = comm.rings[Index(ch)];
      for (size_t i = 0; i < ring.size(); ++i) {
        const int a = comm.ranks[Index(ring[i])],
                  b = comm.ranks[Index(ring[(i + 1) % ring.size()])];
        if (!w_.SameHost(a, b) && Seen(a) && (a != f.from || b != f.to)) others.insert({a, b});
      }
    }
    const bool kernels =
        w_.recording.completion_visible();  // else a pause of the process explains as much
    // A call that came seldom has no usual time, so that a pause of the process explains as much.
    std::map<std::pair<int, uint64_t>, int> calls;
    for (const OpRun& op : played_.ranks[Index(f.from)].ops) {
      if (op.call.comm == f.comm && !op.call.p2p() && op.position > 1 && op.finished <= plan.cut) {
        ++calls[{op.call.func, op.call.count}];
      }
    }
    bool usual = true;
    for (const auto& [call, n] : calls)
      usual &= n > kUsualCalls &&
               static_cast<int>(calls.size()) * (kUsualCalls + 1) <= w_.recording.kept;
    l->sufficient = !w_.recording.socket && kernels && usual && Seen(f.from) &&
                    steps >= kEnoughSteps && others.size() >= 2;
    l->why = w_.recording.socket    ? "sockets show no wait on the wire"
             : !kernels             ? "kernels not visible: a process that paused looks alike"
             : !usual               ? "too few calls to know what is usual"
             : steps < kEnoughSteps ? "too few steps"
             : !l->sufficient       ? "nothing to compare with"
                                    : "its steps wait on the wire, others' do not";
  }

  void Straggler(const Fault& f, Label* l) {
    l->right = {
        {{f.kind == FaultKind::kHostSlow ? Kind::rank_slow : Kind::gpu_slow}, {Ranks({f.rank})}}};
    l->also_true = {{{Kind::rank_slow, Kind::gpu_slow}, {Ranks({f.rank})}}};
    int most = 0;
    for (size_t c = 0; c < w_.comms.size(); ++c) {
      const Comm& comm = w_.comms[c];
      if (comm.RankOf(f.rank) < 0 || !CommSeen(static_cast<int>(c))) continue;
      // Operations that all members have finished and still hold in their records.
      uint64_t newest = ~uint64_t{0}, oldest = 0;
      for (int r : comm.ranks) {
        uint64_t n = 0;
        for (const OpRun& op : played_.ranks[Index(r)].ops) {
          if (op.call.comm == static_cast<int>(c) && !op.call.p2p() &&
              op.finished <= plans_[Index(r)].cut)
            n = op.position;
        }
        newest = std::min(newest, n);
        const auto kept = static_cast<uint64_t>(w_.recording.kept);
        oldest = std::max(oldest, n > kept ? n - kept : 0);
      }
      most = std::max(most, newest > oldest ? static_cast<int>(newest - oldest) : 0);
    }
    const bool plain =
        w_.layout == Layout::kDp || w_.layout == Layout::kFsdp || w_.layout == Layout::kTpDp;
    l->sufficient =
        w_.recording.completion_visible() && plain && most > kEnoughInstances && all_seen_;
    l->why = !w_.recording.completion_visible() ? "kernels not visible"
             : !plain                           ? "sends and receives make ranks late by design"
             : !l->sufficient                   ? "too few operations, or records missing"
                                                : "it comes last each time";
  }

  const World& w_;
  const Played& played_;
  const std::vector<RecordPlan>& plans_;
  bool all_seen_ = true;
};

}  // namespace

Label LabelOf(const World& w, const Played& played, const Recorded& recorded) {
  return Judge(w, played, recorded).Run();
}

}  // namespace ringscope::property
