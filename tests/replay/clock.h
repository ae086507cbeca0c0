// The recording's clock and this machine's: captured CLOCK_MONOTONIC times to when they come in a
// replay.
#ifndef RINGSCOPE_TESTS_REPLAY_CLOCK_H_
#define RINGSCOPE_TESTS_REPLAY_CLOCK_H_

#include <time.h>

#include <cstdint>

namespace ringscope::replay {

inline uint64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// Returns at once for an instant that is over. Woken early by signals, it goes on sleeping.
inline void SleepUntil(uint64_t ns) {
  const timespec until = {static_cast<time_t>(ns / 1'000'000'000),
                          static_cast<long>(ns % 1'000'000'000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
  }
}

struct TimeScale {
  uint64_t start_ns = 0;  // when the capture's first callback comes in this replay
  uint64_t first_t = 0;   // that callback in the recording
  double speed = 1;       // 0: no waiting at all

  uint64_t At(uint64_t t) const {
    if (speed <= 0 || t <= first_t) return start_ns;
    return start_ns + static_cast<uint64_t>(static_cast<double>(t - first_t) / speed);
  }
};

}  // namespace ringscope::replay

#endif  // RINGSCOPE_TESTS_REPLAY_CLOCK_H_
