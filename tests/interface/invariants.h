// What must hold of a flight image whatever NCCL did, and at whatever moment it is looked at.
#ifndef RINGSCOPE_TESTS_INTERFACE_INVARIANTS_H_
#define RINGSCOPE_TESTS_INTERFACE_INVARIANTS_H_

#include <cstdint>

#include "recorder/runtime.h"

namespace ringscope::interface_model {

// Ends the program with a message. `now`: a tick not before any in the image. `quiet`: no callback
// runs meanwhile; what needs two words of one moment is held then too.
void CheckTables(const recorder::Image& image, uint64_t now, bool quiet);

// Encodes the image as a trace and reads that back: ends the program with a message when the
// encoder refuses it, or protobuf the result. Returns the trace's bytes.
uint64_t CheckEncoding(const recorder::Image& image);

}  // namespace ringscope::interface_model

#endif  // RINGSCOPE_TESTS_INTERFACE_INVARIANTS_H_
