#include "tests/sim/nccl/faults.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

namespace ringscope::sim {
namespace {

int JobRank() {
  for (const char* name : {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"}) {
    if (const char* value = getenv(name); value != nullptr) return atoi(value);
  }
  return -1;
}

std::vector<PlannedFault> OfThisRank() {
  const char* asked = getenv("RINGSCOPE_SIM_FAULTS");
  std::string error;
  std::vector<PlannedFault> all = ParseFaults(asked == nullptr ? "" : asked, &error);  // was checked when libcudart was loaded
  std::erase_if(all, [rank = JobRank()](const PlannedFault& p) { return p.rank != rank; });
  return all;
}

const std::vector<PlannedFault>& Faults() {
  static const auto& planned = *new std::vector<PlannedFault>(OfThisRank());
  return planned;
}

// What befalls the process, whatever it calls.
void OfTheProcess(const PlannedFault& p) {
  if (p.what == "absent") {
    while (true) pause();
  }
  if (p.what == "kill") raise(SIGKILL);
  if (p.what == "stop") raise(SIGSTOP);
  if (p.what == "segv") raise(SIGSEGV);
  if (p.what == "exit") exit(p.code);
  if (p.what == "late") std::this_thread::sleep_for(std::chrono::milliseconds(p.ms));
}

void Befall(const PlannedFault& p, int device) {
  // What goes wrong on an edge acts when something is sent there.
  if (!OnNetworkEdge(p)) Fired(p);
  if (!BefallMachine(p, device)) OfTheProcess(p);
}

// Faults by time have a thread of their own.
void StartClocks() {
  static std::once_flag once;
  std::call_once(once, [] {
    int device = 0;
    cudaGetDevice(&device);
    for (const PlannedFault& p : Faults()) {
      if (p.at <= 0) continue;
      std::thread([&p, device] {
        std::this_thread::sleep_for(std::chrono::duration<double>(p.at));
        Befall(p, device);
      }).detach();
    }
  });
}

}  // namespace

Fault AtCall(Task* task, const ncclComm* comm) {
  static std::atomic<uint64_t> calls{0};
  const uint64_t op = ++calls;
  for (const PlannedFault& p : Faults()) {
    if (p.op == 0 || (p.op != op && !(p.onwards && op > p.op))) continue;
    const bool rooted = task->kind == Task::kReduce || task->kind == Task::kBroadcast;
    if ((p.what == "type" && task->type != ncclFloat32) || (p.what == "root" && !rooted)) continue;  // nothing to change in it
    Befall(p, comm->device);
    if (p.what == "skip") return Fault::kSkip;
    if (p.what == "twice") return Fault::kTwice;
    if (p.what == "swap") return Fault::kSwap;
    if (p.what == "wide") task->count *= 2;
    if (p.what == "half") {
      task->count /= 2;
      for (Task::Message& m : task->messages) m.bytes /= 2;
    }
    if (p.what == "type") task->type = ncclInt32;
    if (p.what == "root") task->root = (task->root + 1) % comm->n;
    if (p.what == "gather") {
      task->kind = Task::kAllGather;
      task->function = "AllGather";
    }
    if (p.what == "sticky") ringscopeSimBreakDevice(comm->device, static_cast<cudaError_t>(p.error));
    if (p.what == "queued") return Fault::kQueued;
    if (p.what == "stuck") return Fault::kStuck;
  }
  return Fault::kNone;
}

void Fired(const PlannedFault& fault) {
  static std::mutex mutex;
  static auto& noted = *new std::set<int>;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!noted.insert(fault.number).second) return;
  }
  AppendLine("RINGSCOPE_SIM_FIRED", std::to_string(fault.rank) + " " + std::to_string(fault.number));
}

ncclResult_t AtInit() {
  static std::atomic<uint64_t> inits{0};
  const uint64_t init = ++inits;
  StartClocks();
  int device = 0;
  cudaGetDevice(&device);
  for (const PlannedFault& p : Faults()) {
    if (p.init != init) continue;
    if (p.what == "shm") {
      Fired(p);
      Error(ncclSystemError,
            "Error: failed to extend /dev/shm/nccl-dJ6cTa to 33030532 bytes, error: No space left on device (28)");
      return Error(
          ncclSystemError,
          "Error while creating shared memory segment /dev/shm/nccl-dJ6cTa (size 33030528), error: No space left on device (28)");
    }
    Befall(p, device);
  }
  return ncclSuccess;
}

}  // namespace ringscope::sim
