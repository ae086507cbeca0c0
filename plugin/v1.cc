// Profiler API v1: NCCL 2.23 (native), and later ones through a shim. Functions, data types,
// algorithms and protocols are NCCL's numbers.
#include "plugin/early.h"

namespace ringscope::plugin {
namespace {

int InitV1(void** context, int* mask) {
  return InitEarly(context, mask, 1, __builtin_return_address(0));
}

int StartV1(void* context, void** handle, abi::v1::Descr* d) {
  if (handle == nullptr) return 0;
  *handle = nullptr;
  Image* image = recorder::Current();
  if (image == nullptr || d == nullptr) return 0;
  const uint32_t ranks = d->type == abi::kColl
                             ? SizeFromTraffic(FuncOf(d->coll.func), DataTypeOf(d->coll.datatype),
                                               d->coll.count, d->coll.traffic)
                             : 0;
  *handle = Pointer(StartEarly(image, context, *d, ranks));
  return 0;
}

}  // namespace
}  // namespace ringscope::plugin

extern "C" __attribute__((visibility("default")))
const ringscope::abi::TableV1 ncclProfiler_v1 = {"Ringscope",
                                                 ringscope::plugin::InitV1,
                                                 ringscope::plugin::StartV1,
                                                 ringscope::plugin::StopEvent,
                                                 ringscope::plugin::RecordEarly,
                                                 ringscope::plugin::Finalize};
