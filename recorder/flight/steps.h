// What the step words of an edge row say (format.h): counts, the state of each open step, the time spent in each state.
#ifndef RINGSCOPE_RECORDER_FLIGHT_STEPS_H_
#define RINGSCOPE_RECORDER_FLIGHT_STEPS_H_

#include <stdint.h>

#include "recorder/flight/format.h"

namespace ringscope::flight {

struct StepCounts {
  uint32_t reached[4];  // steps that reached state 0, 1, 2 and the stop
  explicit StepCounts(uint64_t steps)
      : reached{static_cast<uint32_t>(steps & 0xffff), static_cast<uint32_t>(steps >> 16 & 0xffff),
                static_cast<uint32_t>(steps >> 32 & 0xffff), static_cast<uint32_t>(steps >> 48)} {}
  uint32_t posted() const { return reached[0]; }
  uint32_t done() const { return reached[3]; }
  // Handed to (send: SendWait) or arrived from (recv: RecvFlushWait) the network.
  uint32_t transmitted(bool send) const { return send ? reached[2] : reached[1]; }
  // State of one step; kFree when it is done or not posted.
  StepState StateOf(uint32_t step, bool send) const {
    if (step < reached[3] || step >= reached[0]) return StepState::kFree;
    const uint32_t in = step < reached[2] ? 2 : step < reached[1] ? 1 : 0;
    return static_cast<StepState>((send ? static_cast<uint32_t>(StepState::kSendGpuWait)
                                        : static_cast<uint32_t>(StepState::kRecvWait)) + in);
  }
  // State of the oldest open step; kFree when none is open.
  StepState Oldest(bool send) const { return StateOf(reached[3], send); }
};

// Step-ticks spent in wait state i (0-2) until `now`, open steps included. `entered` are the row's sums, copied at about one
// moment; a writer killed between two of its stores can leave one step's entry out: then the sum is not credible (larger
// than every step waiting for the whole `lifetime`) and 0 is returned.
inline uint64_t WaitTicks(const uint64_t (&entered)[4], const StepCounts& counts, uint32_t i, uint64_t now, uint64_t lifetime,
                          uint64_t steps_total) {
  const uint64_t inside = counts.reached[i] > counts.reached[i + 1] ? counts.reached[i] - counts.reached[i + 1] : 0;
  const uint64_t waited = entered[i + 1] - entered[i] + inside * now;
  const uint64_t steps = steps_total + counts.reached[0];
  return steps == 0 || waited / steps > lifetime ? 0 : waited;
}

}  // namespace ringscope::flight

#endif  // RINGSCOPE_RECORDER_FLIGHT_STEPS_H_
