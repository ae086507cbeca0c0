// A few lines that call a profiler table as NCCL's threads do, for tests of the callback path.
#ifndef RINGSCOPE_TESTS_UNIT_PLUGIN_FAKE_NCCL_H_
#define RINGSCOPE_TESTS_UNIT_PLUGIN_FAKE_NCCL_H_

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "plugin/abi.h"
#include "recorder/flight/format.h"
#include "recorder/flight/handles.h"
#include "recorder/flight/rows.h"
#include "recorder/runtime.h"

extern "C" const ringscope::abi::TableV4 ncclProfiler_v4;
extern "C" const ringscope::abi::TableV5 ncclProfiler_v5;
extern "C" const ringscope::abi::TableV5 ncclProfiler_v6;

namespace ringscope::testing {

using abi::v5::Descr;

inline uint64_t Load(const flight::Word& w) { return w.load(); }
inline uint64_t Bits(void* p) { return reinterpret_cast<uint64_t>(p); }

inline void* const kGarbage = reinterpret_cast<void*>(0x7f4500000006);

// Descriptors start as stack garbage, as NCCL's shims leave them.
inline Descr Make(uint64_t type, void* parent) {
  Descr d;
  std::memset(static_cast<void*>(&d), 0xa5, sizeof(d));
  d.type = type;
  d.parent = parent;
  d.rank = 0;
  return d;
}

struct Comm {
  void* context = nullptr;
  int mask = 0x5a5a;
  explicit Comm(uint64_t id, int rank = 0, int ranks = 4, int nodes = 4) {
    ncclProfiler_v6.init(&context, id, &mask, "world", nodes, ranks, rank, nullptr);
  }
  void Finalize() { ncclProfiler_v6.finalize(context); }

  void* Start(Descr d) {
    void* handle = kGarbage;
    ncclProfiler_v6.start_event(context, &handle, &d);
    return handle;
  }
  void* Group(int depth = 1) {
    Descr d = Make(abi::kGroupApi, nullptr);
    d.group_api = {false, depth};
    return Start(d);
  }
  void* CollApi(void* group, const char* func = "AllReduce", size_t count = 1024) {
    Descr d = Make(abi::kCollApi, group);
    d.coll_api = {func, count, "ncclFloat32", 0, nullptr, false};
    return Start(d);
  }
  void* P2pApi(void* group, const char* func, size_t count = 16) {
    Descr d = Make(abi::kP2pApi, group);
    d.p2p_api = {func, count, "ncclFloat32", nullptr, false};
    return Start(d);
  }
  void* Coll(void* api, uint8_t channels = 1, const char* func = "AllReduce", size_t count = 1024) {
    Descr d = Make(abi::kColl, api);
    d.coll = {7,        func, nullptr, nullptr,  count,  0, "ncclFloat32",
              channels, 8,    "RING",  "SIMPLE", nullptr};
    return Start(d);
  }
  void* P2p(void* api, const char* func, int peer, size_t count = 16) {
    Descr d = Make(abi::kP2p, api);
    d.p2p = {func, nullptr, "ncclFloat32", count, peer, 1, nullptr};
    return Start(d);
  }
  void* Kernel(void* coll, uint8_t channel = 0, uint64_t gpu = 100) {
    Descr d = Make(abi::kKernelCh, coll);
    d.kernel_ch = {channel, gpu};
    return Start(d);
  }
  void* ProxyOp(void* coll, int peer, bool send, int steps = 12, uint8_t channel = 0,
                int pid = getpid()) {
    Descr d = Make(abi::kProxyOp, coll);
    d.proxy_op = {pid, channel, peer, steps, 4194304, send};
    return Start(d);
  }
  void* Step(void* op, int step) {
    Descr d = Make(abi::kProxyStep, op);
    d.proxy_step = {step};
    return Start(d);
  }
  static void Stop(void* handle) { ncclProfiler_v6.stop_event(handle); }
  static void State(void* handle, uint32_t state, size_t bytes = 0) {
    abi::StateArgs args{};
    args.proxy_step.trans_size = bytes;
    ncclProfiler_v6.record_event_state(handle, state, &args);
  }
  // Enters and enqueues one collective; returns the Coll handle, which stays the parent of what
  // comes later.
  void* Enqueue(uint8_t channels = 1, const char* func = "AllReduce", size_t count = 1024) {
    void* group = Group();
    ncclProfiler_v6.record_event_state(group, abi::kGroupStartApiStop, nullptr);
    void* api = CollApi(group, func, count);
    Stop(api);
    ncclProfiler_v6.record_event_state(group, abi::kGroupEndApiStart, nullptr);
    void* coll = Coll(api, channels, func, count);
    Stop(coll);
    Stop(group);
    return coll;
  }
  void Run(void* coll, uint8_t channels = 1) {
    for (uint8_t c = 0; c < channels; ++c) {
      void* kernel = Kernel(coll, c);
      State(kernel, abi::kKernelChStop, 200);
      Stop(kernel);
    }
  }
  flight::CommRow& Row() const { return image()->comms[Bits(context) & 0xffff]; }
  static recorder::Image* image() { return recorder::Current(); }
};

inline flight::OpRow& OpRow(void* handle) {
  return recorder::Current()->ops[flight::OpRowOf(Bits(handle))];
}
inline flight::EdgeRow& EdgeRow(void* handle) {
  return recorder::Current()->edges[flight::ProxyOpEdge(Bits(handle))];
}
inline uint64_t CounterValue(flight::Counter c) {
  return Load(recorder::Current()->counters[static_cast<uint32_t>(c)]);
}
inline uint32_t KernelsStarted(const flight::OpRow& row) { return Load(row.kernel) >> 32 & 0xffff; }
inline uint32_t KernelsStopped(const flight::OpRow& row) {
  return static_cast<uint32_t>(Load(row.kernel) >> 48);
}
inline bool Open(const flight::OpRow& row) { return flight::OpOpen(row, true, 0, 4); }

}  // namespace ringscope::testing

#endif  // RINGSCOPE_TESTS_UNIT_PLUGIN_FAKE_NCCL_H_
