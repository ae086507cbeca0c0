// Calls the tables v1, v2 and v3 as NCCL 2.23-2.26 does: no identity at init, the hash and the rank
// in each operation, ProxyOp states that count steps, ProxyStep states without arguments.
#ifndef RINGSCOPE_TESTS_UNIT_PLUGIN_EARLY_NCCL_H_
#define RINGSCOPE_TESTS_UNIT_PLUGIN_EARLY_NCCL_H_

#include <gtest/gtest.h>

#include "plugin/abi_early.h"
#include "tests/unit/plugin/fake_nccl.h"

extern "C" const ringscope::abi::TableV1 ncclProfiler_v1;
extern "C" const ringscope::abi::TableV2 ncclProfiler_v2;
extern "C" const ringscope::abi::TableV3 ncclProfiler_v3;

namespace ringscope::testing {

struct V1 {
  using Descr = abi::v1::Descr;
  static constexpr uint32_t kApi = 1;
  static constexpr int kMask = 0x1F;
  static const auto& Table() { return ncclProfiler_v1; }
  static void Name(Descr* d) {
    d->coll.func = 4;      // AllReduce
    d->coll.datatype = 7;  // float32
    d->coll.algo = 1;      // RING
    d->coll.proto = 2;     // SIMPLE
  }
  static void NameP2p(Descr* d, bool send) {
    d->p2p.func = send ? 6 : 7;
    d->p2p.datatype = 0;  // int8
  }
};
struct V2 {
  using Descr = abi::v2::Descr;
  static constexpr uint32_t kApi = 2;
  static constexpr int kMask = 0x1F;
  static const auto& Table() { return ncclProfiler_v2; }
  static void Name(Descr* d) {
    d->coll.func = "AllReduce";
    d->coll.datatype = "ncclFloat32";
    d->coll.algo = "RING";
    d->coll.proto = "SIMPLE";
  }
  static void NameP2p(Descr* d, bool send) {
    d->p2p.func = send ? "Send" : "Recv";
    d->p2p.datatype = "ncclInt8";
  }
};
struct V3 {
  using Descr = abi::v3::Descr;
  static constexpr uint32_t kApi = 3;
  static constexpr int kMask = 0x5F;
  static const auto& Table() { return ncclProfiler_v3; }
  static void Name(Descr* d) {
    d->coll.func = "AllReduce";
    d->coll.datatype = "ncclFloat32";
    d->coll.algo = "RING";
    d->coll.proto = "SIMPLE";
  }
  static void NameP2p(Descr* d, bool send) {
    d->p2p.func = send ? "Send" : "Recv";
    d->p2p.datatype = "ncclInt8";
  }
};

template <typename V>
struct EarlyComm {
  using Descr = typename V::Descr;
  void* context = nullptr;
  int mask = 0x5a5a;
  uint64_t hash;
  int rank;
  explicit EarlyComm(uint64_t id, int own_rank = 0) : hash(id), rank(own_rank) {
    EXPECT_EQ(V::Table().init(&context, &mask), 0);
  }
  void Finalize() { V::Table().finalize(context); }

  Descr Make(uint8_t type, void* parent) const {
    Descr d;
    std::memset(static_cast<void*>(&d), 0xa5, sizeof(d));
    d.type = type;
    d.parent = parent;
    d.rank = rank;
    return d;
  }
  void* Start(Descr d) const {
    void* handle = kGarbage;
    EXPECT_EQ(V::Table().start_event(context, &handle, &d), 0);
    return handle;
  }
  void* Group() const {
    Descr d = Make(abi::kGroup, nullptr);
    d.rank = 0;  // not filled by NCCL
    return Start(d);
  }
  void* Coll(void* group, size_t count = 1024) const {
    Descr d = Make(abi::kColl, group);
    d.coll.name = nullptr;
    d.coll.hash = hash;
    d.coll.sequence = 7;
    d.coll.count = count;
    d.coll.root = 0;
    d.coll.max_channels = 16;
    d.coll.warps = 8;
    V::Name(&d);
    SetTraffic(&d, 0);
    return Start(d);
  }
  void* P2p(void* group, bool send, int peer) const {
    Descr d = Make(abi::kP2p, group);
    d.p2p.name = nullptr;
    d.p2p.hash = hash;
    d.p2p.count = 16;
    d.p2p.peer = peer;
    V::NameP2p(&d, send);
    return Start(d);
  }
  void* ProxyOp(void* coll, int peer, bool send, int steps = 12, uint8_t channel = 0) const {
    Descr d = Make(abi::kProxyOp, coll);
    d.proxy_op = {getpid(), channel, peer, steps, 4194304, send};
    return Start(d);
  }
  void* Step(void* op, int step) const {
    Descr d = Make(abi::kProxyStep, op);
    d.proxy_step = {step};
    return Start(d);
  }
  static void Stop(void* handle) { EXPECT_EQ(V::Table().stop_event(handle), 0); }
  static void State(void* handle, uint32_t state) {
    EXPECT_EQ(V::Table().record_event_state(handle, state, nullptr), 0);
  }
  static void OpState(void* op, uint32_t state, int steps, size_t bytes = 0) {
    abi::EarlyStateArgs args;
    args.proxy_op = {bytes, steps};
    EXPECT_EQ(V::Table().record_event_state(op, state, &args), 0);
  }
  // One collective in a plan of its own.
  void* Enqueue(size_t count = 1024) const {
    void* group = Group();
    void* coll = Coll(group, count);
    Stop(coll);
    Stop(group);
    return coll;
  }
  flight::CommRow& Row() const { return Comm::image()->comms[Bits(context) & 0xffff]; }

  static void SetTraffic(abi::v1::Descr* d, size_t bytes) { d->coll.traffic = bytes; }
  static void SetTraffic(abi::v2::Descr* d, size_t bytes) { d->coll.traffic = bytes; }
  static void SetTraffic(abi::v3::Descr*, size_t) {}
};

}  // namespace ringscope::testing

#endif  // RINGSCOPE_TESTS_UNIT_PLUGIN_EARLY_NCCL_H_
