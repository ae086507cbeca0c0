// Names of the counters (format.h: enum Counter), as they stand in trace.Counter.name.
#ifndef RINGSCOPE_RECORDER_FLIGHT_COUNTERS_H_
#define RINGSCOPE_RECORDER_FLIGHT_COUNTERS_H_

#include <stdint.h>

namespace ringscope::flight {

struct CounterInfo {
  const char* name;
  bool loss;  // something was not recorded; false: odd, but handled
};

// Indexed by enum Counter. Names are part of the trace format: do not change them.
inline constexpr CounterInfo kCounterInfos[] = {
    {"op_no_row", true},          {"comm_no_row", true},      {"edge_no_row", true},
    {"thread_no_row", true},      {"stale_handle", false},    {"foreign_handle", false},
    {"garbage_handle", false},    {"null_handle", false},     {"unknown_event", false},
    {"unknown_state", false},     {"unasked_event", false},   {"late_callback", false},
    {"kernel_stop_twice", false}, {"step_gap", false},        {"grouped_tail", false},
    {"null_context", false},      {"foreign_context", false}, {"comm_finalized_open", false},
    {"trace_dropped", true},      {"trace_failed", true},     {"init_race", false},
    {"past_open", true},          {"forked", false},
};

inline CounterInfo InfoOf(uint32_t index) {
  constexpr uint32_t kKnown = sizeof(kCounterInfos) / sizeof(kCounterInfos[0]);
  return index < kKnown ? kCounterInfos[index] : CounterInfo{"unknown", false};
}

}  // namespace ringscope::flight

#endif  // RINGSCOPE_RECORDER_FLIGHT_COUNTERS_H_
