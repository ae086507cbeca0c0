// What is said about clocks, for people. Internal to analyzer/model/.
#ifndef RINGSCOPE_ANALYZER_MODEL_CLOCK_WORDS_H_
#define RINGSCOPE_ANALYZER_MODEL_CLOCK_WORDS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/model/build.h"
#include "analyzer/model/clock_bounds.h"
#include "analyzer/model/clock_graph.h"
#include "analyzer/model/model.h"

namespace ringscope::model {

// How much a wall clock must be off before people are told: they read logs by it.
inline constexpr int64_t kWorthSayingNs = 100'000'000;

// The monotonic clock of `host` gained `by_ns` on `other` over the record (lost, if negative).
std::string JumpText(const std::string& host, const std::string& other, int64_t by_ns);
// Operations whose times cannot be; or the clock that jumped, where all that was left out is older than all that was kept and without
// the clock nothing would contradict. Two such clocks: which of them, the times do not tell.
struct Jump {
  std::vector<int> clocks;
  int64_t age_ns = 0;  // of the oldest operation since
  int64_t by_ns = 0;   // at least
};
Jump SayContradictions(const Job& job, const ClockBounds& bounds, const Settled& settled, size_t clocks,
                       std::vector<HostClock>* hosts, Notes* notes);
// The wall clock was set while the job ran.
void SaySet(const HostClock& clock, int64_t by_ns, Notes* notes);
// Wall clocks that are off by more than kWorthSayingNs, all in one line, and doubts.
void SayOff(const std::vector<HostClock>& clocks, Notes* notes);

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_CLOCK_WORDS_H_
