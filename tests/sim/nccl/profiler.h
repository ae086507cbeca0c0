// Calls a profiler plugin as NCCL 2.28 does (table v5): docs/nccl.md, the callback streams in tests/replay/captures. The layout
// of what is passed is written here once more, byte by byte: a test must not share the recorder's declarations.
#ifndef RINGSCOPE_TESTS_SIM_NCCL_PROFILER_H_
#define RINGSCOPE_TESTS_SIM_NCCL_PROFILER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/sim/include/nccl.h"
#include "tests/sim/nccl/fifo.h"

namespace ringscope::sim {

// At the end of an init, on the thread that runs it; loads the plugin with the first communicator (NCCL_PROFILER_PLUGIN: a path,
// the X of libnccl-profiler-X.so, or "none") and unloads it with the last.
void AttachProfiler(ncclComm* comm);
void DetachProfiler(ncclComm* comm);

// ---- on the caller's thread. Handles may be null: no plugin, not asked for, or the plugin keeps none.
void* GroupApiStart(ncclComm* comm, int depth);  // and the state that the group's beginning is over
void GroupApiEnding(void* handle);               // ncclGroupEnd began
void CallStart(ncclComm* comm, void* group_api, bool p2p, const char* func, size_t count, ncclDataType_t type, int root,
               cudaStream_t stream, void** handle);
void KernelLaunch(ncclComm* comm, void* group_api, cudaStream_t stream);
void* GroupStart(ncclComm* comm);
struct CollFacts {
  const char* func;
  const void* send;
  void* receive;
  size_t count;
  ncclDataType_t type;
  int root;
  uint64_t sequence;
  const char* algorithm;
};
void* CollStart(ncclComm* comm, void* api, void* group, const CollFacts& facts);
void* P2pStart(ncclComm* comm, void* api, void* group, bool send, const void* buffer, size_t count, ncclDataType_t type,
               int peer);
void Stop(void* handle);

// ---- on the progress thread
void* KernelStart(ncclComm* comm, void* parent, uint64_t gpu_timer);
void KernelStop(void* handle, uint64_t gpu_timer);

// The proxy operations over one direction of a network connection, in the order in which kernels use it. Only the progress thread
// calls.
class EdgeEvents {
 public:
  EdgeEvents(ncclComm* comm, int peer, bool send) : comm_(comm), peer_(peer), send_(send) {}
  void Begin(void* parent, int steps);
  // `taken`: slots that the receiving kernel has emptied since the connection exists.
  void Advance(uint64_t taken);
  // A slot was filled by the kernel and given to the network; data has arrived in one. The network is through with a slot of a
  // sender.
  void Moved();
  void Sent();
  bool Idle() const { return ops_.empty(); }

 private:
  struct Op {
    void* handle = nullptr;
    int steps = 0, started = 0, moved = 0, done = 0;
    bool progress = false;
    std::vector<void*> step;
  };
  void Sync();
  ncclComm* comm_;
  const int peer_;
  const bool send_;
  std::deque<Op> ops_;
  uint64_t taken_ = 0;
  // What has happened and was not told yet: data may be ahead of what the profiler knows of operations.
  int moves_ = 0, ends_ = 0;
};

}  // namespace ringscope::sim

#endif  // RINGSCOPE_TESTS_SIM_NCCL_PROFILER_H_
