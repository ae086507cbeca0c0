// What a row says, decided in one place: the encoder, stall detection and the reuse of rows must
// agree on when an operation is over. All functions read relaxed words, write nothing, and take any
// value that a damaged file may hold.
#ifndef RINGSCOPE_RECORDER_FLIGHT_ROWS_H_
#define RINGSCOPE_RECORDER_FLIGHT_ROWS_H_

#include <stddef.h>
#include <stdint.h>

#include <atomic>

#include "recorder/flight/format.h"

namespace ringscope::flight {

inline uint64_t Load(const Word& w) { return w.load(std::memory_order_relaxed); }

constexpr uint32_t Generation(uint64_t lane_word) { return static_cast<uint32_t>(lane_word); }
constexpr uint32_t kNoRank = 0xffffffff;

// The words that decide whether an operation is over.
struct OpState {
  uint64_t stamp;      // OpRow::stamp
  uint64_t flags;      // enum OpFlags
  uint64_t returned;   // OpRow::returned
  uint64_t launch;     // OpRow::launch
  uint64_t enqueued;   // OpRow::enqueued
  uint64_t sequence;   // OpRow::sequence
  uint64_t kernel;     // OpRow::kernel
  uint64_t proxy_ops;  // OpRow::proxy_ops
};

// True while the operation may still make progress or hang: its row must not be given away, and it
// is a candidate for a stall. `completion_visible` is kCommCompletionVisible of its communicator;
// `own_rank` this process's rank there (kNoRank: unknown); `n_ranks` the communicator's size (0:
// unknown). A free row is not open.
//
// The rules and where they come from (docs/nccl.md):
//  * Not launched yet: open. Exception: a communicator of one rank is served by a copy and is never
//  launched.
//  * Send or receive to the own rank, copy-engine operations: over once enqueued, they never get
//  children.
//  * Captured in a graph: over once the call returned unless a replay of it runs; nobody knows when
//  the graph will be
//    launched, and NCCL may deliver the launch at capture, at each replay, or never.
//  * Completion visible: over when every KernelCh that started has stopped, and, where the number
//  of channels is known, so
//    many have stopped. The number is an upper bound in tables v1-v3 and missing for point-to-point
//    in v4; there the writer stores 0 channels, and started == stopped > 0 must do.
//  * Completion not visible: over once enqueued and without an open proxy operation. This is good
//  for reuse only: such an
//    operation is "enqueued", never "finished".
inline bool OpOpen(const OpState& op, bool completion_visible, uint32_t own_rank,
                   uint32_t n_ranks = 0) {
  if (op.stamp == 0) return false;
  const uint32_t generation = Generation(op.stamp);
  const bool launched = Generation(op.launch) == generation && op.launch != 0;
  if (!launched) return n_ranks != 1 && !((op.flags & kOpGraph) && op.returned != 0);
  const bool enqueued = op.enqueued != 0;
  uint32_t started = 0, stopped = 0;
  if (Generation(op.kernel) == generation) {
    started = static_cast<uint32_t>(op.kernel >> 32 & 0xffff);
    stopped = static_cast<uint32_t>(op.kernel >> 48);
  }
  if (enqueued) {
    if (op.flags & kOpCopyEngine) return false;
    if ((op.flags & kOpP2p) && !(op.flags & kOpTail) && own_rank != kNoRank &&
        static_cast<uint32_t>(op.sequence >> 32) == own_rank) {
      return false;
    }
    if ((op.flags & kOpGraph) && started == stopped) return false;
  }
  if (completion_visible) {
    const uint32_t channels = static_cast<uint32_t>(op.launch >> 48 & 0xff);
    return !(started > 0 && stopped == started && stopped >= channels);
  }
  uint32_t proxy_started = 0, proxy_stopped = 0;
  if (Generation(op.proxy_ops) == generation) {
    proxy_started = static_cast<uint32_t>(op.proxy_ops >> 32 & 0xffff);
    proxy_stopped = static_cast<uint32_t>(op.proxy_ops >> 48);
  }
  return !(enqueued && proxy_started == proxy_stopped);
}

inline bool OpOpen(const OpRow& row, bool completion_visible, uint32_t own_rank,
                   uint32_t n_ranks = 0) {
  const OpState op = {Load(row.stamp),  Load(row.stream) >> 48, Load(row.returned),
                      Load(row.launch), Load(row.enqueued),     Load(row.sequence),
                      Load(row.kernel), Load(row.proxy_ops)};
  return OpOpen(op, completion_visible, own_rank, n_ranks);
}

// A tail row collects several point-to-point tasks of one group; its KernelCh counters sum over
// them, so `channels` of its launch lane must be 0 ("unknown").

inline bool OpLaunched(const OpRow& row) {
  const uint64_t launch = Load(row.launch);
  return launch != 0 && Generation(launch) == Generation(Load(row.stamp));
}

// Copies a row with the stamp protocol of format.h: false when there is no row, or when it changed
// identity meanwhile (its new identity is a new operation, which a later pass will find). Lanes may
// be of different moments; each word is whole.
template <typename Row>
inline bool CopyRow(const Row& from, Row* to) {
  static_assert(sizeof(Row) % sizeof(Word) == 0);
  const Word* source = reinterpret_cast<const Word*>(&from);
  Word* target = reinterpret_cast<Word*>(to);
  for (int attempt = 0; attempt < 3; ++attempt) {
    const uint64_t before = source[0].load(std::memory_order_acquire);
    if (before == 0) return false;
    // Acquire: the first word of a lane says that the lane's other words, which follow it, are there; and no word is of a
    // later use than the second look at the stamp.
    for (size_t i = 1; i < sizeof(Row) / sizeof(Word); ++i) {
      target[i].store(source[i].load(std::memory_order_acquire), std::memory_order_relaxed);
    }
    if (source[0].load(std::memory_order_relaxed) == before) {
      target[0].store(before, std::memory_order_relaxed);
      return true;
    }
  }
  return false;
}

}  // namespace ringscope::flight

#endif  // RINGSCOPE_RECORDER_FLIGHT_ROWS_H_
