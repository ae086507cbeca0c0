// One time for the whole job, out of the clocks of its hosts.
//
// Wall clocks of hosts differ by what their synchronisation leaves (NTP: 0.1 to 10 ms; none: seconds). The job itself bounds the
// differences: nobody leaves an all-to-all collective before the last has entered it, and nobody has received before the other
// side has sent. Each such pair of times on two hosts is a bound on one side; over many operations both sides close. Where they
// leave room, the wall clock is believed; where they contradict it, they win.
#ifndef RINGSCOPE_ANALYZER_MODEL_CLOCKS_H_
#define RINGSCOPE_ANALYZER_MODEL_CLOCKS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "analyzer/model/build.h"
#include "analyzer/model/model.h"

namespace ringscope::model {

// What is assumed of a wall clock that nothing bounds: hosts without synchronisation were seen seconds apart. But no more than
// this share of the stall time: who asks for stalls of two seconds has clocks that agree.
inline constexpr int64_t kUnboundClockNs = 5'000'000'000;
inline constexpr double kUnboundShareOfStall = 0.25;
// Two oscillators of 50 ppm against each other: what bounds of an earlier time lose as they age.
inline constexpr double kDriftPpm = 100;
// Newest operations of a communicator that are looked at, for each of the two moments that a drift takes.
inline constexpr size_t kClockInstances = 32;

// "value(a) - value(b) <= bound", for the offsets of two clocks or the (unknown) moment of an operation.
struct Bound {
  int a = 0, b = 0;
  int64_t bound_ns = 0;
};
struct Interval {
  std::optional<int64_t> low, high;
};
// Bounds of value(i) - value(reference) that follow from all bounds together (shortest paths). nullopt: they contradict each
// other.
std::optional<std::vector<Interval>> Solve(int nodes, const std::vector<Bound>& bounds, int reference);

// Fills Job::clocks and the processes' clock_shift_ns and clock_error_ns, and moves their signs of life accordingly. After the
// operations are known, before life is judged. Processes that share a boot share a clock; dumps of PyTorch's flight recorder have
// only wall clocks and stay as they are.
void AlignClocks(Job* job, Notes* notes);

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_CLOCKS_H_
