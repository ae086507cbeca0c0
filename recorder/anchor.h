// Where ticks, CLOCK_MONOTONIC and CLOCK_REALTIME are tied together. Cold paths only.
#ifndef RINGSCOPE_RECORDER_ANCHOR_H_
#define RINGSCOPE_RECORDER_ANCHOR_H_

#include <stdint.h>

#include "recorder/clock.h"

namespace ringscope::recorder {

// One reading of the three clocks, the narrowest of a few tries.
struct Reading {
  uint64_t ticks;  // midpoint of the two readings around the others
  uint64_t monotonic_ns;
  uint64_t realtime_ns;
  uint64_t half_width;  // ticks; the error bound
};
Reading ReadClocks();

// Publishes a reading: `ticks` is 0 while the other words change, so that a process killed in
// between leaves an anchor that says "do not use me" rather than one made of two moments.
void StoreAnchor(flight::Anchor* anchor, const Reading& reading, uint64_t tick_ns_q32);

// Nanoseconds per tick as 32.32 fixed point, from two readings some milliseconds apart. Exactly 1
// for a nanosecond clock.
uint64_t MeasureTickRate(const Reading& first, const Reading& second);

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_ANCHOR_H_
