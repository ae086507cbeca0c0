// What a machine knows about a job that hangs, besides the job's own records: gathered at once, each source in a process of its
// own.
#ifndef RINGSCOPE_SUPERVISOR_COLLECT_H_
#define RINGSCOPE_SUPERVISOR_COLLECT_H_

#include <cstdint>
#include <string>
#include <vector>

namespace ringscope::supervisor {

// One process of the job on this machine.
struct JobProcess {
  int32_t pid = 0;    // as this process sees it
  int64_t rank = -1;  // job rank; -1 unknown
  bool stalled = false;
};

struct CollectOptions {
  std::string directory;       // absolute; made where missing. May lie on a file system that hangs
  std::string when = "stall";  // "start", "stall", "end": part of the files' names. Stacks and the user's command: "stall" only
  std::string host;            // in names and headings; empty: RINGSCOPE_HOST, else the machine's own name
  std::vector<JobProcess> processes;
  double seconds = 10;  // for each collector; what takes longer is killed
  bool of_host = true;  // also what is the same for all supervisors of a host: GPUs, adapters, the kernel's log
  // Lines of the kernel's log before this are left out: they are about somebody else's job. Nanoseconds since 1970, the start of
  // this one; 0: whatever is still there.
  int64_t since_ns = 0;
  std::string on_stall;  // `ringscope run --on-stall`: the user's shell command; empty: none

  // Where things are; other values are for tests.
  std::string sysfs = "/sys";
  std::string procfs = "/proc";
  std::string kernel_log = "/dev/kmsg";
  std::string nvml = "libnvidia-ml.so.1";
};

// What came of one collector.
struct Collected {
  std::string name;     // "nvlink-s", "kernel", …
  std::string file;     // what was written, `directory`/HOST.WHEN.NAME.txt; empty: there was nothing to write
  double seconds = 0;   // that it took
  std::string why_not;  // one phrase when something is missing, also from a file that was begun; empty: all is there
};

// Runs every collector that `options` asks for, all at the same time, each in a child process with a budget of `seconds`, and
// returns by name what came of them, at the latest one second after the budget, whatever a driver, a file system or the user's
// command does. A child over its budget is killed with all it started; one that cannot be killed (state D) is left behind, and
// its result says so. Files that are there are never overwritten: HOST.WHEN.2.NAME.txt, and so on.
//
// Never fails as a whole: an unwritable directory is in each result's `why_not`. Forks, so the caller should have one thread;
// leaves signals, standard streams and other children alone.
std::vector<Collected> CollectEvidence(const CollectOptions& options);

}  // namespace ringscope::supervisor

#endif  // RINGSCOPE_SUPERVISOR_COLLECT_H_
