// A flight image turned into a trace (proto/trace.proto): the one implementation, used by the
// process on its own tables and by the analyzer on the file that a killed process left.
//
// The image may be cut, damaged or hostile: every index is checked, every row is copied with the
// stamp protocol, no loop depends on a length that the image claims. No allocation, no system call.
#ifndef RINGSCOPE_RECORDER_FLIGHT_ENCODE_H_
#define RINGSCOPE_RECORDER_FLIGHT_ENCODE_H_

#include <stddef.h>
#include <stdint.h>

#include "recorder/flight/wire_writer.h"

namespace ringscope::flight {

inline constexpr char kTraceMagic[9] = "RNGTRC01";  // 8 bytes
inline constexpr uint32_t kReasonFlightFile = 20;   // trace.REASON_FLIGHT_FILE

struct EncodeOptions {
  uint32_t reason = kReasonFlightFile;  // trace.WriteReason
  uint64_t written_ticks = 0;  // when; 0: the newest sign of life in the image (flight files)
  uint32_t sequence = 0;       // 1 for the process's first trace
  // What a reader of the file knows about its owner (Liveness.lock_known and following).
  bool lock_known = false;
  bool lock_held = false;
  char process_state = 0;  // letter of /proc/PID/stat, 0 unknown
};

struct EncodeResult {
  const char* error =
      nullptr;         // nullptr: done; else one plain phrase, and nothing usable was written
  uint64_t bytes = 0;  // given to the sink
  uint32_t chunks = 0;
};

// Takes the next bytes of the trace file, in order; false stops the encoder (result: error "the
// sink failed").
using Sink = bool (*)(void* ctx, const void* data, size_t size);

// The encoder's working memory, given by the caller, aligned to 8 bytes. Its content means nothing.
inline constexpr size_t kEncodeScratchBytes = 896 << 10;

// No trace is larger: all tables full, every operation unfinished.
inline constexpr size_t kMaxTraceBytes = 8 << 20;

// `image` must be aligned to 8 bytes and stay mapped; it may change meanwhile.
EncodeResult EncodeTrace(const void* image, size_t size, const EncodeOptions& options,
                         void* scratch, size_t scratch_bytes, Sink sink, void* ctx);

// Process, clock and settings of an image, as fields of a Trace: what a stream file says about itself. False when `image`
// cannot be read.
bool EncodeIdentityOf(const void* image, size_t size, WireWriter* writer);

}  // namespace ringscope::flight

#endif  // RINGSCOPE_RECORDER_FLIGHT_ENCODE_H_
