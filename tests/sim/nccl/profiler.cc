#include "tests/sim/nccl/profiler.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <set>
#include <string>

#include "tests/sim/nccl/communicator.h"

namespace ringscope::sim {
namespace {

// Bits of the mask, and of a descriptor's type.
enum : uint64_t {
  kGroup = 1,
  kColl = 2,
  kP2p = 4,
  kProxyOp = 8,
  kProxyStep = 16,
  kKernelCh = 64,
  kGroupApi = 0x100,
  kCollApi = 0x200,
  kP2pApi = 0x400,
  kKernelLaunch = 0x800,
};
enum State : uint32_t {
  kSendGpuWait = 8,
  kSendWait = 9,
  kRecvWait = 10,
  kRecvFlushWait = 11,
  kRecvGpuWait = 12,
  kInProgress = 19,
  kSendPeerWait = 20,
  kKernelChStop = 22,
  kGroupStartApiStop = 23,
  kGroupEndApiStart = 24,
};

struct Table {  // v5
  const char* name;
  int (*init)(void** context, uint64_t comm_id, int* mask, const char* comm_name, int n_nodes, int n_ranks, int rank,
              void (*log)(int, unsigned long, const char*, int, const char*, ...));
  int (*start)(void* context, void** handle, void* descriptor);
  int (*stop)(void* handle);
  int (*state)(void* handle, uint32_t state, void* args);
  int (*finalize)(void* context);
};

// 112 bytes; fields at the offsets of the interface.
class Descriptor {
 public:
  Descriptor(uint64_t type, void* parent, int rank) {
    memset(bytes_, 0, sizeof(bytes_));
    Set(0, type);
    Set(8, parent);
    Set(16, static_cast<int32_t>(rank));
  }
  template <typename T>
  Descriptor& Set(size_t offset, T value) {
    memcpy(bytes_ + offset, &value, sizeof(value));
    return *this;
  }
  uint64_t type() const {
    uint64_t t;
    memcpy(&t, bytes_, sizeof(t));
    return t;
  }
  void* data() { return bytes_; }

