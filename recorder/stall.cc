#include "recorder/stall.h"

#include <string.h>

#include "recorder/flight/handles.h"
#include "recorder/flight/steps.h"

namespace ringscope::recorder {

using flight::CommRow;
using flight::Load;
using flight::OpView;

namespace {

constexpr uint64_t kFinding = uint64_t{1} << 63;

uint64_t Older(uint64_t a, uint64_t b) { return a == 0 || (b != 0 && b < a) ? b : a; }

}  // namespace

void StallWatch::Init(const Image* image, uint64_t stall_ticks, uint64_t first_stall_ticks,
                      uint64_t period_ticks) {
  memset(static_cast<void*>(this), 0, sizeof(*this));
  image_ = image;
  stall_ticks_ = stall_ticks;
  first_stall_ticks_ = first_stall_ticks;
  period_ticks_ = period_ticks;
}

// Newest progress of a communicator's connections, whatever operation it belongs to:
// EdgeRow::changed leaves out what NCCL repeats while nothing moves (a ProxyStep's start,
// SendPeerWait).
void StallWatch::ReadEdges() {
  memset(edge_progress_, 0, sizeof(edge_progress_));
  memset(open_steps_, 0, sizeof(open_steps_));
  for (uint32_t i = 0; i <= image_->edge_mask; ++i) {
    const flight::EdgeRow& edge = image_->edges[i];
    const uint64_t stamp = Load(edge.stamp);
    if (stamp >> 63 == 0) continue;
    const uint64_t comm = stamp >> 32 & 0xffff;
    const uint32_t flags = static_cast<uint32_t>(stamp >> 24 & 0xff);
    if (comm >= image_->comm_rows || (flags & (flight::kEdgeForeign | flight::kEdgePseudo)))
      continue;
    const uint64_t changed = Load(edge.changed);
    if (changed > edge_progress_[comm]) edge_progress_[comm] = changed;
    const uint64_t ops = Load(edge.ops);
    if ((ops & 0xffffffff) != ops >> 32 &&
        flight::StepCounts(Load(edge.steps)).done() < flight::ProxyOpSteps(Load(edge.current))) {
      open_steps_[comm] = 1;
    }
  }
  edges_read_ = true;
}

// An open operation is not yet a stalled one:
//  * enqueued without visible completion: unknown, unless the steps of a connection stand open;
//  * returned, its group over, and no launch: NCCL may not instrument it (flight/op_view.h:
//  PassedBy). Broadcast under the
//    v6 table is such a kind, and so is everything in a communicator whose second operation came
//    without a first launch.
bool StallWatch::MayStall(const CommRow& row, const OpView& op) const {
  if (op.launched) {
    if (op.enqueued == 0 || (Load(row.flags) & flight::kCommCompletionVisible)) return true;
    return op.proxy_started > op.proxy_stopped && open_steps_[&row - image_->comms];
  }
  if (op.returned == 0) return true;
  const uint32_t thread = static_cast<uint32_t>(op.group >> 32 & 0xffff);
  if (thread < flight::kThreadRows) {
    const flight::ThreadRow& caller = image_->threads[thread];
    const bool group_lasts = (Load(caller.call) & 0xff) != 0 &&
                             (Load(caller.group) & 0xffffffff) == (op.group & 0xffffffff);
    if (group_lasts) return true;
  }
  const uint32_t api = static_cast<uint32_t>(Load(row.stamp) >> 32 & 0xff);
  if (api >= 6 && op.func == static_cast<uint8_t>(flight::Func::kBroadcast)) return false;
  return Load(row.launched) > 0 || Load(row.collectives) + Load(row.p2ps) < 2;
}

StallWatch::Candidate StallWatch::FindCandidate(uint32_t index, const CommRow& row) {
  Candidate found = {};
  Comm& comm = comms_[index];
  const uint64_t head = Load(row.head);
  if (comm.idle_rounds >= 2 && comm.idle_head == head) return found;
  flight::CommFacts facts = flight::FactsOf(row, index, image_->op_rows);
  flight::ScanLaunched(image_->ops, &facts);
  bool open = false;
  for (uint32_t i = 0; i < facts.rows; ++i) {
    const flight::OpRow& op_row = image_->ops[facts.base + i];
    // Cheap test first: most rows of a ring are over.
    if (!flight::BelongsTo(op_row, facts) ||
        !flight::OpOpen(op_row, facts.visible, facts.rank, facts.n_ranks)) {
      continue;
    }
    OpView op;
    if (!flight::ReadOp(op_row, facts.base + i, facts, &op) || !op.open) continue;
    open = true;
    if (found.any && op.entered >= found.op.entered) continue;
    if (!edges_read_) ReadEdges();
    if (!MayStall(row, op)) continue;
    found.any = true;
    found.op = op;
  }
  // Twice, since a callback counts `head` up a moment before it publishes the row.
  comm.idle_rounds = open ? 0 : comm.idle_head == head ? comm.idle_rounds + 1 : 1;
  comm.idle_head = head;
  return found;
}

void StallWatch::Report(Comm* comm, uint32_t index, const OpView& op, uint64_t since, uint64_t now,
                        StallRound* round) {
  flight::StallFinding* stalls = image_->header->stalls;
  uint32_t slot = flight::kStallFindings;
  for (uint32_t i = 0; i < flight::kStallFindings; ++i) {
    if (Load(stalls[i].what) == 0) {
      slot = i;
      break;
    }
    // The oldest one that is over makes room.
    const uint64_t resolved = Load(stalls[i].resolved);
    if (resolved && (slot == flight::kStallFindings || resolved < Load(stalls[slot].resolved)))
      slot = i;
  }
  // Without a slot the stall is still marked, so that it is not found again in each round.
  comm->slot = slot < flight::kStallFindings ? slot + 1 : flight::kStallFindings + 1;
  comm->stuck_row = op.row;
  comm->stuck_generation = op.generation;
  comm->stuck_since = since;
  comm->moved = 0;
  if (slot == flight::kStallFindings) return;
  flight::StallFinding& finding = stalls[slot];
  finding.what.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  finding.generation.store(op.generation, std::memory_order_relaxed);
  finding.since.store(since, std::memory_order_relaxed);
  finding.noticed.store(now, std::memory_order_relaxed);
  finding.resolved.store(0, std::memory_order_relaxed);
  finding.what.store(op.row | uint64_t{index} << 16 | kFinding, std::memory_order_release);
  round->noticed |= 1u << slot;
}

void StallWatch::Resolve(Comm* comm, uint64_t now, StallRound* round) {
  const uint32_t slot = comm->slot - 1;
  comm->slot = 0;
  if (slot >= flight::kStallFindings) return;
  image_->header->stalls[slot].resolved.store(now, std::memory_order_relaxed);
  round->recovered |= 1u << slot;
}

bool StallWatch::StillOpen(uint32_t index, const CommRow& row, const Comm& comm) const {
  flight::CommFacts facts = flight::FactsOf(row, index, image_->op_rows);
  flight::ScanLaunched(image_->ops, &facts);
  OpView op;
  return flight::ReadOp(image_->ops[comm.stuck_row], comm.stuck_row, facts, &op) && op.open &&
         op.generation == comm.stuck_generation;
}

// Progress of a stuck operation that is still open. One movement alone may be its abort: the kernel
// leaves its wait and pushes a last step through, up to seconds before NCCL finalizes the
// communicator. So it counts when another one follows, or when it is old enough to be the start of
// a stall of its own.
bool StallWatch::GoesOn(Comm* comm, uint64_t since, uint64_t now) const {
  if (comm->moved == 0) comm->moved = since;
  return since - comm->moved >= period_ticks_ || now - comm->moved >= stall_ticks_;
}

StallRound StallWatch::Look(uint64_t now, uint64_t not_before) {
  StallRound round = {};
  edges_read_ = false;
  for (uint32_t index = 0; index < image_->comm_rows; ++index) {
    const CommRow& row = image_->comms[index];
    Comm& comm = comms_[index];
    const uint64_t stamp = row.stamp.load(std::memory_order_acquire);
    if (stamp == 0 || Load(row.finalized) != 0) {
      // An abort leaves its finding as it is: nothing went on. A job that ended soon after it went
      // on did go on.
      if (stamp != 0 && comm.slot && comm.stamp == stamp && !StillOpen(index, row, comm)) {
        Resolve(&comm, now, &round);
      }
      comm.stamp = 0;
      comm.slot = 0;
      continue;
    }
    if (comm.stamp != stamp) {
      memset(static_cast<void*>(&comm), 0, sizeof(comm));
      comm.stamp = stamp;
    }
    const uint64_t progress = Load(row.last_progress);
    if (comm.slot == 0 && progress + period_ticks_ > now) continue;
    const Candidate candidate = FindCandidate(index, row);
    const bool same = candidate.any && comm.slot && candidate.op.row == comm.stuck_row &&
                      candidate.op.generation == comm.stuck_generation;
    if (comm.slot && !same) Resolve(&comm, now, &round);
    if (!candidate.any) continue;

    const OpView& op = candidate.op;
    uint64_t since = op.NewestTicks();
    if (progress > since) since = progress;
    if (comm.slot == 0 && since + period_ticks_ > now) continue;
    if (!edges_read_) ReadEdges();
    if (edge_progress_[index] > since) since = edge_progress_[index];
    if (comm.slot && since > comm.stuck_since && GoesOn(&comm, since, now)) {
      Resolve(&comm, now, &round);
    }
    if (not_before > since) since = not_before;
    round.quiet_since = Older(round.quiet_since, since);
    if (comm.slot) continue;
    const bool first =
        Load(row.completed) == 0 &&
        ((Load(row.flags) & flight::kCommCompletionVisible) || Load(row.launched) < 2);
    const uint64_t limit = first ? first_stall_ticks_ : stall_ticks_;
    if (now - since >= limit && now > since) Report(&comm, index, op, since, now, &round);
  }
  return round;
}

bool StallWatch::AnythingOpen() const {
  for (uint32_t index = 0; index < image_->comm_rows; ++index) {
    const CommRow& row = image_->comms[index];
    if (Load(row.stamp) == 0) continue;
    flight::CommFacts facts = flight::FactsOf(row, index, image_->op_rows);
    flight::ScanLaunched(image_->ops, &facts);
    for (uint32_t i = 0; i < facts.rows; ++i) {
      OpView op;
      if (flight::ReadOp(image_->ops[facts.base + i], facts.base + i, facts, &op) && op.open)
        return true;
    }
  }
  return false;
}

}  // namespace ringscope::recorder
