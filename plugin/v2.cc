// Profiler API v2: NCCL 2.24 and 2.25 (native), and later ones through a shim. (Under 2.26.2-2.26.5
// that shim passes a wild pointer for the protocol; they find v3 first.)
#include "plugin/early.h"

namespace ringscope::plugin {
namespace {

int InitV2(void** context, int* mask) {
  return InitEarly(context, mask, 2, __builtin_return_address(0));
}

int StartV2(void* context, void** handle, abi::v2::Descr* d) {
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
const ringscope::abi::TableV2 ncclProfiler_v2 = {"Ringscope",
                                                 ringscope::plugin::InitV2,
                                                 ringscope::plugin::StartV2,
                                                 ringscope::plugin::StopEvent,
                                                 ringscope::plugin::RecordEarly,
                                                 ringscope::plugin::Finalize};
