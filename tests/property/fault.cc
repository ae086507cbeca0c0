// What goes wrong: the programs are changed, or a fault is noted that the simulation acts out.
#include <algorithm>

#include "tests/property/operation_steps.h"
#include "tests/property/world.h"

namespace ringscope::property {
namespace {

size_t Index(int i) { return static_cast<size_t>(i); }

// Number of the call at `step` among its communicator's collectives (or sends and receives) of that
// rank.
uint64_t PositionOf(const Program& program, int step) {
  uint64_t n = 0;
  const Call& call = program[Index(step)].call;
  for (int i = 0; i <= step; ++i) {
    const Step& s = program[Index(i)];
    n += s.what == Do::kCall && s.call.comm == call.comm && s.call.p2p() == call.p2p() ? 1 : 0;
  }
  return n;
}

class Injector {
 public:
  Injector(Random* random, World* w) : random_(*random), w_(*w) {}

  bool Do_(FaultKind kind) {
    fault_.kind = kind;
    fault_.rank = random_.Below(w_.ranks);
    iteration_ = random_.From(2, w_.iterations - 2);
    if (!Change(kind)) return false;
    w_.faults.push_back(fault_);
    return true;
  }

 private:
  Program& Mine() { return w_.programs[Index(fault_.rank)]; }
  // A call of the rank in the iteration that satisfies `fits`, the first of its group; -1: none.
  template <typename Fits>
  int CallWhere(Fits fits) {
    std::vector<int> found;
    const Program& p = Mine();
    for (size_t i = 0; i < p.size(); ++i) {
      if (p[i].what != Do::kCall || p[i].iteration != iteration_ || !fits(p[i], i)) continue;
      if (p[i].group != 0 && i > 0 && p[i - 1].what == Do::kCall && p[i - 1].group == p[i].group)
        continue;
      found.push_back(static_cast<int>(i));
    }
    return found.empty() ? -1 : random_.Pick(found);
  }
  int AnyCall() {
    return CallWhere([](const Step&, size_t) { return true; });
  }
  int CollectiveCall(bool over_network = false) {
    return CallWhere([&](const Step& s, size_t) {
      return !s.call.p2p() && (!over_network || w_.comms[Index(s.call.comm)].over_network);
    });
  }
  void Insert(int at, Step step) {
    step.iteration = iteration_;
    Mine().insert(Mine().begin() + at, step);
  }
  bool NoteCollective(int step) {
    if (step < 0) return false;
    fault_.comm = Mine()[Index(step)].call.comm;
    fault_.position = PositionOf(Mine(), step);
    return true;
  }

  bool Stops(Do how) {
    const int at = AnyCall();
    if (at < 0) return false;
    // What the GPU was given before may still be under way when the host stops; it has ended when a
    // program ends in order.
    const bool in_flight = how != Do::kExit && random_.Chance(0.4);
    Insert(at, {.what = how});
    if (!in_flight) Insert(at, {.what = Do::kSync});
    return true;
  }

  bool Edge(FaultKind kind) {
    const int at = CollectiveCall(true);
    if (!NoteCollective(at)) return false;
    const Comm& comm = w_.comms[Index(fault_.comm)];
    if (comm.tree) return false;
    const int channel = random_.Below(comm.channels());
    const auto& ring = comm.rings[Index(channel)];
    std::vector<size_t> over;
    for (size_t i = 0; i < ring.size(); ++i) {
      if (!w_.SameHost(comm.ranks[Index(ring[i])], comm.ranks[Index(ring[(i + 1) % ring.size()])]))
        over.push_back(i);
    }
    const size_t i = random_.Pick(over);
    fault_.rank = -1;
    fault_.from = comm.ranks[Index(ring[i])];
    fault_.to = comm.ranks[Index(ring[(i + 1) % ring.size()])];
    if (comm.channels() > 1 && random_.Chance(0.3)) fault_.channel = channel;
    fault_.step = random_.Chance(0.5) ? 0 : random_.Below(std::max(1, comm.n() - 1));
    if (kind == FaultKind::kEdgeSlow) {
      fault_.position = 0;
      fault_.channel = -1;  // what two hosts have between them is slow, whichever channel uses it
      // Clearly slow: a step waits for longer than any healthy one by far (record_edges.cc).
      const StepRules rules = RulesOf(w_, comm, trace::ALL_REDUCE);
      const double clear = 40 * kUsualStepSeconds * rules.steps / rules.depth;
      fault_.seconds = std::max(w_.op_seconds, clear) * random_.Between(1.5, 10);
    }
    return true;
  }

