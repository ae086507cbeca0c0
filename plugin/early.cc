#include "plugin/early.h"

namespace ringscope::plugin {
namespace {

// Which of a step's four stages (EdgeRow::steps) a ProxyOp state counts.
constexpr uint32_t kFieldOf[] = {0, 1, 2, 3, 0, 1, 2, 3};
static_assert(abi::kOpSendPosted == 0 && abi::kOpSendRemFifoWait == 1 &&
              abi::kOpSendTransmitted == 2 && abi::kOpSendDone == 3 && abi::kOpRecvPosted == 4 &&
              abi::kOpRecvReceived == 5 && abi::kOpRecvTransmitted == 6 && abi::kOpRecvDone == 7);

}  // namespace

int InitEarly(void** context, int* mask, uint32_t api, const void* caller) {
  return Init(context, mask, {0, nullptr, 0, 0, -1, api, caller});
}

int RecordEarly(void* pointer, uint32_t state, abi::EarlyStateArgs* args) {
  // Steps have no sizes in these tables: their arguments are NULL, or zero from a shim.
  if (state > abi::kOpRecvDone) return RecordState(pointer, state, nullptr);
  Image* image = recorder::Current();
  if (image == nullptr) return 0;
  const uint64_t handle = Bits(pointer);
  if (!recorder::IsOurs(image, handle, flight::HandleKind::kProxyOp))
    return RecordState(pointer, state, nullptr);  // counts what it is
  if (args == nullptr || args->proxy_op.steps <= 0) return 0;
  const auto steps = static_cast<uint32_t>(args->proxy_op.steps);
  // Sizes are those of the operation so far; with the last step they are its whole.
  const bool whole = (state == abi::kOpSendTransmitted || state == abi::kOpRecvReceived) &&
                     steps == flight::ProxyOpSteps(handle);
  recorder::ProxyOpReach(image, handle, kFieldOf[state], steps, state == abi::kOpSendRemFifoWait,
                         whole ? args->proxy_op.trans_size : 0);
  return 0;
}

uint32_t SizeFromTraffic(flight::Func func, flight::DataType type, uint64_t count,
                         uint64_t traffic) {
  if (func != flight::Func::kAllGather && func != flight::Func::kReduceScatter) return 0;
  if (type == flight::DataType::kUnknown) return 0;
  const uint64_t bytes = count * recorder::SizeOf(type);
  if (bytes == 0 || bytes / recorder::SizeOf(type) != count || traffic % bytes != 0) return 0;
  const uint64_t ranks = traffic / bytes;
  return ranks < 1u << 20 ? static_cast<uint32_t>(ranks) : 0;
}

}  // namespace ringscope::plugin
