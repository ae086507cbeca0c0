// One time for the whole job, out of the clocks of its hosts.
//
// Wall clocks of hosts differ by what their synchronisation leaves (NTP: 0.1 to 10 ms; none: seconds). The job itself bounds the
// differences: nobody leaves an all-to-all collective before the last has entered it, and nobody has received before the other
// side has sent. Each such pair of times on two hosts is a bound on one side; over many operations both sides close. What is not
// bounded on both sides goes by when communicators were made, which their members do together, and else by the wall clock; that is
// assumed, and no bound.
//
// Not used: the proxies' steps (a receive after its send, a send after its credit), which would close the bounds to a network round
// trip. Only stream files hold times of single steps, and those are no part of a job.
#ifndef RINGSCOPE_ANALYZER_MODEL_CLOCKS_H_
#define RINGSCOPE_ANALYZER_MODEL_CLOCKS_H_

#include <cstddef>
#include <cstdint>

#include "analyzer/model/build.h"
#include "analyzer/model/clock_bounds.h"
#include "analyzer/model/clock_graph.h"
#include "analyzer/model/model.h"

namespace ringscope::model {

// What is assumed of a wall clock that nothing bounds: hosts without synchronisation were seen seconds apart.
inline constexpr int64_t kUnboundClockNs = 5'000'000'000;
// What is assumed of members that make a communicator, several times what was seen (creation_times.h); but no more than this share
// of the stall time, as short ones are asked for only where all is fast.
inline constexpr int64_t kMadeTogetherNs = 2'000'000'000;
inline constexpr double kMadeTogetherShareOfStall = 0.25;
// Newest operations of a communicator that are looked at, for each of the two moments that a drift takes.
inline constexpr size_t kClockInstances = 32;
// Two clocks that drift apart by more did not drift: one of them jumped. (Oscillators: 50 ppm each; NTP may add as much.)
inline constexpr double kMostDriftPpm = 200;

// Fills Job::clocks and the processes' ClockMap, and puts their signs of life into the job's time. After the operations are known,
// before life is judged. Processes that share a boot share a clock. Dumps of PyTorch's flight recorder have only wall clocks and
// stay as they are, as far off as an unbound clock.
void AlignClocks(Job* job, Notes* notes);

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_CLOCKS_H_
