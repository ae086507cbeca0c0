// Connections in the records: how far the steps of the operation came that each end is in.
#include <algorithm>
#include <map>
#include <tuple>

#include "tests/property/operation_steps.h"
#include "tests/property/record.h"

namespace ringscope::property {
namespace {

size_t Index(int i) { return static_cast<size_t>(i); }
constexpr int kDifferentSize = 5;  // so many times the steps has the operation whose size is wrong

// One end of a connection, to be written.
struct End {
  int rank = 0, peer = 0, channel = 0;  // in the communicator
  bool send = false, p2p = false;
  uint32_t appended = 0, stopped = 0;  // operations
  const OpRun* op = nullptr;           // the current one
  int steps = 0, posted = 0, second = 0, third = 0,
      done = 0;         // steps that reached state 0, 1, 2 and the end
  uint64_t before = 0;  // steps of the operations before
  double changed = 0;
  double waits[3] = {0, 0, 0};  // step-seconds
  bool over = false;
};

class EdgeWriter {
 public:
  EdgeWriter(const World& w, const Played& played, const std::vector<RecordPlan>& plans,
             const std::vector<HostClock>& clocks, const std::vector<trace::Trace*>& out)
      : w_(w),
        played_(played),
        plans_(plans),
        clocks_(clocks),
        out_(out),
        random_(w.seed ^ 0xed6e) {}

  void Communicator(int c) {
    c_ = c;
    const Comm& comm = w_.comms[Index(c)];
    Collect(comm);
    if (comm.over_network) Collectives(comm);
    Messages(comm);
  }

 private:
  struct Member {
    std::vector<const OpRun*> colls;                                     // by position - 1
    std::map<std::pair<int, bool>, std::vector<const OpRun*>> messages;  // by peer and direction
    size_t appended = 0;  // collectives in the stream, as far as the record goes
    double now = 0;
  };

  void Collect(const Comm& comm) {
    members_.assign(Index(comm.n()), {});
    for (int i = 0; i < comm.n(); ++i) {
      Member& m = members_[Index(i)];
      const RecordPlan& plan = plans_[Index(comm.ranks[Index(i)])];
      m.now = std::min(plan.cut, plan.written);
      for (const OpRun& op : played_.ranks[Index(comm.ranks[Index(i)])].ops) {
        if (op.call.comm != c_ || op.enqueued > m.now) continue;
        if (op.call.p2p()) {
          m.messages[{op.call.peer, op.call.func == trace::SEND}].push_back(&op);
        } else {
          m.colls.push_back(&op);
        }
      }
      m.appended = m.colls.size();
    }
  }
  const OpRun* Coll(int member, uint64_t position) const {
    const auto& ops = members_[Index(member)].colls;
    return position >= 1 && position <= ops.size() ? ops[position - 1] : nullptr;
  }
  bool Snapshot() const { return !played_.hangs; }
  bool WrongSize(int job_rank, uint64_t position) const {
    for (const Fault& f : w_.faults) {
      if (f.kind == FaultKind::kSize && f.comm == c_ && f.position == position &&
          f.rank == job_rank)
        return true;
    }
    return false;
  }

  // ---- collectives
  void Collectives(const Comm& comm) {
    uint64_t first_open = ~uint64_t{0}, most = 0;
    for (int i = 0; i < comm.n(); ++i) {
      const auto& all = members_[Index(i)].colls;
      uint64_t k = 0;
      while (k < all.size() && all[k]->finished != kNever) ++k;
      first_open = std::min(first_open, k + 1);
      most = std::max<uint64_t>(most, all.size());
    }
    for (int ch = 0; ch < comm.channels(); ++ch) {
      Channel(comm, ch, first_open, most);
    }
  }