 private:
  alignas(8) unsigned char bytes_[112];
};

struct Plugin {
  std::mutex mutex;
  void* library = nullptr;
  Table* table = nullptr;
  int mask = 0;
  int communicators = 0;
  bool tried = false;
};
Plugin& ThePlugin() {
  static auto* const plugin = new Plugin;
  return *plugin;
}

void Log(int level, unsigned long, const char*, int, const char* format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  level == 2 ? LogWarn(0, text) : LogInfo(0, text);
}

void Load(Plugin* plugin) {
  if (plugin->tried) return;
  plugin->tried = true;
  const char* asked = getenv("NCCL_PROFILER_PLUGIN");
  if (asked != nullptr && strcmp(asked, "none") == 0) return;
  std::string name = asked == nullptr || asked[0] == 0 ? "libnccl-profiler.so" : asked;
  plugin->library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (plugin->library == nullptr && asked != nullptr)
    plugin->library = dlopen(("libnccl-profiler-" + name + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (plugin->library == nullptr) {
    if (asked != nullptr) LogInfo(0, "PROFILER/Plugin: Could not find: " + name);
    return;
  }
  plugin->table = static_cast<Table*>(dlsym(plugin->library, "ncclProfiler_v5"));
  if (plugin->table == nullptr) LogInfo(0, "PROFILER/Plugin: Failed to find ncclProfiler_v5 symbol");
}

bool Asked(ncclComm* comm, uint64_t type) {
  return comm->profiler != nullptr && (static_cast<uint64_t>(ThePlugin().mask) & type) != 0;
}
void* Start(ncclComm* comm, Descriptor* descriptor) {
  if (!Asked(comm, descriptor->type())) return nullptr;
  void* handle = nullptr;
  ThePlugin().table->start(comm->profiler, &handle, descriptor->data());
  return handle;
}
void Record(void* handle, State state, void* args) {
  if (handle != nullptr) ThePlugin().table->state(handle, state, args);
}
void RecordStep(void* handle, State state, size_t bytes) {
  alignas(8) unsigned char args[8];
  memcpy(args, &bytes, sizeof(bytes));
  Record(handle, state, args);
}

const char* TypeName(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
      return "ncclInt8";
    case ncclInt32:
      return "ncclInt32";
    case ncclUint32:
      return "ncclUint32";
    case ncclInt64:
      return "ncclInt64";
    case ncclUint64:
      return "ncclUint64";
    case ncclFloat16:
      return "ncclFloat16";
    case ncclFloat32:
      return "ncclFloat32";
    case ncclFloat64:
      return "ncclFloat64";
    case ncclBfloat16:
      return "ncclBfloat16";
    case ncclFloat8e4m3:
      return "ncclFloat8e4m3";
    case ncclFloat8e5m2:
      return "ncclFloat8e5m2";
    default:
      return "Unknown";  // NCCL has no name for uint8
  }
}

}  // namespace

void AttachProfiler(ncclComm* comm) {
  Plugin& plugin = ThePlugin();
  std::lock_guard<std::mutex> lock(plugin.mutex);
  Load(&plugin);
  if (plugin.table == nullptr) return;
  std::set<std::string> hosts;
  for (const Peer& p : comm->peers) hosts.insert(p.host);
  void* context = nullptr;
  int mask = 0;
  if (plugin.table->init(&context, comm->hash, &mask, comm->name.empty() ? nullptr : comm->name.c_str(),
                         static_cast<int>(hosts.size()), comm->n, comm->rank, Log) != 0)
    return;
  plugin.mask |= mask;
  ++plugin.communicators;
  comm->profiler = context;
}

void DetachProfiler(ncclComm* comm) {
  Plugin& plugin = ThePlugin();
  std::lock_guard<std::mutex> lock(plugin.mutex);
  if (comm->profiler == nullptr) return;
  plugin.table->finalize(comm->profiler);
  comm->profiler = nullptr;
  if (--plugin.communicators > 0) return;
  dlclose(plugin.library);
  plugin.library = nullptr;
  plugin.table = nullptr;
  plugin.mask = 0;
  plugin.tried = false;  // the next communicator loads it again
}

void* GroupApiStart(ncclComm* comm, int depth) {
  Descriptor d(kGroupApi, nullptr, 0);
  d.Set(24, false).Set(28, static_cast<int32_t>(depth));
  void* handle = Start(comm, &d);
  Record(handle, kGroupStartApiStop, nullptr);
  return handle;
}
void GroupApiEnding(void* handle) { Record(handle, kGroupEndApiStart, nullptr); }

void CallStart(ncclComm* comm, void* group_api, bool p2p, const char* func, size_t count, ncclDataType_t type, int root,
               cudaStream_t stream, void** handle) {
  Descriptor d(p2p ? kP2pApi : kCollApi, group_api, 0);
  d.Set(24, func).Set(32, count).Set(40, TypeName(type));
  if (p2p) {
    d.Set(48, static_cast<void*>(stream)).Set(56, false);
  } else {
    d.Set(48, static_cast<int32_t>(root)).Set(56, static_cast<void*>(stream)).Set(64, false);
  }
  *handle = Start(comm, &d);
  Stop(*handle);
}

void KernelLaunch(ncclComm* comm, void* group_api, cudaStream_t stream) {
  Descriptor d(kKernelLaunch, group_api, 0);
  d.Set(24, static_cast<void*>(stream));
  Stop(Start(comm, &d));
}

void* GroupStart(ncclComm* comm) {
  Descriptor d(kGroup, nullptr, 0);
  return Start(comm, &d);
}

void* CollStart(ncclComm* comm, void* api, void* group, const CollFacts& f) {
  // NCCL counts bytes of what only moves data.
  const bool moves = strcmp(f.func, "AllGather") == 0 || strcmp(f.func, "Broadcast") == 0;
  Descriptor d(kColl, api, comm->rank);
  d.Set(24, f.sequence).Set(32, f.func).Set(40, f.send).Set(48, f.receive).Set(56, moves ? f.count * SizeOf(f.type) : f.count);
  d.Set(64, static_cast<int32_t>(f.root))
      .Set(72, moves ? "ncclInt8" : TypeName(f.type))
      .Set(80, static_cast<uint8_t>(1))
      .Set(81, static_cast<uint8_t>(16));
  d.Set(88, f.algorithm).Set(96, "SIMPLE").Set(104, group);
  return Start(comm, &d);
}
void* P2pStart(ncclComm* comm, void* api, void* group, bool send, const void* buffer, size_t count, ncclDataType_t type,
               int peer) {
  Descriptor d(kP2p, api, comm->rank);
  d.Set(24, send ? "Send" : "Recv")
      .Set(32, buffer)
      .Set(40, TypeName(type))
      .Set(48, count)
      .Set(56, static_cast<int32_t>(peer))
      .Set(60, static_cast<uint8_t>(1));
  d.Set(64, group);
  return Start(comm, &d);
}
void Stop(void* handle) {
  if (handle != nullptr) ThePlugin().table->stop(handle);
}

void* KernelStart(ncclComm* comm, void* parent, uint64_t gpu_timer) {
  Descriptor d(kKernelCh, parent, 0);
  d.Set(24, static_cast<uint8_t>(0)).Set(32, gpu_timer);
  return parent == nullptr ? nullptr : Start(comm, &d);
}
void KernelStop(void* handle, uint64_t gpu_timer) {
  alignas(8) unsigned char args[8];
  memcpy(args, &gpu_timer, sizeof(gpu_timer));
  Record(handle, kKernelChStop, args);
  Stop(handle);
}

// ---- edges
void EdgeEvents::Begin(void* parent, int steps) {
  if (steps <= 0) return;
  Op op;
  op.steps = steps;
  Descriptor d(kProxyOp, parent, comm_->rank);
  d.Set(24, static_cast<int32_t>(getpid()))
      .Set(28, static_cast<uint8_t>(0))
      .Set(32, static_cast<int32_t>(peer_))
      .Set(36, static_cast<int32_t>(steps));
  d.Set(40, static_cast<int32_t>(kSliceBytes)).Set(44, static_cast<int32_t>(send_));
  op.handle = parent == nullptr ? nullptr : Start(comm_, &d);
  ops_.push_back(std::move(op));
  Sync();
}

void EdgeEvents::Advance(uint64_t taken) {
  if (!send_) {
    ends_ += static_cast<int>(taken - taken_);
    taken_ = taken;
  }
  Sync();
}
void EdgeEvents::Moved() {
  ++moves_;
  Sync();
}
void EdgeEvents::Sent() {
  ++ends_;
  Sync();
}

// NCCL posts up to four slices ahead.
void EdgeEvents::Sync() {
  while (!ops_.empty()) {
    Op& op = ops_.front();
    // Those behind it are begun and wait for their turn.
    if (!op.progress) Record(op.handle, kInProgress, nullptr);
    op.progress = true;
    while (op.started < op.steps && (op.started < op.done + 4 || (moves_ > 0 && op.started == op.moved))) {
      Descriptor d(kProxyStep, op.handle, comm_->rank);
      d.Set(24, static_cast<int32_t>(op.started));
      void* step = op.handle == nullptr ? nullptr : Start(comm_, &d);
      RecordStep(step, send_ ? kSendGpuWait : kRecvWait, 0);
      op.step.push_back(step);
      ++op.started;
    }
    if (moves_ > 0 && op.moved < op.started) {
      void* step = op.step[static_cast<size_t>(op.moved++)];
      RecordStep(step, send_ ? kSendPeerWait : kRecvFlushWait, send_ ? 0 : kSliceBytes);
      RecordStep(step, send_ ? kSendWait : kRecvGpuWait, send_ ? kSliceBytes : 0);
      --moves_;
    } else if (ends_ > 0 && op.done < op.moved) {
      Stop(op.step[static_cast<size_t>(op.done++)]);
      --ends_;
      if (op.done < op.steps) continue;
      Stop(op.handle);
      ops_.pop_front();
    } else {
      return;
    }
  }
}

}  // namespace ringscope::sim
