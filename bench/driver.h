// Calls a plugin the way NCCL 2.28 - 2.30 (v5, v6 table), 2.27 (v4) or 2.23 - 2.26 (v1 - v3) does, one
// thread's share of it. Order and states are those that NCCL was seen to use (docs/nccl.md). A NULL handle gets no
// state and no stop, as in NCCL.
#ifndef RINGSCOPE_BENCH_DRIVER_H_
#define RINGSCOPE_BENCH_DRIVER_H_

#include <unistd.h>

#include <array>
#include <cstdint>

#include "bench/plugin.h"
#include "plugin/abi.h"
#include "plugin/abi_early.h"

namespace ringscope::bench {

// Calls straight through the table.
struct Direct {
  const Table* table;
  void* context;
  uint64_t callbacks = 0;

  void* Start(abi::v5::Descr& descriptor) {
    void* handle = nullptr;
    table->start_event(context, &handle, &descriptor);
    ++callbacks;
    return handle;
  }
  void Stop(void* handle) {
    if (handle == nullptr) return;
    table->stop_event(handle);
    ++callbacks;
  }
  void State(void* handle, abi::EventState state, abi::StateArgs* arguments) {
    if (handle == nullptr) return;
    table->record_event_state(handle, state, arguments);
    ++callbacks;
  }
};

// `Call` is Direct, or something that does the same and looks at a clock between.
template <typename Call>
class Driver {
 public:
  // `mask`: the events that the plugin asked for; others are not delivered (nor is what exists only
  // as their parent).
  Driver(Call& call, int version, int rank, int mask = 0xfff)
      : call_(call),
        version_(version),
        api_(version >= 5),
        rank_(rank),
        mask_(static_cast<uint32_t>(mask)) {}

  // Start and stop of one event: 2 callbacks.
  void Pair() {
    abi::v5::Descr d = Of(api_ ? abi::kGroupApi : abi::kGroup, nullptr);
    call_.Stop(call_.Start(d));
  }

  // One all-reduce, enqueued and finished on the GPU on `channels` channels: 12 callbacks and 3 a
  // channel (v4: 4 and 3; v3: 4 and 2; v1, v2: 4).
  void Collective(int channels) {
    void* coll = Enqueue(channels);
    if (Asked(abi::kKernelCh) && version_ >= 3) FinishKernel(coll, channels);
  }

  // The kernel of `coll` starts and ends on each of its channels.
  void FinishKernel(void* coll, int channels) {
    for (int channel = 0; channel < channels; ++channel) {
      abi::v5::Descr d = Of(abi::kKernelCh, coll);
      d.kernel_ch.channel = static_cast<uint8_t>(channel);
      d.kernel_ch.gpu_ns = ++timer_;
      void* handle = call_.Start(d);
      abi::StateArgs arguments;
      arguments.kernel_ch.gpu_ns = ++timer_;
      if (version_ >= 4) call_.State(handle, abi::kKernelChStop, &arguments);
      call_.Stop(handle);
    }
  }

  // What the calling thread does for one all-reduce. Returns the handle that its children get as
  // parent.
  void* Enqueue(int channels) {
    void* group_api = nullptr;
    void* coll_api = nullptr;
    if (api_) {
      abi::v5::Descr d = Of(abi::kGroupApi, nullptr);
      d.group_api.depth = 1;
      group_api = call_.Start(d);
      call_.State(group_api, abi::kGroupStartApiStop, nullptr);
      abi::v5::Descr a = Of(abi::kCollApi, group_api);
      a.coll_api.func = "AllReduce";
      a.coll_api.count = 4096;
      a.coll_api.datatype = "ncclFloat32";
      a.coll_api.stream = this;
      coll_api = call_.Start(a);
      call_.Stop(coll_api);
      call_.State(group_api, abi::kGroupEndApiStart, nullptr);
      if (Asked(abi::kKernelLaunch)) {
        abi::v5::Descr l = Of(abi::kKernelLaunch, group_api);
        l.kernel_launch.stream = this;
        call_.Stop(call_.Start(l));
      }
    }
    if (!Asked(abi::kColl | abi::kProxyOp | abi::kProxyStep | abi::kKernelCh)) {
      call_.Stop(group_api);
      return coll_api;
    }
    abi::v5::Descr g = Of(abi::kGroup, nullptr);
    void* group = call_.Start(g);
    if (version_ < 4) {
      void* coll = StartEarlyCollective(group, channels);
      call_.Stop(coll);
      call_.Stop(group);
      return coll;
    }
    abi::v5::Descr c = Of(abi::kColl, api_ ? coll_api : group);
    c.coll.sequence = sequence_++;
    c.coll.func = "AllReduce";
    c.coll.count = 4096;
    c.coll.datatype = "ncclFloat32";
    c.coll.channels = static_cast<uint8_t>(channels);
    c.coll.warps = 8;
    c.coll.algo = "RING";
    c.coll.proto = "SIMPLE";
    if (api_) c.coll.parent_group = group;
    void* coll = call_.Start(c);
    call_.Stop(coll);
    call_.Stop(group);
    call_.Stop(group_api);
    return coll;
  }

