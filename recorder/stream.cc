#include "recorder/stream.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "recorder/clock.h"
#include "recorder/flight/encode.h"
#include "recorder/flight/handles.h"
#include "recorder/flight/rows.h"
#include "recorder/sys.h"

namespace ringscope::recorder {

using flight::Load;
using flight::OpView;
using flight::StreamEnd;

// What PrepareStream() maps.
struct StreamMemory {
  StreamDoor door;
  Streamer streamer;
};

namespace {

constexpr uint64_t kMostPollNs = 50000000, kLeastPollNs = 2000000;
constexpr uint64_t kSettleNs = 100000000;
constexpr uint64_t kRingLookNs = 1000000000;  // how often rings of dead threads are looked for

constexpr uint64_t Bit(flight::Reason reason) { return uint64_t{1} << static_cast<uint32_t>(reason); }

bool ThreadIsGone(int32_t pid, uint64_t tid) {
  KeepErrno keep;
  return syscall(SYS_tgkill, pid, static_cast<pid_t>(tid), 0) != 0 && errno == ESRCH;
}

}  // namespace

void PrepareStream(Runtime* runtime) {
  runtime->image.stream = runtime->image.steps = nullptr;
  const auto level = static_cast<StreamLevel>(runtime->settings.stream);
  if (level == StreamLevel::kOff) return;
  if (runtime->stream_memory) {
    // A forked child's copy of its parent's: nothing of it is ours.
    if (madvise(runtime->stream_memory, sizeof(StreamMemory), MADV_DONTNEED) != 0) return;
  } else {
    void* p = mmap(nullptr, sizeof(StreamMemory), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
      Say("no memory: streaming is off");
      return;
    }
    runtime->stream_memory = static_cast<unsigned char*>(p);
  }
  auto* memory = reinterpret_cast<StreamMemory*>(runtime->stream_memory);
  memory->streamer.Init(runtime, &memory->door);
  runtime->image.stream = &memory->door;
  if (level == StreamLevel::kSteps) runtime->image.steps = &memory->door;
}

Streamer* Streamer::Of(Runtime* runtime) {
  if (!runtime->image.stream) return nullptr;
  return &reinterpret_cast<StreamMemory*>(runtime->stream_memory)->streamer;
}

void Streamer::Init(Runtime* runtime, StreamDoor* door) {
  runtime_ = runtime;
  image_ = &runtime->image;
  door_ = door;
  files_.Init(runtime);
  poll_ns_ = kMostPollNs;
}

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
    poll_ns_ = poll_ns_ * 2 > kMostPollNs ? kMostPollNs : poll_ns_ * 2;
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
  // We and the callback may both have copied the row at the same time.
  const uint64_t copied = Load(door_->copied[index]);
  if ((copied & 0xffffffff) == generation || copied >> 32 == generation) return;
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
  if (op.passed) return true;
  // Captured into a graph: the row waits for the first launch of it.
  if ((op.flags & flight::kOpGraph) && !op.launched) return false;
  // How many kernels come is not known: another one may still start.
  if (facts.visible && op.channels == 0 && op.kernels_started > 0)
    return now_ticks - op.finished > settle_ticks_;
  return true;
}

void Streamer::Look(uint32_t comm, bool ending, uint64_t now_ticks, const flight::ClockMap& clock) {
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
  const uint64_t head = Load(row.head);
  // A callback counts the head up before it fills the row: one quiet look is not enough.
  if (state.head == head && state.idle > 3 && !ending && finalized == (state.finalized != 0)) return;
  if (finalized && state.finalized < 2) ++state.finalized;
  flight::CommFacts facts = flight::FactsOf(row, comm, image_->op_rows);
  if (facts.rows == 0) return;
  flight::ScanLaunched(image_->ops, &facts);
  const bool all = ending || state.finalized > 1;  // nothing more comes: open ones go as they are
  bool done = true;
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
    // Once more, behind what told that it is over: its times are there now (KernelStop).
    std::atomic_thread_fence(std::memory_order_acquire);
    const uint32_t first = op.generation;
    if (!flight::ReadOp(from, index, facts, &op) || op.generation != first) {
      done = false;
      continue;
    }
    copied.store(op.generation | Load(copied) << 32, std::memory_order_relaxed);
    Add(op, generation, op.passed ? StreamEnd::kNotSeen : op.open ? StreamEnd::kStillOpen : StreamEnd::kEnded, clock);
  }
  state.idle = done && state.head == head ? state.idle + 1 : 0;
  state.head = head;
}

