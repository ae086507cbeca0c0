#include "analyzer/model/creation_times.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "analyzer/model/safe_math.h"

namespace ringscope::model {
namespace {

int64_t Median(std::vector<int64_t> values) {
  const auto at = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

int64_t WallMinusMonotonic(const Process& p) { return SatSub(p.trace.clock().realtime_ns(), p.trace.clock().monotonic_ns()); }

// A communicator as its members saw it being made.
struct Made {
  std::map<int, int64_t> at;  // by clock, its own: the first of its members
  std::vector<int64_t> walls;
  bool twice = false;
  std::map<std::pair<int, uint32_t>, int> times;
};

std::map<std::pair<uint64_t, uint32_t>, Made> AllMade(const Job& job, const std::vector<int>& clock_of) {
  std::map<std::pair<uint64_t, uint32_t>, Made> made;
  for (const Process& p : job.processes) {
    if (p.trace.has_dump() || !p.trace.has_clock()) continue;
    for (const trace::Communicator& c : p.trace.communicators()) {
      const bool untold = c.profiler_api() != 0 && c.profiler_api() < 4;  // sizes are not told, or by some ranks only
      if (c.comm_id() == 0 || (!untold && c.n_ranks() < 2) || c.created_ns() == 0) continue;
      Made& m = made[{c.comm_id(), untold ? 0 : c.n_ranks()}];
      m.twice |= ++m.times[{p.index, c.rank()}] > 1;
      m.walls.push_back(SatAdd(c.created_ns(), WallMinusMonotonic(p)));
      const auto [first, fresh] = m.at.try_emplace(clock_of[static_cast<size_t>(p.index)], c.created_ns());
      if (!fresh) first->second = std::min(first->second, c.created_ns());
    }
  }
  return made;
}

}  // namespace

std::vector<CreationTime> CreationTimes(const Job& job) {
  std::vector<CreationTime> times(job.processes.size());
  std::map<std::string, int> clocks;  // by boot
  std::vector<int> clock_of;
  for (const Process& p : job.processes) {
    const std::string& boot = p.trace.process().boot_id();
    clock_of.push_back(clocks.try_emplace(boot.empty() ? "host " + p.host : boot, static_cast<int>(clocks.size())).first->second);
    times[static_cast<size_t>(p.index)].job_minus_monotonic_ns = WallMinusMonotonic(p);
  }
  if (clocks.size() < 2) return times;
  const auto made = AllMade(job, clock_of);
  std::vector<const Made*> widest_first;
  for (const auto& [key, m] : made) {
    if (!m.twice && m.at.size() > 1) widest_first.push_back(&m);
  }
  std::stable_sort(widest_first.begin(), widest_first.end(), [](const Made* a, const Made* b) { return a->at.size() > b->at.size(); });
  std::map<int, CreationTime> tied;  // by clock
  for (bool more = true; more;) {
    more = false;
    for (const Made* m : widest_first) {
      std::vector<int64_t> when;  // it was made, as the clocks say that are tied already
      for (const auto& [clock, at] : m->at) {
        if (tied.count(clock) > 0) when.push_back(SatAdd(at, tied[clock].job_minus_monotonic_ns));
      }
      if (when.size() == m->at.size() || (when.empty() && !tied.empty())) continue;
      const int64_t made_at = Median(when.empty() ? m->walls : when);
      for (const auto& [clock, at] : m->at) tied.try_emplace(clock, CreationTime{true, SatSub(made_at, at), at});
      more = true;
    }
  }
  for (size_t i = 0; i < times.size(); ++i) {
    const Process& p = job.processes[i];
    const auto found = tied.find(clock_of[i]);
    if (found != tied.end() && !p.trace.has_dump() && p.trace.has_clock()) times[i] = found->second;
  }
  return times;
}

}  // namespace ringscope::model
