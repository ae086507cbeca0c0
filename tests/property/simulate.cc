// Every rank's host and GPU queues are followed until they need something that has not happened;
// whoever makes it happen wakes them. What happens depends on nothing but who waits for whom, so
// the order in which ranks are looked at does not matter, and times follow as the latest of what
// each event had to wait for.
#include "tests/property/simulate.h"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <unordered_map>

#include "tests/property/operation_steps.h"

namespace ringscope::property {
namespace {

constexpr double kCallSeconds = 3e-6, kLaunchSeconds = 12e-6, kMessageSeconds = 2e-4;

struct Item {
  Do what = Do::kCompute;
  double given = 0, seconds = 0;
  int other = 0;
  uint64_t target = 0;
  std::vector<int> ops = {};
  bool started = false;
  int open = 0;
  double done = 0;
};
struct Stream {
  std::deque<Item> items;
  std::vector<double> ended;  // when each item was over
  uint64_t pushed = 0;
  double time = 0;
};
struct Instance {
  int started = 0, entered = 0;
  double last_start = 0, last_entry = 0;
  std::vector<int> op;  // by rank in the communicator; -1: not there
};
struct Message {
  int send_op = -1, recv_op = -1;
  double send_start = kNever, recv_start = kNever;
};

class Player {
 public:
  explicit Player(World* w) : w_(*w), random_(w->seed ^ 0x5eed) {
    const size_t n = static_cast<size_t>(w_.ranks);
    out_.ranks.resize(n);
    out_.bites.assign(w_.faults.size(), false);
    hosts_.resize(n);
    for (Host& h : hosts_) {
      h.streams.resize(w_.comms.size() + 1);
      h.collectives.assign(w_.comms.size(), 0);
      h.p2ps.assign(w_.comms.size(), 0);
    }
    instances_.resize(w_.comms.size());
    first_seconds_.assign(w_.comms.size(), 0);
    for (double& s : first_seconds_) s = random_.Between(0.1, 0.5);
  }

  Played Run() {
    for (int r = 0; r < w_.ranks; ++r) Wake(r);
    while (!ready_.empty()) {
      const int r = ready_.front();
      ready_.pop_front();
      hosts_[Index(r)].queued = false;
      for (bool moved = true; moved;) {
        moved = RunHost(r);
        moved |= RunStreams(r);
      }
    }
    Finish();
    return std::move(out_);
  }

 private:
  struct Host {
    size_t pc = 0;
    double t = 0;
    bool queued = false, in_call = false;
    int group = 0;
    std::vector<Stream> streams;
    std::vector<uint64_t> collectives, p2ps;
    std::map<std::tuple<int, int, bool>, uint64_t> messages;
  };

  static size_t Index(int i) { return static_cast<size_t>(i); }
  void Wake(int r) {
    if (hosts_[Index(r)].queued) return;
    hosts_[Index(r)].queued = true;
    ready_.push_back(r);
  }
  Instance& At(int comm, uint64_t position) {
    auto& all = instances_[Index(comm)];
    while (all.size() <= position) {
      all.emplace_back();
      all.back().op.assign(w_.comms[Index(comm)].ranks.size(), -1);
    }
    return all[position];
  }

