#include "analyzer/model/clock_words.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "analyzer/model/safe_math.h"

namespace ringscope::model {
namespace {

std::string Seconds(int64_t ns) {
  const double s = std::abs(static_cast<double>(ns)) / 1e9;
  return s >= 1 ? absl::StrFormat("%.1f s", s) : absl::StrFormat("%.0f ms", s * 1e3);
}

std::string OperationText(const Job& job, const ClockBounds::Shared& shared) {
  const Communicator& c = job.communicators[static_cast<size_t>(shared.communicator)];
  return absl::StrCat(shared.message ? "message " : "operation ", shared.position, " of communicator ", c.Label());
}

}  // namespace

std::string JumpText(const std::string& host, const std::string& other, int64_t by_ns) {
  return absl::StrCat("the clock of ", host, by_ns < 0 ? " lost " : " gained ", Seconds(by_ns), " on that of ", other,
                      " while the job ran (", other == "the others" ? "the machine" : "one of the two machines",
                      " slept or was moved?): earlier times compare no better than that");
}

Jump SayContradictions(const Job& job, const ClockBounds& bounds, const Settled& settled, size_t clocks,
                       std::vector<HostClock>* hosts, Notes* notes) {
  if (settled.dropped.empty()) return {};
  const auto shared_of = [&](int node) { return bounds.shared[static_cast<size_t>(node) - clocks]; };
  int64_t by = 0;
  for (const Contradiction& c : settled.contradictions) by = std::max(by, c.by_ns);
  const std::vector<int>& odd = settled.odd_clocks;
  std::vector<std::string> names;
  for (const int clock : odd) names.push_back((*hosts)[static_cast<size_t>(clock)].host);
  // What was kept is newer than all that was left out: then a clock jumped in between.
  int64_t newest_out = std::numeric_limits<int64_t>::max(), oldest_in = 0;
  std::set<int> out(settled.dropped.begin(), settled.dropped.end());
  for (const int node : settled.dropped) newest_out = std::min(newest_out, bounds.age_ns[static_cast<size_t>(node)]);
  for (int node = static_cast<int>(clocks); node < bounds.nodes; ++node) {
    if (out.count(node) == 0) oldest_in = std::max(oldest_in, bounds.age_ns[static_cast<size_t>(node)]);
  }
  const bool jumped = settled.dropped.size() > 1 && newest_out >= oldest_in && !names.empty() && names.size() <= 2;
  if (!jumped) {
    constexpr size_t kNamed = 3;
    std::vector<std::string> which;
    for (size_t i = 0; i < settled.dropped.size() && i < kNamed; ++i) which.push_back(OperationText(job, shared_of(settled.dropped[i])));
    if (settled.dropped.size() > kNamed) which.push_back(absl::StrCat(settled.dropped.size() - kNamed, " more"));
    notes->Add(absl::StrCat("times that contradict all others by ", Seconds(by), " were not used to align the clocks of the hosts: ",
                            absl::StrJoin(which, ", ")));
    return {};
  }
  const std::string text =
      names.size() == 1
          ? absl::StrCat("the clock of ", names[0], " jumped by ", Seconds(by), " or more while the job ran (it slept or was moved?)")
          : absl::StrCat("the clocks of ", names[0], " and ", names[1], " jumped against each other by ", Seconds(by),
                         " or more while the job ran (one of the two machines slept or was moved?)");
  for (const int clock : odd) {
    std::string& doubt = (*hosts)[static_cast<size_t>(clock)].doubt;
    doubt = absl::StrCat(text, ": only the ", bounds.nodes - static_cast<int>(clocks) - static_cast<int>(settled.dropped.size()),
                         " newest operations align them");
  }
  return {odd, oldest_in, by};
}

void SaySet(const HostClock& clock, int64_t by_ns, Notes* notes) {
  if (std::abs(static_cast<double>(by_ns)) < static_cast<double>(kWorthSayingNs)) return;
  notes->Add(absl::StrCat("the wall clock of ", clock.host, " was set ", Seconds(by_ns), by_ns > 0 ? " forward" : " back",
                          " while the job ran: earlier times in its logs are by the old one"));
}

void SayOff(const std::vector<HostClock>& clocks, Notes* notes) {
  std::vector<std::string> off;
  std::set<std::string> doubts;
  for (const HostClock& c : clocks) {
    if (!c.doubt.empty()) doubts.insert(c.doubt);
    if (c.error_ns < 0 || std::abs(c.ahead_ns) < kWorthSayingNs || std::abs(c.ahead_ns) <= 2 * c.error_ns) continue;
    off.push_back(absl::StrCat(c.host, " ", Seconds(c.ahead_ns), c.ahead_ns > 0 ? " ahead" : " behind"));
  }
  for (const std::string& doubt : doubts) notes->Add(doubt);
  if (off.empty()) return;
  constexpr size_t kNamed = 4;
  std::string text = "wall clocks of hosts differ (times in their logs do, too): ";
  for (size_t i = 0; i < off.size() && i < kNamed; ++i) absl::StrAppend(&text, i == 0 ? "" : ", ", off[i]);
  if (off.size() > kNamed) absl::StrAppend(&text, " and ", off.size() - kNamed, " more");
  notes->Add(absl::StrCat(text, "; here all times are aligned by what the ranks did together"));
}

}  // namespace ringscope::model
