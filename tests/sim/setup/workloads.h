// The training loops of tests/sim/programs/workload.cc by name: what a fault can be aimed at.
#ifndef RINGSCOPE_TESTS_SIM_SETUP_WORKLOADS_H_
#define RINGSCOPE_TESTS_SIM_SETUP_WORKLOADS_H_

#include <cstdint>
#include <string>

namespace ringscope::sim {

bool IsWorkload(const std::string& name);
// "dp, fsdp, ...".
std::string AllWorkloads();
// How many calls that move data one rank of `n` makes in a step; REQUIRES: IsWorkload(name).
uint64_t CallsInStep(const std::string& name, int rank, int n);
// How many communicators every rank creates.
uint64_t CommunicatorsOf(const std::string& name);

}  // namespace ringscope::sim

#endif  // RINGSCOPE_TESTS_SIM_SETUP_WORKLOADS_H_