  // Delay before (nearly) every call of the rank.
  void Slow(Do what, double seconds) {
    Program slow;
    int group = 0;
    for (const Step& s : Mine()) {
      const bool in_group = s.what == Do::kCall && s.group != 0 && s.group == group;
      if (s.what == Do::kCall && !in_group) {
        // On the queue that the operation runs in.
        Step delay = {.what = what};
        delay.stream = what == Do::kCompute ? s.stream : 0;
        delay.seconds = seconds * random_.Between(0.8, 1.2);
        delay.iteration = s.iteration;
        slow.push_back(delay);
      }
      group = s.what == Do::kCall ? s.group : 0;
      slow.push_back(s);
    }
    Mine() = std::move(slow);
    fault_.seconds = seconds;
  }

  // The rank makes two calls of one communicator in the other order.
  bool Swap() {
    const auto next = [&](size_t i) {
      for (size_t k = i + 1; k < Mine().size(); ++k) {
        const Step& s = Mine()[k];
        if (s.what == Do::kSync) continue;
        if (s.what == Do::kCall) return k;
      }
      return Mine().size();
    };
    const int at = CallWhere([&](const Step& s, size_t i) {
      const size_t k = next(i);
      if (s.call.p2p() || k == Mine().size()) return false;
      const Call& other = Mine()[k].call;
      return !other.p2p() && other.comm == s.call.comm &&
             (other.func != s.call.func || other.count != s.call.count);
    });
    if (!NoteCollective(at)) return false;
    std::swap(Mine()[Index(at)].call, Mine()[next(Index(at))].call);
    return true;
  }

  // Two calls in a row of different communicators that have more than this rank in common, in the
  // other order.
  bool Cycle() {
    std::vector<std::pair<size_t, size_t>> found;
    for (size_t i = 0; i < Mine().size(); ++i) {
      const Step& a = Mine()[i];
      if (a.what != Do::kCall || a.call.p2p() || a.iteration != iteration_) continue;
      for (size_t k = i + 1; k < Mine().size(); ++k) {
        const Step& b = Mine()[k];
        if (b.what != Do::kCall) continue;
        if (!b.call.p2p() && b.call.comm != a.call.comm && b.iteration == a.iteration) {
          int common = 0;
          for (int r : w_.comms[Index(a.call.comm)].ranks)
            common += w_.comms[Index(b.call.comm)].RankOf(r) >= 0 ? 1 : 0;
          if (common > 1) found.push_back({i, k});
        }
        break;
      }
    }
    if (found.empty()) return false;
    const auto [i, k] = random_.Pick(found);
    fault_.comms = {Mine()[i].call.comm, Mine()[k].call.comm};
    fault_.comm = fault_.comms[0];
    fault_.position = PositionOf(Mine(), static_cast<int>(i));
    std::swap(Mine()[i].call, Mine()[k].call);
    std::swap(Mine()[i].stream, Mine()[k].stream);
    return true;
  }

  // The last message between two ranks is left out on one side.
  bool Unmatched() {
    std::vector<int> calls;
    Program& p = Mine();
    for (size_t i = 0; i < p.size(); ++i) {
      if (p[i].what != Do::kCall || !p[i].call.p2p()) continue;
      bool last = true;
      for (size_t k = i + 1; k < p.size(); ++k) {
        last &= p[k].what != Do::kCall || p[k].call.comm != p[i].call.comm ||
                p[k].call.func != p[i].call.func || p[k].call.peer != p[i].call.peer;
      }
      if (last) calls.push_back(static_cast<int>(i));
    }
    if (calls.empty()) return false;
    const int at = random_.Pick(calls);
    const Call call = p[Index(at)].call;
    const int peer = w_.comms[Index(call.comm)].ranks[Index(call.peer)];
    fault_.comm = call.comm;
    fault_.from = call.func == trace::SEND ? fault_.rank : peer;
    fault_.to = call.func == trace::SEND ? peer : fault_.rank;
    fault_.step = MessageSteps(call.count);
    p.erase(p.begin() + at);
    return true;
  }

