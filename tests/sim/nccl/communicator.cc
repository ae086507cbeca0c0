#include "tests/sim/nccl/communicator.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <chrono>

#include "tests/sim/nccl/profiler.h"

namespace ringscope::sim {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::pair<uint64_t, int>, ncclComm*> of;
};
Registry& TheRegistry() {
  static auto* const registry = [] {
    auto* made = new Registry;
    SetIncoming([made](const Route& route) -> FifoPtr {
      std::lock_guard<std::mutex> lock(made->mutex);
      const auto found = made->of.find({route.communicator, route.to});
      return found == made->of.end() ? nullptr : found->second->In(route.from, route.tag, route.network);
    });
    SetLost([made](const Route& route) {
      std::lock_guard<std::mutex> lock(made->mutex);
      for (const int rank : {route.to, route.from}) {
        const auto found = made->of.find({route.communicator, rank});
        if (found != made->of.end()) {
          const auto& peers = found->second->peers;
          const Peer &own = peers[static_cast<size_t>(rank)],
                     &other = peers[static_cast<size_t>(rank == route.to ? route.from : route.to)];
          if (route.tag != kControl && own.nics > 0 && !SameHost(own, other)) {
            // Of an adapter: the retries are used up, and what was posted behind is flushed.
            for (const char* status : {"IBV_WC_RETRY_EXC_ERR(12)", "IBV_WC_WR_FLUSH_ERR(5)"}) {
              LogWarn(found->second->device,
                      "NET/IB: Got completion from peer " + AddressOf(other.host) + "<" + std::to_string(other.port) +
                          "> with status=" + status + " opcode=IBV_WC_RDMA_WRITE(1) reqSize=65536 vendor_err=129 req_type=" +
                          (rank == route.from ? "Send" : "Recv") + " localGid fe80::1 remoteGids fe80::2 hca mlx5_" +
                          std::to_string(own.device % own.nics));
            }
          } else {
            LogWarn(found->second->device, "socketProgress: Connection closed by remote peer " + std::string(other.host));
          }
          found->second->Fail(ncclRemoteError);
          return;
        }
      }
    });
    return made;
  }();
  return *registry;
}

}  // namespace

void Announce(ncclComm* comm) {
  Registry& registry = TheRegistry();
  std::lock_guard<std::mutex> lock(registry.mutex);
  registry.of[{comm->hash, comm->rank}] = comm;
}
void Forget(ncclComm* comm) {
  {
    Registry& registry = TheRegistry();
    std::lock_guard<std::mutex> lock(registry.mutex);
    registry.of.erase({comm->hash, comm->rank});
  }
  CloseRoutes(comm->hash, comm->rank, !comm->aborted.load());
}
ncclComm* Find(uint64_t hash, int rank) {
  Registry& registry = TheRegistry();
  std::lock_guard<std::mutex> lock(registry.mutex);
  const auto found = registry.of.find({hash, rank});
  return found == registry.of.end() ? nullptr : found->second;
}

std::string HostName() {
  for (const char* name : {"RINGSCOPE_SIM_HOST", "NCCL_HOSTID"}) {
    if (const char* value = getenv(name); value != nullptr && value[0] != 0) return value;
  }
  char host[64] = "localhost";
  gethostname(host, sizeof(host) - 1);
  return host;
}

std::string AddressOf(const std::string& host) {
  const size_t digits = host.find_last_not_of("0123456789") + 1;
  return "10.0.0." + std::to_string(digits < host.size() ? atoi(host.c_str() + digits) + 1 : 1);
}

Peer Self(int rank, int device) {
  Peer self;
  self.rank = rank;
  self.device = device;
  self.pid = getpid();
  self.port = ListenPort();
  strncpy(self.host, HostName().c_str(), sizeof(self.host) - 1);
  cudaDeviceGetPCIBusId(self.bus_id, sizeof(self.bus_id), device);
  int devices = 0;
  cudaGetDeviceCount(&devices);
  Describe(ThisMachine(devices), &self);
  return self;
}

