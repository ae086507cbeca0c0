// One replayed process: its identity, its threads, its end.
#ifndef RINGSCOPE_TESTS_REPLAY_CHILD_H_
#define RINGSCOPE_TESTS_REPLAY_CHILD_H_

#include <string>

#include "tests/replay/capture.h"
#include "tests/replay/options.h"
#include "tests/replay/plan.h"
#include "tests/replay/shared.h"

namespace ringscope::replay {

struct ChildTask {
  const Capture* capture = nullptr;
  const ProcessPlan* plan = nullptr;
  const Options* options = nullptr;
  Shared* shared = nullptr;
  size_t process = 0;  // index into capture.processes
  std::string out;     // absolute
  std::string plugin;
  int parent_pid = 0;
};

inline constexpr int kSetUpFailed =
    70;  // exit code of a child that could not begin; a message is on stderr

// Runs in the forked child, before which no thread may exist. Returns the exit code with which main
// is to return, so that destructors of libraries run as they do in a job; does not return in a
// process that lives on.
int RunChild(const ChildTask& task);

// The boot id that a host of this capture gets: the same in every replay, different for every host.
std::string BootId(const std::string& capture, const std::string& host);

}  // namespace ringscope::replay

#endif  // RINGSCOPE_TESTS_REPLAY_CHILD_H_