  // ---- host
  bool RunHost(int r) {
    Host& h = hosts_[Index(r)];
    RankRun& run = out_.ranks[Index(r)];
    const Program& program = w_.programs[Index(r)];
    bool moved = false;
    for (; h.pc < program.size(); moved = true) {
      const Step& s = program[h.pc];
      run.at_step = static_cast<int>(h.pc);
      switch (s.what) {
        case Do::kHost:
          h.t += s.seconds;
          break;
        case Do::kCompute:
          Push(&h, s.stream,
               {.what = Do::kCompute, .given = h.t += kCallSeconds, .seconds = s.seconds});
          break;
        case Do::kWait:
          Push(&h, s.stream,
               {.what = Do::kWait,
                .given = h.t,
                .other = s.other,
                .target = h.streams[Index(s.other)].pushed});
          break;
        case Do::kCall:
          if (!Calls(r, &h, &run, program)) return moved;
          continue;  // moved on by itself
        case Do::kSync:
          for (const Stream& stream : h.streams) {
            if (!stream.items.empty()) return SetHost(&run, HostState::kWaiting, h.t), moved;
          }
          for (const Stream& stream : h.streams) h.t = std::max(h.t, stream.time + 5e-6);
          break;
        case Do::kStuck:
          return SetHost(&run, HostState::kStuck, h.t), moved;
        case Do::kKilled:
        case Do::kFrozen:
          run.gone = h.t;
          return SetHost(&run, s.what == Do::kKilled ? HostState::kKilled : HostState::kFrozen,
                         h.t),
                 moved;
        case Do::kExit:
          return SetHost(&run, HostState::kExited, h.t), moved;
      }
      ++h.pc;
    }
    SetHost(&run, HostState::kDone, h.t);
    return moved;
  }
  static void SetHost(RankRun* run, HostState state, double t) {
    run->host = state;
    run->host_time = t;
  }
  static void Push(Host* h, int stream, Item item) {
    ++h->streams[Index(stream)].pushed;
    h->streams[Index(stream)].items.push_back(std::move(item));
  }

  // The calls of one group (or one call). False: the host hangs inside.
  bool Calls(int r, Host* h, RankRun* run, const Program& program) {
    const size_t first = h->pc;
    size_t end = first + 1;
    while (program[first].group != 0 && end < program.size() && program[end].what == Do::kCall &&
           program[end].group == program[first].group) {
      ++end;
    }
    if (!h->in_call) Enter(r, h, run, program, first, end);
    // The first collective of a communicator connects, which needs everybody.
    const OpRun& op = run->ops.back();
    if (!op.call.p2p() && op.position == 1) {
      const Instance& all = At(op.call.comm, 1);
      if (all.entered < w_.comms[Index(op.call.comm)].n()) {
        h->in_call = true;
        SetHost(run, HostState::kInCall, h->t);
        return false;
      }
      h->t = std::max(
          h->t, all.last_entry + first_seconds_[Index(op.call.comm)] + random_.Between(0, 0.002));
    }
    h->in_call = false;
    h->t += kCallSeconds;
    Item item = {.what = Do::kCall, .given = h->t};
    for (size_t i = run->ops.size() - (end - first); i < run->ops.size(); ++i) {
      run->ops[i].enqueued = h->t;
      item.ops.push_back(static_cast<int>(i));
    }
    item.open = static_cast<int>(item.ops.size());
    Push(h, program[first].stream, std::move(item));
    h->pc = end;
    return true;
  }
  void Enter(int r, Host* h, RankRun* run, const Program& program, size_t first, size_t end) {
    ++h->group;
    for (size_t i = first; i < end; ++i) {
      const Call& call = program[i].call;
      OpRun op;
      op.call = call;
      op.group = h->group;
      op.grouped = end - first > 1;
      op.stream = program[i].stream;
      op.step = static_cast<int>(i);
      op.entered = h->t += kCallSeconds;
      op.returned = op.entered + 1e-6;
      const int self = w_.comms[Index(call.comm)].RankOf(r);
      if (call.p2p()) {
        op.position = ++h->p2ps[Index(call.comm)];
        op.message = ++h->messages[{call.comm, call.peer, call.func == trace::SEND}];
      } else {
        op.position = ++h->collectives[Index(call.comm)];
        Instance& all = At(call.comm, op.position);
        all.op[Index(self)] = static_cast<int>(run->ops.size());
        all.last_entry = std::max(all.last_entry, op.entered);
        if (++all.entered == w_.comms[Index(call.comm)].n() && op.position == 1) {
          for (int other : w_.comms[Index(call.comm)].ranks) Wake(other);
        }
      }
      run->ops.push_back(op);
    }
  }

