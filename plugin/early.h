// What the tables v1, v2 and v3 share: no identity at init, operations known from their launch, a
// kernel plan for a group.
#ifndef RINGSCOPE_PLUGIN_EARLY_H_
#define RINGSCOPE_PLUGIN_EARLY_H_

#include "plugin/abi_early.h"
#include "plugin/translate.h"

namespace ringscope::plugin {

int InitEarly(void** context, int* mask, uint32_t api, const void* caller);
int RecordEarly(void* handle, uint32_t state, abi::EarlyStateArgs* args);

// The communicator's size where a collective's traffic tells: NCCL 2.23-2.25 count n times the
// bytes of one rank for AllGather and ReduceScatter. 0: it does not. (v3 has no traffic, and shims
// of later releases fill in 0.)
uint32_t SizeFromTraffic(flight::Func func, flight::DataType type, uint64_t count,
                         uint64_t traffic);

// The events that all three have. `n_ranks`: of the communicator, 0 unknown. Channels of a
// collective are an upper bound here, which the recorder cannot use (recorder/flight/rows.h).
template <typename Descr>
inline uint64_t StartEarly(Image* image, void* context, const Descr& d, uint32_t n_ranks) {
  switch (d.type) {
    case abi::kColl:
      recorder::LearnIdentity(image, Bits(context), d.coll.hash, d.rank, n_ranks);
      return recorder::LaunchStart(
          image, Bits(context), Bits(d.parent),
          {FuncOf(d.coll.func), DataTypeOf(d.coll.datatype), d.coll.count, d.coll.root, 0, 0},
          {AlgoOf(d.coll.algo), ProtoOf(d.coll.proto), 0, d.coll.warps,
           static_cast<uint32_t>(d.coll.sequence), -1});
    case abi::kP2p:
      recorder::LearnIdentity(image, Bits(context), d.p2p.hash, d.rank, 0);
      return recorder::LaunchStart(
          image, Bits(context), Bits(d.parent),
          {FuncOf(d.p2p.func), DataTypeOf(d.p2p.datatype), d.p2p.count, -1, 0, flight::kOpP2p},
          {flight::Algo::kUnknown, flight::Proto::kUnknown, 0, 0, 0, d.p2p.peer});
    case abi::kGroup:
      return recorder::PlanStart(image);
    case abi::kProxyOp:
      return StartProxyOp(image, context, d);
    case abi::kProxyStep:
      return recorder::StepStart(image, Bits(d.parent), static_cast<uint32_t>(d.proxy_step.step));
    default:
      return Refuse(image, d.type);
  }
}

}  // namespace ringscope::plugin

#endif  // RINGSCOPE_PLUGIN_EARLY_H_
