// Operation rows read: one row in plain fields, and what a communicator's ring says as a whole.
// Used by the encoder and by stall detection, so that both call the same operations open.
#ifndef RINGSCOPE_RECORDER_FLIGHT_OP_VIEW_H_
#define RINGSCOPE_RECORDER_FLIGHT_OP_VIEW_H_

#include <stdint.h>

#include "recorder/flight/format.h"
#include "recorder/flight/rows.h"

namespace ringscope::flight {

inline constexpr uint64_t kGroupBits =
    0xffffffffffff;  // of OpRow::group: ordinal and thread, not the tail's count
inline constexpr uint32_t kMostRingRows = 1024;  // a ring is never read further than this

// One operation. Lanes of another generation read as zero.
struct OpView {
  uint32_t row;
  uint32_t generation;
  uint32_t comm;
  uint8_t func, datatype;
  bool launched, open,
      passed;      // passed: over because later operations are, although its own end was not seen
  uint32_t flags;  // enum OpFlags
  uint64_t position;
  uint32_t root;  // 0xffffff none
  uint64_t count, entered, returned, stream, group;
  uint8_t algo, proto, channels;
  uint64_t enqueued;
  uint32_t sequence, peer;  // peer: kNoRank none
  uint32_t kernels_started, kernels_stopped, proxy_started, proxy_stopped;
  uint64_t started, finished, gpu_started, gpu_finished;

  bool AllStopped() const {
    return kernels_started > 0 && kernels_stopped == kernels_started && kernels_stopped >= channels;
  }
  // Newest thing that happened to it.
  uint64_t NewestTicks() const {
    const uint64_t times[] = {entered, returned, enqueued, started, finished};
    uint64_t newest = 0;
    for (const uint64_t t : times) newest = t > newest ? t : newest;
    return newest;
  }
};

// A communicator as far as its operations need it.
struct CommFacts {
  uint32_t index;
  bool visible;  // completion
  uint32_t rank, n_ranks;
  uint32_t base, rows;  // of the ring, cut to the table and to kMostRingRows
  uint64_t done_entered, done_group;
  uint64_t launched_entered,
      launched_group;  // newest-entered operation whose launch was seen; set by ScanLaunched
};

inline CommFacts FactsOf(const CommRow& comm, uint32_t index, uint32_t op_rows) {
  CommFacts facts = {};
  facts.index = index;
  facts.visible = Load(comm.flags) & kCommCompletionVisible;
  const uint64_t ranks = Load(comm.ranks);
  facts.rank = static_cast<uint32_t>(ranks);
  facts.n_ranks = static_cast<uint32_t>(ranks >> 32);
  const uint64_t ring = Load(comm.ring);
  facts.base = static_cast<uint32_t>(ring);
  const uint64_t rows = (ring >> 32) + 1;
  const uint64_t there = facts.base < op_rows ? op_rows - facts.base : 0;
  facts.rows = static_cast<uint32_t>(rows < there ? rows : there);
  if (facts.rows > kMostRingRows) facts.rows = kMostRingRows;
  facts.done_entered = Load(comm.done_entered);
  facts.done_group = Load(comm.done_group) & kGroupBits;
  return facts;
}

inline bool BelongsTo(const OpRow& row, const CommFacts& facts) {
  const uint64_t stamp = Load(row.stamp);
  return stamp != 0 && (stamp >> 32 & 0xffff) == facts.index;
}

// Finds the newest launched operation of the ring.
inline void ScanLaunched(const OpRow* ops, CommFacts* facts) {
  for (uint32_t i = 0; i < facts->rows; ++i) {
    const OpRow& row = ops[facts->base + i];
    if (!BelongsTo(row, *facts) || !OpLaunched(row)) continue;
    const uint64_t entered = Load(row.entered);
    if (entered <= facts->launched_entered) continue;
    facts->launched_entered = entered;
    facts->launched_group = Load(row.group) & kGroupBits;
  }
}

// Over although nobody said so. Kernels of one communicator run in the order of the calls, those of
// one group in any order:
//  * entered before an operation of another group that has finished: NCCL <= 2.30 loses some
//  KernelCh stops;
//  * its call returned, and one of a later group was launched: some operations never get a launch
//  event (Broadcast since
//    2.29, symmetric-memory kernels, copy engines; docs/nccl.md).
inline bool PassedBy(const CommFacts& facts, uint64_t entered, uint64_t returned, uint64_t group,
                     bool launched) {
  group &= kGroupBits;
  if (entered < facts.done_entered && group != facts.done_group) return true;
  return !launched && returned != 0 && entered < facts.launched_entered &&
         group != facts.launched_group;
}

// Copies a row (stamp protocol) and takes it apart. False when there is no operation of this
// communicator in it.
inline bool ReadOp(const OpRow& from, uint32_t row, const CommFacts& facts, OpView* op) {
  OpRow copy;
  if (!CopyRow(from, &copy) || !BelongsTo(copy, facts)) return false;
  const uint64_t stamp = Load(copy.stamp);
  *op = OpView();
  op->row = row;
  op->generation = Generation(stamp);
  op->comm = facts.index;
  op->func = static_cast<uint8_t>(stamp >> 48);
  op->datatype = static_cast<uint8_t>(stamp >> 56);
  const uint64_t position = Load(copy.position);
  op->position = position & 0xffffffffff;
  op->root = static_cast<uint32_t>(position >> 40);
  op->count = Load(copy.count);
  op->entered = Load(copy.entered);
  op->returned = Load(copy.returned);
  const uint64_t stream = Load(copy.stream);
  op->stream = stream & 0xffffffffffff;
  op->flags = static_cast<uint32_t>(stream >> 48);
  op->group = Load(copy.group);
  op->peer = kNoRank;
  const uint64_t launch = Load(copy.launch);
  if (launch != 0 && Generation(launch) == op->generation) {
    op->launched = true;
    op->algo = static_cast<uint8_t>(launch >> 32);
    op->proto = static_cast<uint8_t>(launch >> 40);
    op->channels = static_cast<uint8_t>(launch >> 48);
    op->enqueued = Load(copy.enqueued);
    const uint64_t sequence = Load(copy.sequence);
    op->sequence = static_cast<uint32_t>(sequence);
    if (op->flags & kOpP2p) op->peer = static_cast<uint32_t>(sequence >> 32);
  }
  const uint64_t kernel = Load(copy.kernel);
  if (Generation(kernel) == op->generation) {
    op->kernels_started = static_cast<uint32_t>(kernel >> 32 & 0xffff);
    op->kernels_stopped = static_cast<uint32_t>(kernel >> 48);
    op->started = Load(copy.started);
    op->finished = op->kernels_stopped ? Load(copy.finished) : 0;
    op->gpu_started = Load(copy.gpu_started);
    op->gpu_finished = op->kernels_stopped ? Load(copy.gpu_finished) : 0;
  }
  const uint64_t proxy = Load(copy.proxy_ops);
  if (Generation(proxy) == op->generation) {
    op->proxy_started = static_cast<uint32_t>(proxy >> 32 & 0xffff);
    op->proxy_stopped = static_cast<uint32_t>(proxy >> 48);
  }
  op->open = OpOpen(copy, facts.visible, facts.rank, facts.n_ranks);
  if (op->open && PassedBy(facts, op->entered, op->returned, op->group, op->launched)) {
    op->open = false;
    op->passed = true;
  }
  return true;
}

}  // namespace ringscope::flight

#endif  // RINGSCOPE_RECORDER_FLIGHT_OP_VIEW_H_
