// Every number that turns a measurement into an opinion, with its source. Finders hold no other
// thresholds.
//
// "Fail-slow" numbers start from published practice (docs/localisation.md, Stragglers, names it):
// late when lateness exceeds max(3 MAD, 5 % of the step) and the rank is the last arriver in >= 70
// % of >= 50 instances. Flight files often hold far fewer operations than that, so short records
// are judged too, with a stricter share and a much larger effect: the smaller the sample, the more
// lopsided it must be. Ratios between ranks are used wherever possible: they survive a loaded
// machine.
#ifndef RINGSCOPE_ANALYZER_REASONING_THRESHOLDS_H_
#define RINGSCOPE_ANALYZER_REASONING_THRESHOLDS_H_

#include <cstddef>
#include <cstdint>

namespace ringscope::reasoning::thresholds {

// ---- Different arguments or order
// An inversion spans the operations between two calls that changed places; frameworks invert
// neighbours (a hook that runs early). Longer windows make every periodic program look like an
// inversion of itself.
inline constexpr size_t kOrderWindow = 8;
// So many consecutive positions must agree after shifting one sequence by one before a call is said
// to be missing or extra.
inline constexpr size_t kShiftRun = 4;
// A majority must outnumber the dissenters by so much before who is called established (2 of 3 do,
// 3 of 5 do not).
inline constexpr size_t kMajorityFactor = 2;

// ---- Messages
// Share of a communicator's matched pairs that must carry the same number of messages before that
// number can convict a side. Programs whose pairs carry different numbers by design (mixture of
// experts) do not reach it.
inline constexpr double kSiblingShare = 2.0 / 3;
inline constexpr size_t kSiblingPairs = 2;

// ---- Stragglers (docs/localisation.md, Stragglers)
inline constexpr uint64_t kWarmupOperations =
    1;  // of a communicator: lazy connections took 160-530 ms in recorded runs
inline constexpr size_t kStragglerInstances = 6;  // with fewer, nothing is said
inline constexpr size_t kStragglerWindow = 256;   // newest instances that are looked at
inline constexpr size_t kLongRecord = 50;         // the usual sample size
inline constexpr double kLateShareLong = 0.7;     // of the instances, in a long record
inline constexpr double kLateShareShort = 0.85;   // in a short one: 6 of 6, 7 of 8
// The others must spend so much of their kernel time waiting. The usual bar is 5 % of a step; a
// step is not visible to NCCL, the kernel is. Healthy recorded runs reach 0.5 in single instances
// but never in four of five.
inline constexpr double kLateShareOfKernel = 0.25;
inline constexpr double kLateMads = 3;  // the usual bar
inline constexpr double kMadToSigma =
    1.4826;  // MAD of a normal distribution in standard deviations
inline constexpr int64_t kLateFloorNs =
    1'000'000;  // what one scheduler tick or page-fault burst costs
// Entry gap (or start delay) must account for so much of the lateness before it is blamed for it.
inline constexpr double kGapShareOfLateness = 0.5;

// ---- Slow edges (docs/localisation.md, Slow edges; recorded runs: 15.7 ms a step on the slow edge
// against 0.06-0.16 ms; healthy runs stay below 8 to 1)
inline constexpr double kEdgeWireRatio =
    20;  // mean wire time of a step against the median of the other edges
inline constexpr double kEdgeWireShare =
    0.3;  // of the time that the edge's send steps are open (healthy: < 0.2)
inline constexpr uint64_t kEdgeSteps = 100;  // fewer steps say nothing
inline constexpr int64_t kEdgeWireFloorNs =
    20'000;  // a step; below that latency and polling decide
inline constexpr double kStepSlots =
    8;  // NCCL_STEPS: so many steps of an edge wait at once during a hiccup
inline constexpr size_t kUsualCalls =
    4;  // calls of one kind before their median says what is usual
inline constexpr double kEdgeTrafficRatio = 2;  // only edges with about equal traffic are compared

// ---- Slow transfers (docs/localisation.md, Slow transfers). 1.3 is the recommended bar; the windows must also be apart from each
// other, since times on a machine that is busy with other things wander by more than that.
inline constexpr size_t kTransferWindow = 20;          // instances
inline constexpr double kTransferSlow = 1.3;           // medians of windows
inline constexpr int64_t kTransferFloorNs = 100'000;   // less is scheduling
inline constexpr double kBandwidthBytes = 1 << 20;     // below it latency decides
inline constexpr double kPlanRateBytes = 64u << 20;    // from there a ring should reach most of its bandwidth
inline constexpr double kPlanRateShare = 0.5;          // of the planned one (healthy: 0.7 to 0.95)

// ---- What is over
// Shorter freezes than this are not told apart from a thread that was not scheduled (virtual
// machines lose 100-200 ms).
inline constexpr int64_t kFreezeFloorNs = 300'000'000;
inline constexpr double kFreezeHeartbeats = 2;  // periods of the recorder thread that it must miss
inline constexpr double kOverlap =
    0.5;  // two spans are "at the same time" when they share so much of the shorter

// ---- Stalls
// Shorter waits than this are seen in any healthy job at any moment: a step of large models takes seconds.
inline constexpr double kYoungSeconds = 5;
// A process that ended or froze after so much of the others' wait was there while they waited: its end is not why. The wait
// lasts the stall time (minutes), clocks of hosts differ by milliseconds, so the exact share does not matter.
inline constexpr double kLivedThrough = 0.5;
// An aborted operation whose longest silence took so much of its life had stood still; what moved after it was the abort.
inline constexpr double kSilenceOfLife = 0.5;

// ---- What logs and tools measured (a handful of values, so large effects only; published practice as above)
// A rank's part of a step against the median of the other ranks: ranks of healthy jobs stay within a few percent, fail-slow
// studies begin at 1.1.
inline constexpr double kLoggedLateRatio = 1.3;
inline constexpr double kLoggedLateFloor = 0.005;  // seconds
inline constexpr size_t kLoggedLateSteps = 2;      // one late step may be anything
inline constexpr double kLoggedLateShare = 0.6;    // of the steps in which the rank can be compared
inline constexpr size_t kAveragedRanks = 4;        // a table with one row a rank holds averages: one comparison counts
// A step that waits for its input: so much longer than the median step, and so much of the excess is input.
inline constexpr double kSlowStepRatio = 1.5;
inline constexpr double kInputShareOfExcess = 0.6;
inline constexpr double kInputShareOfStep = 0.5;   // of every step: the input cannot keep up at all
inline constexpr size_t kInputSteps = 3;           // that median needs
// A clock against the median of the siblings (throttled ones run at a third to two thirds).
inline constexpr double kClockRatio = 0.75;
inline constexpr double kBusyPercent = 20;         // utilisation from which a GPU is not at rest
inline constexpr double kPowerLimitRatio = 0.9;    // a limit set lower than the siblings'
// A link against the usual speed: drivers round differently, half the width is half the speed.
inline constexpr double kLinkSpeedRatio = 0.95;
// Trials with and without a node: so many of each kind, more nodes that are always tried together name nobody, and a difference
// below this share of the value is noise whatever the spread.
inline constexpr size_t kTrialsOfEachKind = 2;
inline constexpr size_t kNodesTogether = 3;
inline constexpr double kTrialGap = 0.001;

}  // namespace ringscope::reasoning::thresholds

#endif  // RINGSCOPE_ANALYZER_REASONING_THRESHOLDS_H_
