#include "preload/details.h"

#include "preload/communicators.h"
#include "recorder/hot_op.h"

namespace ringscope::preload {

__thread uint32_t t_depth __attribute__((tls_model("initial-exec"))) = 0;

namespace {

// ncclDataType_t (nccl.h 2.18-2.30).
flight::DataType TypeOf(int type) {
  using flight::DataType;
  static constexpr DataType kTypes[] = {DataType::kInt8,    DataType::kUint8,    DataType::kInt32,      DataType::kUint32,
                                        DataType::kInt64,   DataType::kUint64,   DataType::kFloat16,    DataType::kFloat32,
                                        DataType::kFloat64, DataType::kBfloat16, DataType::kFloat8e4m3, DataType::kFloat8e5m2};
  return type >= 0 && type < 12 ? kTypes[type] : DataType::kUnknown;
}
// ncclRedOp_t + 1; what a program made itself is 6.
uint32_t ReductionOf(int op) { return op < 0 ? 0 : op < 5 ? static_cast<uint32_t>(op) + 1 : 6; }

bool IsP2p(flight::Func func) { return func == flight::Func::kSend || func == flight::Func::kRecv; }

bool Succeeded(int result) { return result == 0 || result == 7; }  // in progress: a communicator that is made in the background

recorder::OpCall CallOf(const Op& d) {
  const bool p2p = IsP2p(d.func);
  return {d.func,
          TypeOf(d.type),
          d.count,
          p2p ? -1 : d.root_or_peer,
          static_cast<uint64_t>(reinterpret_cast<uintptr_t>(d.stream)),
          (p2p ? static_cast<uint32_t>(flight::kOpP2p) : 0)};
}

}  // namespace

bool Enter(Frame* f, const Told& told) {
  if (t_depth != 0) return false;
  Image* image = recorder::Current();
  if (__builtin_expect(image == nullptr, 0)) {
    if (!told.wakes || !recorder::Start() || (image = recorder::Current()) == nullptr) return false;
  }
  t_depth = 1;
  f->image = image;
  f->handle = 0;
  const uint64_t seen = f->library == Library::kNccl          ? flight::kHostNccl
                        : f->library == Library::kCudaRuntime ? flight::kHostCudaRuntime
                                                              : flight::kHostCudaDriver;
  recorder::SeeHost(image, seen | flight::kHostPreloaded);
  f->thread = recorder::ThisThread(image);
  if (f->thread != nullptr)
    recorder::EnterHost(f->thread, f->number, told.about, told.bytes, told.reduction << flight::kOpReductionShift);
  if (told.copy >= 0) recorder::CountCopy(image, told.copy, told.bytes);
  return true;
}

void Leave(Frame* f, int result) {
  if (__builtin_expect(IsError(f->library, result), 0))
    recorder::NoteHostError(f->image, f->thread, f->number, static_cast<uint32_t>(result));
  if (f->thread != nullptr) recorder::LeaveHost(f->thread);
  t_depth = 0;
}

Told TellOf(const Op& d) { return {d.stream, 0, -1, ReductionOf(d.reduction)}; }

void Before(Frame* f, const Op& d) {
  if (PluginTells()) return;
  const uint64_t context = ContextOf(d.comm);
  if (context == 0) return;
  Learn(f->image, d.comm, context, f->caller);
  // A call by itself is a group of its own.
  if (f->thread != nullptr && recorder::HostGroupDepth(f->thread) == 0) recorder::NextGroup(f->thread);
  f->handle = recorder::ApiStart(f->image, context, CallOf(d));
}
void After(Frame* f, const Op& d, int result) {
  if (f->handle == 0) return;
  // What is called is in the stream when the call returns (in a group: when that ends, which is not told apart).
  recorder::CalledStop(f->image, ContextOf(d.comm), f->handle, CallOf(d), IsP2p(d.func) ? d.root_or_peer : -1, result == 0,
                       f->thread != nullptr && recorder::HostGroupDepth(f->thread) > 0);
}

void After(Frame* f, const GroupBegins&, int result) {
  if (f->thread == nullptr || result != 0) return;
  const uint32_t depth = recorder::HostGroupDepth(f->thread);
  if (depth == 0 && !PluginTells()) recorder::GroupStart(f->image, 0, 2, false);
  recorder::SetHostGroupDepth(f->thread, depth + 1);
}
void After(Frame* f, const GroupEnds&, int) {
  if (f->thread == nullptr) return;
  const uint32_t depth = recorder::HostGroupDepth(f->thread);
  if (depth > 0) recorder::SetHostGroupDepth(f->thread, depth - 1);
  if (depth <= 1 && !PluginTells()) recorder::EnterCall(f->thread, flight::Call::kNone, 0, recorder::Ticks());
}

void After(Frame* f, const Create& d, int result) {
  if (Succeeded(result) && d.made != nullptr) Opened(f->image, *d.made, IdOf(*d.id), d.n_ranks, d.rank);
}
void After(Frame* f, const CreateAll& d, int result) {
  // All ranks are in this process: its first pointer names them.
  for (int rank = 0; Succeeded(result) && d.made != nullptr && rank < d.n_ranks; ++rank) {
    NcclId id = {};
    const auto first = reinterpret_cast<uintptr_t>(d.made[0]);
    __builtin_memcpy(id.bytes, &first, sizeof(first));
    Opened(f->image, d.made[rank], IdOf(id), d.n_ranks, rank);
  }
}
void After(Frame* f, const Split& d, int result) {
  // Counted whether this rank takes part or not: all ranks count alike.
  const uint64_t id = Succeeded(result) ? IdOfSplit(d.parent, d.color) : 0;
  if (id != 0 && d.made != nullptr && *d.made != nullptr) Opened(f->image, *d.made, id, 0, -1);
}
void After(Frame* f, const End& d, int) { Closed(f->image, d.comm); }
void After(Frame* f, const AsyncError& d, int result) {
  if (result == 0 && d.error != nullptr && IsError(Library::kNccl, *d.error))
    recorder::NoteHostError(f->image, f->thread, f->number, static_cast<uint32_t>(*d.error));
}

}  // namespace ringscope::preload
