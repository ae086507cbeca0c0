// Is there everything that a job asks for? check_job KEY=VALUE...: hosts, ranks_per_host, workload, steps, faults, machine=FILE,
// before.HOST=FILE. Says nothing and ends with 0, or says what is wrong as "KEY: ..." and ends with 64, with 65 for a file.
#include <stdio.h>

#include <string>

#include "tests/sim/setup/job.h"
#include "tests/sim/setup/number.h"

using namespace ringscope::sim;

int main(int argc, char** argv) {
  JobSetup job;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals), value = equals == word.npos ? "" : word.substr(equals + 1);
    const auto number = [&](int* into) {
      // What is out of all bounds is for the check to name.
      const auto parsed = Whole(value, 0, kMostSteps + 1);
      *into = parsed ? static_cast<int>(*parsed) : -1;
    };
    if (key == "hosts") {
      number(&job.hosts);
    } else if (key == "ranks_per_host") {
      number(&job.ranks_per_host);
    } else if (key == "steps") {
      number(&job.steps);
    } else if (key == "workload") {
      job.workload = value;
    } else if (key == "faults") {
      job.faults = value;
    } else if (key == "machine") {
      job.machine = value;
    } else if (key.rfind("before.", 0) == 0) {
      job.before[key.substr(7)] = value;
    } else {
      fprintf(stderr,
              "check_job: there is no \"%s\"; there are hosts, ranks_per_host, workload, steps, faults, machine, before.HOST\n",
              Shown(key).c_str());
      return 64;
    }
  }
  const SetupMistake mistake = CheckJob(job);
  if (mistake.where.empty()) return 0;
  printf("%s: %s\n", mistake.where.c_str(), mistake.text.c_str());
  return mistake.status;
}