  // ---- GPU
  bool RunStreams(int r) {
    bool any = false;
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t s = 0; s < hosts_[Index(r)].streams.size(); ++s) moved |= RunStream(r, s);
      any |= moved;
    }
    return any;
  }
  bool RunStream(int r, size_t index) {
    Host& h = hosts_[Index(r)];
    Stream& stream = h.streams[index];
    const double gone =
        out_.ranks[Index(r)].host == HostState::kKilled ? out_.ranks[Index(r)].gone : kNever;
    bool moved = false;
    while (!stream.items.empty()) {
      Item& item = stream.items.front();
      double end = std::max(item.given, stream.time);
      if (end > gone) return moved;
      if (item.what == Do::kCompute) {
        end += item.seconds;
      } else if (item.what == Do::kWait) {
        const Stream& other = h.streams[Index(item.other)];
        if (other.ended.size() < item.target) return moved;
        if (item.target > 0) end = std::max(end, other.ended[item.target - 1]);
      } else {
        if (!item.started) {
          if (Stuck(r, item)) return moved;
          item.started = true;
          StartKernel(r, &item, end + kLaunchSeconds);
          moved = true;
        }
        if (item.open > 0) return moved;
        end = item.done;
      }
      stream.time = end;
      stream.ended.push_back(end);
      stream.items.pop_front();
      moved = true;
    }
    return moved;
  }
  bool Stuck(int r, const Item& item) {
    for (size_t f = 0; f < w_.faults.size(); ++f) {
      const Fault& fault = w_.faults[f];
      if (fault.kind != FaultKind::kGpuBefore || fault.rank != r) continue;
      for (int i : item.ops) {
        const OpRun& op = out_.ranks[Index(r)].ops[Index(i)];
        if (op.call.comm == fault.comm && !op.call.p2p() && op.position == fault.position)
          return out_.bites[f] = true;
      }
    }
    return false;
  }
  void StartKernel(int r, Item* item, double when) {
    RankRun& run = out_.ranks[Index(r)];
    for (int i : item->ops) run.ops[Index(i)].started = when;
    for (const int i : item->ops) {
      const OpRun op = run.ops[Index(i)];
      if (op.call.p2p()) {
        StartMessage(r, i, op, when);
      } else {
        Instance& all = At(op.call.comm, op.position);
        ++all.started;
        all.last_start = std::max(all.last_start, when);
        if (all.started == w_.comms[Index(op.call.comm)].n())
          EndCollective(op.call.comm, op.position, &all);
      }
    }
  }

  // All members run it.
  void EndCollective(int c, uint64_t position, Instance* all) {
    const Comm& comm = w_.comms[Index(c)];
    const double end = all->last_start + Duration(comm, c, position);
    std::vector<int> stops;
    const Trouble trouble = Look(c, position, end, *all);
    for (int i = 0; i < comm.n(); ++i) {
      const int r = comm.ranks[Index(i)], op = all->op[Index(i)];
      if (trouble.any && !trouble.finishes[Index(i)]) continue;
      EndOp(r, op, end + random_.Between(0, 5e-5));
    }
  }
  struct Trouble {
    bool any = false;
    std::vector<bool> finishes;
  };
  Trouble Look(int c, uint64_t position, double end, const Instance& all) {
    const Comm& comm = w_.comms[Index(c)];
    Trouble t;
    for (size_t f = 0; f < w_.faults.size(); ++f) {
      const Fault& fault = w_.faults[f];
      if (fault.comm != c || fault.position != position) continue;
      switch (fault.kind) {
        case FaultKind::kGpuMid:
        case FaultKind::kWire:
        case FaultKind::kControl:
        case FaultKind::kFlush:
        case FaultKind::kSize:
          t.any = out_.bites[f] = true;
          break;
        default:
          break;
      }
    }
    // Whoever has gone before the end takes the operation with it, as far as its proxy was needed.
    for (int r : comm.ranks) {
      const RankRun& run = out_.ranks[Index(r)];
      if (run.gone < end && (run.host == HostState::kKilled || comm.over_network)) t.any = true;
    }
    if (!t.any) return t;
    std::vector<StepMember> members(Index(comm.n()), StepMember{true, true, kEndless, false});
    t.finishes.assign(Index(comm.n()), true);
    const trace::Func func = out_.ranks[Index(comm.ranks[0])].ops[Index(all.op[0])].call.func;
    for (int ch = 0; ch < comm.channels(); ++ch) {
      const auto done = FinishersOf(w_, out_, c, position, func, ch, members);
      for (size_t i = 0; i < done.size(); ++i) t.finishes[i] = t.finishes[i] && done[i];
    }
    return t;
  }
  double Duration(const Comm& comm, int c, uint64_t position) {
    double d = w_.op_seconds * (1 + 0.05 * comm.n()) * random_.Between(0.97, 1.06);
    if (!comm.over_network) d *= 0.3;
    for (const Fault& f : w_.faults) {
      if (f.kind == FaultKind::kEdgeSlow && f.comm == c)
        d += f.seconds * random_.Between(0.95, 1.05);
    }
    (void)position;
    return d;
  }

