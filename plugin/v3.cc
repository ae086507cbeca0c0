// Profiler API v3: NCCL 2.26 (native), and later ones through a shim. With KernelCh, but without
// the GPU's times.
#include "plugin/early.h"

namespace ringscope::plugin {
namespace {

int InitV3(void** context, int* mask) {
  return InitEarly(context, mask, 3, __builtin_return_address(0));
}

int StartV3(void* context, void** handle, abi::v3::Descr* d) {
  if (handle == nullptr) return 0;
  *handle = nullptr;
  Image* image = recorder::Current();
  if (image == nullptr || d == nullptr) return 0;
  *handle = Pointer(d->type == abi::kKernelCh
                        ? recorder::KernelStart(image, Bits(d->parent), d->kernel_ch.channel, 0)
                        : StartEarly(image, context, *d, 0));
  return 0;
}

}  // namespace
}  // namespace ringscope::plugin

extern "C" __attribute__((visibility("default")))
const ringscope::abi::TableV3 ncclProfiler_v3 = {"Ringscope",
                                                 ringscope::plugin::InitV3,
                                                 ringscope::plugin::StartV3,
                                                 ringscope::plugin::StopEvent,
                                                 ringscope::plugin::RecordEarly,
                                                 ringscope::plugin::Finalize};