  // One proxy operation that sends 8 steps: 49 callbacks, 46 of them on the step path. The network
  // takes the first try of two steps and the second try of six (NCCL records SendPeerWait once a
  // try).
  void ProxyOperation(void* parent) {
    if (!Asked(abi::kProxyOp | abi::kProxyStep)) return;
    void* operation = StartProxyOperation(parent, rank_ + 1);
    abi::StateArgs arguments;
    arguments.proxy_step.trans_size = 0;
    if (version_ >= 4) call_.State(operation, abi::kOpInProgress, &arguments);
    const int n_steps = Asked(abi::kProxyStep) ? kSteps : 0;
    std::array<void*, kSteps> steps;
    for (int s = 0; s < n_steps; ++s) {
      abi::v5::Descr d = Of(abi::kProxyStep, operation);
      d.proxy_step.step = s;
      steps[s] = call_.Start(d);
      // (Up to NCCL 2.26 there is no SendPeerWait, and states of steps come without arguments.)
      abi::StateArgs sent;
      sent.proxy_step.trans_size = 1 << 20;
      call_.State(steps[s], abi::kStepSendGpuWait, version_ >= 4 ? &arguments : nullptr);
      for (int tries = version_ < 4 ? 0 : s < 6 ? 2 : 1; tries > 0; --tries)
        call_.State(steps[s], abi::kStepSendPeerWait, &arguments);
      call_.State(steps[s], abi::kStepSendWait, version_ >= 4 ? &sent : nullptr);
      call_.Stop(steps[s]);
    }
    call_.Stop(operation);
  }

  // A proxy operation that sends to `peer`, just appended.
  void* StartProxyOperation(void* parent, int peer) {
    abi::v5::Descr d = Of(abi::kProxyOp, parent);
    d.proxy_op = {pid_, 0, peer, kSteps, 1 << 20, 1};
    return call_.Start(d);
  }

 private:
  static constexpr int kSteps = 8;

  // The fields that all three have, in each one's layout.
  template <typename Descr>
  void* StartEarly(Descr* d, void* group, int channels) {
    d->type = abi::kColl;
    d->parent = group;
    d->rank = rank_;
    d->coll.hash = 1;
    d->coll.sequence = sequence_++;
    d->coll.count = 4096;
    d->coll.max_channels = static_cast<uint8_t>(channels);
    d->coll.warps = 8;
    return call_.Start(*reinterpret_cast<abi::v5::Descr*>(d));
  }
  template <typename Descr>
  void* StartEarlyNamed(void* group, int channels) {
    Descr d{};
    d.coll.func = "AllReduce";
    d.coll.datatype = "ncclFloat32";
    d.coll.algo = "RING";
    d.coll.proto = "SIMPLE";
    return StartEarly(&d, group, channels);
  }
  void* StartEarlyCollective(void* group, int channels) {
    if (version_ == 3) return StartEarlyNamed<abi::v3::Descr>(group, channels);
    if (version_ == 2) return StartEarlyNamed<abi::v2::Descr>(group, channels);
    abi::v1::Descr d{};
    d.coll.func = 4;      // AllReduce
    d.coll.datatype = 7;  // float32
    d.coll.algo = 1;      // ring
    d.coll.proto = 2;     // simple
    return StartEarly(&d, group, channels);
  }

  abi::v5::Descr Of(abi::EventType type, void* parent) const {
    abi::v5::Descr d{};  // NCCL clears its descriptors too
    d.type = type;
    d.parent = parent;
    d.rank = rank_;
    return d;
  }

  bool Asked(uint32_t events) const { return (mask_ & events) != 0; }

  Call& call_;
  const int version_;
  const bool api_;
  const int rank_;
  const uint32_t mask_;
  const int32_t pid_ = getpid();
  uint64_t sequence_ = 0;
  uint64_t timer_ = 1;
};

}  // namespace ringscope::bench

#endif  // RINGSCOPE_BENCH_DRIVER_H_
