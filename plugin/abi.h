// NCCL's profiler interface, declared by ourselves: names, numbers and layouts as facts of
// NCCL 2.27-2.30 (its profiler_v4.h, profiler_v5.h, profiler_v6.h); abi_early.h has those of
// 2.23-2.26. abi_check.cc compares with the real headers where a compiler finds them.
//
// A descriptor is NCCL's stack object: valid during the call only. Strings are static in libnccl,
// commName is the caller's.
#ifndef RINGSCOPE_PLUGIN_ABI_H_
#define RINGSCOPE_PLUGIN_ABI_H_

#include <stddef.h>
#include <stdint.h>

namespace ringscope::abi {

// Event type bits; the same in descriptors and in the mask.
enum EventType : uint64_t {
  kGroup = 0x1,
  kColl = 0x2,
  kP2p = 0x4,
  kProxyOp = 0x8,
  kProxyStep = 0x10,
  kProxyCtrl = 0x20,
  kKernelCh = 0x40,
  kNetPlugin = 0x80,
  kGroupApi = 0x100,
  kCollApi = 0x200,
  kP2pApi = 0x400,
  kKernelLaunch = 0x800,
  kCeColl = 0x1000,
  kCeSync = 0x2000,
  kCeBatch = 0x4000,
};

// Event states; one numbering for all versions.
enum EventState : uint32_t {
  kStepSendGpuWait = 8,
  kStepSendWait = 9,
  kStepRecvWait = 10,
  kStepRecvFlushWait = 11,
  kStepRecvGpuWait = 12,
  kCtrlIdle = 13,
  kCtrlAppendEnd = 18,
  kOpInProgress = 19,
  kStepSendPeerWait = 20,
  kNetPluginUpdate = 21,
  kKernelChStop = 22,
  kGroupStartApiStop = 23,
  kGroupEndApiStart = 24,
  kCeLast = 30,
};

// State arguments, v4-v6. May be NULL, or of no meaning for a state: look only where the state says
// so.
union StateArgs {
  struct {
    size_t trans_size;
  } proxy_step;
  struct {
    uint64_t gpu_ns;
  } kernel_ch;
};
static_assert(sizeof(StateArgs) == 8);

// The same in v1-v6.
struct ProxyOpFields {
  int32_t pid;
  uint8_t channel;
  int32_t peer;
  int32_t n_steps;
  int32_t chunk;
  int32_t is_send;
};
struct ProxyStepFields {
  int32_t step;
};
struct KernelChFields {
  uint8_t channel;
  uint64_t gpu_ns;
};

namespace v4 {

struct Coll {
  uint64_t sequence;
  const char* func;
  const void* send;
  void* recv;
  size_t count;
  int root;
  const char* datatype;
  uint8_t channels;
  uint8_t warps;
  const char* algo;
  const char* proto;
};
struct P2p {
  const char* func;
  void* buffer;
  const char* datatype;
  size_t count;
  int peer;
  uint8_t channels;
};

struct Descr {
  uint8_t type;  // one byte: the shim of NCCL >= 2.28 leaves the other seven uninitialised
  void* parent;
  int rank;
  union {
    Coll coll;
    P2p p2p;
    ProxyOpFields proxy_op;
    ProxyStepFields proxy_step;
    KernelChFields kernel_ch;
  };
};
static_assert(sizeof(Descr) == 104 && offsetof(Descr, parent) == 8 && offsetof(Descr, rank) == 16);
static_assert(offsetof(Descr, coll) == 24 && offsetof(Descr, coll.sequence) == 24 &&
              offsetof(Descr, coll.func) == 32);
static_assert(offsetof(Descr, coll.count) == 56 && offsetof(Descr, coll.root) == 64 &&
              offsetof(Descr, coll.datatype) == 72);
static_assert(offsetof(Descr, coll.channels) == 80 && offsetof(Descr, coll.warps) == 81);
static_assert(offsetof(Descr, coll.algo) == 88 && offsetof(Descr, coll.proto) == 96);
static_assert(offsetof(Descr, p2p.func) == 24 && offsetof(Descr, p2p.datatype) == 40 &&
              offsetof(Descr, p2p.count) == 48);
static_assert(offsetof(Descr, p2p.peer) == 56 && offsetof(Descr, p2p.channels) == 60);

}  // namespace v4

namespace v5 {

struct Coll {
  uint64_t sequence;
  const char* func;
  const void* send;
  void* recv;
  size_t count;
  int root;
  const char* datatype;
  uint8_t channels;
  uint8_t warps;
  const char* algo;
  const char* proto;
  void* parent_group;
};
struct P2p {
  const char* func;
  void* buffer;
  const char* datatype;
  size_t count;
  int peer;
  uint8_t channels;
  void* parent_group;
};
struct GroupApi {
  uint8_t captured;
  int depth;
};
struct CollApi {
  const char* func;
  size_t count;
  const char* datatype;
  int root;
  void* stream;
  uint8_t captured;
};
struct P2pApi {
  const char* func;
  size_t count;
  const char* datatype;
  void* stream;
  uint8_t captured;
};
struct KernelLaunch {
  void* stream;
};
struct CeColl {  // v6 only
  uint64_t sequence;
  const char* func;
  const void* send;
  void* recv;
  size_t count;
  int root;
  const char* datatype;
  const char* sync;
  uint8_t intra;
  uint32_t batch_size;
  uint32_t batches;
  uint32_t ce_sequence;
  void* stream;
};

struct Descr {
  uint64_t type;
  void* parent;
  int rank;
  union {
    Coll coll;
    P2p p2p;
    ProxyOpFields proxy_op;
    ProxyStepFields proxy_step;
    KernelChFields kernel_ch;
    GroupApi group_api;
    CollApi coll_api;
    P2pApi p2p_api;
    KernelLaunch kernel_launch;
    CeColl ce_coll;
  };
};
static_assert(sizeof(Descr) == 112 && offsetof(Descr, parent) == 8 && offsetof(Descr, rank) == 16);
static_assert(offsetof(Descr, coll.parent_group) == 104 && offsetof(Descr, p2p.parent_group) == 64);
static_assert(offsetof(Descr, proxy_op.pid) == 24 && offsetof(Descr, proxy_op.channel) == 28);
static_assert(offsetof(Descr, proxy_op.peer) == 32 && offsetof(Descr, proxy_op.n_steps) == 36);
static_assert(offsetof(Descr, proxy_op.chunk) == 40 && offsetof(Descr, proxy_op.is_send) == 44);
static_assert(offsetof(Descr, proxy_step.step) == 24);
static_assert(offsetof(Descr, kernel_ch.channel) == 24 && offsetof(Descr, kernel_ch.gpu_ns) == 32);
static_assert(offsetof(Descr, group_api.captured) == 24 && offsetof(Descr, group_api.depth) == 28);
static_assert(offsetof(Descr, coll_api.func) == 24 && offsetof(Descr, coll_api.count) == 32);
static_assert(offsetof(Descr, coll_api.datatype) == 40 && offsetof(Descr, coll_api.root) == 48);
static_assert(offsetof(Descr, coll_api.stream) == 56 && offsetof(Descr, coll_api.captured) == 64);
static_assert(offsetof(Descr, p2p_api.func) == 24 && offsetof(Descr, p2p_api.count) == 32);
static_assert(offsetof(Descr, p2p_api.datatype) == 40 && offsetof(Descr, p2p_api.stream) == 48);
static_assert(offsetof(Descr, p2p_api.captured) == 56 &&
              offsetof(Descr, kernel_launch.stream) == 24);
static_assert(offsetof(Descr, ce_coll.count) == 56 && offsetof(Descr, ce_coll.root) == 64);
static_assert(offsetof(Descr, ce_coll.sync) == 80 && offsetof(Descr, ce_coll.stream) == 104);

}  // namespace v5

// NCCL's logger, handed to init; not used: it takes a mutex and may write a file.
using LogFn = void (*)(int level, unsigned long subsystems, const char* file, int line,
                       const char* format, ...);

// The function tables: six pointers, 48 bytes, in every version. All return ncclResult_t (int, 0 =
// success).
template <typename Init, typename Descr, typename Args = StateArgs>
struct Table {
  const char* name;
  Init init;
  int (*start_event)(void* context, void** handle, Descr* descr);
  int (*stop_event)(void* handle);
  int (*record_event_state)(void* handle, uint32_t state, Args* args);
  int (*finalize)(void* context);
};
using InitV4 = int (*)(void** context, int* mask, const char* name, uint64_t hash, int nodes,
                       int ranks, int rank, LogFn log);
using InitV5 = int (*)(void** context, uint64_t id, int* mask, const char* name, int nodes,
                       int ranks, int rank, LogFn log);
using TableV4 = Table<InitV4, v4::Descr>;
using TableV5 = Table<InitV5, v5::Descr>;  // and v6: same layout, CE events added
static_assert(sizeof(TableV4) == 48 && offsetof(TableV4, init) == 8 &&
              offsetof(TableV4, start_event) == 16);
static_assert(offsetof(TableV4, stop_event) == 24 && offsetof(TableV4, record_event_state) == 32);
static_assert(offsetof(TableV4, finalize) == 40);

}  // namespace ringscope::abi

#endif  // RINGSCOPE_PLUGIN_ABI_H_
