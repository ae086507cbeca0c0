#include "plugin/translate.h"

#include <errno.h>

#include "plugin/release.h"
#include "recorder/settings.h"

namespace ringscope::plugin {
namespace {

using flight::HandleKind;

struct KeepErrno {
  int saved = errno;
  ~KeepErrno() { errno = saved; }
};

// A context when nothing is recorded: not NULL (NCCL 2.28-2.29 treat a NULL context as a failed
// init), names no row.
constexpr uint64_t kNoContext = flight::MakeHandle(1, HandleKind::kContext, recorder::kNoComm);

// Which of a step's three states an event state is (EdgeRow::steps); kNoField for all others.
constexpr uint8_t kNoField = 0xff;
constexpr uint32_t kStepStates = abi::kStepSendPeerWait + 1;
constexpr uint8_t kFieldOf[kStepStates] = {
    kNoField, kNoField, kNoField, kNoField, kNoField, kNoField, kNoField, kNoField, 0,        2, 0,
    1,        2,        kNoField, kNoField, kNoField, kNoField, kNoField, kNoField, kNoField, 1};
static_assert(abi::kStepSendGpuWait == 8 && abi::kStepSendWait == 9 && abi::kStepRecvWait == 10 &&
              abi::kStepRecvFlushWait == 11 && abi::kStepRecvGpuWait == 12 &&
              abi::kStepSendPeerWait == 20);

}  // namespace

int Init(void** context, int* mask, const InitCall& call) {
  KeepErrno keep;
  if (!recorder::Start()) {
    if (mask != nullptr) *mask = 0;
    if (context != nullptr) *context = Pointer(kNoContext);
    return 0;
  }
  recorder::NotePlugin();
  Image* image = recorder::Current();
  if (image == nullptr || context == nullptr) {
    if (context != nullptr) *context = Pointer(kNoContext);
    return 0;
  }
  const uint32_t version = NcclVersionAt(call.caller);
  const uint32_t wanted = EventsFor(recorder::TheSettings().events, call.api, version);
  recorder::NoteNccl(image, version, wanted);
  // One mask for the whole process: every communicator writes the same value, at times from two
  // threads at once, and NCCL's threads read it meanwhile.
  if (mask != nullptr) __atomic_store_n(mask, static_cast<int>(wanted), __ATOMIC_RELAXED);
  const bool kernel = (wanted & abi::kKernelCh) != 0;  // never asked of a table without it
  *context =
      Pointer(recorder::OpenCommunicator(image, {call.comm_id, call.name, call.nodes, call.ranks,
                                                 call.rank, call.api, call.api >= 5, kernel}));
  return 0;
}

int Finalize(void* context) {
  KeepErrno keep;
  if (Image* image = recorder::Current()) recorder::CloseCommunicator(image, Bits(context));
  return 0;
}

uint64_t Refuse(Image* image, uint64_t type) {
  constexpr uint64_t kKnown = abi::kCeBatch * 2 - 1;
  const bool known = type != 0 && (type & (type - 1)) == 0 && type <= kKnown;
  Count(image, known ? flight::Counter::kUnaskedEvent : flight::Counter::kUnknownEvent);
  return 0;
}

namespace {

// What is not a step: some ten callbacks an operation, against five a step.
__attribute__((noinline)) int StopOther(Image* image, uint64_t handle) {
  if (flight::HandleNonce(handle) != image->nonce) {
    recorder::RejectHandle(image, handle);
    return 0;
  }
  switch (flight::KindOf(handle)) {
    case HandleKind::kProxyOp:
      recorder::ProxyOpStop(image, handle);
      break;
    case HandleKind::kKernel:
      recorder::KernelStop(image, handle);
      break;
    case HandleKind::kOp:
      if (handle & flight::kOpLaunched) {
        recorder::LaunchStop(image, handle);
      } else {
        recorder::ApiStop(image, handle);
      }
      break;
    case HandleKind::kGroup:
      recorder::GroupStop(image, handle);
      break;
    case HandleKind::kLaunch:
      recorder::KernelLaunchStop(image, handle);
      break;
    case HandleKind::kPlan:
      break;
    default:
      Count(image, flight::Counter::kGarbageHandle);
  }
  return 0;
}

__attribute__((noinline)) int RecordOther(Image* image, uint64_t handle, uint32_t state,
                                          const abi::StateArgs* args) {
  if (flight::HandleNonce(handle) != image->nonce) {
    recorder::RejectHandle(image, handle);
    return 0;
  }
  // A state that does not fit its event's handle is as good as garbage: NCCL hands out stale
  // storage at times.
  const HandleKind kind = flight::KindOf(handle);
  if (kind == HandleKind::kProxyOp) {
    if (state == abi::kOpInProgress) {
      flight::EdgeRow* edge = recorder::EdgeOf(image, handle);
      if (edge != nullptr && recorder::Load(edge->current) != handle)
        recorder::BeginOp(edge, handle);
      return 0;
    }
  } else if (kind == HandleKind::kKernel) {
    if (state == abi::kKernelChStop) {
      if (args != nullptr) recorder::KernelGpuStop(image, handle, args->kernel_ch.gpu_ns);
      return 0;
    }
  } else if (kind == HandleKind::kGroup) {
    if (state == abi::kGroupEndApiStart) recorder::GroupEnding(image, handle);
    if (state == abi::kGroupEndApiStart || state == abi::kGroupStartApiStop) return 0;
  }
  Count(image,
        state <= abi::kCeLast ? flight::Counter::kGarbageHandle : flight::Counter::kUnknownState);
  return 0;
}

}  // namespace

int StopEvent(void* pointer) {
  Image* image = recorder::Current();
  if (__builtin_expect(image == nullptr, 0)) return 0;
  const uint64_t handle = Bits(pointer);
  if (__builtin_expect(!recorder::IsOurs(image, handle, HandleKind::kStep), 0))
    return StopOther(image, handle);
  recorder::StepReach(image, handle, 3, false, false, 0);
  return 0;
}

int RecordState(void* pointer, uint32_t state, abi::StateArgs* args) {
  Image* image = recorder::Current();
  if (__builtin_expect(image == nullptr, 0)) return 0;
  const uint64_t handle = Bits(pointer);
  const uint32_t field = state < kStepStates ? kFieldOf[state] : kNoField;
  if (__builtin_expect(field == kNoField || !recorder::IsOurs(image, handle, HandleKind::kStep),
                       0)) {
    return RecordOther(image, handle, state, args);
  }
  // transSize is reliable in SendWait and RecvFlushWait only (seen in NCCL 2.30.7); before 2.27
  // there are no arguments.
  const bool sized =
      (state == abi::kStepSendWait || state == abi::kStepRecvFlushWait) && args != nullptr;
  recorder::StepReach(image, handle, field, state == abi::kStepSendPeerWait,
                      state == abi::kStepSendWait, sized ? args->proxy_step.trans_size : 0);
  return 0;
}

}  // namespace ringscope::plugin
