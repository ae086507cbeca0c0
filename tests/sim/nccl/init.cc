// Communicators come and go: every form of init, split, finalize, destroy, abort.
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <thread>

#include "tests/sim/nccl/communicator.h"
#include "tests/sim/nccl/faults.h"
#include "tests/sim/nccl/profiler.h"

namespace {

using namespace ringscope::sim;

ncclConfig_t Defaults() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  return config;
}

std::string Hex(uint64_t value) {
  char text[32];
  snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string Describe(const ncclComm* comm) {
  char text[256];
  const char* bus = comm->peers.empty() ? "" : comm->peers[static_cast<size_t>(comm->rank)].bus_id;
  unsigned domain = 0, number = 0;
  sscanf(bus, "%x:%x", &domain, &number);
  snprintf(text, sizeof(text), "comm %p rank %d nranks %d cudaDev %d nvmlDev %d busId %x000 commId %s",
           static_cast<const void*>(comm), comm->rank, comm->n, comm->device, comm->device, number, Hex(comm->hash).c_str());
  return text;
}

void LogNetwork(int device, const Machine& machine) {
  std::string line = "NET/IB : Using";
  int number = 0;
  for (const MachineNic& nic : machine.nics) {
    if (nic.up) line += " [" + std::to_string(number++) + "]" + nic.name + ":1/IB";
  }
  LogInfo(device, "Bootstrap: Using eth0:" + AddressOf(HostName()) + "<0>");
  LogInfo(device, line + " [RO]; OOB eth0:" + AddressOf(HostName()) + "<0>");
  LogInfo(device, "Using network IB");
}

// Plans, and says so in NCCL's words.
ncclResult_t MakePlanOf(ncclComm* comm) {
  comm->plan = MakePlan(comm->peers);
  const Plan& plan = comm->plan;
  int devices = 0;
  cudaGetDeviceCount(&devices);
  const auto say = [&](const std::vector<PlanWords>& lines) {
    for (const PlanWords& line : lines) line.graph ? LogGraph(comm->device, line.text) : LogInfo(comm->device, line.text);
  };
  if (plan.refused_a >= 0) {
    const auto device = [&](int rank) { return std::to_string(comm->peers[static_cast<size_t>(rank)].device); };
    comm->Fail(ncclUnhandledCudaError);
    return Error(
        ncclUnhandledCudaError,
        "P2P is disabled between NVLINK connected GPUs " + device(plan.refused_a) + " and " + device(plan.refused_b) +
            ". This should not be the case given their connectivity, and is probably due to a hardware issue. If you still "
            "want to proceed, you can set NCCL_IGNORE_DISABLED_P2P=1.");
  }
  if (comm->peers[static_cast<size_t>(comm->rank)].nics > 0) LogNetwork(comm->device, ThisMachine(devices));
  say(GraphLines(ThisMachine(devices), comm->peers, plan, comm->rank));
  int nvls_channels = plan.nvls_channels;
  if (plan.nvls_channels > 0) {
    LogInfo(comm->device, "NVLS multicast support is available on dev " + std::to_string(comm->device) + " (NVLS_NCHANNELS " +
                              std::to_string(nvls_channels) + ")");
    // 2.27 and 2.28: a rank whose driver refuses multicast memory goes on without, by itself; the others do not hear of it.
    if (!comm->peers[static_cast<size_t>(comm->rank)].multicast) {
      LogInfo(comm->device, "transport/nvls.cc:254 Cuda failure 401 'the operation cannot be performed in the present state'");
      LogInfo(comm->device, "NVLS multicast support is not available on dev " + std::to_string(comm->device));
      nvls_channels = 0;
    }
    comm->nvls = nvls_channels > 0;
  }
  say(ConnectionLines(comm->peers, plan, comm->rank));
  const std::string channels = std::to_string(plan.channels);
  LogInfo(comm->device, channels + " coll channels, 0 collnet channels, " + std::to_string(nvls_channels) + " nvls channels, " +
                            channels + " p2p channels, " + std::to_string(std::min(2, plan.channels)) + " p2p channels per peer");
  return ncclSuccess;
}

void Settle(ncclComm* comm, const ncclConfig_t& config) {
  comm->blocking = config.blocking != 0;  // undefined means blocking
  if (config.commName != nullptr) comm->name = config.commName;
}

ncclResult_t Join(ncclComm* comm, RootAddress root, const char* function) {
  cudaSetDevice(comm->device);
  LogInfo(comm->device, std::string(function) + " " + Describe(comm) + " - Init START");
  std::string error;
  comm->peers = JoinRoot(root, Self(comm->rank, comm->device), comm->n, comm->aborted, &error);
  if (comm->peers.empty()) {
    comm->Fail(ncclRemoteError);
    return Error(ncclRemoteError, error);
  }
  if (const ncclResult_t planned = MakePlanOf(comm); planned != ncclSuccess) return planned;
  AttachProfiler(comm);
  LogInfo(comm->device, std::string(function) + " " + Describe(comm) + " - Init COMPLETE");
  int expected = ncclInProgress;
  comm->state.compare_exchange_strong(expected, ncclSuccess);
  return ncclSuccess;
}

// Runs an init: now, on a thread for a non-blocking communicator, or at the end of the group.
ncclResult_t Start(ncclComm* comm, std::function<ncclResult_t()> init) {
  if (comm->blocking) return SubmitJob(std::move(init));
  std::thread([init = std::move(init)] { init(); }).detach();
  return ncclInProgress;
}

ncclResult_t InitRank(ncclComm_t* created, int n, const ncclUniqueId& id, int rank, const ncclConfig_t& config,
                      const char* function) {
  LogVersion();
  if (created == nullptr) return Error(ncclInvalidArgument, std::string(function) + " : comm argument is NULL");
  if (n < 1 || rank < 0 || rank >= n)
    return Error(ncclInvalidArgument, "Invalid rank requested : " + std::to_string(rank) + "/" + std::to_string(n));
  if (const ncclResult_t fault = AtInit(); fault != ncclSuccess) return fault;
  RootAddress root;
  memcpy(&root, id.internal, sizeof(root));
  if (root.port == 0) return Error(ncclInvalidArgument, "invalid unique id");
  auto* comm = new ncclComm;
  comm->rank = rank;
  comm->n = n;
  comm->hash = root.hash;
  if (cudaGetDevice(&comm->device) != cudaSuccess) return Error(ncclUnhandledCudaError, "cudaGetDevice failed");
  Settle(comm, config);
  // Before anybody can know this rank: a peer's first connection must find it.
  comm->peers.assign(static_cast<size_t>(n), Peer());
  comm->peers[static_cast<size_t>(rank)] = Self(rank, comm->device);
  Announce(comm);
  *created = comm;
  return Start(comm, [comm, root, function] { return Join(comm, root, function); });
}

struct Choice {
  int color, key;
  Peer self;
};

ncclResult_t Split(ncclComm* parent, ncclComm* child, int color, int key) {
  std::vector<Choice> all(static_cast<size_t>(parent->n));
  const Choice own = {color, key, Self(parent->rank, parent->device)};  // the machine may have changed since the parent
  const int number = ++parent->splits;
  if (!GatherAll(parent, &own, sizeof(own), all.data())) return Error(ncclRemoteError, "split: aborted");
  if (child == nullptr) return ncclSuccess;
  std::vector<int> members;
  for (int r = 0; r < parent->n; ++r) {
    if (all[static_cast<size_t>(r)].color == color) members.push_back(r);
  }
  std::stable_sort(members.begin(), members.end(),
                   [&](int a, int b) { return all[static_cast<size_t>(a)].key < all[static_cast<size_t>(b)].key; });
  child->n = static_cast<int>(members.size());
  child->peers.clear();
  for (int i = 0; i < child->n; ++i) {
    Peer peer = all[static_cast<size_t>(members[static_cast<size_t>(i)])].self;
    if (members[static_cast<size_t>(i)] == parent->rank) child->rank = i;
    peer.rank = i;
    child->peers.push_back(peer);
  }
  // The same on all members, another for every split and color.
  uint64_t hash = parent->hash ^ (0x9e3779b97f4a7c15u * static_cast<uint64_t>(number * 65536 + (color & 0xffff) + 1));
  hash ^= hash >> 29;
  child->hash = hash * 0xbf58476d1ce4e5b9u;
  child->split = true;
  Announce(child);
  const std::string line = "ncclCommSplit " + Describe(child) + " parent " + Hex(reinterpret_cast<uint64_t>(parent)) +
                           " splitCount " + std::to_string(number) + " color " + std::to_string(color) + " key " +
                           std::to_string(key);
  LogInfo(child->device, line + " - Init START");
  if (const ncclResult_t planned = MakePlanOf(child); planned != ncclSuccess) return planned;
  LogInfo(child->device, line + " - Init COMPLETE");
  // Nobody sends before all are known: the parent's ring once more.
  std::vector<char> ready(static_cast<size_t>(parent->n));
  const char one = 1;
  if (!GatherAll(parent, &one, 1, ready.data())) return Error(ncclRemoteError, "split: aborted");
  AttachProfiler(child);
  int expected = ncclInProgress;
  child->state.compare_exchange_strong(expected, ncclSuccess);
  return ncclSuccess;
}

void WaitForKernels(ncclComm* comm) {
  comm->Wait([comm] { return comm->kernels.load() == 0; });
}

// Runs on the progress thread, behind all that it has to tell already.
bool AskProgress(const std::function<bool()>& question) {
  std::promise<bool> answer;
  OnProgress([&] { answer.set_value(question()); });
  return answer.get_future().get();
}

void End(ncclComm* comm, const char* how) {
  // An abort leaves open what is open, as in NCCL.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!comm->aborted.load() && std::chrono::steady_clock::now() < end &&
         !AskProgress([comm] { return EdgesIdle(comm->hash, comm->rank); }))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  Forget(comm);
  AskProgress([] { return true; });
  DetachProfiler(comm);
  LogInfo(comm->device, Describe(comm) + " - " + how + " COMPLETE");
  delete comm;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  if (version == nullptr) return ncclInvalidArgument;
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (id == nullptr) return Error(ncclInvalidArgument, "GetUniqueId : uniqueId argument is NULL");
  LogVersion();
  memset(id, 0, sizeof(*id));
  RootAddress root;
  if (!StartRoot(&root)) return Error(ncclSystemError, "no port for the root of a communicator");
  memcpy(id->internal, &root, sizeof(root));
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int n, ncclUniqueId id, int rank) {
  return InitRank(comm, n, id, rank, Defaults(), "ncclCommInitRank");
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int n, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (config != nullptr && config->magic != Defaults().magic)
    return Error(ncclInvalidArgument, "ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER");
  return InitRank(comm, n, id, rank, config == nullptr ? Defaults() : *config, "ncclCommInitRankConfig");
}
ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int n, int rank, int ids, ncclUniqueId* id, ncclConfig_t* config) {
  if (ids < 1 || id == nullptr) return Error(ncclInvalidArgument, "ncclCommInitRankScalable: no unique id");
  return InitRank(comm, n, id[0], rank, config == nullptr ? Defaults() : *config, "ncclCommInitRankScalable");
}
ncclResult_t ncclCommInitAll(ncclComm_t* comms, int n, const int* devices) {
  if (comms == nullptr || n < 1) return Error(ncclInvalidArgument, "CommInitAll : comms argument is NULL or without devices");
  ncclUniqueId id;
  if (const ncclResult_t got = ncclGetUniqueId(&id); got != ncclSuccess) return got;
  int before = 0;
  cudaGetDevice(&before);
  ncclResult_t result = ncclGroupStart();
  for (int i = 0; i < n && result == ncclSuccess; ++i) {
    result = cudaSetDevice(devices == nullptr ? i : devices[i]) == cudaSuccess
                 ? InitRank(&comms[i], n, id, i, Defaults(), "ncclCommInitAll")
                 : Error(ncclUnhandledCudaError, "cudaSetDevice failed");
  }
  const ncclResult_t ended = ncclGroupEnd();
  cudaSetDevice(before);
  return result != ncclSuccess ? result : ended;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* created, ncclConfig_t* config) {
  if (comm == nullptr || created == nullptr) return Error(ncclInvalidArgument, "CommSplit : comm argument is NULL");
  if (color < NCCL_SPLIT_NOCOLOR) return Error(ncclInvalidArgument, "CommSplit : negative color");
  if (const ncclResult_t fault = AtInit(); fault != ncclSuccess) return fault;
  ncclComm* child = nullptr;
  if (color != NCCL_SPLIT_NOCOLOR) {
    child = new ncclComm;
    child->device = comm->device;
    child->blocking = comm->blocking;
    if (config != nullptr) Settle(child, *config);
  }
  *created = child;
  return Start(child != nullptr ? child : comm, [comm, child, color, key] { return Split(comm, child, color, key); });
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  if (comm == nullptr) return Error(ncclInvalidArgument, "CommFinalize : comm argument is NULL");
  WaitForKernels(comm);
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  WaitForKernels(comm);
  End(comm, "Destroy");
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  comm->aborted = true;
  comm->bell->Ring();
  // Kernels notice, and leave.
  while (comm->kernels.load() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  End(comm, "Abort");
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  if (comm == nullptr || error == nullptr) return Error(ncclInvalidArgument, "ncclGetAsyncError : comm argument is NULL");
  *error = static_cast<ncclResult_t>(comm->state.load());
  return ncclSuccess;
}
ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  if (comm == nullptr || count == nullptr) return Error(ncclInvalidArgument, "CommCount : comm argument is NULL");
  *count = comm->n;
  return ncclSuccess;
}
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  if (comm == nullptr || device == nullptr) return Error(ncclInvalidArgument, "CommCuDevice : comm argument is NULL");
  *device = comm->device;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  if (comm == nullptr || rank == nullptr) return Error(ncclInvalidArgument, "CommUserRank : comm argument is NULL");
  *rank = comm->rank;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}
const char* ncclGetLastError(ncclComm_t) { return LastError(); }
}
