#include "analyzer/model/clocks.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "analyzer/model/clock_words.h"
#include "analyzer/model/creation_times.h"
#include "analyzer/model/safe_math.h"

namespace ringscope::model {
namespace {

// One clock of the job.
struct Clock {
  std::vector<Process*> processes;
  int64_t wall_ns = 0;  // wall clock minus monotonic clock
  int64_t read_ns = 0;  // when that was read, monotonic clock
  int64_t set_ns = 0;   // by how much the wall clock was set while the job ran
};

int64_t WallMinusMonotonic(const trace::Clock& c) { return SatSub(c.realtime_ns(), c.monotonic_ns()); }

std::vector<Clock> ClocksOf(Job* job) {
  std::map<std::string, Clock> by_key;
  for (Process& p : job->processes) {
    if (p.trace.has_dump() || !p.trace.has_clock()) continue;
    const std::string& boot = p.trace.process().boot_id();
    by_key[boot.empty() ? "host " + p.host : boot].processes.push_back(&p);
  }
  std::vector<Clock> clocks;
  for (auto& [key, clock] : by_key) {
    // A wall clock may have been set while the job ran: the newest reading counts.
    const Process* newest = clock.processes.front();
    for (const Process* p : clock.processes) {
      if (p->trace.clock().monotonic_ns() > newest->trace.clock().monotonic_ns()) newest = p;
    }
    const trace::Clock& read = newest->trace.clock();
    clock.read_ns = read.monotonic_ns();
    clock.wall_ns = WallMinusMonotonic(read);
    if (read.first_realtime_ns() != 0)
      clock.set_ns = SatSub(clock.wall_ns, SatSub(read.first_realtime_ns(), read.first_monotonic_ns()));
    clocks.push_back(std::move(clock));
  }
  return clocks;
}

// Where the clocks stand at one moment, against one of them.
struct Standing {
  int reference = 0;
  std::vector<Interval> intervals;
  ClockBounds bounds;
  Settled settled;
};

// The clock against which most others are bounded, and those best: of the ones that did most together with others.
std::optional<std::pair<int, std::vector<Interval>>> Best(const ClockBounds& b, size_t clocks, int wanted) {
  std::vector<std::pair<int64_t, int>> busy;
  for (size_t i = 0; i < clocks; ++i) busy.emplace_back(0, static_cast<int>(i));
  for (const Bound& bound : b.bounds) {
    for (const int node : {bound.a, bound.b}) {
      if (static_cast<size_t>(node) < clocks) --busy[static_cast<size_t>(node)].first;
    }
  }
  std::sort(busy.begin(), busy.end());
  std::optional<std::pair<int, std::vector<Interval>>> best;
  std::pair<size_t, int64_t> best_score;
  constexpr size_t kTried = 4;
  for (size_t i = 0, tried = 0; i < busy.size() && tried < kTried; ++i) {
    if (wanted >= 0 && busy[i].second != wanted) continue;
    // One that is bounded already by the best so far would bound the same.
    if (best && best->second[static_cast<size_t>(busy[i].second)].low && best->second[static_cast<size_t>(busy[i].second)].high && i >= 2)
      continue;
    ++tried;
    auto solved = Solve(b.nodes, b.bounds, busy[i].second);
    if (!solved) return std::nullopt;
    std::pair<size_t, int64_t> score{0, 0};
    for (size_t k = 0; k < clocks; ++k) {
      const Interval& in = (*solved)[k];
      if (!in.low || !in.high) continue;
      ++score.first;
      score.second = SatSub(score.second, SatSub(*in.high, *in.low));
    }
    solved->resize(clocks);
    if (best && score <= best_score) continue;
    best_score = score;
    best.emplace(busy[i].second, *std::move(solved));
  }
  return best;
}

std::optional<Standing> Stand(const Job& job, const GpuClocks& gpus, size_t clocks, const std::vector<int>& clock_of, bool newest,
                              int reference) {
  Standing s;
  s.bounds = BoundsOf(job, gpus, static_cast<int>(clocks), clock_of, newest, kClockInstances);
  s.settled = DropContradictions(static_cast<int>(clocks), s.bounds.nodes, s.bounds.age_ns, &s.bounds.bounds);
  auto best = Best(s.bounds, clocks, reference);
  if (!best) return std::nullopt;
  s.reference = best->first;
  s.intervals = std::move(best->second);
  return s;
}

// Operations at the two ends of what was recorded tell how fast the clocks drift apart, and whether one jumped between.
void Drift(const std::vector<Clock>& clocks, const Standing& now, const Standing& then, const std::vector<int64_t>& apart_ns,
           std::vector<HostClock>* found) {
  std::vector<std::pair<size_t, int64_t>> jumps;
  for (size_t i = 0; i < found->size(); ++i) {
    const Interval &late = now.intervals[i], &early = then.intervals[i];
    if (static_cast<int>(i) == now.reference || !late.low || !late.high || !early.low || !early.high || apart_ns[i] <= 0) continue;
    // Offsets are corrections: a clock that runs fast needs a smaller one later.
    const int64_t most = SatSub(*early.high, *late.low), least = SatSub(*early.low, *late.high);
    const double fastest = static_cast<double>(most) / static_cast<double>(apart_ns[i]) * 1e6;
    const double slowest = static_cast<double>(least) / static_cast<double>(apart_ns[i]) * 1e6;
    HostClock& clock = (*found)[i];
    if (slowest > kMostDriftPpm || fastest < -kMostDriftPpm) {
      jumps.push_back({i, SatAdd(least, SatSub(most, least) / 2)});
      for (Process* p : clocks[i].processes) {
        p->time.jumped_ns = now.bounds.at_ns[i];
        p->time.jump_ns = std::max(most, SatSub(0, least));
      }
      continue;
    }
    if (fastest - slowest > 2 * kMostDriftPpm) continue;  // says nothing
    clock.has_drift = true;
    clock.drift_ppm = (fastest + slowest) / 2;
    clock.drift_error_ppm = (fastest - slowest) / 2;
  }
  HostClock& reference = (*found)[static_cast<size_t>(now.reference)];
  if (found->size() > 2 && 2 * jumps.size() >= found->size()) {
    // All others against this one: it was this one.
    reference.doubt = JumpText(reference.host, "the others", SatSub(0, jumps.front().second));
    return;
  }
  for (const auto& [clock, by] : jumps) (*found)[clock].doubt = JumpText((*found)[clock].host, reference.host, by);
}

// The job's time minus the clock, against the reference's.
struct Placed {
  int64_t value = 0, error = 0;
  bool bounded = false;  // by operations, on both sides
  int64_t at = 0;        // when, on the clock; 0: when its wall clock was read
};

// Operations bound it by `in`; else it is believed to be `prior`, as far as that is within the one bound that there may be.
Placed Place(const Interval& in, const Placed& prior) {
  Placed placed = prior;
  const int64_t low = in.low.value_or(std::numeric_limits<int64_t>::min()), high = in.high.value_or(std::numeric_limits<int64_t>::max());
  if (in.low && in.high && SatSub(high, low) <= 2 * kUnboundClockNs) {
    placed.value = SatAdd(low, SatSub(high, low) / 2);
    placed.error = SatSub(high, placed.value);
    placed.bounded = true;
  } else {
    placed.value = std::clamp(prior.value, low, high);
  }
  return placed;
}

int64_t MadeTogether(const Clock& clock) {
  const double stall = std::clamp(clock.processes.front()->trace.settings().stall_seconds(), 0.0, 3600.0);
  return stall == 0 ? kMadeTogetherNs : std::min(kMadeTogetherNs, static_cast<int64_t>(stall * kMadeTogetherShareOfStall * 1e9));
}

// What is believed of a clock without operations: communicators were made by all members together, if that is not too long ago for
// clocks that drift; else what the wall clocks show.
Placed Believed(const Clock& clock, const Clock& reference, const std::vector<CreationTime>& made) {
  const CreationTime &own = made[static_cast<size_t>(clock.processes.front()->index)],
                     &other = made[static_cast<size_t>(reference.processes.front()->index)];
  const double since = std::abs(static_cast<double>(SatSub(clock.read_ns, own.at_ns)));
  if (own.tied && other.tied && static_cast<double>(kMadeTogetherNs) + since * kDriftPpm * 1e-6 < static_cast<double>(kUnboundClockNs))
    return {SatSub(own.job_minus_monotonic_ns, other.job_minus_monotonic_ns), MadeTogether(clock), false, own.at_ns};
  return {SatSub(clock.wall_ns, reference.wall_ns), kUnboundClockNs, false, 0};
}

int64_t Middle(std::vector<int64_t> values) {
  const auto at = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// Signs of life came in by each record's own anchor; the clock's counts now.
void MoveSigns(int64_t shift, Process* p) {
  const trace::Trace& t = p->trace;
  if (p->read_realtime_ns != 0) p->read_realtime_ns = SatAdd(p->read_realtime_ns, shift);
  const int64_t newest = std::max({t.written_ns(), t.liveness().heartbeat_ns(), t.liveness().last_callback_ns()});
  if (newest > 0) {
    p->last_sign_ns = p->ToRealtime(newest);
  } else if (p->last_sign_ns != 0) {
    p->last_sign_ns = SatAdd(p->last_sign_ns, shift);
  }
  p->end_ns = p->last_sign_ns;
}

}  // namespace

void AlignClocks(Job* job, Notes* notes) {
  std::vector<Clock> clocks = ClocksOf(job);
  const size_t n = clocks.size();
  if (job->processes.size() > 1) {
    for (Process& p : job->processes) p.time.error_ns = kUnboundClockNs, p.time.assumed = true;
  }
  std::vector<int> clock_of(job->processes.size(), -1);
  std::vector<HostClock> found(n);
  for (size_t i = 0; i < n; ++i) {
    found[i].host = clocks[i].processes.front()->host;
    found[i].boot_id = clocks[i].processes.front()->trace.process().boot_id();
    for (const Process* p : clocks[i].processes) clock_of[static_cast<size_t>(p->index)] = static_cast<int>(i);
  }
  std::optional<Standing> now;
  if (n > 1) {
    const GpuClocks gpus(*job);
    now = Stand(*job, gpus, n, clock_of, true, -1);
    if (!now) {
      notes->Add("the clocks of the hosts cannot be aligned: what the ranks did together contradicts itself");
    } else {
      const Jump jump = SayContradictions(*job, now->bounds, now->settled, n, &found, notes);
      for (const int clock : jump.clocks) {
        for (Process* p : clocks[static_cast<size_t>(clock)].processes) {
          p->time.jumped_ns = SatSub(now->bounds.at_ns[static_cast<size_t>(clock)], jump.age_ns);
          p->time.jump_ns = jump.by_ns;
        }
      }
      const auto then = Stand(*job, gpus, n, clock_of, false, now->reference);
      if (then) Drift(clocks, *now, *then, ApartNs(*job, clock_of, n), &found);
    }
  }
  const size_t reference = now ? static_cast<size_t>(now->reference) : 0;
  std::vector<Placed> placed(n);
  std::vector<int64_t> corrections(n, 0);
  const std::vector<CreationTime> made = n > 1 ? CreationTimes(*job) : std::vector<CreationTime>();
  for (size_t i = 0; i < n; ++i) {
    if (i == reference) continue;
    placed[i] = Place(now ? now->intervals[i] : Interval{}, Believed(clocks[i], clocks[reference], made));
    if (placed[i].bounded) placed[i].at = now->bounds.at_ns[i];
    corrections[i] = SatSub(placed[i].value, SatSub(clocks[i].wall_ns, clocks[reference].wall_ns));
  }
  if (n > 1) found[reference].reference = true;
  // The job's time is that of the wall clocks in the middle, so that one wrong clock does not move all others.
  const int64_t middle = n > 0 ? Middle(corrections) : 0;
  for (size_t i = 0; i < n; ++i) {
    const int64_t at = placed[i].at != 0 ? placed[i].at : clocks[i].read_ns;
    const int64_t shift = SatSub(corrections[i], middle);
    for (Process* p : clocks[i].processes) {
      ClockMap& map = p->time;
      map.clock = static_cast<int>(i);
      map.at_ns = at;
      map.job_ns = SatAdd(SatAdd(at, clocks[i].wall_ns), shift);
      map.error_ns = placed[i].error;
      // Since then the clocks went their own ways.
      map.growth_ppm = placed[i].at != 0 ? kDriftPpm : 0;
      map.assumed = i != reference && !placed[i].bounded;
      MoveSigns(shift, p);
    }
    HostClock& clock = found[i];
    clock.ahead_ns = SatSub(0, shift);
    const double since = std::abs(static_cast<double>(SatSub(clocks[i].read_ns, at)));
    clock.error_ns = i == reference ? 0 : placed[i].bounded ? SatAdd(placed[i].error, static_cast<int64_t>(since * kDriftPpm * 1e-6)) : -1;
    SaySet(clock, clocks[i].set_ns, notes);
  }
  if (n < 2) return;
  SayOff(found, notes);
  job->clocks = std::move(found);
}

}  // namespace ringscope::model
