#include "plugin/translate.h"

#include <errno.h>

namespace ringscope::plugin {
namespace {

using flight::HandleKind;

struct KeepErrno {
  int saved = errno;
  ~KeepErrno() { errno = saved; }
};

// A context when nothing is recorded: not NULL (NCCL 2.28-2.29 treat a NULL context as a failed init), names no row.
constexpr uint64_t kNoContext = flight::MakeHandle(1, HandleKind::kContext, recorder::kNoComm);

void StepStateOf(Image* image, uint64_t handle, flight::StepState state, const abi::StateArgs* args) {
  // transSize is reliable in SendWait and RecvFlushWait only (seen in NCCL 2.30.7); before 2.27 there are no arguments.
  const bool sized = state == flight::StepState::kSendWait || state == flight::StepState::kRecvFlushWait;
  recorder::StepState(image, handle, state, sized && args != nullptr ? args->proxy_step.trans_size : 0);
}

}  // namespace

int Init(void** context, int* mask, const InitCall& call) {
  KeepErrno keep;
  if (!recorder::Start()) {
    if (mask != nullptr) *mask = 0;
    if (context != nullptr) *context = Pointer(kNoContext);
    return 0;
  }
  Image* image = recorder::Current();
  if (image == nullptr || context == nullptr) {
    if (context != nullptr) *context = Pointer(kNoContext);
    return 0;
  }
  const uint32_t wanted = image->header->event_mask;
  // One mask for the whole process: every communicator writes the same value.
  if (mask != nullptr) *mask = static_cast<int>(wanted);
  const bool kernel = wanted & abi::kKernelCh && call.api >= 4;
  *context = Pointer(recorder::OpenCommunicator(
      image, {call.comm_id, call.name, call.nodes, call.ranks, call.rank, call.api, call.api >= 5, kernel}));
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

int StopEvent(void* pointer) {
  Image* image = recorder::Current();
  if (image == nullptr) return 0;
  const uint64_t handle = Bits(pointer);
  if (flight::HandleNonce(handle) != image->nonce) {
    recorder::RejectHandle(image, handle);
    return 0;
  }
  switch (flight::KindOf(handle)) {
    case HandleKind::kStep:
      recorder::StepStop(image, handle);
      break;
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

int RecordState(void* pointer, uint32_t state, abi::StateArgs* args) {
  Image* image = recorder::Current();
  if (image == nullptr) return 0;
  const uint64_t handle = Bits(pointer);
  if (flight::HandleNonce(handle) != image->nonce) {
    recorder::RejectHandle(image, handle);
    return 0;
  }
  // A state that does not fit its event's handle is as good as garbage: NCCL hands out stale storage at times.
  const HandleKind kind = flight::KindOf(handle);
  if (kind == HandleKind::kStep) {
    switch (state) {
      case abi::kStepSendGpuWait: StepStateOf(image, handle, flight::StepState::kSendGpuWait, args); return 0;
      case abi::kStepSendPeerWait: StepStateOf(image, handle, flight::StepState::kSendPeerWait, args); return 0;
      case abi::kStepSendWait: StepStateOf(image, handle, flight::StepState::kSendWait, args); return 0;
      case abi::kStepRecvWait: StepStateOf(image, handle, flight::StepState::kRecvWait, args); return 0;
      case abi::kStepRecvFlushWait: StepStateOf(image, handle, flight::StepState::kRecvFlushWait, args); return 0;
      case abi::kStepRecvGpuWait: StepStateOf(image, handle, flight::StepState::kRecvGpuWait, args); return 0;
      default: break;
    }
  } else if (kind == HandleKind::kProxyOp) {
    if (state == abi::kOpInProgress) {
      if (flight::EdgeRow* edge = recorder::EdgeOf(image, handle)) recorder::BeginOp(image, edge, handle);
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
  Count(image, state <= abi::kCeLast ? flight::Counter::kGarbageHandle : flight::Counter::kUnknownState);
  return 0;
}

}  // namespace ringscope::plugin
