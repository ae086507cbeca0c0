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
  poll_ns_ = kStreamPollNs;
}

// ------------------------------------------------------------------------------------------------------------- the batch

void Streamer::MakeRoom() {
  if (batch_.op_count == flight::kStreamBatchOps || batch_.step_count == flight::kStreamBatchSteps ||
      batch_.comm_count == flight::kStreamBatchComms || batch_.transfer_count == flight::kStreamBatchTransfers) {
    WriteChunk(false);
  }
}

// Who has the communicator row, if that still is the one meant.
bool Streamer::Identify(uint32_t row, uint32_t generation, flight::StreamComm* c) const {
  flight::CommRow copy;
  if (!flight::CopyRow(image_->comms[row], &copy)) return false;
  if ((Load(copy.stamp) & 0xffff) != generation) return false;
  memset(c, 0, sizeof(*c));
  const uint64_t ranks = Load(copy.ranks);
  c->row = row;
  c->generation = generation;
  c->comm_id = Load(copy.comm_id);
  c->rank = static_cast<uint32_t>(ranks);
  c->n_ranks = static_cast<uint32_t>(ranks >> 32);
  c->ordinal = static_cast<uint32_t>(Load(copy.nodes) >> 32);
  c->api = static_cast<uint32_t>(Load(copy.stamp) >> 32 & 0xff);
  c->flags = static_cast<uint32_t>(Load(copy.flags));
  static_assert(sizeof(c->name) == sizeof(copy.name));
  memcpy(c->name, copy.name, sizeof(c->name));
  c->name[sizeof(c->name) - 1] = 0;
  return true;
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
  if (!Identify(row, generation, &c)) {
    memset(&c, 0, sizeof(c));
    for (const flight::StreamComm& old : buried_) {
      if (old.row == row && old.generation == generation) c = old;
    }
    if (looked_at_.row == row && looked_at_.generation == generation) c = looked_at_;
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
  const bool finalizing = asked & Bit(flight::Reason::kFinalize);
  const flight::ClockMap clock(*image_->header);
  for (uint32_t c = 0; c < image_->comm_rows; ++c) Look(c, last, finalizing, now_ticks, clock);
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
