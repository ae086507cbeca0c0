// The hot path's clock: one instruction where the hardware allows, else the vDSO. Ticks become nanoseconds outside the
// hot path, with the rate and the anchors in the flight file's header.
#ifndef RINGSCOPE_RECORDER_CLOCK_H_
#define RINGSCOPE_RECORDER_CLOCK_H_

#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "recorder/flight/format.h"

namespace ringscope::recorder {

inline uint64_t MonotonicNs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

// Set once by ChooseClock() before the first tick is taken.
extern flight::ClockKind g_clock;

// Picks TSC only where the kernel itself trusts it: current_clocksource is "tsc" and the CPU has constant_tsc and
// nonstop_tsc. cntvct_el0 on aarch64. CLOCK_MONOTONIC otherwise.
flight::ClockKind ChooseClock();

inline uint64_t Ticks() {
#if defined(__x86_64__)
  if (__builtin_expect(g_clock == flight::ClockKind::kTsc, 1)) return __rdtsc();
#elif defined(__aarch64__)
  if (__builtin_expect(g_clock == flight::ClockKind::kCntvct, 1)) {
    uint64_t v;
    asm volatile("mrs %0, cntvct_el0" : "=r"(v));
    return v;
  }
#endif
  return MonotonicNs();
}

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_CLOCK_H_
