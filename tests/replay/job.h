// The parent of a replay: starts the processes, continues and ends them, sees what became of them.
#ifndef RINGSCOPE_TESTS_REPLAY_JOB_H_
#define RINGSCOPE_TESTS_REPLAY_JOB_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/replay/capture.h"
#include "tests/replay/options.h"
#include "tests/replay/plan.h"

namespace ringscope::replay {

struct JobResult {
  bool is_child =
      false;          // this is the end of a replayed process: return exit_code from main at once
  int exit_code = 0;  // of the child
  std::vector<int32_t> pids;      // of each process; 0: not started
  std::vector<std::string> ends;  // in words, for people
  uint64_t delivered = 0, left_out = 0;
  double seconds = 0;
  absl::Status status;  // what went wrong, if anything
};

// Plays the job. `cut_t`: captured instant at which everything is killed; 0: none. The caller must
// have no other threads.
JobResult RunJob(const Capture& capture, const std::vector<ProcessPlan>& plans,
                 const Options& options, uint64_t cut_t, const std::string& out,
                 const std::string& plugin);

}  // namespace ringscope::replay

#endif  // RINGSCOPE_TESTS_REPLAY_JOB_H_
