// How each process of a captured job ended. This comes from the application's log only:
// expected.json knows the answer to what is being asked and must not be consulted.
#ifndef RINGSCOPE_TESTS_REPLAY_APP_LOG_H_
#define RINGSCOPE_TESTS_REPLAY_APP_LOG_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace ringscope::replay {

struct SentSignal {
  int number = 0;  // SIGKILL or SIGSTOP
  uint64_t t = 0;  // CLOCK_MONOTONIC of the recording, ns
  uint32_t tid = 0;
  uint64_t continued_t = 0;  // first sign of life after a stop; 0: never continued
};

struct AppEnd {
  // A process ends cleanly only when all its ranks say "end". Ranks that skipped a call, hung,
  // timed out and were ended from outside, or whose log just stops, live on: as far as the job is
  // concerned their end is hours away.
  enum How { kLivesOn, kExits } how = kLivesOn;
  int exit_code = 0;
  uint64_t exit_t = 0;     // of the last rank's "end"
  uint64_t outside_t = 0;  // when the recording ended this process from outside; 0: it did not
  std::vector<SentSignal> signals;
  std::vector<uint64_t> line_times;
};

// Unknown lines are skipped: the log is prose of a test application.
AppEnd ReadAppLog(absl::string_view text);

}  // namespace ringscope::replay

#endif  // RINGSCOPE_TESTS_REPLAY_APP_LOG_H_
