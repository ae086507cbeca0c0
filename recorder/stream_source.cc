// Where the stream comes from: the rings that callbacks fill, and the tables.
#include <string.h>

#include "recorder/flight/handles.h"
#include "recorder/flight/rows.h"
#include "recorder/stream.h"

namespace ringscope::recorder {

using flight::Load;
using flight::OpView;
using flight::StreamEnd;

namespace {

constexpr uint64_t kLeastPollNs = 2000000;
constexpr uint32_t kOpGenerations = (1u << flight::kOpGenerationBits) - 1;

}  // namespace

// ------------------------------------------------------------------------------------------------------------- from rings

void Streamer::Drain() {
  if (closed_) return;
  const flight::ClockMap clock(*image_->header);
  uint64_t fullest = 0;
  for (uint32_t i = 0; i < kStreamRings; ++i) {
    const StreamRing& ring = door_->rings[i];
    const uint64_t waiting = ring.head.load(std::memory_order_acquire) - Load(ring.tail);
    if (waiting == 0) continue;
    if (waiting > fullest) fullest = waiting;
    DrainRing(i, clock);
  }
  // Rings that fill are looked at more often, so that a callback never has to wake us.
  if (fullest > kRingWords / 4) {
    poll_ns_ = poll_ns_ / 2 < kLeastPollNs ? kLeastPollNs : poll_ns_ / 2;
  } else if (fullest < kRingWords / 16) {
    poll_ns_ = poll_ns_ * 2 > kStreamPollNs ? kStreamPollNs : poll_ns_ * 2;
  }
}

void Streamer::DrainRing(uint32_t index, const flight::ClockMap& clock) {
  StreamRing& ring = door_->rings[index];
  const uint64_t head = ring.head.load(std::memory_order_acquire);
  uint64_t tail = Load(ring.tail);
  while (tail != head) {
    uint64_t words[kMostEntryWords];
    const flight::Word* from = door_->words[index];
    words[0] = Load(from[tail & (kRingWords - 1)]);
    const uint32_t n = words[0] >> 4 & 0xff;
    if (n == 0 || n > kMostEntryWords || n > head - tail) {  // somebody else wrote into our memory
      tail = head;
      break;
    }
    for (uint32_t i = 1; i < n; ++i) words[i] = Load(from[(tail + i) & (kRingWords - 1)]);
    tail += n;
    ring.tail.store(tail, std::memory_order_release);
    switch (static_cast<StreamEntry>(words[0] & 15)) {
      case StreamEntry::kOp:
        TakeOp(words, clock);
        break;
      case StreamEntry::kComm:
        TakeComm(words);
        break;
      case StreamEntry::kStep:
        TakeStep(words, clock);
        break;
    }
  }
  ring.tail.store(tail, std::memory_order_release);
}

void Streamer::TakeOp(const uint64_t* words, const flight::ClockMap& clock) {
  const auto index = static_cast<uint32_t>(words[0] >> 12 & 0xffff);
  const auto comm = static_cast<uint32_t>(words[0] >> 28 & 0xffff);
  const auto comm_generation = static_cast<uint32_t>(words[0] >> 44 & 0xffff);
  if (index >= image_->op_rows || comm >= image_->comm_rows) return;
  flight::OpRow row;
  flight::Word* to = &row.stamp;
  for (uint32_t i = 0; i < kOpWords; ++i) to[i].store(words[1 + i], std::memory_order_relaxed);
  const uint32_t generation = flight::Generation(Load(row.stamp));
  // We and the callback may both have copied the row at the same time; and it may still stand there when we look next.
  flight::Word& word = door_->copied[index];
  const uint64_t copied = Load(word);
  if ((copied & 0xffffffff) == generation || copied >> 32 == generation) return;
  if (((generation - static_cast<uint32_t>(copied)) & kOpGenerations) <= kOpGenerations / 2) {
    word.store(generation | copied << 32, std::memory_order_relaxed);
  }
  flight::CommFacts facts = {};
  facts.index = comm;
  const flight::CommRow& now = image_->comms[comm];
  const bool same = (now.stamp.load(std::memory_order_acquire) & 0xffff) == comm_generation;
  if (same) facts = flight::FactsOf(now, comm, image_->op_rows);
  OpView op;
  if (!flight::ReadOp(row, index, facts, &op)) return;
  // An open operation leaves its row only when later ones are over, or with its communicator.
  Add(op, comm_generation, !op.open && !op.passed ? StreamEnd::kEnded : same ? StreamEnd::kNotSeen : StreamEnd::kStillOpen,
      clock);
}

void Streamer::TakeComm(const uint64_t* words) {
  flight::StreamComm& c = buried_[buried_count_++ % (sizeof(buried_) / sizeof(buried_[0]))];
  memset(&c, 0, sizeof(c));
  c.row = static_cast<uint32_t>(words[0] >> 12 & 0xffff);
  c.generation = static_cast<uint32_t>(words[0] >> 28 & 0xffff);
  c.api = static_cast<uint32_t>(words[1] >> 32 & 0xff);
  c.comm_id = words[2];
  c.rank = static_cast<uint32_t>(words[3]);
  c.n_ranks = static_cast<uint32_t>(words[3] >> 32);
  c.ordinal = static_cast<uint32_t>(words[4] >> 32);
  c.flags = static_cast<uint32_t>(words[5]);
  memcpy(c.name, words + 6, kNameWords * 8);
  c.name[sizeof(c.name) - 1] = 0;
}

void Streamer::TakeStep(const uint64_t* words, const flight::ClockMap& clock) {
  const uint64_t what = words[0] >> 12;
  const auto edge = static_cast<uint32_t>(what & 0xfff);
  if (edge > image_->edge_mask) return;
  MakeRoom();
  EdgeState* state = &edges_[edge];
  const uint32_t tag = static_cast<uint32_t>(what >> 28 & 0x3f) | static_cast<uint32_t>(what >> 42 & 0x3f) << 8 | 1u << 31;
  if (state->tag != tag) {
    *state = EdgeState();
    state->tag = tag;
  }
  if (state->transfer == 0) AddTransfer(edge, state, static_cast<uint32_t>(what >> 34 & 0xff), words[1]);
  flight::StreamStep& step = batch_.steps[batch_.step_count++];
  step.transfer = state->transfer - 1;
  step.code = static_cast<uint32_t>(what >> 14 & 0x3fff) * 4 + static_cast<uint32_t>(what >> 12 & 3);
  step.time = static_cast<uint64_t>(clock.Ns(words[1]));
  step.bytes = what >> 48 & 1 ? words[2] : 0;
}

// What the edge's row says of it, if it still is the same edge, and the operation whose steps these are, if its row still
// holds that operation.
void Streamer::AddTransfer(uint32_t edge, EdgeState* state, uint32_t row_low, uint64_t ticks) {
  flight::StreamTransfer t = {0, flight::kNoRank, flight::kNoRank, 255, false, false, 0, state->position};
  flight::EdgeRow row;
  if (flight::CopyRow(image_->edges[edge], &row) && (Load(row.stamp) & 0x3f) == (state->tag >> 8 & 0x3f)) {
    const uint64_t stamp = Load(row.stamp), peer = Load(row.peer);
    t.rank = static_cast<uint32_t>(peer >> 32);
    t.peer = static_cast<uint32_t>(peer);
    t.channel = stamp >> 16 & 0xff;
    t.send = stamp >> 24 & flight::kEdgeSend;
    t.p2p = stamp >> 24 & flight::kEdgeP2p;
    t.context = Load(row.context);
    const auto comm = static_cast<uint32_t>(stamp >> 32 & 0xffff);
    if (comm < image_->comm_rows) {
      const flight::CommRow& c = image_->comms[comm];
      t.communicator = CommOfBatch(comm, c.stamp.load(std::memory_order_acquire) & 0xffff) + 1;
      const uint64_t ring = Load(c.ring);
      const uint32_t index = static_cast<uint32_t>(ring) + (row_low & static_cast<uint32_t>(ring >> 32));
      flight::OpRow op;
      if (t.position == 0 && index < image_->op_rows && flight::CopyRow(image_->ops[index], &op) &&
          (Load(op.stamp) >> 32 & 0xffff) == comm && Load(op.entered) <= ticks &&
          t.p2p == ((Load(op.stream) >> 48 & flight::kOpP2p) != 0)) {
        t.position = state->position = Load(op.position) & 0xffffffffff;
      }
    }
  }
  batch_.transfers[batch_.transfer_count++] = t;
  state->transfer = batch_.transfer_count;
}

// ------------------------------------------------------------------------------------------------------------ from tables

bool Streamer::IsOver(const OpView& op, const flight::CommFacts& facts, uint64_t now_ticks) const {
  if (op.open || ((op.flags & flight::kOpFromApi) && op.returned == 0)) return false;
  const uint64_t quiet = now_ticks - op.NewestTicks();
  // Two proxy threads may tell the ends of two operations in the wrong order.
  if (op.passed) return quiet > settle_ticks_;
  if (op.flags & flight::kOpGraph) {
    // The row waits for the first launch of the graph; nobody knows whether a launch brings kernels.
    if (!op.launched) return false;
    if (facts.visible && !op.AllStopped()) return quiet > 10 * settle_ticks_;
  }
  // How many kernels come is not known: another one may still start.
  if (facts.visible && op.channels == 0 && op.kernels_started > 0) return quiet > settle_ticks_;
  return true;
}

void Streamer::Look(uint32_t comm, bool last, bool finalizing, uint64_t now_ticks,
                    const flight::ClockMap& clock) {
  const flight::CommRow& row = image_->comms[comm];
  const uint64_t stamp = row.stamp.load(std::memory_order_acquire);
  if (stamp == 0) return;
  const auto generation = static_cast<uint32_t>(stamp & 0xffff);
  CommState& state = comms_[comm];
  if (state.generation != generation) {
    state = CommState();
    state.generation = generation;
  }
  const bool finalized = Load(row.finalized) != 0;
  const bool ending = last || (finalizing && finalized);
  const uint64_t head = Load(row.head);
  // A callback counts the head up before it fills the row: one quiet look is not enough.
  if (state.head == head && state.idle > 3 && !ending && finalized == (state.finalized != 0)) return;
  if (finalized && state.finalized < 2) ++state.finalized;
  flight::CommFacts facts = flight::FactsOf(row, comm, image_->op_rows);
  if (facts.rows == 0) return;
  flight::ScanLaunched(image_->ops, &facts);
  const bool all = ending || state.finalized > 1;  // nothing more comes: open ones go as they are
  // Kept now: the row may be another communicator's when its operations are added.
  if (!Identify(comm, generation, &looked_at_)) return;
  bool done = true;
  uint32_t count = 0;
  for (uint32_t i = 0; i < facts.rows; ++i) {
    const uint32_t index = facts.base + ((static_cast<uint32_t>(head) + i) & (facts.rows - 1));  // oldest first
    const flight::OpRow& from = image_->ops[index];
    const uint64_t seen = from.stamp.load(std::memory_order_acquire);
    if (seen == 0 || (seen >> 32 & 0xffff) != comm) continue;
    flight::Word& copied = door_->copied[index];
    if ((Load(copied) & 0xffffffff) == flight::Generation(seen)) continue;
    OpView op;
    if (!flight::ReadOp(from, index, facts, &op)) {
      done = false;
      continue;
    }
    if (!IsOver(op, facts, now_ticks) && !all) {
      done = false;
      continue;
    }
    // A communicator that has the row since we began: its operations are its own.
    if (Load(row.stamp) != stamp) break;
    copied.store(op.generation | Load(copied) << 32, std::memory_order_relaxed);
    found_[count++] = op;
  }
  // What callbacks kept of the same communicator until now is older than what was found.
  if (count != 0) Drain();
  for (uint32_t i = 0; i < count; ++i) {
    const OpView& op = found_[i];
    Add(op, generation, op.passed ? StreamEnd::kNotSeen : op.open ? StreamEnd::kStillOpen : StreamEnd::kEnded, clock);
  }
  state.idle = done && state.head == head ? state.idle + 1 : 0;
  state.head = head;
}

}  // namespace ringscope::recorder
