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

struct Planned {
  int rank = -1;
  uint64_t op = 0, init = 0;  // one of them
  bool onwards = false;       // "op=10+": this one and all after it
  std::string what;
  int ms = 0;
};

int JobRank() {
  for (const char* name : {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"}) {
    if (const char* value = getenv(name); value != nullptr) return atoi(value);
  }
  return -1;
}

std::vector<Planned> Parse() {
  std::vector<Planned> all;
  const char* asked = getenv("RINGSCOPE_SIM_FAULTS");
  std::istringstream faults(asked == nullptr ? "" : asked);
  std::string one;
  while (std::getline(faults, one, ';')) {
    std::istringstream words(one);
    std::string word;
    Planned planned;
    while (words >> word) {
      const size_t equals = word.find('=');
      const std::string key = word.substr(0, equals), value = equals == word.npos ? "" : word.substr(equals + 1);
      if (key == "rank") planned.rank = atoi(value.c_str());
      if (key == "op") {
        planned.op = static_cast<uint64_t>(atoll(value.c_str()));
        planned.onwards = !value.empty() && value.back() == '+';
      }
      if (key == "init") planned.init = static_cast<uint64_t>(atoll(value.c_str()));
      if (key == "do") planned.what = value;
      if (key == "ms") planned.ms = atoi(value.c_str());
    }
    if (!planned.what.empty() && planned.rank == JobRank()) all.push_back(planned);
  }
  return all;
}

const std::vector<Planned>& Faults() {
  static const auto& planned = *new std::vector<Planned>(Parse());
  return planned;
}

// What befalls the process, whatever it calls.
void OfTheProcess(const Planned& p) {
  if (p.what == "absent") {
    while (true) pause();
  }
  if (p.what == "kill") raise(SIGKILL);
  if (p.what == "stop") raise(SIGSTOP);
  if (p.what == "segv") raise(SIGSEGV);
  if (p.what == "exit") exit(0);
  if (p.what == "late") std::this_thread::sleep_for(std::chrono::milliseconds(p.ms));
}

}  // namespace

Fault AtCall(Task* task, const ncclComm* comm) {
  static std::atomic<uint64_t> calls{0};
  const uint64_t op = ++calls;
  for (const Planned& p : Faults()) {
    if (p.init != 0 || (p.op != op && !(p.onwards && op > p.op))) continue;
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
    if (p.what == "sticky") ringscopeSimBreakDevice(comm->device, cudaErrorIllegalAddress);
    if (p.what == "queued") return Fault::kQueued;
    if (p.what == "stuck") return Fault::kStuck;
  }
  return Fault::kNone;
}

void AtInit() {
  static std::atomic<uint64_t> inits{0};
  const uint64_t init = ++inits;
  for (const Planned& p : Faults()) {
    if (p.init == init) OfTheProcess(p);
  }
}

}  // namespace ringscope::sim
