// What callbacks and our thread share for RINGSCOPE_STREAM: rings of words, one a thread that has something to say.
//
// A ring has one producer (the thread that took it) and one consumer (our thread). Only its head and tail order anything: a
// release store by the side that moved them, an acquire load by the other. The words themselves are relaxed atomics, because
// a ring passes to another thread when its owner has ended.
//
// All of it is one anonymous mapping, made by Start() and never unmapped (late callbacks); a page of it costs nothing until it
// is written to.
#ifndef RINGSCOPE_RECORDER_STREAM_DOOR_H_
#define RINGSCOPE_RECORDER_STREAM_DOOR_H_

#include <stdint.h>

#include "recorder/flight/format.h"
#include "recorder/flight/handles.h"

namespace ringscope::recorder {

enum class StreamLevel : uint64_t { kOff = 0, kOps = 1, kSteps = 2 };

inline constexpr uint32_t kStreamRings = 64;
inline constexpr uint32_t kRingWords = 32768;  // 256 KiB: 1,800 operations or 13,000 steps
static_assert((kRingWords & (kRingWords - 1)) == 0);

// The first word of an entry: kind (4) | words, this one included (8) << 4 | what the kind says << 12.
enum class StreamEntry : uint32_t {
  kOp = 1,    // operation row (16) | communicator row (16) << 16 | its generation (16) << 32; the row's 16 words
  kComm = 2,  // communicator row (16) | its generation (16) << 16; then stamp, comm_id, ranks, nodes, flags and name (6)
  kStep = 3,  // edge row (12) | reached (2) << 12 | step (14) << 14 | operation ordinal (6) << 28 | operation row, low
              // bits (8) << 34 | edge generation (6) << 42 | bytes follow (1) << 48; ticks; bytes
};
constexpr uint64_t EntryWord(StreamEntry kind, uint32_t words, uint64_t rest) {
  return static_cast<uint64_t>(kind) | static_cast<uint64_t>(words) << 4 | rest << 12;
}
inline constexpr uint32_t kOpWords = sizeof(flight::OpRow) / 8;
inline constexpr uint32_t kNameWords = 6;
inline constexpr uint32_t kMostEntryWords = 1 + kOpWords;

struct StreamRing {
  flight::Word owner;  // thread id, 0 free
  // Producer.
  alignas(64) flight::Word head;  // words written so far
  flight::Word tail_seen;  // producer's copy of tail
  flight::Word lost_ops, lost_steps;
  // Consumer.
  alignas(64) flight::Word tail;  // words taken so far
};

struct StreamDoor {
  std::atomic<uint32_t> closed;                        // 1: nothing is written any more (disk full); entries are not made
  std::atomic<uint32_t> ring_of[flight::kThreadRows];  // by thread row: its ring + 1; 0 none, written by that thread
  flight::Word homeless_ops, homeless_steps;           // entries of threads without a ring
  // By operation row, written by our thread: generation that it has (32) | the one before that (32). What it has copied
  // needs no entry when the row gets a new operation.
  flight::Word copied[flight::kOpRows];
  StreamRing rings[kStreamRings];
  flight::Word words[kStreamRings][kRingWords];
};

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_STREAM_DOOR_H_
