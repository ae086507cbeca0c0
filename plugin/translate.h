// NCCL's callbacks to recorder calls, once for all table versions. A version's file only declares
// its table and names what its descriptors have. Every function returns 0 whatever happens, writes
// *handle always, and changes no errno.
#ifndef RINGSCOPE_PLUGIN_TRANSLATE_H_
#define RINGSCOPE_PLUGIN_TRANSLATE_H_

#include "plugin/abi.h"
#include "plugin/names.h"
#include "recorder/hot_comm.h"
#include "recorder/hot_edge.h"
#include "recorder/hot_op.h"
#include "recorder/runtime.h"

namespace ringscope::plugin {

using recorder::Image;

inline uint64_t Bits(const void* pointer) {
  return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(pointer));
}
inline void* Pointer(uint64_t handle) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(handle));
}

struct InitCall {
  uint64_t comm_id;
  const char* name;
  int nodes, ranks, rank;  // ranks 0, rank -1: not told
  uint32_t api;
  const void* caller;  // an address in the NCCL that calls
};
int Init(void** context, int* mask, const InitCall& call);
int Finalize(void* context);
int StopEvent(void* handle);
int RecordState(void* handle, uint32_t state, abi::StateArgs* args);

// Events that the recorder has no use for, or does not know: NULL handle, counted.
uint64_t Refuse(Image* image, uint64_t type);

template <typename Descr>
inline uint64_t StartProxyOp(Image* image, void* context, const Descr& d) {
  const abi::ProxyOpFields& op = d.proxy_op;
  return recorder::ProxyOpStart(
      image, {Bits(context), Bits(d.parent), op.pid, static_cast<uint32_t>(d.rank),
              static_cast<uint32_t>(op.peer), op.channel, static_cast<uint32_t>(op.n_steps),
              static_cast<uint32_t>(op.chunk), op.is_send != 0});
}

// Events that v4 and later have with the same layout.
template <typename Descr>
inline uint64_t StartCommon(Image* image, void* context, const Descr& d, uint64_t type) {
  switch (type) {
    case abi::kProxyStep:
      return recorder::StepStart(image, Bits(d.parent), static_cast<uint32_t>(d.proxy_step.step));
    case abi::kProxyOp:
      return StartProxyOp(image, context, d);
    case abi::kKernelCh:
      return recorder::KernelStart(image, Bits(d.parent), d.kernel_ch.channel, d.kernel_ch.gpu_ns);
    case abi::kGroup:
      // A kernel plan; what a group is, API events tell.
      return flight::MakeHandle(image->nonce, flight::HandleKind::kPlan, 0);
    case abi::kColl:
      return recorder::LaunchStart(
          image, Bits(context), Bits(d.parent),
          {FuncOf(d.coll.func), DataTypeOf(d.coll.datatype), d.coll.count, d.coll.root, 0, 0},
          {AlgoOf(d.coll.algo), ProtoOf(d.coll.proto), d.coll.channels, d.coll.warps,
           static_cast<uint32_t>(d.coll.sequence), -1});
    default:
      return Refuse(image, type);
  }
}

}  // namespace ringscope::plugin

#endif  // RINGSCOPE_PLUGIN_TRANSLATE_H_
