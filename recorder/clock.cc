#include "recorder/clock.h"

#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "recorder/anchor.h"
#include "recorder/sys.h"

namespace ringscope::recorder {

flight::ClockKind g_clock = flight::ClockKind::kMonotonicNs;

flight::ClockKind ChooseClock() {
#if defined(__x86_64__)
  char source[32];
  const long n = ReadSmallFile("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                               source, sizeof(source));
  unsigned a = 0, b = 0, c = 0, d = 0;
  // CPUID 8000_0007h, EDX bit 8: the TSC runs at one rate in all power states.
  const bool invariant = __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
  if (n >= 4 && memcmp(source, "tsc\n", 4) == 0 && invariant) return flight::ClockKind::kTsc;
#elif defined(__aarch64__)
  return flight::ClockKind::kCntvct;
#endif
  return flight::ClockKind::kMonotonicNs;
}

Reading ReadClocks() {
  Reading best{};
  best.half_width = UINT64_MAX;
  for (int i = 0; i < 5; ++i) {
    const uint64_t before = Ticks();
    const uint64_t monotonic = MonotonicNs();
    timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    const uint64_t after = Ticks();
    const uint64_t half = (after - before) / 2;
    if (half >= best.half_width) continue;
    best.ticks = before + half;
    best.monotonic_ns = monotonic;
    best.realtime_ns = uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
    best.half_width = half;
  }
  return best;
}

void StoreAnchor(flight::Anchor* anchor, const Reading& reading, uint64_t tick_ns_q32) {
  anchor->ticks.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  anchor->monotonic_ns.store(reading.monotonic_ns, std::memory_order_relaxed);
  anchor->realtime_ns.store(reading.realtime_ns, std::memory_order_relaxed);
  anchor->error_ns.store(
      static_cast<uint64_t>(static_cast<unsigned __int128>(reading.half_width) * tick_ns_q32 >> 32),
      std::memory_order_relaxed);
  anchor->ticks.store(reading.ticks, std::memory_order_release);
}

uint64_t MeasureTickRate(const Reading& first, const Reading& second) {
  constexpr uint64_t kOne = uint64_t{1} << 32;
  if (g_clock == flight::ClockKind::kMonotonicNs) return kOne;
  const uint64_t ticks = second.ticks - first.ticks;
  const uint64_t ns = second.monotonic_ns - first.monotonic_ns;
  if (ticks == 0 || ns == 0 || second.ticks < first.ticks) return kOne;
  return static_cast<uint64_t>((static_cast<unsigned __int128>(ns) << 32) / ticks);
}

}  // namespace ringscope::recorder
