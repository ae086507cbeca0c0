// Profiler API v4: NCCL 2.27 (native), and 2.28-2.30 through a shim. No API events: an operation is
// known from its launch.
#include "plugin/translate.h"

namespace ringscope::plugin {
namespace {

int InitV4(void** context, int* mask, const char* name, uint64_t hash, int nodes, int ranks,
           int rank, abi::LogFn) {
  return Init(context, mask, {hash, name, nodes, ranks, rank, 4, __builtin_return_address(0)});
}

int StartV4(void* context, void** handle, abi::v4::Descr* d) {
  if (handle == nullptr) return 0;
  *handle = nullptr;
  Image* image = recorder::Current();
  if (image == nullptr || d == nullptr) return 0;
  uint64_t result;
  if (d->type == abi::kP2p) {
    // nChannels is not filled by the shim of NCCL >= 2.28 and came as 0 from 2.27.7: unknown.
    result = recorder::LaunchStart(
        image, Bits(context), Bits(d->parent),
        {FuncOf(d->p2p.func), DataTypeOf(d->p2p.datatype), d->p2p.count, -1, 0, flight::kOpP2p},
        {flight::Algo::kUnknown, flight::Proto::kUnknown, 0, 0, 0, d->p2p.peer});
  } else if (d->type == abi::kGroup) {
    result = recorder::PlanStart(image);
  } else {
    result = StartCommon(image, context, *d, d->type);
  }
  *handle = Pointer(result);
  return 0;
}

}  // namespace
}  // namespace ringscope::plugin

extern "C" __attribute__((visibility("default")))
const ringscope::abi::TableV4 ncclProfiler_v4 = {"Ringscope",
                                                 ringscope::plugin::InitV4,
                                                 ringscope::plugin::StartV4,
                                                 ringscope::plugin::StopEvent,
                                                 ringscope::plugin::RecordState,
                                                 ringscope::plugin::Finalize};
