#include "analyzer/model/clocks.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "analyzer/model/clock_bounds.h"
#include "analyzer/model/ranks_text.h"
#include "analyzer/model/safe_math.h"

namespace ringscope::model {
namespace {

// Shortest paths from `from` along "a <= b + bound" (or against it). False: a cycle of negative length.
bool Relax(int nodes, const std::vector<Bound>& bounds, int from, bool forward, std::vector<std::optional<int64_t>>* best) {
  best->assign(static_cast<size_t>(nodes), std::nullopt);
  (*best)[static_cast<size_t>(from)] = 0;
  // Paths alternate between clocks and operations, so that they are short; what still moves after as many rounds as there are
  // nodes goes around a cycle.
  const int rounds = std::min(nodes, 512) + 1;
  for (int round = 0; round < rounds; ++round) {
    bool moved = false;
    for (const Bound& bound : bounds) {
      const std::optional<int64_t>& at = (*best)[static_cast<size_t>(forward ? bound.b : bound.a)];
      std::optional<int64_t>& to = (*best)[static_cast<size_t>(forward ? bound.a : bound.b)];
      if (!at) continue;
      const int64_t reached = SatAdd(*at, bound.bound_ns);
      if (to && *to <= reached) continue;
      to = reached;
      moved = true;
    }
    if (!moved) return true;
    if (*(*best)[static_cast<size_t>(from)] < 0) return false;
  }
  return false;
}

// One clock of the job.
struct Clock {
  std::string key;
  std::vector<Process*> processes;
  int64_t wall_ns = 0;  // wall clock minus monotonic clock
  int64_t read_ns = 0;  // when that was read, monotonic clock
};

std::vector<Clock> ClocksOf(Job* job) {
  std::map<std::string, Clock> by_key;
  for (Process& p : job->processes) {
    if (p.trace.has_dump() || !p.trace.has_clock()) continue;
    const std::string& boot = p.trace.process().boot_id();
    Clock& clock = by_key[boot.empty() ? "host " + p.host : boot];
    clock.processes.push_back(&p);
  }
  std::vector<Clock> clocks;
  for (auto& [key, clock] : by_key) {
    // A wall clock may have been set while the job ran: the newest reading counts.
    const Process* newest = clock.processes.front();
    for (const Process* p : clock.processes) {
      if (p->trace.clock().monotonic_ns() > newest->trace.clock().monotonic_ns()) newest = p;
    }
    clock.key = key;
    clock.read_ns = newest->trace.clock().monotonic_ns();
    clock.wall_ns = SatSub(newest->trace.clock().realtime_ns(), newest->trace.clock().monotonic_ns());
    clocks.push_back(std::move(clock));
  }
  return clocks;
}

// Where the clocks stand at one moment: how much each is ahead of the reference's wall clock.
struct Standing {
  std::vector<Interval> intervals;
  std::vector<int64_t> at_ns;  // ClockBounds
};
std::optional<Standing> Ahead(const Job& job, const std::vector<Clock>& clocks, const std::vector<int>& clock_of, bool newest) {
  for (size_t instances = kClockInstances; instances > 0; instances /= 4) {
    const ClockBounds bounds = BoundsOf(job, static_cast<int>(clocks.size()), clock_of, newest, instances);
    if (auto solved = Solve(bounds.nodes, bounds.bounds, 0)) {
      solved->resize(clocks.size());
      return Standing{*std::move(solved), bounds.at_ns};
    }
  }
  return std::nullopt;
}

int64_t Unbound(const Process& p) {
  const double stall = std::clamp(p.trace.settings().stall_seconds(), 0.0, 3600.0);
  return stall == 0 ? kUnboundClockNs : std::min(kUnboundClockNs, static_cast<int64_t>(stall * kUnboundShareOfStall * 1e9));
}

std::string Seconds(int64_t ns) {
  const double s = std::abs(static_cast<double>(ns)) / 1e9;
  return s >= 1 ? absl::StrFormat("%.1f s", s) : absl::StrFormat("%.0f ms", s * 1e3);
}

// Wider than this a drift says nothing: oscillators stay within 100 ppm.
constexpr double kDriftWorthSayingPpm = 400;
// How much a wall clock must be off before people are told: they read logs by it.
constexpr int64_t kWorthSayingNs = 100'000'000;

void Say(const std::vector<HostClock>& clocks, Notes* notes) {
  std::vector<std::string> off;
  for (const HostClock& c : clocks) {
    if (c.error_ns < 0 || std::abs(c.ahead_ns) < kWorthSayingNs || std::abs(c.ahead_ns) <= 2 * c.error_ns) continue;
    off.push_back(absl::StrCat(c.host, " ", Seconds(c.ahead_ns), c.ahead_ns > 0 ? " ahead" : " behind"));
  }
  if (off.empty()) return;
  constexpr size_t kNamed = 4;
  std::string text = "wall clocks of hosts differ (times in their logs do, too): ";
  for (size_t i = 0; i < off.size() && i < kNamed; ++i) absl::StrAppend(&text, i == 0 ? "" : ", ", off[i]);
  if (off.size() > kNamed) absl::StrAppend(&text, " and ", off.size() - kNamed, " more");
  notes->Add(absl::StrCat(text, "; here all times are aligned by what the ranks did together"));
}

// Operations at the two ends of what was recorded tell how fast the clocks drift apart.
void Drift(const std::vector<Interval>& now, const std::vector<Interval>& then, const std::vector<int64_t>& apart_ns,
           std::vector<HostClock>* clocks) {
  for (size_t i = 1; i < clocks->size(); ++i) {
    if (!now[i].low || !now[i].high || !then[i].low || !then[i].high || apart_ns[i] <= 0) continue;
    // Offsets are corrections: a clock that runs fast needs a smaller one later.
    const double fastest = static_cast<double>(SatSub(*then[i].high, *now[i].low)) / static_cast<double>(apart_ns[i]) * 1e6;
    const double slowest = static_cast<double>(SatSub(*then[i].low, *now[i].high)) / static_cast<double>(apart_ns[i]) * 1e6;
    if (fastest - slowest > kDriftWorthSayingPpm) continue;
    HostClock& clock = (*clocks)[i];
    clock.has_drift = true;
    clock.drift_ppm = (fastest + slowest) / 2;
    clock.drift_error_ppm = (fastest - slowest) / 2;
  }
}

}  // namespace

std::optional<std::vector<Interval>> Solve(int nodes, const std::vector<Bound>& bounds, int reference) {
  std::vector<std::optional<int64_t>> above, below;
  if (!Relax(nodes, bounds, reference, true, &above) || !Relax(nodes, bounds, reference, false, &below)) return std::nullopt;
  std::vector<Interval> intervals(static_cast<size_t>(nodes));
  for (size_t i = 0; i < intervals.size(); ++i) {
    intervals[i].high = above[i];
    if (below[i]) intervals[i].low = SatSub(0, *below[i]);
    if (intervals[i].low && intervals[i].high && *intervals[i].low > *intervals[i].high) return std::nullopt;
  }
  return intervals;
}

void AlignClocks(Job* job, Notes* notes) {
  std::vector<Clock> clocks = ClocksOf(job);
  if (clocks.size() < 2) return;
  std::vector<int> clock_of(job->processes.size(), -1);
  for (size_t i = 0; i < clocks.size(); ++i) {
    for (const Process* p : clocks[i].processes) clock_of[static_cast<size_t>(p->index)] = static_cast<int>(i);
  }
  const auto now = Ahead(*job, clocks, clock_of, true);
  if (!now)
    notes->Add(
        "the clocks of the hosts cannot be aligned: what the ranks did together contradicts itself (a clock that stood still?)");
  // Corrections: what is added to a host's wall clock to get that of the reference.
  std::vector<int64_t> corrections(clocks.size(), 0);
  std::vector<HostClock> found(clocks.size());
  for (size_t i = 0; i < clocks.size(); ++i) {
    HostClock& clock = found[i];
    clock.host = clocks[i].processes.front()->host;
    clock.boot_id = clocks[i].processes.front()->trace.process().boot_id();
    clock.error_ns = i == 0 ? 0 : -1;
    if (!now || i == 0) continue;
    // In terms of the monotonic clocks, value(i) = job time - monotonic; the wall clocks say wall(i).
    const int64_t believed = SatSub(clocks[i].wall_ns, clocks[0].wall_ns);
    const Interval& in = now->intervals[i];
    int64_t value = believed;
    if (in.low && in.high && (believed < *in.low || believed > *in.high)) {
      value = SatAdd(*in.low, SatSub(*in.high, *in.low) / 2);
    } else if (in.low && believed < *in.low) {
      value = *in.low;
    } else if (in.high && believed > *in.high) {
      value = *in.high;
    }
    corrections[i] = SatSub(value, believed);
    if (in.low && in.high) {
      // The bounds are those of the newest operation; since then the clocks went their own ways.
      const double since = std::abs(static_cast<double>(SatSub(clocks[i].read_ns, now->at_ns[i])));
      clock.error_ns =
          SatAdd(std::max(SatSub(*in.high, value), SatSub(value, *in.low)), static_cast<int64_t>(since * kDriftPpm * 1e-6));
    }
  }
  // The job's time is that of the wall clocks in the middle, so that one wrong clock does not move all others.
  std::vector<int64_t> sorted = corrections;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<int64_t>(sorted.size() / 2), sorted.end());
  const int64_t middle = sorted[sorted.size() / 2];
  std::vector<int64_t> apart(clocks.size(), 0);
  if (now) {
    if (const auto then = Ahead(*job, clocks, clock_of, false)) {
      apart = ApartNs(*job, clock_of, clocks.size());
      Drift(now->intervals, then->intervals, apart, &found);
    }
  }
  for (size_t i = 0; i < clocks.size(); ++i) {
    const int64_t shift = SatSub(corrections[i], middle);
    found[i].ahead_ns = SatSub(0, shift);
    for (Process* p : clocks[i].processes) {
      p->clock_shift_ns = shift;
      p->clock_error_ns = found[i].error_ns < 0 ? Unbound(*p) : found[i].error_ns;
      for (int64_t* time : {&p->last_sign_ns, &p->end_ns, &p->read_realtime_ns}) {
        if (*time != 0) *time = SatAdd(*time, shift);
      }
    }
  }
  Say(found, notes);
  job->clocks = std::move(found);
}

}  // namespace ringscope::model
