// Faults of what is around the process: NVLinks, GPUs, adapters, connections. The machine's state is told to all that read it,
// and the kernel says what the driver would.
#include <stdio.h>

#include <atomic>
#include <chrono>
#include <map>
#include <thread>

#include "tests/sim/nccl/faults.h"

namespace ringscope::sim {
namespace {

std::string Bus(const Machine& machine, int gpu) {
  char text[16];
  const bool known = gpu >= 0 && static_cast<size_t>(gpu) < machine.gpus.size();
  snprintf(text, sizeof(text), "0000:%02x:00", known ? machine.gpus[static_cast<size_t>(gpu)].bus & 0xff : 0);
  return text;
}

struct Planned {
  EdgeFault fault;
  const PlannedFault* by = nullptr;
};
struct Edges {
  std::mutex mutex;
  std::map<int, Planned> to;  // -1: all
  std::atomic<bool> any{false};
};
Edges& TheEdges() {
  static auto* const edges = new Edges;
  return *edges;
}
void SetEdge(int to, EdgeFault fault, const PlannedFault* by) {
  Edges& edges = TheEdges();
  std::lock_guard<std::mutex> lock(edges.mutex);
  edges.to[to] = {fault, by};
  edges.any = true;
}

std::atomic<bool> proxy_stopped{false};

void Lanes(const PlannedFault& p, const Machine& machine, int gpu) {
  const std::string left = std::to_string(p.left), number = std::to_string(gpu);
  if (p.to >= 0) {
    AppendState("lanes " + number + "-" + std::to_string(p.to) + " " + left);
  } else {
    AppendState("lanes " + number + " " + left);
    // Without any link the switches cannot reach it, and the driver gives it no multicast memory.
    if (p.left == 0) AppendState("multicast " + number + " 0");
  }
  AppendState("errors " + number + " " + std::to_string(p.link) + " 4711");
  KernelLog(HostName(), "NVRM: Xid (PCI:" + Bus(machine, gpu) +
                            "): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link " +
                            std::to_string(p.link) + "(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)");
}

// The adapter's port is gone: nothing moves, and when its retries are used up every connection over it ends with an error.
void Port(const PlannedFault& p, const Machine& machine) {
  const std::string name =
      static_cast<size_t>(p.nic) < machine.nics.size() ? machine.nics[static_cast<size_t>(p.nic)].name : "mlx5_0";
  const int bus = static_cast<size_t>(p.nic) < machine.nics.size() ? machine.nics[static_cast<size_t>(p.nic)].bus : 0x1c;
  AppendState("nic_state " + name + " DOWN");
  char address[32];
  snprintf(address, sizeof(address), "0000:%02x:00.0", bus & 0xff);
  KernelLog(HostName(), std::string("mlx5_core ") + address + " ibp" + std::to_string(p.nic) + "s0: Link down");
  SetEdge(-1, {EdgeFault::kStalled, 0}, &p);
  std::thread([name, by = &p, wait = p.ms < 0 ? 2000 : p.ms] {
    int device = 0;
    cudaGetDevice(&device);
    LogWarn(device, "NET/IB : " + name + ":1 Got async error event: port error");
    std::this_thread::sleep_for(std::chrono::milliseconds(wait));
    SetEdge(-1, {EdgeFault::kFailed, 0}, by);
    OnProgress([] {});  // which looks at its connections
  }).detach();
}

}  // namespace

bool BefallMachine(const PlannedFault& p, int device) {
  const int gpu = p.gpu >= 0 ? p.gpu : device;
  const auto machine = [] {
    int devices = 0;
    cudaGetDeviceCount(&devices);
    return ThisMachine(devices);
  };
  if (p.what == "lanes" || p.what == "nvlink") {
    Lanes(p, machine(), gpu);
    if (p.what == "nvlink") ringscopeSimBreakDevice(gpu, cudaErrorNvlinkUncorrectable);
  } else if (p.what == "lost") {
    AppendState("lost " + std::to_string(gpu));
    KernelLog(HostName(),
              "NVRM: Xid (PCI:" + Bus(machine(), gpu) + "): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.");
    ringscopeSimBreakDevice(gpu, cudaErrorUnknown);
  } else if (p.what == "port") {
    Port(p, machine());
  } else if (p.what == "edge_stalled" || p.what == "edge_drop" || p.what == "edge_slow") {
    SetEdge(p.to,
            {p.what == "edge_stalled" ? EdgeFault::kStalled
             : p.what == "edge_drop"  ? EdgeFault::kDrop
                                      : EdgeFault::kSlow,
             p.ms < 0 ? 5 : p.ms},
            &p);
  } else if (p.what == "proxy") {
    proxy_stopped = true;
  } else {
    return false;
  }
  return true;
}

EdgeFault OnEdge(int to) {
  Edges& edges = TheEdges();
  if (!edges.any.load()) return {};
  std::lock_guard<std::mutex> lock(edges.mutex);
  for (const int rank : {to, -1}) {
    const auto found = edges.to.find(rank);
    if (found == edges.to.end()) continue;
    Fired(*found->second.by);
    return found->second.fault;
  }
  return {};
}
bool ProxyStopped() { return proxy_stopped.load(); }

}  // namespace ringscope::sim
