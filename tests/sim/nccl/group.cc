// Groups: what a thread calls between ncclGroupStart and ncclGroupEnd is launched together.
#include <algorithm>
#include <thread>
#include <utility>

#include "tests/sim/nccl/communicator.h"
#include "tests/sim/nccl/faults.h"
#include "tests/sim/nccl/profiler.h"

namespace ringscope::sim {
namespace {

struct Pending {
  ncclComm* comm;
  Task task;
  cudaStream_t stream;
  void* api;  // the profiler's handle of the call
};
struct Group {
  int depth = 0;
  void* api = nullptr;
  bool told = false;  // to the profiler
  std::vector<Pending> tasks;
  std::vector<std::function<ncclResult_t()>> jobs;
};
thread_local Group group;

size_t Elements(const Task::Message& m) { return m.bytes / std::max<size_t>(SizeOf(m.type), 1); }

// In NCCL's words.
const char* Algorithm(const ncclComm* comm, const Task& t) {
  if (t.algorithm == Task::kRing) return "RING";
  if (t.algorithm == Task::kTree) return "TREE";
  for (const Peer& p : comm->peers) {
    if (!SameHost(p, comm->peers[0])) return "NVLS_TREE";
  }
  return "NVLS";
}

struct Launch {
  ncclComm* comm;
  Task task;
};

// The kernel: on the stream's thread.
void Run(void* argument) {
  Launch* launch = static_cast<Launch*>(argument);
  ncclComm* const comm = launch->comm;
  const auto fault = static_cast<Fault>(launch->task.fault);
  if (fault == Fault::kQueued) {
    comm->Wait([] { return false; });
    return;
  }
  // The progress thread reads the kernel's counters and tells.
  std::vector<void*> parents;
  if (launch->task.handle != nullptr) parents.push_back(launch->task.handle);
  for (const Task::Message& m : launch->task.messages) {
    if (m.handle != nullptr && m.peer != comm->rank) parents.push_back(m.handle);
  }
  auto events = std::make_shared<std::vector<void*>>();
  if (!parents.empty()) {
    OnProgress([comm, parents, events, at = ringscopeSimGlobalTimer(comm->device)] {
      for (void* parent : parents) events->push_back(KernelStart(comm, parent, at));
    });
  }
  if (fault == Fault::kStuck) {
    comm->Wait([] { return false; });
    return;
  }
  if (RunTask(comm, launch->task) && !parents.empty()) {
    OnProgress([events, at = ringscopeSimGlobalTimer(comm->device)] {
      for (void* event : *events) KernelStop(event, at);
    });
  }
}
void Release(void* argument) {
  Launch* launch = static_cast<Launch*>(argument);
  launch->comm->kernels.fetch_sub(1);
  launch->comm->bell->Ring();
  delete launch;
}

ncclResult_t Enqueue(ncclComm* comm, Task task, cudaStream_t stream) {
  int before = 0;
  cudaGetDevice(&before);
  cudaSetDevice(comm->device);
  comm->kernels.fetch_add(1);
  auto* launch = new Launch{comm, std::move(task)};
  const cudaError_t result = ringscopeSimEnqueue(stream, Run, Release, launch);
  cudaSetDevice(before);
  return result == cudaSuccess ? ncclSuccess
                               : Error(ncclUnhandledCudaError, std::string("Cuda failure ") + std::to_string(result) + " '" +
                                                                   cudaGetErrorString(result) + "'");
}

// The proxy's part of an operation: edges to and from other hosts.
void Append(const FifoPtr& fifo, void* handle, int steps, std::vector<std::function<void()>>* appends) {
  if (fifo == nullptr || fifo->events == nullptr) return;
  appends->push_back([events = fifo->events, handle, steps] { events->Begin(handle, steps); });
}

// The order in which NCCL launches messages: round k sends to the rank 1 + 2 + ... + k further (modulo the power of two that
// holds all ranks) and receives from that far behind, as the captures show it.
void Schedule(const ncclComm* comm, std::vector<Task::Message*>* messages) {
  int power = 1;
  while (power < comm->n) power *= 2;
  std::map<int, int> round_of;  // of a distance
  for (int k = 0, distance = 0; k < power; ++k, distance = (distance + k) % power) round_of.emplace(distance, k);
  const auto round = [&](const Task::Message* m) {
    const int distance = m->send ? m->peer - comm->rank : comm->rank - m->peer;
    return 2 * round_of[(distance + comm->n) % comm->n] + (m->send ? 0 : 1);
  };
  std::stable_sort(messages->begin(), messages->end(), [&](const auto* a, const auto* b) { return round(a) < round(b); });
}

// What NCCL tells a profiler when it launches: for each communicator its kernel, then the group with its calls.
void Tell(std::vector<Pending>* tasks) {
  std::vector<ncclComm*> comms;
  for (const Pending& p : *tasks) {
    if (std::find(comms.begin(), comms.end(), p.comm) == comms.end()) comms.push_back(p.comm);
  }
  for (ncclComm* comm : comms) {
    if (comm->profiler == nullptr) continue;
    bool launched = false;
    void* together = nullptr;
    std::vector<void*> started;
    std::vector<std::function<void()>> appends;
    std::vector<Task::Message*> messages;
    for (Pending& p : *tasks) {
      if (p.comm != comm) continue;
      if (!launched) {
        KernelLaunch(comm, group.api, p.stream);
        together = GroupStart(comm);
        launched = true;
      }
      Task& t = p.task;
      for (Task::Message& m : t.messages) messages.push_back(&m);
      if (t.kind == Task::kMessages) continue;
      t.handle =
          CollStart(comm, p.api, together,
                    {t.function, t.send, t.receive, t.count, t.type, t.root, comm->sequences[t.function]++, Algorithm(comm, t)});
      started.push_back(t.handle);
      for (const EdgeSteps& e : StepsOf(comm, t)) {
        if (comm->OverNetwork(e.peer))
          Append(e.send ? comm->Out(e.peer, TagOf(t)) : comm->In(e.peer, TagOf(t)), t.handle, e.steps, &appends);
      }
    }
    Schedule(comm, &messages);
    for (Task::Message* m : messages) {
      m->handle = P2pStart(comm, m->api, together, m->send, m->data, Elements(*m), m->type, m->peer);
      started.push_back(m->handle);
      if (!comm->OverNetwork(m->peer)) continue;
      Append(m->send ? comm->Out(m->peer, kMessages) : comm->In(m->peer, kMessages), m->handle, SlicesOf(m->bytes), &appends);
    }
    for (void* handle : started) Stop(handle);
    Stop(together);
    for (auto& append : appends) OnProgress(std::move(append));
  }
}

ncclResult_t Flush() {
  std::vector<Pending> tasks;
  std::vector<std::function<ncclResult_t()>> jobs;
  tasks.swap(group.tasks);
  jobs.swap(group.jobs);
  ncclResult_t result = ncclSuccess;
  // Inits wait for each other: each on a thread of its own.
  std::vector<ncclResult_t> results(jobs.size(), ncclSuccess);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < jobs.size(); ++i) {
    threads.emplace_back([&, i] { results[i] = jobs[i](); });
  }
  for (std::thread& t : threads) t.join();
  for (ncclResult_t r : results) {
    if (r != ncclSuccess && r != ncclInProgress) result = r;
  }
  GroupApiEnding(group.api);
  Tell(&tasks);
  Stop(group.api);
  group.api = nullptr;
  group.told = false;
  // Messages of one communicator and stream are one kernel, behind the collectives.
  std::vector<Pending> messages;
  for (Pending& p : tasks) {
    if (p.task.kind != Task::kMessages) {
      if (const ncclResult_t r = Enqueue(p.comm, std::move(p.task), p.stream); r != ncclSuccess) result = r;
      continue;
    }
    Pending* together = nullptr;
    for (Pending& m : messages) {
      if (m.comm == p.comm && m.stream == p.stream) together = &m;
    }
    if (together == nullptr) {
      messages.push_back(std::move(p));
    } else {
      together->task.messages.insert(together->task.messages.end(), p.task.messages.begin(), p.task.messages.end());
    }
  }
  for (Pending& m : messages) {
    if (const ncclResult_t r = Enqueue(m.comm, std::move(m.task), m.stream); r != ncclSuccess) result = r;
  }
  return result;
}

}  // namespace

