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

std::vector<int64_t> TimesOf(const std::map<int, int64_t>& at) {
  std::vector<int64_t> times;
  for (const auto& [clock, ns] : at) times.push_back(ns);
  return times;
}

}  // namespace

std::vector<int64_t> CreationShifts(const Job& job) {
  std::vector<int64_t> shifts(job.processes.size(), 0);
  std::map<std::string, int> clocks;  // by boot
  std::vector<int> clock_of;
  for (const Process& p : job.processes) {
    const std::string& boot = p.trace.process().boot_id();
    clock_of.push_back(clocks.try_emplace(boot.empty() ? p.host : boot, static_cast<int>(clocks.size())).first->second);
  }
  if (clocks.size() < 2) return shifts;
  struct Made {
    std::map<int, int64_t> at;  // by clock: the first of its members
    bool twice = false;
    std::map<std::pair<int, uint32_t>, int> times;
  };
  std::map<std::pair<uint64_t, uint32_t>, Made> made;
  for (const Process& p : job.processes) {
    for (const trace::Communicator& c : p.trace.communicators()) {
      const bool untold = c.profiler_api() != 0 && c.profiler_api() < 4;  // sizes are not told, or by some ranks only
      if (c.comm_id() == 0 || (!untold && c.n_ranks() < 2) || c.created_ns() == 0) continue;
      Made& m = made[{c.comm_id(), untold ? 0 : c.n_ranks()}];
      m.twice |= ++m.times[{p.index, c.rank()}] > 1;
      const int64_t at = p.ToRealtime(c.created_ns());
      const auto [first, fresh] = m.at.try_emplace(clock_of[static_cast<size_t>(p.index)], at);
      if (!fresh) first->second = std::min(first->second, at);
    }
  }
  std::vector<const Made*> widest_first;
  for (const auto& [key, m] : made) {
    if (!m.twice && m.at.size() > 1) widest_first.push_back(&m);
  }
  std::stable_sort(widest_first.begin(), widest_first.end(), [](const Made* a, const Made* b) { return a->at.size() > b->at.size(); });
  std::map<int, int64_t> ahead;  // by clock; of one more and more communicators are tied to
  for (bool more = true; more;) {
    more = false;
    for (const Made* m : widest_first) {
      std::vector<int64_t> when;  // it was made, as the clocks that are placed say
      for (const auto& [clock, at] : m->at) {
        if (ahead.count(clock) > 0) when.push_back(SatSub(at, ahead[clock]));
      }
      if (when.size() == m->at.size() || (when.empty() && !ahead.empty())) continue;
      if (when.empty()) when.push_back(Median(TimesOf(m->at)));
      const int64_t made_at = Median(when);
      for (const auto& [clock, at] : m->at) ahead.try_emplace(clock, SatSub(at, made_at));
      more = true;
    }
  }
  for (size_t i = 0; i < shifts.size(); ++i) {
    const auto found = ahead.find(clock_of[i]);
    if (found != ahead.end()) shifts[i] = SatSub(0, found->second);
  }
  return shifts;
}

}  // namespace ringscope::model
