// What each process of a replay does, in order: callbacks, signals to itself, its end.
#ifndef RINGSCOPE_TESTS_REPLAY_PLAN_H_
#define RINGSCOPE_TESTS_REPLAY_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tests/replay/capture.h"
#include "tests/replay/options.h"

namespace ringscope::replay {

struct Action {
  enum Kind { kCall, kKillSelf, kStopSelf } kind = kCall;
  size_t event = 0;          // kCall: index into Process::events
  uint64_t t = 0;            // in the recording, ns
  uint32_t tid = 0;          // thread that does it
  uint64_t continued_t = 0;  // kStopSelf: when the process is continued; 0: never
};

struct ProcessPlan {
  std::vector<Action> actions;
  bool exits = false;  // by itself; else it lives until it is ended from outside
  int exit_code = 0;
  uint64_t exit_t = 0;
  uint64_t last_t = 0;  // of the last action; 0: none
  bool open_operations = false;
  bool long_stall = false;  // see NothingEverCompleted
};

// Mends what a refusing or hostile recording plugin made NCCL leave out: adds the states and stops
// that a plugin which answers properly would have got, restores the parents. Does nothing to other
// recordings.
void MendRefused(Process& process, int api);

// One plan a process, in the order of capture.processes. Callbacks later than `until` (0: no limit)
// are left out, and so is whatever happened after the recording began to end processes from
// outside: in the job that is hours away.
std::vector<ProcessPlan> MakePlans(const Capture& capture, uint64_t until);

// Lets one process end before the hung operation: idle (it lives on and calls nothing more), killed
// or stopped. Error when the capture has no such process or operation.
absl::Status EndEarly(const Capture& capture, int process, Options::End how,
                      std::vector<ProcessPlan>* plans);

// When the recording first ended a process from outside; 0: it never did.
uint64_t EndedFromOutside(const Capture& capture);

// The instant that --cut names, in the recording's clock: "12.5" seconds after the job's first
// callback, a clock value in ns from 1e9 on, or "hang:F": the fraction F of the time between the
// hung operation's first entry and the last callback.
absl::StatusOr<uint64_t> CutInstant(const Capture& capture, absl::string_view text);

}  // namespace ringscope::replay

#endif  // RINGSCOPE_TESTS_REPLAY_PLAN_H_