bool InGroup() { return group.depth > 0; }

static ncclResult_t Call(ncclComm* comm, Task task, cudaStream_t stream) {
  const bool alone = !InGroup();
  if (!group.told) {
    group.api = GroupApiStart(comm, group.depth + 1);
    group.told = true;
  }
  void* api = nullptr;
  if (task.kind != Task::kMessages)
    CallStart(comm, group.api, /*p2p=*/false, task.function, task.count, task.type, task.root, stream, &api);
  // An all-to-all is its messages, to a profiler too (2.28).
  for (Task::Message& m : task.messages) {
    CallStart(comm, group.api, /*p2p=*/true, m.send ? "Send" : "Recv", Elements(m), m.type, 0, stream, &m.api);
  }
  group.tasks.push_back({comm, std::move(task), stream, api});
  return alone ? Flush() : ncclSuccess;
}
ncclResult_t Submit(ncclComm* comm, Task task, cudaStream_t stream) {
  thread_local std::function<ncclResult_t()> held;  // a call that is made behind the next one
  const Fault fault = AtCall(&task, comm);
  if (fault == Fault::kSkip) return ncclSuccess;
  task.fault = static_cast<int>(fault);
  task.algorithm = ChooseAlgorithm(comm, task);
  if (fault == Fault::kSwap) {
    held = [comm, task, stream] { return Call(comm, task, stream); };
    return ncclSuccess;
  }
  ncclResult_t result = ncclSuccess;
  if (fault == Fault::kTwice) result = Call(comm, task, stream);
  if (result == ncclSuccess) result = Call(comm, std::move(task), stream);
  if (result == ncclSuccess && held) result = std::exchange(held, nullptr)();
  return result;
}
ncclResult_t SubmitJob(std::function<ncclResult_t()> job) {
  if (!InGroup()) return job();
  group.jobs.push_back(std::move(job));
  return ncclSuccess;
}

}  // namespace ringscope::sim

extern "C" {

ncclResult_t ncclGroupStart(void) {
  ++ringscope::sim::group.depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd(void) {
  if (ringscope::sim::group.depth == 0) return ringscope::sim::Error(ncclInvalidUsage, "ncclGroupEnd: not in a group call.");
  if (--ringscope::sim::group.depth > 0) return ncclSuccess;
  return ringscope::sim::Flush();
}
}
