// The marker file <RINGSCOPE_DIR>/<job>.<restart>/snapshot-now: made, or touched again, by the
// first process that stalls (or by a user), looked for by all, so that every node that shares the
// directory writes a trace, however far from the stall it is.
#ifndef RINGSCOPE_RECORDER_MARKER_H_
#define RINGSCOPE_RECORDER_MARKER_H_

#include <stdint.h>

#include "recorder/state.h"

namespace ringscope::recorder {

inline constexpr char kMarkerName[] = "snapshot-now";

class Marker {
 public:
  // Takes what lies there as old: only a change after this moment counts, so no two clocks are ever
  // compared. `stall_ticks` sets how often Poll looks: every 5 to 10 s, more often where the stall
  // time is below 40 s.
  void Init(Runtime* runtime, uint64_t stall_ticks, uint64_t period_ticks);

  // True when the marker was made or touched since the last look. Looks only when its time has
  // come.
  bool Poll(uint64_t now);

  // This process stalls: makes or touches the marker, unless it changed within the last stall time.
  // Says nothing when that is not possible: without the directory there are no traces either.
  void Raise(uint64_t now);

 private:
  bool Look(uint64_t now);

  Runtime* runtime_;
  uint64_t stall_ticks_, pause_ticks_, next_;
  uint64_t changed_at_;  // ticks: newest change that was seen or made here
  int64_t seen_ns_;      // modification time at the last look; 0: it was not there
  bool wanted_;          // traces are written at all
};

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_MARKER_H_
