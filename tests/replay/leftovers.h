// What the job leaves in DIR besides what the plugin wrote: logs; and what is taken away again.
#ifndef RINGSCOPE_TESTS_REPLAY_LEFTOVERS_H_
#define RINGSCOPE_TESTS_REPLAY_LEFTOVERS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/replay/capture.h"
#include "tests/replay/permute.h"
#include "tests/replay/plan.h"

namespace ringscope::replay {

struct JobFiles {
  std::string out;            // absolute
  std::vector<int32_t> pids;  // of each process in this replay; 0: not started
  uint64_t until_t = 0;       // the job's end in the captured clock; 0: as captured
};

// Copies NCCL's logs into DIR/logs/nccl-debug.rank<N>.log. Captures without logs are fine.
absl::Status CopyLogs(const Capture& capture, const std::vector<ProcessPlan>& plans,
                      const Permutation& permutation, bool permuted, const JobFiles& files);

// Removes traces, flight file and log of the process that holds this job rank (as delivered). An
// error names the ranks that exist.
absl::Status DropRank(const Capture& capture, int rank, const JobFiles& files);

// True when the process with this pid has left a trace whose name says that it stalled.
bool HasStallTrace(const std::string& out, int32_t pid);

// The file of a process's log: by its rank as delivered, or by its number where it holds several.
std::string LogName(const Capture& capture, const Process& process);

}  // namespace ringscope::replay

#endif  // RINGSCOPE_TESTS_REPLAY_LEFTOVERS_H_