bool GatherAll(ncclComm* comm, const void* own, size_t bytes, void* all) {
  char* parts = static_cast<char*>(all);
  memcpy(parts + bytes * static_cast<size_t>(comm->rank), own, bytes);
  if (comm->n == 1) return true;
  const int next = (comm->rank + 1) % comm->n, before = (comm->rank + comm->n - 1) % comm->n;
  const FifoPtr out = comm->Out(next, kControl), in = comm->In(before, kControl);
  if (out == nullptr || bytes > kSliceBytes) return false;
  for (int step = 0; step < comm->n - 1; ++step) {
    const int give = (comm->rank - step + comm->n) % comm->n, get = (comm->rank - step - 1 + comm->n) % comm->n;
    if (!comm->Wait([&] { return out->TryPut(parts + bytes * static_cast<size_t>(give), bytes); })) return false;
    if (!comm->Wait([&] {
          return in->TryTake([&](const char* data, size_t size) {
            memcpy(parts + bytes * static_cast<size_t>(get), data, std::min(size, bytes));
          });
        }))
      return false;
  }
  return true;
}

}  // namespace ringscope::sim

using ringscope::sim::Fifo;
using ringscope::sim::FifoPtr;
using ringscope::sim::kControl;

// Ranks of one process hand slots over directly, whatever the plan calls it.
bool ncclComm::OverNetwork(int peer) const {
  return peers[static_cast<size_t>(peer)].pid != getpid() && Between(peers, rank, peer) == ringscope::sim::Transport::kNet;
}

FifoPtr ncclComm::In(int from, int32_t tag, bool network) {
  std::lock_guard<std::mutex> lock(mutex);
  FifoPtr& fifo = in_[{from, tag}];
  if (fifo == nullptr) {
    fifo = std::make_shared<Fifo>(bell, ringscope::sim::ProgressBell());
    if (network) fifo->events = std::make_shared<ringscope::sim::EdgeEvents>(this, from, false);
  }
  return fifo;
}

FifoPtr ncclComm::Out(int to, int32_t tag) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    const auto found = out_.find({to, tag});
    if (found != out_.end()) return found->second;
  }
  FifoPtr fifo;
  if (peers[static_cast<size_t>(to)].pid == getpid()) {
    ncclComm* const other = ringscope::sim::Find(hash, to);
    if (other == nullptr) return nullptr;
    fifo = other->In(rank, tag, /*network=*/false);
    fifo->Rebell(other->bell, bell);
  } else {
    fifo = std::make_shared<Fifo>(ringscope::sim::ProgressBell(), bell);
    const bool network = tag != kControl && OverNetwork(to);
    if (network) fifo->events = std::make_shared<ringscope::sim::EdgeEvents>(this, to, true);
    if (!ringscope::sim::ConnectOut({hash, rank, to, tag, network}, peers[static_cast<size_t>(to)].port, fifo)) {
      Fail(ncclRemoteError);
      return nullptr;
    }
  }
  std::lock_guard<std::mutex> lock(mutex);
  return out_[{to, tag}] = fifo;
}

bool ncclComm::Wait(const std::function<bool()>& ready) {
  uint64_t heard;
  {
    std::lock_guard<std::mutex> lock(bell->mutex);
    heard = bell->count;
  }
  while (true) {
    if (aborted.load()) return false;
    if (ready()) return true;
    std::unique_lock<std::mutex> lock(bell->mutex);
    bell->rings.wait_for(lock, std::chrono::milliseconds(500), [&] { return bell->count != heard; });
    heard = bell->count;
  }
}

void ncclComm::Fail(ncclResult_t error) {
  int expected = state.load();
  while (expected == ncclSuccess || expected == ncclInProgress) {
    if (state.compare_exchange_weak(expected, error)) return;
  }
}
