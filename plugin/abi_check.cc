// Where NCCL's own profiler plugin headers are found (-DRINGSCOPE_NCCL_HEADERS=DIR,
// DIR/nccl/profiler.h as NCCL ships it with its example plugin), our declarations must agree with
// them, member by member. Elsewhere this file is empty.
#include "plugin/abi.h"

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
#undef SAME

static_assert(static_cast<int>(kProxyCtrl) == ncclProfileProxyCtrl &&
              static_cast<int>(kKernelLaunch) == ncclProfileKernelLaunch);
static_assert(static_cast<int>(kOpInProgress) == ncclProfilerProxyOpInProgress_v4);
static_assert(static_cast<int>(kStepSendPeerWait) == ncclProfilerProxyStepSendPeerWait_v4);
static_assert(static_cast<int>(kStepRecvGpuWait) == ncclProfilerProxyStepRecvGPUWait);
static_assert(static_cast<int>(kKernelChStop) == ncclProfilerKernelChStop);

}  // namespace ringscope::abi
#endif
