// Operations: the callbacks of CollApi / P2pApi (API lane), Coll / P2p (launcher lane) and KernelCh
// (proxy lane).
//
// Each function is a handful of relaxed stores into the operation's row. What comes in as a handle
// is checked against the row's generation; what does not fit is counted and ignored.
#ifndef RINGSCOPE_RECORDER_HOT_OP_H_
#define RINGSCOPE_RECORDER_HOT_OP_H_

#include "recorder/flight/format.h"
#include "recorder/flight/handles.h"
#include "recorder/flight/rows.h"
#include "recorder/hot_comm.h"
#include "recorder/hot_thread.h"

namespace ringscope::recorder {

struct OpCall {
  flight::Func func;
  flight::DataType type;
  uint64_t count;
  int root;         // -1 none
  uint64_t stream;  // 0 unknown
  uint32_t flags;   // enum OpFlags
};

struct OpLaunch {
  flight::Algo algo;
  flight::Proto proto;
  uint32_t channels;  // 0 unknown
  uint32_t warps;
  uint32_t sequence;  // NCCL's
  int peer;           // -1 none
};

// Bytes of an element; 1 where the type is not known.
uint64_t SizeOf(flight::DataType type);

constexpr uint32_t kOpGenerationMask = (1u << flight::kOpGenerationBits) - 1;

// Row that an Op or Kernel handle names, and its generation; nullptr (counted) when it is NULL,
// foreign, garbage or stale; nullptr (not counted again) when its operation found no room.
flight::OpRow* RejectHandle(Image* image, uint64_t handle);
inline flight::OpRow* OpOf(Image* image, uint64_t handle, uint32_t* generation) {
  const uint64_t payload = flight::HandlePayload(handle);
  const uint32_t index = flight::OpRowOf(payload);
  if (__builtin_expect(flight::HandleNonce(handle) != image->nonce || index >= image->op_rows, 0)) {
    return RejectHandle(image, handle);
  }
  flight::OpRow* row = &image->ops[index];
  *generation = flight::OpGeneration(payload);
  if (__builtin_expect((Load(row->stamp) & 0xffffffff) != *generation, 0)) {
    Count(image, flight::Counter::kStaleHandle);
    return nullptr;
  }
  return row;
}

// Opens a row for an operation and returns its handle; one that names no row (kNoOpRow) when the
// ring has no room (counted, positions advance): the launch and the kernels that follow must not be
// taken for another operation. `thread` may be nullptr.
uint64_t OpenOp(Image* image, flight::CommRow* comm, flight::ThreadRow* thread, const OpCall& call,
                uint64_t now);

// CollApi / P2pApi start: enters the call in the thread's row too. A point-to-point task beyond the
// eighth of its group shares the ninth row (tail).
uint64_t ApiStart(Image* image, uint64_t context, const OpCall& call);

inline void ApiStop(Image* image, uint64_t handle) {
  uint32_t generation = 0;
  flight::OpRow* row = OpOf(image, handle, &generation);
  const uint64_t now = Ticks();
  if (row != nullptr) Store(row->returned, now);
  if (flight::ThreadRow* thread = ThisThread(image)) {
    EnterCall(thread, flight::Call::kGroup, Load(thread->call) & ~uint64_t{0xff}, now);
  }
}

// Coll / P2p start. `parent` is the API handle, or anything else (then the operation is known from
// its launch only).
uint64_t LaunchStart(Image* image, uint64_t context, uint64_t parent, const OpCall& call,
                     const OpLaunch& launch);

// The end of a call that only the preloaded library saw: it has returned, and where `enqueued`, its work is in the stream. In place of
// ApiStop, LaunchStart and LaunchStop, with one reading of the clock. `grouped`: the thread is in an explicit group still.
void CalledStop(Image* image, uint64_t context, uint64_t handle, const OpCall& call, int peer, bool enqueued, bool grouped);

inline void LaunchStop(Image* image, uint64_t handle) {
  uint32_t generation = 0;
  flight::OpRow* row = OpOf(image, handle, &generation);
  if (row == nullptr) return;
  const uint64_t now = Ticks();
  Store(row->enqueued, now);
  const uint64_t stamp = Load(row->stamp);
  flight::CommRow* comm = &image->comms[(stamp >> 32 & 0xffff) & (image->comm_rows - 1)];
  Store(comm->launched, Load(comm->launched) + 1);
  if (!(Load(row->stream) >> 48 & flight::kOpFromApi)) Store(row->returned, now);
}

// KernelCh start. Returns the handle, 0 when the parent names no row of ours.
inline uint64_t KernelStart(Image* image, uint64_t parent, uint32_t channel, uint64_t gpu_ns) {
  if (parent == 0) return 0;
  uint32_t generation = 0;
  flight::OpRow* row = flight::KindOf(parent) == flight::HandleKind::kOp
                           ? OpOf(image, parent, &generation)
                           : RejectHandle(image, parent);
  if (row == nullptr) return 0;
  const uint64_t now = Ticks();
  const uint64_t lane = Load(row->kernel);
  if ((lane & 0xffffffff) != generation) {
    // The stamp is another thread's store: whoever sees this lane's new words must see that one, too.
    std::atomic_thread_fence(std::memory_order_release);
    Store(row->started, now);
    Store(row->gpu_started, gpu_ns);
    Store(row->finished, 0);
    Store(row->gpu_finished, 0);
    row->kernel.store(generation | uint64_t{1} << 32, std::memory_order_release);
  } else {
    // (A count that is full stays full: it must not run over into the stops beside it.)
    if ((lane >> 32 & 0xffff) != 0xffff) Store(row->kernel, lane + (uint64_t{1} << 32));
    if (gpu_ns != 0 && gpu_ns < Load(row->gpu_started)) Store(row->gpu_started, gpu_ns);
  }
  flight::CommRow* comm = &image->comms[(Load(row->stamp) >> 32 & 0xffff) & (image->comm_rows - 1)];
  Store(comm->last_progress, now);
  return flight::MakeHandle(image->nonce, flight::HandleKind::kKernel,
                            flight::OpRowOf(parent) | static_cast<uint64_t>(generation) << 16 |
                                static_cast<uint64_t>(channel & 0xff) << 38);
}

// State KernelChStop: the GPU's own time of the stop.
inline void KernelGpuStop(Image* image, uint64_t handle, uint64_t gpu_ns) {
  uint32_t generation = 0;
  flight::OpRow* row = OpOf(image, handle, &generation);
  if (row == nullptr || (Load(row->kernel) & 0xffffffff) != generation) return;
  if (gpu_ns > Load(row->gpu_finished)) Store(row->gpu_finished, gpu_ns);
}

// KernelCh stop. NCCL <= 2.30 can stop a handle twice, and lose the stop of another one: the count
// never exceeds the starts, and a lost stop is made up for by the operations that finish later
// (CommRow::done_entered).
inline void KernelStop(Image* image, uint64_t handle) {
  uint32_t generation = 0;
  flight::OpRow* row = OpOf(image, handle, &generation);
  if (row == nullptr) return;
  const uint64_t lane = Load(row->kernel);
  const uint32_t started = lane >> 32 & 0xffff, stopped = static_cast<uint32_t>(lane >> 48);
  if ((lane & 0xffffffff) != generation || stopped >= started) {
    Count(image, flight::Counter::kKernelStopTwice);
    return;
  }
  const uint64_t now = Ticks();
  Store(row->finished, now);
  row->kernel.store(lane + (uint64_t{1} << 48), std::memory_order_release);
  flight::CommRow* comm = &image->comms[(Load(row->stamp) >> 32 & 0xffff) & (image->comm_rows - 1)];
  Store(comm->last_progress, now);
  const uint64_t launch = Load(row->launch);
  if (stopped + 1 == started && started >= (launch >> 48 & 0xff)) {
    Store(comm->completed, Load(comm->completed) + 1);
    const uint64_t entered = Load(row->entered);
    if (entered > Load(comm->done_entered)) {
      Store(comm->done_group, Load(row->group) & 0xffffffffffff);
      Store(comm->done_entered, entered);
    }
  }
}

// A group of this thread begins; returns its number.
inline uint64_t NextGroup(flight::ThreadRow* thread) {
  const uint64_t ordinal = (Load(thread->group) + 1) & 0xffffff;
  Store(thread->group, ordinal);
  Store(thread->group_p2p, 0);
  Store(thread->group_tail, 0);
  return ordinal;
}

// GroupApi: the bracket around API calls of one thread.
inline uint64_t GroupStart(Image* image, uint64_t context, uint32_t depth, bool captured) {
  flight::ThreadRow* thread = ThisThread(image);
  if (thread == nullptr) return flight::MakeHandle(image->nonce, flight::HandleKind::kPlan, 0);
  const uint64_t ordinal = NextGroup(thread);
  const flight::CommRow* comm = CommOf(image, context);
  EnterCall(thread, flight::Call::kGroup,
            static_cast<uint64_t>(depth & 0xff) << 8 | static_cast<uint64_t>(captured) << 16 |
                static_cast<uint64_t>(IndexOf(image, comm)) << 32,
            Ticks());
  return flight::MakeHandle(image->nonce, flight::HandleKind::kGroup,
                            IndexOf(image, thread) | ordinal << 16);
}

// Group, below profiler API v5: a kernel plan, the only group there is to see. Its operations get
// its number as ApiStart's get that of their ncclGroup. Never answers 0: NCCL <= 2.27 would drop
// the plan's operations.
inline uint64_t PlanStart(Image* image) {
  flight::ThreadRow* thread = ThisThread(image);
  const uint64_t ordinal = thread == nullptr ? 0 : NextGroup(thread);
  return flight::MakeHandle(image->nonce, flight::HandleKind::kPlan,
                            IndexOf(image, thread) | ordinal << 16);
}

// Thread row of a GroupApi or KernelLaunch handle; nullptr when the thread is in another group by
// now.
inline flight::ThreadRow* GroupThread(Image* image, uint64_t handle) {
  const uint32_t index = handle & 0xffff;
  if (flight::HandleNonce(handle) != image->nonce || index >= flight::kThreadRows) return nullptr;
  flight::ThreadRow* thread = &image->threads[index];
  if (Load(thread->group) != (flight::HandlePayload(handle) >> 16 & 0xffffff)) return nullptr;
  return thread;
}
inline void GroupEnding(Image* image, uint64_t handle) {
  if (flight::ThreadRow* thread = GroupThread(image, handle)) {
    EnterCall(thread, flight::Call::kGroupEnd, Load(thread->call) & ~uint64_t{0xff}, Ticks());
  }
}
inline void GroupStop(Image* image, uint64_t handle) {
  if (flight::ThreadRow* thread = GroupThread(image, handle))
    EnterCall(thread, flight::Call::kNone, 0, Ticks());
}

inline uint64_t KernelLaunchStart(Image* image, uint64_t stream) {
  flight::ThreadRow* thread = ThisThread(image);
  if (thread == nullptr) return flight::MakeHandle(image->nonce, flight::HandleKind::kPlan, 0);
  const uint64_t call = Load(thread->call);
  Store(thread->stream, stream);
  EnterCall(thread, flight::Call::kKernelLaunch, call & ~uint64_t{0xff}, Ticks());
  return flight::MakeHandle(image->nonce, flight::HandleKind::kLaunch,
                            IndexOf(image, thread) | (call & 15) << 16);
}
inline void KernelLaunchStop(Image* image, uint64_t handle) {
  const uint32_t index = handle & 0xffff;
  if (flight::HandleNonce(handle) != image->nonce || index >= flight::kThreadRows) return;
  flight::ThreadRow* thread = &image->threads[index];
  const uint64_t call = Load(thread->call);
  if ((call & 0xff) != static_cast<uint64_t>(flight::Call::kKernelLaunch)) return;
  const uint64_t before = flight::HandlePayload(handle) >> 16 & 15;
  EnterCall(thread, static_cast<flight::Call>(before), before ? call & ~uint64_t{0xff} : 0,
            Ticks());
}

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_HOT_OP_H_
