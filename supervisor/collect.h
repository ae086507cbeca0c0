// Evidence from the machine, at the moment of a stall: what must not be asked for inside the training process, because the answer
// may never come.
#ifndef RINGSCOPE_SUPERVISOR_COLLECT_H_
#define RINGSCOPE_SUPERVISOR_COLLECT_H_

#include <stdio.h>

#include <string>
#include <utility>
#include <vector>

namespace ringscope::supervisor {

struct CollectOptions {
  std::string directory;                       // files go there; made where missing
  std::string host;                            // first part of their names; empty: this machine's name
  std::string when;                            // second part: "start", "stall", "end"
  std::vector<std::pair<int, int>> processes;  // pid, job rank (-1 unknown) of the run's processes on this machine
  std::string run;                             // part of the names of what is about these processes; empty: left out
  bool of_machine = true;                      // false: only what is about the processes; another run asks the machine
  double seconds = 10;                         // that one collector may take
  std::string sysfs = "/sys";
  std::string command;  // `ringscope run --on-stall`: a shell command of the user; empty: none
};

struct Collected {
  std::string name;
  std::string file;  // empty: there is none
  double seconds = 0;
  std::string why_not;  // one phrase where nothing was collected
};

// Runs every collector that applies at the same time, each in a process of its own, which is killed when its time is over: a
// driver call that hangs costs its own file and no more. A process that cannot be killed (it hangs in the kernel) is left behind,
// and that is said. Not to be called from a process with threads that hold locks.
std::vector<Collected> CollectEvidence(const CollectOptions& options);

// One collector: a file with a static Register, and its test. `collect` runs in a child process and writes to `out`; it returns
// why there is nothing, or "".
struct Collector {
  const char* name;
  const char* file;  // last part of the file's name
  bool after_stall;  // only once something stalled
  enum About { kMachine, kProcesses } about;
  std::string (*collect)(const CollectOptions& options, FILE* out);
};
struct RegisterCollector {
  explicit RegisterCollector(const Collector& collector);
};

}  // namespace ringscope::supervisor

#endif  // RINGSCOPE_SUPERVISOR_COLLECT_H_
