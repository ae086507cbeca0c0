#include "recorder/hot_op.h"

#include "recorder/flight/chain.h"
#include "recorder/hot_edge.h"
#include "recorder/hot_stream.h"

namespace ringscope::recorder {
namespace {

using flight::OpRow;

constexpr uint32_t kGroupRows = 8;  // point-to-point tasks of one group with a row of their own

bool Reusable(const flight::CommRow* comm, const OpRow* row) {
  const uint64_t ranks = Load(comm->ranks);
  const bool visible = Load(comm->flags) & flight::kCommCompletionVisible;
  return !flight::OpOpen(*row, visible, static_cast<uint32_t>(ranks),
                         static_cast<uint32_t>(ranks >> 32)) ||
         Overtaken(comm, row);
}

uint64_t GroupWord(const Image* image, const flight::ThreadRow* thread) {
  if (thread == nullptr) return uint64_t{0xffff} << 32;
  return (Load(thread->group) & 0xffffffff) | static_cast<uint64_t>(IndexOf(image, thread)) << 32;
}

// The group that was open is over: its collectives become part of the chain (flight/chain.h). The
// hash goes to the place that does not count yet, then one word makes it count.
void CloseChainGroup(flight::CommRow* comm) {
  const uint64_t closed = Load(comm->chain_closed);
  const uint64_t before = closed & flight::kChainPosition;
  const uint64_t after = before + Load(comm->chain_count);
  const uint64_t second = ~closed & flight::kChainSecond;
  const uint64_t hash =
      flight::ChainFold(Load(comm->chain[second ? 0 : 1]), Load(comm->chain_open));
  if (__builtin_expect((before ^ after) >> flight::kChainShift[0] != 0, 0)) {
    for (uint32_t level = 0; level < flight::kChainLevels; ++level) {
      const uint64_t ordinal = after >> flight::kChainShift[level];
      const uint64_t last = before >> flight::kChainShift[level];
      // A group may pass several multiples at once.
      for (uint64_t o = ordinal > last + 1 ? ordinal - 1 : ordinal; o > last && o <= ordinal; ++o) {
        Store(comm->checkpoints[level * 2 + (o & 1)], flight::ChainCheckpoint(hash, after, o));
      }
    }
  }
  Store(comm->chain[second ? 1 : 0], hash);
  Store(comm->chain_closed, flight::ChainClosed(after, hash, second));
}

void FoldIntoChain(flight::CommRow* comm, const OpCall& call, uint64_t root, uint64_t group) {
  const uint64_t key = (group & 0xffffffffffff) | flight::kChainOpen;
  // What only moves data works in bytes: a rank may call them by another type.
  const bool moves = flight::kChainMoves >> static_cast<uint32_t>(call.func) & 1;
  const uint64_t one = moves ? flight::ChainOf(call.func, flight::DataType::kInt8,
                                               call.count * SizeOf(call.type), root)
                             : flight::ChainOf(call.func, call.type, call.count, root);
  // (Without a thread row nobody knows where a group ends: each call counts as one.)
  if (Load(comm->chain_group) == key && (group >> 32 & 0xffff) != 0xffff) {
    Store(comm->chain_open, Load(comm->chain_open) + one);
    Store(comm->chain_count, Load(comm->chain_count) + 1);
    return;
  }
  if (Load(comm->chain_group) != 0) CloseChainGroup(comm);
  Store(comm->chain_open, one);
  Store(comm->chain_count, 1);
  Store(comm->chain_group, key);
}

// Below profiler API v5: makes the kernel plan that `parent` names the group of what this thread
// launches. A parent that is not the plan this thread is in (stale, foreign, garbage) groups
// nothing: the operation is a plan of its own.
void EnterPlan(const Image* image, flight::ThreadRow* thread, uint64_t parent) {
  if (thread == nullptr) return;
  const bool plan = flight::HandleNonce(parent) == image->nonce &&
                    flight::KindOf(parent) == flight::HandleKind::kPlan &&
                    (parent & 0xffff) == IndexOf(image, thread) &&
                    (flight::HandlePayload(parent) >> 16 & 0xffffff) == Load(thread->group);
  if (!plan) NextGroup(thread);
}

uint64_t NoRow(const Image* image, bool p2p) {
  return flight::MakeHandle(image->nonce, flight::HandleKind::kOp,
                            flight::kNoOpRow | (p2p ? flight::kOpIsP2p : 0));
}

// Later point-to-point tasks of a large group: one row for all of them that are of one
// communicator. Returns 0 when the group's newest such row is of another communicator, or found no
// room.
uint64_t JoinTail(Image* image, flight::CommRow* comm, flight::ThreadRow* thread,
                  const OpCall& call) {
  const uint64_t handle = Load(thread->group_tail);
  const uint32_t index = flight::OpRowOf(handle);
  if (handle == 0 || index >= image->op_rows) return 0;
  OpRow* row = &image->ops[index];
  const uint64_t stamp = Load(row->stamp);
  if ((stamp & 0xffffffff) != flight::OpGeneration(handle) ||
      (stamp >> 32 & 0xffff) != IndexOf(image, comm)) {
    return 0;
  }
  Count(image, flight::Counter::kGroupedTail);
  Store(comm->p2ps, Load(comm->p2ps) + 1);
  Store(row->count, Load(row->count) + call.count * SizeOf(call.type));
  Store(row->group, Load(row->group) + (uint64_t{1} << 48));
  Store(row->returned, 0);
  return handle;
}

}  // namespace

uint64_t SizeOf(flight::DataType type) {
  switch (type) {
    case flight::DataType::kInt32:
    case flight::DataType::kUint32:
    case flight::DataType::kFloat32:
      return 4;
    case flight::DataType::kInt64:
    case flight::DataType::kUint64:
    case flight::DataType::kFloat64:
      return 8;
    case flight::DataType::kFloat16:
    case flight::DataType::kBfloat16:
      return 2;
    default:
      return 1;
  }
}

OpRow* RejectHandle(Image* image, uint64_t handle) {
  const bool ours = flight::HandleNonce(handle) == image->nonce;
  if (ours && flight::KindOf(handle) == flight::HandleKind::kOp &&
      flight::OpRowOf(handle) == flight::kNoOpRow)
    return nullptr;
  if (handle == 0) {
    Count(image, flight::Counter::kNullHandle);
  } else if (flight::HandleNonce(handle) != 0 && !ours) {
    Count(image, flight::Counter::kForeignHandle);
  } else {
    Count(image, flight::Counter::kGarbageHandle);
  }
  return nullptr;
}

uint64_t OpenOp(Image* image, flight::CommRow* comm, flight::ThreadRow* thread, const OpCall& call,
                uint64_t now) {
  const bool p2p = call.flags & flight::kOpP2p;
  flight::Word& counter = p2p ? comm->p2ps : comm->collectives;
  const uint64_t position = Load(counter) + 1;
  Store(counter, position);
  const uint64_t root = call.root < 0 ? 0xffffff : static_cast<uint64_t>(call.root) & 0xffffff;
  const uint64_t group = GroupWord(image, thread);
  // Where the API is seen, a launch of its own is the replay of a graph: no call.
  if (!p2p && !(call.flags & flight::kOpGraph) &&
      (call.flags & flight::kOpFromApi || !(Load(comm->flags) & flight::kCommApiEvents))) {
    FoldIntoChain(comm, call, root, group);
  }
  const uint64_t ring = Load(comm->ring);
  const uint64_t taken = comm->head.fetch_add(1, std::memory_order_relaxed);
  const uint32_t index = static_cast<uint32_t>(ring) +
                         (static_cast<uint32_t>(taken) & static_cast<uint32_t>(ring >> 32));
  OpRow* row = &image->ops[index];
  const uint64_t old = Load(row->stamp);
  if (old != 0 && !Reusable(comm, row)) {
    Count(image, flight::Counter::kOpNoRow);
    Store(comm->no_row, Load(comm->no_row) + 1);
    return NoRow(image, p2p);
  }
  KeepOpIfStreaming(image, comm, row);
  // The generation of a ring's turn: rows of another turn, and of another owner of the ring,
  // differ.
  uint32_t generation = static_cast<uint32_t>(Load(row->launch) & 0xffffffff);
  const uint32_t lane = static_cast<uint32_t>(Load(row->kernel) & 0xffffffff);
  const uint32_t proxy = static_cast<uint32_t>(Load(row->proxy_ops) & 0xffffffff);
  const uint32_t stamp = static_cast<uint32_t>(old & 0xffffffff);
  if (lane > generation) generation = lane;
  if (proxy > generation) generation = proxy;
  if (stamp > generation) generation = stamp;
  generation = (generation + 1) & kOpGenerationMask;
  if (generation == 0) generation = 1;
  row->stamp.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  Store(row->position, (position & 0xffffffffff) | root << 40);
  Store(row->count, call.count);
  Store(row->entered, now);
  Store(row->returned, 0);
  Store(row->stream, (call.stream & 0xffffffffffff) | static_cast<uint64_t>(call.flags) << 48);
  Store(row->group, group);
  Store(row->enqueued, 0);
  Store(row->sequence, uint64_t{0xffffffff} << 32);
  row->stamp.store(generation | static_cast<uint64_t>(IndexOf(image, comm)) << 32 |
                       static_cast<uint64_t>(call.func) << 48 |
                       static_cast<uint64_t>(call.type) << 56,
                   std::memory_order_release);
  return flight::MakeHandle(
      image->nonce, flight::HandleKind::kOp,
      index | static_cast<uint64_t>(generation) << 16 | (p2p ? flight::kOpIsP2p : 0));
}

uint64_t ApiStart(Image* image, uint64_t context, const OpCall& given) {
  flight::CommRow* comm = CommOf(image, context);
  flight::ThreadRow* thread = ThisThread(image);
  if (comm == nullptr) {
    Count(image, context == 0 ? flight::Counter::kNullContext : flight::Counter::kForeignContext);
    return 0;
  }
  const uint64_t now = Ticks();
  OpCall call = given;
  call.flags |= flight::kOpFromApi;
  // GroupApi says how deep: 1 is the implicit group of a single call, more is inside
  // ncclGroupStart.
  if (thread != nullptr && (Load(thread->call) >> 8 & 0xff) > 1) call.flags |= flight::kOpGrouped;
  // What the preloaded library knows of the call that this thread is in.
  if (thread != nullptr && call.func != flight::Func::kUnknown)
    call.flags |= static_cast<uint32_t>(Load(thread->host_call) >> 32) & flight::kOpReduction;
  uint64_t handle = 0;
  const bool p2p = call.flags & flight::kOpP2p;
  uint64_t tasks = 0;
  if (p2p && thread != nullptr) {
    tasks = Load(thread->group_p2p) + 1;
    Store(thread->group_p2p, tasks);
  }
  const bool tail = tasks > kGroupRows;
  if (tail) handle = JoinTail(image, comm, thread, call);
  if (handle == 0) {
    if (tail) {
      call.flags |= flight::kOpTail;
      call.count *= SizeOf(call.type);
      call.func = flight::Func::kSendRecv;
    }
    handle = OpenOp(image, comm, thread, call, now);
    if (tail) {
      Store(thread->group_tail, handle);
      if (flight::OpRowOf(handle) != flight::kNoOpRow) {
        OpRow* row = &image->ops[flight::OpRowOf(handle)];
        Store(row->group, Load(row->group) + (uint64_t{1} << 48));
      }
    }
  }
  if (thread != nullptr) {
    Store(thread->position, Load(p2p ? comm->p2ps : comm->collectives));
    Store(thread->stream, call.stream);
    Store(thread->count, call.count);
    const uint64_t keep = Load(thread->call) & 0xffffff00;
    EnterCall(thread, p2p ? flight::Call::kP2pApi : flight::Call::kCollApi,
              keep | static_cast<uint64_t>(IndexOf(image, comm)) << 32, now);
  }
  return handle;
}

uint64_t LaunchStart(Image* image, uint64_t context, uint64_t parent, const OpCall& call,
                     const OpLaunch& launch) {
  flight::CommRow* comm = CommOf(image, context);
  if (comm == nullptr) {
    Count(image, context == 0 ? flight::Counter::kNullContext : flight::Counter::kForeignContext);
    return 0;
  }
  const bool p2p = call.flags & flight::kOpP2p;
  uint64_t handle = parent;
  uint32_t generation = 0;
  OpRow* row = nullptr;
  const bool ours = flight::KindOf(parent) == flight::HandleKind::kOp &&
                    flight::HandleNonce(parent) == image->nonce;
  const bool no_row = ours && flight::OpRowOf(parent) == flight::kNoOpRow;
  if (ours && !no_row) {
    row = OpOf(image, parent, &generation);
    // A second launch of the same API call is the replay of a captured graph: an operation of its
    // own.
    const bool again = row != nullptr && (Load(row->launch) & 0xffffffff) == generation;
    const bool tail = row != nullptr && Load(row->stream) >> 48 & flight::kOpTail;
    if ((again && !tail) ||
        (row != nullptr && (Load(row->stamp) >> 32 & 0xffff) != IndexOf(image, comm)))
      row = nullptr;
  }
  if (row == nullptr && !no_row) {
    OpCall own = call;
    if (Load(comm->flags) & flight::kCommApiEvents &&
        flight::KindOf(parent) == flight::HandleKind::kOp) {
      own.flags |= flight::kOpGraph;
    }
    flight::ThreadRow* thread = ThisThread(image);
    if (!(Load(comm->flags) & flight::kCommApiEvents)) EnterPlan(image, thread, parent);
    handle = OpenOp(image, comm, thread, own, Ticks());
    if (flight::OpRowOf(handle) != flight::kNoOpRow) {
      row = &image->ops[flight::OpRowOf(handle)];
      generation = flight::OpGeneration(handle);
    }
  }
  if (p2p && launch.peer >= 0) {
    CountMessage(image, comm, static_cast<uint32_t>(launch.peer), call.func == flight::Func::kSend,
                 call.count * SizeOf(call.type));
  }
  if (row == nullptr) return handle | flight::kOpLaunched;
  // Only the launch tells that copy engines do it: the call did not know.
  if (call.flags & flight::kOpCopyEngine)
    Store(row->stream, Load(row->stream) | uint64_t{flight::kOpCopyEngine} << 48);
  const bool tail = Load(row->stream) >> 48 & flight::kOpTail;
  const uint32_t peer = launch.peer < 0 || tail ? 0xffffffff : static_cast<uint32_t>(launch.peer);
  // (As in KernelStart: the stamp may be another thread's store.)
  std::atomic_thread_fence(std::memory_order_release);
  Store(row->sequence, launch.sequence | static_cast<uint64_t>(peer) << 32);
  row->launch.store(generation | static_cast<uint64_t>(launch.algo) << 32 |
                        static_cast<uint64_t>(launch.proto) << 40 |
                        static_cast<uint64_t>(tail ? 0 : launch.channels & 0xff) << 48 |
                        static_cast<uint64_t>(launch.warps & 0xff) << 56,
                    std::memory_order_release);
  return handle | flight::kOpLaunched;
}

void CalledStop(Image* image, uint64_t context, uint64_t handle, const OpCall& call, int peer, bool enqueued, bool grouped) {
  flight::CommRow* comm = CommOf(image, context);
  uint32_t generation = 0;
  OpRow* row = OpOf(image, handle, &generation);
  const uint64_t now = Ticks();
  if (flight::ThreadRow* thread = ThisThread(image))
    EnterCall(thread, grouped ? flight::Call::kGroup : flight::Call::kNone, grouped ? Load(thread->call) & ~uint64_t{0xff} : 0, now);
  if (comm != nullptr && enqueued) {
    Store(comm->launched, Load(comm->launched) + 1);
    if (peer >= 0)
      CountMessage(image, comm, static_cast<uint32_t>(peer), call.func == flight::Func::kSend, call.count * SizeOf(call.type));
  }
  if (row == nullptr) return;
  Store(row->returned, now);
  if (!enqueued) return;
  const bool tail = Load(row->stream) >> 48 & flight::kOpTail;
  std::atomic_thread_fence(std::memory_order_release);
  Store(row->sequence, static_cast<uint64_t>(peer < 0 || tail ? 0xffffffff : static_cast<uint32_t>(peer)) << 32);
  Store(row->enqueued, now);
  row->launch.store(generation, std::memory_order_release);
}

}  // namespace ringscope::recorder