  void Channel(const Comm& comm, int ch, uint64_t first_open, uint64_t most) {
    const auto& ring = comm.rings[Index(ch)];
    const size_t n = ring.size();
    std::vector<StepResult> results;  // from first_open on
    std::vector<bool> out_blocked(n, false);
    for (uint64_t p = first_open; p <= most && results.size() < 4 && !Snapshot(); ++p) {
      std::vector<StepMember> by_rank(n);
      trace::Func func = trace::ALL_REDUCE;
      for (int i = 0; i < comm.n(); ++i) {
        const OpRun* op = Coll(i, p);
        if (op == nullptr) continue;
        func = op->call.func;
        by_rank[Index(i)] = {true, op->started != kNever, kEndless, false};
      }
      LimitMembers(w_, played_, c_, p, &by_rank);
      std::vector<StepMember> members;
      for (size_t i = 0; i < n; ++i) {
        members.push_back(by_rank[Index(ring[i])]);
        members.back().out_blocked = out_blocked[i];
      }
      results.push_back(PlayRing(RulesOf(w_, comm, func), members, LinksOf(w_, c_, p, ch)));
      for (size_t i = 0; i < n; ++i) {
        // Of an operation of the wrong size all the others are done.
        if (AnyWrongSize(comm, p)) results.back().links[i] = Whole(results.back().steps);
        if (results.back().links[i].send_done < results.back().steps) out_blocked[i] = true;
      }
    }
    const auto links = LinksOf(w_, c_, first_open, ch);
    for (size_t i = 0; i < n; ++i) {
      if (!links[i].network) continue;
      const int a = ring[i], b = ring[(i + 1) % n];
      for (bool send : {true, false})
        Side(comm, ch, send ? a : b, send ? b : a, send, first_open, results, i);
    }
  }
  bool AnyWrongSize(const Comm& comm, uint64_t position) const {
    for (int r : comm.ranks) {
      if (WrongSize(r, position)) return true;
    }
    return false;
  }
  static StepCounts Whole(int n) { return {n, n, n, n, n, n, n, n}; }

  void Side(const Comm& comm, int ch, int rank, int peer, bool send, uint64_t first_open,
            const std::vector<StepResult>& results, size_t link) {
    const int job = comm.ranks[Index(rank)];
    if (!plans_[Index(job)].exists) return;
    const Member& m = members_[Index(rank)];
    if (m.appended == 0) return;
    End end = {.rank = rank, .peer = peer, .channel = ch, .send = send};
    end.appended = static_cast<uint32_t>(m.appended);
    for (uint64_t p = 1; p <= m.appended; ++p) {
      const OpRun& op = *m.colls[p - 1];
      const StepRules rules = RulesOf(w_, comm, op.call.func);
      end.op = &op;
      end.steps = rules.steps;
      StepCounts c = Whole(rules.steps);
      if (Snapshot()) {
        if (op.finished > m.now) c = OnTheWay(rules, op, m.now);
      } else if (p >= first_open) {
        c = p - first_open < results.size() ? results[p - first_open].links[link] : StepCounts{};
      }
      if (WrongSize(job, p) && !Snapshot()) {
        end.steps = kDifferentSize * rules.steps;
        c = Odd(rules);
      }
      end.posted = send ? c.send_posted : c.recv_posted;
      end.second =
          send ? std::max(c.send_given, std::min(c.send_ready, c.send_posted)) : c.recv_arrived;
      end.third = send ? c.send_given : c.recv_flushed;
      end.done = send ? c.send_done : c.recv_done;
      if (end.done < end.steps) {
        end.stopped = static_cast<uint32_t>(p - 1);
        end.changed = Changed(comm, op, p, end.second > 0 || end.done > 0, m.now);
        Wait(&end, comm, op, std::min(op.finished, m.now));
        break;
      }
      end.over = p == m.appended;
      end.stopped = static_cast<uint32_t>(p);
      end.changed = op.finished == kNever ? Changed(comm, op, p, true, m.now) : std::min(op.finished, m.now);
      if (!end.over) end.before += static_cast<uint64_t>(end.steps);
      Wait(&end, comm, op, op.finished);
    }
    Write(comm, end);
  }
  // The operation with too many steps: it had what the others gave, and waits for more.
  StepCounts Odd(const StepRules& r) const {
    StepCounts c;
    const int n = r.steps;
    c.send_posted = n + r.depth, c.send_ready = n + r.slices,
    c.send_given = w_.recording.socket ? c.send_ready : n;
    c.send_done = c.send_given;
    c.send_posted = c.send_done + r.depth;
    c.recv_posted = n + r.depth, c.recv_arrived = c.recv_flushed = c.recv_done = n;
    return c;
  }
  StepCounts OnTheWay(const StepRules& r, const OpRun& op, double now) const {
    StepCounts c;
    if (op.started > now) {
      c.send_posted = c.recv_posted = std::min(r.steps, r.depth);
      return c;
    }
    const double part = op.finished == kNever ? 0 : (now - op.started) / (op.finished - op.started);
    const int n = std::min(r.steps - 1, static_cast<int>(part * r.steps));
    c.send_done = c.send_given = c.send_ready = c.recv_done = c.recv_arrived = c.recv_flushed = n;
    c.send_posted = c.recv_posted = std::min(r.steps, n + r.depth);
    return c;
  }
  double Changed(const Comm& comm, const OpRun& op, uint64_t position, bool moved,
                 double now) const {
    double at = op.enqueued + 3e-5;
    if (moved) {
      for (int i = 0; i < comm.n(); ++i) {
        const OpRun* other = Coll(i, position);
        if (other != nullptr && other->started != kNever) at = std::max(at, other->started + 3e-4);
      }
    }
    if (Snapshot() && op.started <= now) at = now - 1e-4;
    return std::min(at, now);
  }
  // The wait states of the steps of one operation until `until`: most of it is waiting for data
  // that is not there yet.
  void Wait(End* end, const Comm& comm, const OpRun& op, double until) {
    if (op.started == kNever || op.started > until) return;
    const StepRules r = RulesOf(w_, comm, op.call.func);
    const double open = r.depth * (until - op.started);  // step-seconds
    const int a = comm.ranks[Index(end->send ? end->rank : end->peer)],
              b = comm.ranks[Index(end->send ? end->peer : end->rank)];
    double usual = std::min(open * 0.06, r.steps * kUsualStepSeconds) * random_.Between(0.3, 1);
    for (const Fault& f : w_.faults) {
      if (f.kind != FaultKind::kEdgeSlow || f.comm != c_ || w_.recording.socket) continue;
      const bool here = f.from == a && f.to == b && (f.channel < 0 || f.channel == end->channel);
      if (here) usual = std::min(open * 0.9, r.depth * f.seconds * 0.9);
    }
    end->waits[end->send ? 2 : 1] += end->send ? usual : usual * 0.02;
    end->waits[end->send ? 1 : 2] += usual * 0.05;
    end->waits[0] += open - usual * 1.05;
  }

