#include "tests/sim/setup/workloads.h"

namespace ringscope::sim {
namespace {

struct Workload {
  const char* name;
  uint64_t calls;  // 0: depends on the rank
  uint64_t communicators;
};
constexpr Workload kWorkloads[] = {{"dp", 3, 1},   {"tp_dp", 5, 3},    {"fsdp", 2, 1},    {"moe", 2, 1},
                                   {"zero", 0, 1}, {"pipeline", 0, 1}, {"regroup", 3, 2}, {"odd_sum", 3, 1}};

const Workload* Find(const std::string& name) {
  for (const Workload& workload : kWorkloads) {
    if (name == workload.name) return &workload;
  }
  return nullptr;
}

}  // namespace

bool IsWorkload(const std::string& name) { return Find(name) != nullptr; }

std::string AllWorkloads() {
  std::string all;
  for (const Workload& workload : kWorkloads) all += (all.empty() ? "" : ", ") + std::string(workload.name);
  return all;
}

uint64_t CallsInStep(const std::string& name, int rank, int n) {
  const Workload& workload = *Find(name);
  if (workload.calls > 0) return workload.calls;
  if (name == "zero") return 2 * static_cast<uint64_t>(n);
  // A stage receives from and sends to each of its neighbours; then all reduce.
  return 1 + (rank > 0 ? 2 : 0) + (rank + 1 < n ? 2 : 0);
}

uint64_t CommunicatorsOf(const std::string& name) { return Find(name)->communicators; }

}  // namespace ringscope::sim
