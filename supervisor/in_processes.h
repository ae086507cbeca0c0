// Questions that may never be answered (a driver, a file system), each asked in a process of its own with a budget.
#ifndef RINGSCOPE_SUPERVISOR_IN_PROCESSES_H_
#define RINGSCOPE_SUPERVISOR_IN_PROCESSES_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace ringscope::supervisor {

// How one of them ended.
struct ProcessEnd {
  bool finished = false;  // the function returned
  double seconds = 0;     // that it took
  std::string why_not;    // one phrase: killed over its budget, died of a signal, cannot be killed; empty when it finished
};

// Runs `functions`, all at the same time, each in a child process that is killed after `seconds` with all it started. Each gets
// `bytes` of zeroed memory that it shares with this process: what it leaves there is there after it was killed, and reading it
// cannot block. `concluded` is called with the index, that memory and the end of each. Returns at the latest one second after the
// budget: a child that cannot be killed (state D) is left behind, and its end says so.
//
// Forks, so the caller should have one thread; leaves signals, standard streams and other children alone. The children have
// /dev/null for standard streams and no other open file.
void RunInProcesses(const std::vector<std::function<void(void* shared)>>& functions, size_t bytes, double seconds,
                    const std::function<void(size_t index, const void* shared, const ProcessEnd& end)>& concluded);

}  // namespace ringscope::supervisor

#endif  // RINGSCOPE_SUPERVISOR_IN_PROCESSES_H_