// ------------------------------------------------------------------------------------------------------------- the batch

void Streamer::MakeRoom() {
  if (batch_.op_count == flight::kStreamBatchOps || batch_.step_count == flight::kStreamBatchSteps ||
      batch_.comm_count == flight::kStreamBatchComms || batch_.transfer_count == flight::kStreamBatchTransfers) {
    WriteChunk(false);
  }
}

uint32_t Streamer::CommOfBatch(uint32_t row, uint32_t generation) {
  const uint32_t guess = comm_of_batch_[row];
  if (guess != 0 && guess <= batch_.comm_count && batch_.comms[guess - 1].row == row &&
      batch_.comms[guess - 1].generation == generation) {
    return guess - 1;
  }
  for (uint32_t i = 0; i < batch_.comm_count; ++i) {
    if (batch_.comms[i].row == row && batch_.comms[i].generation == generation) return i;
  }
  flight::StreamComm& c = batch_.comms[batch_.comm_count];
  memset(&c, 0, sizeof(c));
  flight::CommRow copy;
  if (flight::CopyRow(image_->comms[row], &copy) && (Load(copy.stamp) & 0xffff) == generation) {
    const uint64_t ranks = Load(copy.ranks);
    c.comm_id = Load(copy.comm_id);
    c.rank = static_cast<uint32_t>(ranks);
    c.n_ranks = static_cast<uint32_t>(ranks >> 32);
    c.ordinal = static_cast<uint32_t>(Load(copy.nodes) >> 32);
    c.api = static_cast<uint32_t>(Load(copy.stamp) >> 32 & 0xff);
    c.flags = static_cast<uint32_t>(Load(copy.flags));
    static_assert(sizeof(c.name) == sizeof(copy.name));
    memcpy(c.name, copy.name, sizeof(c.name));
    c.name[sizeof(c.name) - 1] = 0;
  } else {
    for (const flight::StreamComm& old : buried_) {
      if (old.row == row && old.generation == generation) c = old;
    }
  }
  c.row = row;
  c.generation = generation;
  comm_of_batch_[row] = static_cast<uint16_t>(batch_.comm_count + 1);
  return batch_.comm_count++;
}

void Streamer::Add(const OpView& v, uint32_t comm_generation, StreamEnd end, const flight::ClockMap& clock) {
  MakeRoom();
  const uint32_t communicator = CommOfBatch(v.comm, comm_generation);
  flight::StreamOp& op = batch_.ops[batch_.op_count++];
  memset(&op, 0, sizeof(op));
  const auto ns = [&clock](uint64_t ticks) { return static_cast<uint64_t>(clock.Ns(ticks)); };
  flight::StreamSignature& s = op.signature;
  s.communicator = communicator;
  s.count = v.count;
  s.stream = v.stream;
  s.root = v.root;
  s.peer = v.peer;
  s.tail_tasks = v.flags & flight::kOpTail ? static_cast<uint32_t>(v.group >> 48) : 0;
  s.thread = static_cast<uint32_t>(v.group >> 32 & 0xffff);
  s.func = v.func;
  s.datatype = v.datatype;
  s.algo = v.algo;
  s.proto = v.proto;
  s.channels = v.channels;
  s.flags = static_cast<uint8_t>(v.flags);
  op.end = end;
  op.group = static_cast<uint32_t>(v.group);
  op.position = v.position;
  op.entered = ns(v.entered);
  op.returned = ns(v.returned);
  op.enqueued = ns(v.enqueued);
  op.started = ns(v.started);
  op.finished = v.AllStopped() ? ns(v.finished) : 0;
  op.gpu_started = v.gpu_started;
  op.gpu_finished = v.AllStopped() ? v.gpu_finished : 0;
}

void Streamer::SumLosses() {
  uint64_t ops = lost_before_[0] + Load(door_->homeless_ops);
  uint64_t steps = lost_before_[1] + Load(door_->homeless_steps);
  for (const StreamRing& ring : door_->rings) {
    ops += Load(ring.lost_ops);
    steps += Load(ring.lost_steps);
  }
  lost_.operations_no_room = ops;
  lost_.steps_no_room = steps;
  lost_.operations_no_row = Load(image_->counters[static_cast<uint32_t>(flight::Counter::kOpNoRow)]);
  lost_.removed_bytes = files_.removed();
  image_->header->stream_lost.store(ops + steps + lost_.operations_over_rate + lost_.steps_over_rate,
                                    std::memory_order_relaxed);
}

