// What profiler API v5 (NCCL 2.28) and v6 (2.29, 2.30) share: they differ in copy-engine events
// only.
#ifndef RINGSCOPE_PLUGIN_V5_H_
#define RINGSCOPE_PLUGIN_V5_H_

#include "plugin/translate.h"

namespace ringscope::plugin {

// Everything but a step.
__attribute__((noinline)) inline int StartOther(Image* image, void* context, void** handle,
                                                const abi::v5::Descr* d) {
  uint64_t result;
  switch (d->type) {
    case abi::kGroupApi:
      result = recorder::GroupStart(image, Bits(context), static_cast<uint32_t>(d->group_api.depth),
                                    d->group_api.captured != 0);
      break;
    case abi::kCollApi: {
      const abi::v5::CollApi& api = d->coll_api;
      result = recorder::ApiStart(
          image, Bits(context),
          {FuncOf(api.func), DataTypeOf(api.datatype), api.count, api.root, Bits(api.stream),
           api.captured ? static_cast<uint32_t>(flight::kOpGraph) : 0});
      break;
    }
    case abi::kP2pApi: {
      const abi::v5::P2pApi& api = d->p2p_api;
      result = recorder::ApiStart(
          image, Bits(context),
          {FuncOf(api.func), DataTypeOf(api.datatype), api.count, -1, Bits(api.stream),
           flight::kOpP2p | (api.captured ? static_cast<uint32_t>(flight::kOpGraph) : 0)});
      break;
    }
    case abi::kP2p:
      result = recorder::LaunchStart(
          image, Bits(context), Bits(d->parent),
          {FuncOf(d->p2p.func), DataTypeOf(d->p2p.datatype), d->p2p.count, -1, 0, flight::kOpP2p},
          {flight::Algo::kUnknown, flight::Proto::kUnknown, d->p2p.channels, 0, 0, d->p2p.peer});
      break;
    case abi::kKernelLaunch:
      result = recorder::KernelLaunchStart(image, Bits(d->kernel_launch.stream));
      break;
    default:
      result = StartCommon(image, context, *d, d->type);
  }
  *handle = Pointer(result);
  return 0;
}

inline int StartV5(void* context, void** handle, abi::v5::Descr* d) {
  if (__builtin_expect(handle == nullptr, 0)) return 0;
  *handle = nullptr;
  Image* image = recorder::Current();
  if (__builtin_expect(image == nullptr || d == nullptr, 0)) return 0;
  if (__builtin_expect(d->type != abi::kProxyStep, 0)) return StartOther(image, context, handle, d);
  *handle = Pointer(
      recorder::StepStart(image, Bits(d->parent), static_cast<uint32_t>(d->proxy_step.step)));
  return 0;
}

}  // namespace ringscope::plugin

#endif  // RINGSCOPE_PLUGIN_V5_H_
