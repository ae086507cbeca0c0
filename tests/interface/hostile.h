// Callbacks that no order, handle or number is too bad for. What must hold is less: nothing
// crashes, every callback returns 0 and writes its handle (door.h), the tables stay consistent
// (invariants.h), the encoder accepts them.
#ifndef RINGSCOPE_TESTS_INTERFACE_HOSTILE_H_
#define RINGSCOPE_TESTS_INTERFACE_HOSTILE_H_

#include <cstdint>

#include "recorder/runtime.h"

namespace ringscope::interface_model {

// About `callbacks` of them on the calling thread; returns how many. Ends the program with a
// message.
uint64_t Hostile(const recorder::Image& image, int version, uint64_t seed, uint64_t callbacks);

// The same from four threads at once on the same communicators, while another one encodes.
uint64_t HostileThreads(const recorder::Image& image, uint64_t seed, uint64_t callbacks);

// Ten thousand communicators that live at once: those without a row are counted, and their
// callbacks harm nothing.
void ManyCommunicators(const recorder::Image& image, uint64_t seed);

}  // namespace ringscope::interface_model

#endif  // RINGSCOPE_TESTS_INTERFACE_HOSTILE_H_
