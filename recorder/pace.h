// Does our thread itself keep pace? A gap in its sleep that no wait for a CPU explains means that
// the process stood still (SIGSTOP, debugger, cgroup freezer, a suspended machine); one that a wait
// explains means that the host is starved.
#ifndef RINGSCOPE_RECORDER_PACE_H_
#define RINGSCOPE_RECORDER_PACE_H_

#include <stdint.h>

#include "recorder/flight/format.h"

namespace ringscope::recorder {

class Pace {
 public:
  void Init(flight::FileHeader* header);
  void BeforeSleep();
  // `asked_ns`: how long the sleep should have been at most. Records a freeze or starvation in the
  // header.
  void AfterSleep(uint64_t asked_ns);
  // Ticks at which the newest freeze ended; 0 none.
  uint64_t frozen_until() const { return frozen_until_; }

  // Oversleeping less than this is nothing.
  static constexpr uint64_t kGapNs = 1000000000;

 private:
  flight::FileHeader* header_;
  uint64_t slept_at_ns_;  // CLOCK_MONOTONIC
  uint64_t slept_at_ticks_;
  uint64_t waited_ns_;  // run-queue delay at that moment
  bool waited_known_;
  uint64_t frozen_until_;
};

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_PACE_H_
