// Profiler API v6: NCCL 2.29 and 2.30. As v5, plus copy-engine collectives, which have no Coll, no
// KernelCh: their launch is seen, their completion is not.
#include "plugin/v5.h"

namespace ringscope::plugin {
namespace {

int InitV6(void** context, uint64_t id, int* mask, const char* name, int nodes, int ranks, int rank,
           abi::LogFn) {
  return Init(context, mask, {id, name, nodes, ranks, rank, 6, __builtin_return_address(0)});
}

__attribute__((noinline)) int StartCopyEngine(Image* image, void* context, void** handle,
                                              const abi::v5::Descr* d) {
  const abi::v5::CeColl& ce = d->ce_coll;
  *handle = Pointer(recorder::LaunchStart(image, Bits(context), Bits(d->parent),
                                          {FuncOf(ce.func), DataTypeOf(ce.datatype), ce.count,
                                           ce.root, Bits(ce.stream), flight::kOpCopyEngine},
                                          {flight::Algo::kCopyEngine, flight::Proto::kUnknown, 0, 0,
                                           static_cast<uint32_t>(ce.sequence), -1}));
  return 0;
}

int StartV6(void* context, void** handle, abi::v5::Descr* d) {
  if (__builtin_expect(d != nullptr && handle != nullptr && d->type == abi::kCeColl, 0)) {
    *handle = nullptr;
    Image* image = recorder::Current();
    return image == nullptr ? 0 : StartCopyEngine(image, context, handle, d);
  }
  return StartV5(context, handle, d);
}

}  // namespace
}  // namespace ringscope::plugin

extern "C" __attribute__((visibility("default")))
const ringscope::abi::TableV5 ncclProfiler_v6 = {"Ringscope",
                                                 ringscope::plugin::InitV6,
                                                 ringscope::plugin::StartV6,
                                                 ringscope::plugin::StopEvent,
                                                 ringscope::plugin::RecordState,
                                                 ringscope::plugin::Finalize};
