// Ticks of a flight image to nanoseconds of its host's CLOCK_MONOTONIC.
#ifndef RINGSCOPE_RECORDER_FLIGHT_CLOCK_MAP_H_
#define RINGSCOPE_RECORDER_FLIGHT_CLOCK_MAP_H_

#include <stdint.h>

#include "recorder/flight/format.h"
#include "recorder/flight/rows.h"

namespace ringscope::flight {

struct PlainAnchor {
  uint64_t ticks, monotonic_ns, realtime_ns, error_ns;
};
inline PlainAnchor ReadAnchor(const Anchor& anchor) {
  return {anchor.ticks.load(std::memory_order_acquire), Load(anchor.monotonic_ns),
          Load(anchor.realtime_ns), Load(anchor.error_ns)};
}

// The rate comes from the two anchors where they are more than a second apart (it is then far
// better than the one that was measured within milliseconds at creation); the last anchor is left
// aside if the process died while renewing it.
class ClockMap {
 public:
  explicit ClockMap(const FileHeader& header) {
    first_ = ReadAnchor(header.first_anchor);
    last_ = ReadAnchor(header.last_anchor);
    if (last_.ticks == 0 || last_.ticks < first_.ticks) last_ = first_;
    rate_ = header.tick_ns_q32 ? header.tick_ns_q32 : uint64_t{1} << 32;
    const uint64_t ticks = last_.ticks - first_.ticks;
    const uint64_t ns = last_.monotonic_ns - first_.monotonic_ns;
    const uint64_t told = DurationNs(ticks);
    // A second at least, and the two rates agree within 1 %: damage does not get to bend time.
    if (ns > 1000000000 && ns < INT64_MAX && told > ns - ns / 100 && told < ns + ns / 100) {
      rate_ = static_cast<uint64_t>((static_cast<unsigned __int128>(ns) << 32) / ticks);
    }
  }

  // 0 stays 0 ("never"); anything else gives at least 1.
  int64_t Ns(uint64_t ticks) const {
    if (ticks == 0) return 0;
    const bool before = ticks < last_.ticks;
    const uint64_t apart = DurationNs(before ? last_.ticks - ticks : ticks - last_.ticks);
    if (before) return apart >= last_.monotonic_ns ? 1 : Cap(last_.monotonic_ns - apart);
    return Cap(apart > UINT64_MAX - last_.monotonic_ns ? UINT64_MAX : last_.monotonic_ns + apart);
  }
  uint64_t DurationNs(uint64_t ticks) const {
    const unsigned __int128 ns = static_cast<unsigned __int128>(ticks) * rate_ >> 32;
    return ns > INT64_MAX ? INT64_MAX : static_cast<uint64_t>(ns);
  }
  // CLOCK_REALTIME of a moment given in ns of CLOCK_MONOTONIC; 0 stays 0.
  int64_t Realtime(int64_t monotonic_ns) const {
    if (monotonic_ns == 0) return 0;
    return static_cast<int64_t>(last_.realtime_ns - last_.monotonic_ns +
                                static_cast<uint64_t>(monotonic_ns));
  }
  const PlainAnchor& first() const { return first_; }
  const PlainAnchor& last() const { return last_; }

 private:
  static int64_t Cap(uint64_t ns) {
    return ns > INT64_MAX ? INT64_MAX : ns == 0 ? 1 : static_cast<int64_t>(ns);
  }
  PlainAnchor first_, last_;
  uint64_t rate_;
};

}  // namespace ringscope::flight

#endif  // RINGSCOPE_RECORDER_FLIGHT_CLOCK_MAP_H_
