// Streaming, on the side of the callbacks: entries into the calling thread's ring (stream_door.h). Nothing here is reached
// while RINGSCOPE_STREAM is off. No lock, no allocation; a thread's first entry may ask the kernel for its id, as its first
// callback does.
#ifndef RINGSCOPE_RECORDER_HOT_STREAM_H_
#define RINGSCOPE_RECORDER_HOT_STREAM_H_

#include "recorder/hot_thread.h"
#include "recorder/stream_door.h"

namespace ringscope::recorder {

// `n` words into the calling thread's ring; false (nothing counted) when there is no room or no ring.
bool PushWords(Image* image, StreamDoor* door, const uint64_t* words, uint32_t n);

// An operation's row is about to be given to another operation, or to be voided with its communicator: keeps a copy for our
// thread, unless that has one. Called by the thread that owns the row at this moment.
void KeepOp(Image* image, StreamDoor* door, const flight::CommRow* comm, const flight::OpRow* row);
inline void KeepOpIfStreaming(Image* image, const flight::CommRow* comm, const flight::OpRow* row) {
  if (__builtin_expect(image->stream != nullptr, 0)) KeepOp(image, image->stream, comm, row);
}

// A communicator's row is about to be voided: its name and number, then its operations.
void KeepCommIfStreaming(Image* image, const flight::CommRow* comm);

// A step of the operation that runs on `edge` reached `field` (0-2, 3 done) at `now`.
void KeepStep(Image* image, StreamDoor* door, const flight::EdgeRow* edge, uint32_t step, uint32_t field, uint64_t now,
              uint64_t bytes);

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_HOT_STREAM_H_
