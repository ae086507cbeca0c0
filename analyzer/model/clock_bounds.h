// What operations that hosts did together say of their clocks: bounds for clock_graph.h to solve.
#ifndef RINGSCOPE_ANALYZER_MODEL_CLOCK_BOUNDS_H_
#define RINGSCOPE_ANALYZER_MODEL_CLOCK_BOUNDS_H_

#include <cstdint>
#include <vector>

#include "analyzer/model/clock_graph.h"
#include "analyzer/model/gpu_clock.h"
#include "analyzer/model/model.h"

namespace ringscope::model {

// Two oscillators of 50 ppm against each other: what bounds of an earlier time lose as they age.
inline constexpr double kDriftPpm = 100;

// Nodes 0 .. clocks-1 are the clocks (value: job time minus monotonic clock), the others moments of operations.
struct ClockBounds {
  int nodes = 0;
  std::vector<Bound> bounds;
  std::vector<int64_t> at_ns;    // moment, on each clock, for which the bounds hold; 0 none
  std::vector<int64_t> age_ns;   // of each node: how far from that moment; 0 for clocks
  struct Shared {
    int communicator = 0;
    uint64_t position = 0;
    bool message = false;
  };
  std::vector<Shared> shared;    // of the nodes from `clocks` on
};

// `clock_of`: clock of each process, -1 none. The newest (or oldest) `instances` operations of each communicator that spans clocks.
// Every member counts that has the operation, as far as it came with it:
//   all-reduce, all-gather, reduce-scatter, all-to-all   entered(i) <= moment <= finished(j) for all i, j;
//   broadcast, scatter                                    entered(root) <= moment <= finished(j);
//   reduce, gather                                        entered(i) <= moment <= finished(root).
// Not if two members made different calls there: then nobody knows who waits for whom. A message: entered(send) <= finished(receive),
// the n-th of a direction with the n-th.
// Host times of completion are late (the proxy polls) and calls run ahead of the GPU, which makes bounds wider, never wrong; where the
// GPU's timer is known on the host's clock (gpu_clock.h) it closes them. Calls in captured graphs have no times of their own, those
// that the copy engine does need not wait for each other on the GPU, and empty ones for nobody: they do not count.
// Bounds grow by kDriftPpm for their distance from the newest (oldest) operation.
ClockBounds BoundsOf(const Job& job, const GpuClocks& gpus, int clocks, const std::vector<int>& clock_of, bool newest,
                     size_t instances);

// Per clock the time between the oldest and the newest finished operation that is recorded, ns.
std::vector<int64_t> ApartNs(const Job& job, const std::vector<int>& clock_of, size_t clocks);

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_CLOCK_BOUNDS_H_
