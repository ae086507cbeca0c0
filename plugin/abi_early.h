// Profiler API v1, v2 and v3 (NCCL 2.23; 2.24 and 2.25; 2.26), declared by ourselves as in abi.h.
// Against v4: init gets neither id nor sizes, each operation carries its communicator's hash
// instead; v1 spells names as NCCL's own numbers; only v3 has KernelCh, without GPU times. NCCL
// >= 2.27 serves these tables through shims that leave name and hash empty.
#ifndef RINGSCOPE_PLUGIN_ABI_EARLY_H_
#define RINGSCOPE_PLUGIN_ABI_EARLY_H_

#include "plugin/abi.h"

namespace ringscope::abi {

// ProxyOp states, recorded by NCCL 2.23-2.26 only: a count of steps each, where later releases have
// kOpInProgress.
enum EarlyState : uint32_t {
  kOpSendPosted = 0,
  kOpSendRemFifoWait = 1,  // the GPU's data is there; with each attempt to send
  kOpSendTransmitted = 2,
  kOpSendDone = 3,
  kOpRecvPosted = 4,
  kOpRecvReceived = 5,
  kOpRecvTransmitted = 6,  // flushed
  kOpRecvDone = 7,
};

// State arguments, v1-v3. NULL with ProxyStep states (2.23-2.26); zero from shims (>= 2.27).
union EarlyStateArgs {
  struct {
    size_t trans_size;  // bytes of the operation so far
    int steps;          // so many of its steps have reached the state
  } proxy_op;
};
static_assert(sizeof(EarlyStateArgs) == 16 && offsetof(EarlyStateArgs, proxy_op.steps) == 8);

namespace v1 {

struct Coll {
  const char* name;  // never set by NCCL
  uint64_t hash;
  uint64_t sequence;
  uint8_t func;
  const void* send;
  void* recv;
  size_t count;
  int root;
  uint8_t datatype;
  uint32_t op;
  size_t traffic;
  uint8_t max_channels;
  uint8_t warps;
  uint8_t algo;
  uint8_t proto;
  int collnet;
  int nvls;
};
struct P2p {
  const char* name;
  uint64_t hash;
  uint8_t func;
  void* buffer;
  uint8_t datatype;
  size_t count;
  int peer;
};
struct Descr {
  uint8_t type;
  void* parent;
  int rank;
  union {
    Coll coll;
    P2p p2p;
    ProxyOpFields proxy_op;
    ProxyStepFields proxy_step;
  };
};
static_assert(sizeof(Descr) == 120 && offsetof(Descr, parent) == 8 && offsetof(Descr, rank) == 16);
static_assert(offsetof(Descr, coll.name) == 24 && offsetof(Descr, coll.hash) == 32);
static_assert(offsetof(Descr, coll.sequence) == 40 && offsetof(Descr, coll.func) == 48);
static_assert(offsetof(Descr, coll.count) == 72 && offsetof(Descr, coll.root) == 80);
static_assert(offsetof(Descr, coll.datatype) == 84 && offsetof(Descr, coll.traffic) == 96);
static_assert(offsetof(Descr, coll.max_channels) == 104 && offsetof(Descr, coll.warps) == 105);
static_assert(offsetof(Descr, coll.algo) == 106 && offsetof(Descr, coll.proto) == 107);
static_assert(offsetof(Descr, p2p.hash) == 32 && offsetof(Descr, p2p.func) == 40);
static_assert(offsetof(Descr, p2p.datatype) == 56 && offsetof(Descr, p2p.count) == 64);
static_assert(offsetof(Descr, p2p.peer) == 72);
static_assert(offsetof(Descr, proxy_op.pid) == 24 && offsetof(Descr, proxy_op.is_send) == 44);
static_assert(offsetof(Descr, proxy_step.step) == 24);

}  // namespace v1

namespace v2 {

struct Coll {
  const char* name;
  uint64_t hash;
  uint64_t sequence;
  const char* func;
  const void* send;
  void* recv;
  size_t count;
  int root;
  const char* datatype;
  size_t traffic;
  uint8_t max_channels;
  uint8_t warps;
  const char* algo;
  const char* proto;
};
struct P2p {
  const char* name;
  uint64_t hash;
  const char* func;
  void* buffer;
  const char* datatype;
  size_t count;
  int peer;
};
struct Descr {
  uint8_t type;
  void* parent;
  int rank;
  union {
    Coll coll;
    P2p p2p;
    ProxyOpFields proxy_op;
    ProxyStepFields proxy_step;
  };
};
static_assert(sizeof(Descr) == 128 && offsetof(Descr, parent) == 8 && offsetof(Descr, rank) == 16);
static_assert(offsetof(Descr, coll.hash) == 32 && offsetof(Descr, coll.sequence) == 40);
static_assert(offsetof(Descr, coll.func) == 48 && offsetof(Descr, coll.count) == 72);
static_assert(offsetof(Descr, coll.root) == 80 && offsetof(Descr, coll.datatype) == 88);
static_assert(offsetof(Descr, coll.traffic) == 96 && offsetof(Descr, coll.max_channels) == 104);
static_assert(offsetof(Descr, coll.warps) == 105 && offsetof(Descr, coll.algo) == 112);
static_assert(offsetof(Descr, coll.proto) == 120);
static_assert(offsetof(Descr, p2p.hash) == 32 && offsetof(Descr, p2p.func) == 40);
static_assert(offsetof(Descr, p2p.datatype) == 56 && offsetof(Descr, p2p.count) == 64);
static_assert(offsetof(Descr, p2p.peer) == 72 && offsetof(Descr, proxy_op.pid) == 24);

}  // namespace v2

namespace v3 {

struct Coll {
  const char* name;
  uint64_t hash;
  uint64_t sequence;
  const char* func;
  const void* send;
  void* recv;
  size_t count;
  int root;
  const char* datatype;
  uint8_t max_channels;
  uint8_t warps;
  const char* algo;
  const char* proto;
};
struct KernelCh {
  uint8_t channel;
};
struct Descr {
  uint8_t type;
  void* parent;
  int rank;
  union {
    Coll coll;
    v2::P2p p2p;
    ProxyOpFields proxy_op;
    ProxyStepFields proxy_step;
    KernelCh kernel_ch;
  };
};
static_assert(sizeof(Descr) == 120 && offsetof(Descr, parent) == 8 && offsetof(Descr, rank) == 16);
static_assert(offsetof(Descr, coll.hash) == 32 && offsetof(Descr, coll.sequence) == 40);
static_assert(offsetof(Descr, coll.func) == 48 && offsetof(Descr, coll.count) == 72);
static_assert(offsetof(Descr, coll.root) == 80 && offsetof(Descr, coll.datatype) == 88);
static_assert(offsetof(Descr, coll.max_channels) == 96 && offsetof(Descr, coll.warps) == 97);
static_assert(offsetof(Descr, coll.algo) == 104 && offsetof(Descr, coll.proto) == 112);
static_assert(offsetof(Descr, p2p.func) == 40 && offsetof(Descr, p2p.peer) == 72);
static_assert(offsetof(Descr, proxy_op.pid) == 24 && offsetof(Descr, kernel_ch.channel) == 24);

}  // namespace v3

using InitEarly = int (*)(void** context, int* mask);
using TableV1 = Table<InitEarly, v1::Descr, EarlyStateArgs>;
using TableV2 = Table<InitEarly, v2::Descr, EarlyStateArgs>;
using TableV3 = Table<InitEarly, v3::Descr, EarlyStateArgs>;
static_assert(sizeof(TableV1) == 48 && sizeof(TableV2) == 48 && sizeof(TableV3) == 48);

}  // namespace ringscope::abi

#endif  // RINGSCOPE_PLUGIN_ABI_EARLY_H_
