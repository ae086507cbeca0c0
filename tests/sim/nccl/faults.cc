#include "tests/sim/nccl/faults.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <sstream>
#include <thread>

namespace ringscope::sim {
namespace {

int JobRank() {
  for (const char* name : {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"}) {
    if (const char* value = getenv(name); value != nullptr) return atoi(value);
  }
  return -1;
}

std::vector<PlannedFault> Parse() {
  std::vector<PlannedFault> all;
  const char* asked = getenv("RINGSCOPE_SIM_FAULTS");
  std::istringstream faults(asked == nullptr ? "" : asked);
  std::string one;
  while (std::getline(faults, one, ';')) {
    std::istringstream words(one);
    std::string word;
    PlannedFault planned;
    while (words >> word) {
      const size_t equals = word.find('=');
      const std::string key = word.substr(0, equals), value = equals == word.npos ? "" : word.substr(equals + 1);
      if (key == "op") {
        planned.op = static_cast<uint64_t>(atoll(value.c_str()));
        planned.onwards = !value.empty() && value.back() == '+';
      }
      if (key == "init") planned.init = static_cast<uint64_t>(atoll(value.c_str()));
      if (key == "at") planned.at = atof(value.c_str());
      if (key == "do") planned.what = value;
      for (const auto& [name, field] : {std::pair<const char*, int*>{"rank", &planned.rank},
                                        {"ms", &planned.ms},
                                        {"gpu", &planned.gpu},
                                        {"link", &planned.link},
                                        {"left", &planned.left},
                                        {"nic", &planned.nic},
                                        {"to", &planned.to},
                                        {"error", &planned.error}}) {
        if (key == name) *field = atoi(value.c_str());
      }
    }
    if (!planned.what.empty() && planned.rank == JobRank()) all.push_back(planned);
  }
  return all;
}

const std::vector<PlannedFault>& Faults() {
  static const auto& planned = *new std::vector<PlannedFault>(Parse());
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
  if (p.what == "exit") exit(0);
  if (p.what == "late") std::this_thread::sleep_for(std::chrono::milliseconds(p.ms));
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
        if (!BefallMachine(p, device)) OfTheProcess(p);
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
    if (BefallMachine(p, comm->device)) continue;
    OfTheProcess(p);
    if (p.what == "skip") return Fault::kSkip;
    if (p.what == "twice") return Fault::kTwice;
    if (p.what == "swap") return Fault::kSwap;
    if (p.what == "wide") task->count *= 2;
    if (p.what == "type" && task->type == ncclFloat32) task->type = ncclInt32;
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

ncclResult_t AtInit() {
  static std::atomic<uint64_t> inits{0};
  const uint64_t init = ++inits;
  StartClocks();
  int device = 0;
  cudaGetDevice(&device);
  for (const PlannedFault& p : Faults()) {
    if (p.init != init) continue;
    if (p.what == "shm") {
      Error(ncclSystemError,
            "Error: failed to extend /dev/shm/nccl-dJ6cTa to 33030532 bytes, error: No space left on device (28)");
      return Error(
          ncclSystemError,
          "Error while creating shared memory segment /dev/shm/nccl-dJ6cTa (size 33030528), error: No space left on device (28)");
    }
    if (!BefallMachine(p, device)) OfTheProcess(p);
  }
  return ncclSuccess;
}

}  // namespace ringscope::sim
