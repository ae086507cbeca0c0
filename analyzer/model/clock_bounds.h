// What operations that hosts did together say of their clocks: bounds for clocks.h to solve.
#ifndef RINGSCOPE_ANALYZER_MODEL_CLOCK_BOUNDS_H_
#define RINGSCOPE_ANALYZER_MODEL_CLOCK_BOUNDS_H_

#include <cstdint>
#include <vector>

#include "analyzer/model/clocks.h"

namespace ringscope::model {

// Nodes 0 .. clocks-1 are the clocks (value: job time minus monotonic clock), the others moments of operations.
struct ClockBounds {
  int nodes = 0;
  std::vector<Bound> bounds;
  std::vector<int64_t> at_ns;  // moment, on each clock, for which the bounds hold; 0 none
};

// `clock_of`: clock of each process, -1 none. The newest (or oldest) `instances` finished operations of each communicator that
// spans clocks. A collective counts when all its recorded members made the same call and finished it:
//   all-reduce, all-gather, reduce-scatter, all-to-all   entered(i) <= moment <= finished(j) for all i, j;
//   broadcast, scatter                                    entered(root) <= moment <= finished(j);
//   reduce, gather                                        entered(i) <= moment <= finished(root).
// A message: entered(send) <= finished(receive), the n-th of a direction with the n-th. Host times of completion are late (the
// proxy polls), which makes bounds wider, never wrong. Calls in captured graphs have no times of their own and do not count.
// Bounds grow by kDriftPpm for their distance from the newest (oldest) operation.
ClockBounds BoundsOf(const Job& job, int clocks, const std::vector<int>& clock_of, bool newest, size_t instances);

// Per clock the time between the oldest and the newest finished operation that is recorded, ns.
std::vector<int64_t> ApartNs(const Job& job, const std::vector<int>& clock_of, size_t clocks);

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_CLOCK_BOUNDS_H_
