// A job of the simulated cluster before it is started: is there everything that it asks for?
#ifndef RINGSCOPE_TESTS_SIM_SETUP_JOB_H_
#define RINGSCOPE_TESTS_SIM_SETUP_JOB_H_

#include <map>
#include <string>

#include "tests/sim/machine/machine.h"
#include "tests/sim/setup/faults_text.h"

namespace ringscope::sim {

struct JobSetup {
  int hosts = 2, ranks_per_host = 4, steps = 40;
  std::string workload = "dp", faults;
  std::string machine;                        // a file; empty: hosts of eight GPUs without anything else
  std::map<std::string, std::string> before;  // of a host: a file of lines as in a machine's
};
constexpr int kMostRanks = 512, kMostRanksPerHost = 8, kMostSteps = 1000000;

struct SetupMistake {
  std::string where;  // hosts, ranks_per_host, steps, workload, faults, machine, before; empty: no mistake
  std::string text;
  int status = 64;  // 65: a file
};
SetupMistake CheckJob(const JobSetup& job);

// What a fault asks of the machine and it does not have, or "".
std::string NotOnMachine(const PlannedFault& fault, const Machine& machine);

}  // namespace ringscope::sim

#endif  // RINGSCOPE_TESTS_SIM_SETUP_JOB_H_