  // ---- sends and receives
  void Messages(const Comm& comm) {
    for (int a = 0; a < comm.n(); ++a) {
      for (const auto& [key, ops] : members_[Index(a)].messages)
        Pair(comm, a, key.first, key.second, ops);
    }
  }
  void Pair(const Comm& comm, int rank, int peer, bool send, const std::vector<const OpRun*>& ops) {
    const int job = comm.ranks[Index(rank)], other = comm.ranks[Index(peer)];
    if (!plans_[Index(job)].exists) return;
    trace::Edge* count = Add(job);
    count->set_communicator(RowOf(w_, job, c_));
    count->set_rank(static_cast<uint32_t>(rank));
    count->set_peer(static_cast<uint32_t>(peer));
    count->set_channel(255);
    count->set_send(send);
    count->set_p2p(true);
    count->set_message_count(true);
    count->set_steps_total(ops.size());
    count->set_bytes(ops.size() * ops[0]->call.count * 4);
    count->set_changed_ns(ClockOf(job).Mono(ops.back()->enqueued));
    if (w_.SameHost(job, other)) return;
    const auto& back = members_[Index(peer)].messages;
    const auto found = back.find({rank, !send});
    End end = {.rank = rank, .peer = peer, .channel = 1, .send = send, .p2p = true};
    end.appended = static_cast<uint32_t>(ops.size());
    bool blocked = false;
    for (size_t m = 0; m < ops.size(); ++m) {
      const OpRun& op = *ops[m];
      const OpRun* its =
          found != back.end() && m < found->second.size() ? found->second[m] : nullptr;
      const StepRules rules = MessageRules(w_, op.call.count);
      const StepCounts c = MessageCounts(rules, send ? &op : its, send ? its : &op,
                                         send ? job : other, send ? other : job, m + 1, blocked);
      end.op = &op;
      end.steps = rules.steps;
      end.posted = send ? c.send_posted : c.recv_posted;
      end.second =
          send ? std::max(c.send_given, std::min(c.send_ready, c.send_posted)) : c.recv_arrived;
      end.third = send ? c.send_given : c.recv_flushed;
      end.done = send ? c.send_done : c.recv_done;
      end.changed = std::min({op.finished, members_[Index(rank)].now,
                              std::max(op.enqueued, op.started == kNever ? 0 : op.started) + 5e-4});
      if (end.done < end.steps) {
        end.stopped = static_cast<uint32_t>(m);
        break;
      }
      end.over = m + 1 == ops.size();
      end.stopped = static_cast<uint32_t>(m + 1);
      if (!end.over) end.before += static_cast<uint64_t>(end.steps);
    }
    end.waits[0] = static_cast<double>(end.before) * 1e-3;
    end.waits[send ? 2 : 1] = static_cast<double>(end.before) * 5e-5;
    Write(comm, end);
  }
  StepCounts MessageCounts(const StepRules& rules, const OpRun* send, const OpRun* recv, int from,
                           int to, uint64_t number, bool blocked) {
    const bool both =
        send != nullptr && recv != nullptr && send->finished != kNever && recv->finished != kNever;
    if (Snapshot()) {
      const OpRun* own = send != nullptr ? send : recv;
      const Member& m = members_[Index(w_.comms[Index(c_)].RankOf(send != nullptr ? from : to))];
      if (own->finished > m.now) return OnTheWay(rules, *own, m.now);
      return Whole(rules.steps);
    }
    if (both) return Whole(rules.steps);
    const auto member = [&](const OpRun* op, int rank) {
      StepMember s;
      s.appended = op != nullptr;
      s.running = op != nullptr && op->started != kNever;
      if (played_.ranks[Index(rank)].gone != kNever) s.limit = 0;
      s.out_blocked = blocked;
      return s;
    };
    StepLink link = {.network = true};
    for (const Fault& f : w_.faults) {
      if (f.kind == FaultKind::kWire && f.comm == c_ && f.position == 0 && f.from == from &&
          f.to == to && number >= static_cast<uint64_t>(f.step))
        link.wire = 0;
    }
    StepMember a = member(send, from);
    if (send != nullptr && send->finished != kNever) a.limit = kEndless;
    return PlayMessage(rules, a, member(recv, to), link);
  }

