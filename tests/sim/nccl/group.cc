// Groups: what a thread calls between ncclGroupStart and ncclGroupEnd is launched together.
#include <thread>

#include "tests/sim/nccl/communicator.h"

namespace ringscope::sim {
namespace {

struct Pending {
  ncclComm* comm;
  Task task;
  cudaStream_t stream;
};
struct Group {
  int depth = 0;
  std::vector<Pending> tasks;
  std::vector<std::function<ncclResult_t()>> jobs;
};
thread_local Group group;

struct Launch {
  ncclComm* comm;
  Task task;
};

// The kernel: on the stream's thread.
void Run(void* argument) {
  Launch* launch = static_cast<Launch*>(argument);
  RunTask(launch->comm, launch->task);
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

ncclResult_t Submit(ncclComm* comm, Task task, cudaStream_t stream) {
  if (InGroup()) {
    group.tasks.push_back({comm, std::move(task), stream});
    return ncclSuccess;
  }
  return Enqueue(comm, std::move(task), stream);
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
