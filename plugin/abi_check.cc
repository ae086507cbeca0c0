// Where NCCL's own profiler plugin headers are found (-DRINGSCOPE_NCCL_HEADERS=DIR,
// DIR/nccl/profiler.h as NCCL ships it with its example plugin), our declarations must agree with
// them, member by member. Elsewhere this file is empty.
#include "plugin/abi_early.h"

#if __has_include(<nccl/profiler.h>) && __has_include(<nccl/err.h>)
#include <nccl/err.h>
#include <nccl/profiler.h>

namespace ringscope::abi {

#define SAME(ours, our_member, theirs, their_member) \
  static_assert(offsetof(ours, our_member) == offsetof(theirs, their_member))

static_assert(sizeof(v4::Descr) == sizeof(ncclProfilerEventDescr_v4_t) &&
              sizeof(v5::Descr) == sizeof(ncclProfilerEventDescr_v5_t));
static_assert(sizeof(TableV4) == sizeof(ncclProfiler_v4_t) &&
              sizeof(TableV5) == sizeof(ncclProfiler_v5_t));
static_assert(sizeof(StateArgs) == sizeof(ncclProfilerEventStateArgs_v5_t));
SAME(v4::Descr, parent, ncclProfilerEventDescr_v4_t, parentObj);
SAME(v4::Descr, rank, ncclProfilerEventDescr_v4_t, rank);
SAME(v4::Descr, coll.sequence, ncclProfilerEventDescr_v4_t, coll.seqNumber);
SAME(v4::Descr, coll.func, ncclProfilerEventDescr_v4_t, coll.func);
SAME(v4::Descr, coll.count, ncclProfilerEventDescr_v4_t, coll.count);
SAME(v4::Descr, coll.root, ncclProfilerEventDescr_v4_t, coll.root);
SAME(v4::Descr, coll.datatype, ncclProfilerEventDescr_v4_t, coll.datatype);
SAME(v4::Descr, coll.channels, ncclProfilerEventDescr_v4_t, coll.nChannels);
SAME(v4::Descr, coll.warps, ncclProfilerEventDescr_v4_t, coll.nWarps);
SAME(v4::Descr, coll.algo, ncclProfilerEventDescr_v4_t, coll.algo);
SAME(v4::Descr, coll.proto, ncclProfilerEventDescr_v4_t, coll.proto);
SAME(v4::Descr, p2p.func, ncclProfilerEventDescr_v4_t, p2p.func);
SAME(v4::Descr, p2p.datatype, ncclProfilerEventDescr_v4_t, p2p.datatype);
SAME(v4::Descr, p2p.count, ncclProfilerEventDescr_v4_t, p2p.count);
SAME(v4::Descr, p2p.peer, ncclProfilerEventDescr_v4_t, p2p.peer);
SAME(v4::Descr, p2p.channels, ncclProfilerEventDescr_v4_t, p2p.nChannels);
SAME(v4::Descr, proxy_op.pid, ncclProfilerEventDescr_v4_t, proxyOp.pid);
SAME(v4::Descr, proxy_op.is_send, ncclProfilerEventDescr_v4_t, proxyOp.isSend);
SAME(v4::Descr, proxy_step.step, ncclProfilerEventDescr_v4_t, proxyStep.step);
SAME(v4::Descr, kernel_ch.gpu_ns, ncclProfilerEventDescr_v4_t, kernelCh.pTimer);
SAME(v5::Descr, coll.parent_group, ncclProfilerEventDescr_v5_t, coll.parentGroup);
SAME(v5::Descr, coll.proto, ncclProfilerEventDescr_v5_t, coll.proto);
SAME(v5::Descr, p2p.parent_group, ncclProfilerEventDescr_v5_t, p2p.parentGroup);
SAME(v5::Descr, p2p.peer, ncclProfilerEventDescr_v5_t, p2p.peer);
SAME(v5::Descr, proxy_op.pid, ncclProfilerEventDescr_v5_t, proxyOp.pid);
SAME(v5::Descr, proxy_op.channel, ncclProfilerEventDescr_v5_t, proxyOp.channelId);
SAME(v5::Descr, proxy_op.peer, ncclProfilerEventDescr_v5_t, proxyOp.peer);
SAME(v5::Descr, proxy_op.n_steps, ncclProfilerEventDescr_v5_t, proxyOp.nSteps);
SAME(v5::Descr, proxy_op.chunk, ncclProfilerEventDescr_v5_t, proxyOp.chunkSize);
SAME(v5::Descr, proxy_op.is_send, ncclProfilerEventDescr_v5_t, proxyOp.isSend);
SAME(v5::Descr, kernel_ch.channel, ncclProfilerEventDescr_v5_t, kernelCh.channelId);
SAME(v5::Descr, kernel_ch.gpu_ns, ncclProfilerEventDescr_v5_t, kernelCh.pTimer);
SAME(v5::Descr, group_api.captured, ncclProfilerEventDescr_v5_t, groupApi.graphCaptured);
SAME(v5::Descr, group_api.depth, ncclProfilerEventDescr_v5_t, groupApi.groupDepth);
SAME(v5::Descr, coll_api.count, ncclProfilerEventDescr_v5_t, collApi.count);
SAME(v5::Descr, coll_api.stream, ncclProfilerEventDescr_v5_t, collApi.stream);
SAME(v5::Descr, coll_api.captured, ncclProfilerEventDescr_v5_t, collApi.graphCaptured);
SAME(v5::Descr, p2p_api.stream, ncclProfilerEventDescr_v5_t, p2pApi.stream);
SAME(v5::Descr, p2p_api.captured, ncclProfilerEventDescr_v5_t, p2pApi.graphCaptured);
SAME(v5::Descr, kernel_launch.stream, ncclProfilerEventDescr_v5_t, kernelLaunch.stream);
SAME(TableV4, init, ncclProfiler_v4_t, init);
SAME(TableV5, start_event, ncclProfiler_v5_t, startEvent);
SAME(TableV5, finalize, ncclProfiler_v5_t, finalize);
static_assert(sizeof(v1::Descr) == sizeof(ncclProfilerEventDescr_v1_t) &&
              sizeof(v2::Descr) == sizeof(ncclProfilerEventDescr_v2_t) &&
              sizeof(v3::Descr) == sizeof(ncclProfilerEventDescr_v3_t));
static_assert(sizeof(TableV1) == sizeof(ncclProfiler_v1_t) &&
              sizeof(EarlyStateArgs) == sizeof(ncclProfilerEventStateArgs_v1_t) &&
              sizeof(EarlyStateArgs) == sizeof(ncclProfilerEventStateArgs_v3_t));
SAME(EarlyStateArgs, proxy_op.steps, ncclProfilerEventStateArgs_v1_t, proxyOp.steps);
#define SAME_EARLY(ours, theirs)                            \
  SAME(ours, parent, theirs, parentObj);                    \
  SAME(ours, rank, theirs, rank);                           \
  SAME(ours, coll.name, theirs, coll.name);                 \
  SAME(ours, coll.hash, theirs, coll.commHash);             \
  SAME(ours, coll.sequence, theirs, coll.seqNumber);        \
  SAME(ours, coll.func, theirs, coll.func);                 \
  SAME(ours, coll.send, theirs, coll.sendBuff);             \
  SAME(ours, coll.recv, theirs, coll.recvBuff);             \
  SAME(ours, coll.count, theirs, coll.count);               \
  SAME(ours, coll.root, theirs, coll.root);                 \
  SAME(ours, coll.datatype, theirs, coll.datatype);         \
  SAME(ours, coll.max_channels, theirs, coll.nMaxChannels); \
  SAME(ours, coll.warps, theirs, coll.nWarps);              \
  SAME(ours, coll.algo, theirs, coll.algo);                 \
  SAME(ours, coll.proto, theirs, coll.proto);               \
  SAME(ours, p2p.name, theirs, p2p.name);                   \
  SAME(ours, p2p.hash, theirs, p2p.commHash);               \
  SAME(ours, p2p.func, theirs, p2p.func);                   \
  SAME(ours, p2p.buffer, theirs, p2p.buff);                 \
  SAME(ours, p2p.datatype, theirs, p2p.datatype);           \
  SAME(ours, p2p.count, theirs, p2p.count);                 \
  SAME(ours, p2p.peer, theirs, p2p.peer);                   \
  SAME(ours, proxy_op.pid, theirs, proxyOp.pid);            \
  SAME(ours, proxy_op.n_steps, theirs, proxyOp.nSteps);     \
  SAME(ours, proxy_op.is_send, theirs, proxyOp.isSend);     \
  SAME(ours, proxy_step.step, theirs, proxyStep.step)
SAME_EARLY(v1::Descr, ncclProfilerEventDescr_v1_t);
SAME_EARLY(v2::Descr, ncclProfilerEventDescr_v2_t);
SAME_EARLY(v3::Descr, ncclProfilerEventDescr_v3_t);
SAME(v1::Descr, coll.op, ncclProfilerEventDescr_v1_t, coll.op);
SAME(v1::Descr, coll.traffic, ncclProfilerEventDescr_v1_t, coll.trafficBytes);
SAME(v1::Descr, coll.collnet, ncclProfilerEventDescr_v1_t, coll.isCollnet);
SAME(v1::Descr, coll.nvls, ncclProfilerEventDescr_v1_t, coll.isNvls);
SAME(v2::Descr, coll.traffic, ncclProfilerEventDescr_v2_t, coll.trafficBytes);
SAME(v3::Descr, kernel_ch.channel, ncclProfilerEventDescr_v3_t, kernelCh.channelId);
SAME(TableV1, start_event, ncclProfiler_v1_t, startEvent);
SAME(TableV2, record_event_state, ncclProfiler_v2_t, recordEventState);
SAME(TableV3, finalize, ncclProfiler_v3_t, finalize);
#undef SAME_EARLY
#undef SAME

static_assert(static_cast<int>(kProxyCtrl) == ncclProfileProxyCtrl &&
              static_cast<int>(kKernelLaunch) == ncclProfileKernelLaunch);
static_assert(static_cast<int>(kOpSendDone) == ncclProfilerProxyOpSendDone &&
              static_cast<int>(kOpRecvReceived) == ncclProfilerProxyOpRecvReceived &&
              static_cast<int>(kOpRecvDone) == ncclProfilerProxyOpRecvDone);
static_assert(static_cast<int>(kOpInProgress) == ncclProfilerProxyOpInProgress_v4);
static_assert(static_cast<int>(kStepSendPeerWait) == ncclProfilerProxyStepSendPeerWait_v4);
static_assert(static_cast<int>(kStepRecvGpuWait) == ncclProfilerProxyStepRecvGPUWait);
static_assert(static_cast<int>(kKernelChStop) == ncclProfilerKernelChStop);

}  // namespace ringscope::abi
#endif