  void StartMessage(int r, int i, const OpRun& op, double when) {
    const Comm& comm = w_.comms[Index(op.call.comm)];
    const int self = comm.RankOf(r);
    const bool send = op.call.func == trace::SEND;
    const int from = send ? self : op.call.peer, to = send ? op.call.peer : self;
    Message& m = messages_[Key(op.call.comm, from, to, op.message)];
    (send ? m.send_op : m.recv_op) = i;
    (send ? m.send_start : m.recv_start) = when;
    const int sender = comm.ranks[Index(from)], receiver = comm.ranks[Index(to)];
    // Few steps end in the connection's buffers.
    if (send && MessageSteps(op.call.count) <= kMessageDepth) EndOp(r, i, when + kMessageSeconds);
    if (m.send_op < 0 || m.recv_op < 0) return;
    const double end = std::max(m.send_start, m.recv_start) +
                       kMessageSeconds * (1 + 0.02 * MessageSteps(op.call.count));
    for (int who : {sender, receiver}) {
      if (out_.ranks[Index(who)].gone < end &&
          (out_.ranks[Index(who)].host == HostState::kKilled || !w_.SameHost(sender, receiver)))
        return;
    }
    for (size_t f = 0; f < w_.faults.size(); ++f) {
      const Fault& fault = w_.faults[f];
      if (fault.kind == FaultKind::kWire && fault.comm == op.call.comm && fault.position == 0 &&
          fault.from == sender && fault.to == receiver &&
          static_cast<uint64_t>(fault.step) <= op.message) {
        out_.bites[f] = true;
        return;
      }
    }
    if (out_.ranks[Index(sender)].ops[Index(m.send_op)].finished == kNever)
      EndOp(sender, m.send_op, end);
    EndOp(receiver, m.recv_op, end);
  }
  static uint64_t Key(int comm, int from, int to, uint64_t n) {
    return static_cast<uint64_t>(comm) << 48 ^ static_cast<uint64_t>(from) << 36 ^
           static_cast<uint64_t>(to) << 24 ^ n;
  }

  void EndOp(int r, int i, double when) {
    RankRun& run = out_.ranks[Index(r)];
    run.ops[Index(i)].finished = when;
    Stream& stream = hosts_[Index(r)].streams[Index(run.ops[Index(i)].stream)];
    Item& item = stream.items.front();  // kernels of a stream run one after the other
    --item.open;
    item.done = std::max(item.done, when);
    Wake(r);
  }

  void Finish() {
    for (const RankRun& run : out_.ranks) {
      out_.last = std::max(out_.last, run.host_time);
      for (const OpRun& op : run.ops) {
        for (double t : {op.entered, op.enqueued, op.started, op.finished}) {
          if (t != kNever) out_.last = std::max(out_.last, t);
        }
        out_.hangs |= op.finished == kNever;
      }
      if (run.host == HostState::kWaiting) out_.hangs = true;
    }
  }

  World& w_;
  Random random_;
  Played out_;
  std::vector<Host> hosts_;
  std::deque<int> ready_;
  std::vector<std::vector<Instance>> instances_;
  std::vector<double> first_seconds_;
  std::unordered_map<uint64_t, Message> messages_;
};

}  // namespace

Played Play(World* world) { return Player(world).Run(); }

}  // namespace ringscope::property