  bool Change(FaultKind kind) {
    switch (kind) {
      case FaultKind::kNone:
      case FaultKind::kCount:
      case FaultKind::kCycle3:
        return kind == FaultKind::kNone;
      case FaultKind::kSlowStart:
        for (Program& p : w_.programs) {
          Step slow = {.what = Do::kCompute};
          slow.seconds =
              fault_.seconds == 0 ? fault_.seconds = random_.Between(5, 40) : fault_.seconds;
          p.insert(p.begin() + 1, slow);
        }
        return true;
      case FaultKind::kLateStart:
        // Until its first completion a communicator has five times the stall time; a small send
        // completes at once.
        fault_.seconds = random_.Spread(
            2, (w_.layout >= Layout::kPpTpDp ? 0.7 : 4) * w_.recording.stall_seconds);
        iteration_ = 0;
        Insert(0, {.what = Do::kHost, .seconds = fault_.seconds});
        return true;
      case FaultKind::kCheckpoint:
        fault_.rank = 0;
        fault_.seconds = random_.Spread(2, 0.7 * w_.recording.stall_seconds);
        if (AnyCall() < 0) return false;
        Insert(AnyCall(), {.what = Do::kHost, .seconds = fault_.seconds});
        return true;
      case FaultKind::kIdle:
        fault_.seconds = random_.Between(5, 0.7 * w_.recording.stall_seconds);
        for (fault_.rank = 0; fault_.rank < w_.ranks; ++fault_.rank) {
          const auto first = std::find_if(Mine().begin(), Mine().end(),
                                          [&](const Step& s) { return s.iteration == iteration_; });
          const auto at = static_cast<int>(first - Mine().begin());
          Insert(at, {.what = Do::kHost, .seconds = fault_.seconds});
          Insert(at, {.what = Do::kSync});
        }
        fault_.rank = -1;
        return true;
      case FaultKind::kStuckHost:
        return Stops(Do::kStuck);
      case FaultKind::kKilled:
        return Stops(Do::kKilled);
      case FaultKind::kFrozen:
        return Stops(Do::kFrozen);
      case FaultKind::kExited:
        return Stops(Do::kExit);
      case FaultKind::kCollective: {
        const int at = CollectiveCall();
        if (!NoteCollective(at)) return false;
        Call& call = Mine()[Index(at)].call;
        call.type = trace::FLOAT64;
        return true;
      }
      case FaultKind::kSize: {
        const int at = CollectiveCall();
        if (!NoteCollective(at) || w_.comms[Index(fault_.comm)].tree) return false;
        Mine()[Index(at)].call.count *= 20000;
        return true;
      }
      case FaultKind::kOrder:
        return Swap();
      case FaultKind::kUnmatched:
        return Unmatched();
      case FaultKind::kCycle2:
        return Cycle();
      case FaultKind::kGpuBefore:
        return NoteCollective(CollectiveCall());
      case FaultKind::kGpuMid: {
        if (!NoteCollective(CollectiveCall())) return false;
        const Comm& comm = w_.comms[Index(fault_.comm)];
        fault_.step = random_.Below(std::max(1, (comm.n() - 1) * comm.slices));
        return true;
      }
      case FaultKind::kControl:
      case FaultKind::kFlush:
        w_.recording.socket = false;
        [[fallthrough]];
      case FaultKind::kWire:
      case FaultKind::kEdgeSlow:
        return Edge(kind);
      case FaultKind::kHostSlow:
        Slow(Do::kHost, random_.Between(0.05, 0.3));
        return true;
      case FaultKind::kGpuSlow:
        Slow(Do::kCompute, random_.Between(0.05, 0.3));
        return true;
    }
    return false;
  }

  Random& random_;
  World& w_;
  Fault fault_;
  int iteration_ = 0;
};

}  // namespace

const char* NameOf(FaultKind kind) {
  static const char* const kNames[] = {"healthy",
                                       "slow start",
                                       "late start",
                                       "checkpoint",
                                       "idle",
                                       "host stuck",
                                       "killed",
                                       "frozen",
                                       "exited early",
                                       "wrong collective",
                                       "wrong size",
                                       "wrong order",
                                       "unmatched message",
                                       "cycle of two",
                                       "cycle of three",
                                       "GPU before kernel",
                                       "GPU in kernel",
                                       "edge: wire",
                                       "edge: control",
                                       "edge: flush",
                                       "edge slow",
                                       "host slow",
                                       "GPU slow"};
  return kind < FaultKind::kCount ? kNames[static_cast<int>(kind)] : "?";
}

bool Inject(Random* random, FaultKind kind, World* world) {
  return Injector(random, world).Do_(kind);
}

World MakeWorld(uint64_t seed, FaultKind only) {
  Random random(seed);
  const bool any = only == FaultKind::kCount;
  FaultKind kind =
      any ? static_cast<FaultKind>(random.Below(static_cast<int>(FaultKind::kCount))) : only;
  const bool second = any && random.Chance(0.06);
  for (int attempt = 0;; ++attempt) {
    World w;
    w.seed = seed;
    MakeLayout(&random, &w);
    MakePrograms(&random, &w);
    MakeRecording(&random, &w);
    if (attempt > 200) return w;  // no job can have this fault: a healthy one
    if (!Inject(&random, kind, &w)) continue;
    if (second && kind >= FaultKind::kStuckHost && kind < FaultKind::kEdgeSlow) {
      static const std::vector<FaultKind> kSecond = {FaultKind::kStuckHost, FaultKind::kKilled,
                                                     FaultKind::kGpuBefore, FaultKind::kWire};
      (void)Inject(&random, random.Pick(kSecond), &w);
    }
    return w;
  }
}

}  // namespace ringscope::property