// Payload bytes of the batch as a chunk; 0 when it does not fit.
size_t Streamer::Pack(bool begins_file, bool last) {
  flight::WireWriter w(chunk_ + kStreamFrame, flight::kMaxStreamChunk);
  flight::PackStreamBegin(sequence_ + 1, MonotonicNs(), &w);
  if (begins_file) {
    const flight::WireWriter::Mark mark = w.Begin(3);
    (void)flight::EncodeIdentityOf(image_->header, image_->header->file_bytes, &w);
    w.End(mark);
  }
  flight::PackStreamComms(batch_, &w);
  flight::PackStreamOps(&batch_, &w);
  flight::PackStreamSteps(&batch_, &w);
  flight::PackStreamEnd(lost_, last, &w);
  return w.overflow() ? 0 : w.size();
}

void Streamer::WriteChunk(bool last) {
  const uint64_t now_ns = MonotonicNs();
  bool written = false;
  // Over the rate: steps go first, then the operations. Only the mark of the end passes always.
  for (int attempt = 0; attempt < 4 && !written && !closed_; ++attempt) {
    if (batch_.empty() && !last) break;
    SumLosses();
    bool begins = files_.BeginsFile(0);
    size_t bytes = Pack(begins, last);
    if (bytes != 0 && !begins && files_.BeginsFile(bytes)) {
      begins = true;
      bytes = Pack(begins, last);
    }
    if (bytes != 0 && (files_.WithinRate(bytes, now_ns) || (batch_.empty() && last))) {
      const StreamFiles::Result result = files_.Write(chunk_, bytes, begins);
      if (result == StreamFiles::Result::kAnew) continue;
      written = result == StreamFiles::Result::kYes;
      if (written) ++sequence_;
      if (!files_.usable()) {
        lost_before_[0] += batch_.op_count;
        lost_before_[1] += batch_.step_count;
        closed_ = true;
        door_->closed.store(1, std::memory_order_relaxed);
      }
      break;
    }
    if (batch_.step_count != 0 && batch_.op_count != 0) {
      lost_.steps_over_rate += batch_.step_count;
      batch_.step_count = batch_.transfer_count = 0;
    } else {
      lost_.operations_over_rate += batch_.op_count;
      lost_.steps_over_rate += batch_.step_count;
      batch_.Clear();
    }
  }
  SumLosses();
  image_->header->stream_bytes.store(files_.written(), std::memory_order_relaxed);
  batch_.Clear();
  for (EdgeState& edge : edges_) edge.transfer = 0;
}

// ------------------------------------------------------------------------------------------------------------- the rounds

// Threads come and go (NCCL's helpers): what the dead ones had is free again, once it is drained.
void Streamer::FreeRings() {
  for (StreamRing& ring : door_->rings) {
    const uint64_t tid = Load(ring.owner);
    if (tid == 0 || !ThreadIsGone(image_->header->pid, tid)) continue;
    if (ring.head.load(std::memory_order_acquire) != Load(ring.tail)) continue;  // next time
    lost_before_[0] += Load(ring.lost_ops);
    lost_before_[1] += Load(ring.lost_steps);
    ring.lost_ops.store(0, std::memory_order_relaxed);
    ring.lost_steps.store(0, std::memory_order_relaxed);
    ring.owner.store(0, std::memory_order_release);
  }
}

void Streamer::Round(uint64_t now_ticks, uint64_t asked) {
  if (closed_) return;
  if (settle_ticks_ == 0) settle_ticks_ = NsToTicks(*image_->header, kSettleNs);
  Drain();
  const bool last = asked & Bit(flight::Reason::kExit);
  const bool over = last || (asked & Bit(flight::Reason::kFinalize));
  const flight::ClockMap clock(*image_->header);
  for (uint32_t c = 0; c < image_->comm_rows; ++c) Look(c, over, now_ticks, clock);
  WriteChunk(last);
  if (last) {
    closed_ = true;
    door_->closed.store(1, std::memory_order_relaxed);
  }
  if (now_ticks - rings_looked_at_ > NsToTicks(*image_->header, kRingLookNs)) {
    rings_looked_at_ = now_ticks;
    FreeRings();
  }
}

}  // namespace ringscope::recorder