  // ---- into the record
  const HostClock& ClockOf(int job) const { return clocks_[Index(w_.host_of[Index(job)])]; }
  trace::Edge* Add(int job) {
    trace::Edge* e = out_[Index(job)]->add_edges();
    e->set_row(static_cast<uint32_t>(out_[Index(job)]->edges_size() * 3));
    return e;
  }
  void Write(const Comm& comm, const End& end) {
    const int job = comm.ranks[Index(end.rank)];
    const RecordPlan& plan = plans_[Index(job)];
    trace::Edge* e = Add(job);
    e->set_communicator(RowOf(w_, job, c_));
    e->set_rank(static_cast<uint32_t>(end.rank));
    e->set_peer(static_cast<uint32_t>(end.peer));
    e->set_channel(static_cast<uint32_t>(end.channel));
    e->set_send(end.send);
    e->set_p2p(end.p2p);
    e->set_ops_started(end.appended);
    e->set_ops_stopped(end.stopped);
    e->set_has_current(true);
    e->set_n_steps(static_cast<uint32_t>(end.steps));
    e->set_full_steps(static_cast<uint32_t>(end.steps));
    e->set_posted(static_cast<uint32_t>(end.posted));
    e->set_transmitted(static_cast<uint32_t>(end.send ? end.third : end.second));
    e->set_done(static_cast<uint32_t>(end.done));
    e->set_current_stopped(end.done >= end.steps);
    const auto state = [&](int step) {
      const int in = step < end.third ? 2 : step < end.second ? 1 : 0;
      return static_cast<trace::StepState>((end.send ? trace::SEND_GPU_WAIT : trace::RECV_WAIT) +
                                           in);
    };
    for (int slot = 0; slot < 8; ++slot) e->add_slots(trace::STEP_FREE);
    double waits[3] = {end.waits[0], end.waits[1], end.waits[2]};
    for (int s = end.done; s < end.posted; ++s) {
      e->set_slots(s % 8, state(s));
      const int in = s < end.third ? 2 : s < end.second ? 1 : 0;
      waits[in] += std::max(0.0, plan.written - end.changed);
    }
    if (end.done < end.posted) {
      e->set_state(state(end.done));
      e->set_oldest_step(static_cast<uint32_t>(end.done));
    }
    e->set_changed_ns(ClockOf(job).Mono(end.changed));
    for (double s : waits) e->add_wait_ns(static_cast<int64_t>(s * 1e9));
    e->set_steps_total(end.before + static_cast<uint64_t>(end.done));
    e->set_chunk_bytes(end.p2p ? 131072 : 1048576);
    e->set_bytes(e->steps_total() * 40960);
    e->set_current_position(end.op->position);
    e->set_current_position_p2p(end.p2p);
  }

  const World& w_;
  const Played& played_;
  const std::vector<RecordPlan>& plans_;
  const std::vector<HostClock>& clocks_;
  const std::vector<trace::Trace*>& out_;
  Random random_;
  int c_ = 0;
  std::vector<Member> members_;
};

}  // namespace

void WriteEdges(const World& w, const Played& played, const std::vector<RecordPlan>& plans,
                const std::vector<HostClock>& clocks, const std::vector<trace::Trace*>& out) {
  EdgeWriter writer(w, played, plans, clocks, out);
  for (size_t c = 0; c < w.comms.size(); ++c) writer.Communicator(static_cast<int>(c));
}

}  // namespace ringscope::property
