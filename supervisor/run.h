// Runs a command as if nobody stood beside it, and looks after what its processes record.
#ifndef RINGSCOPE_SUPERVISOR_RUN_H_
#define RINGSCOPE_SUPERVISOR_RUN_H_

#include <map>
#include <string>
#include <vector>

namespace ringscope::supervisor {

struct RunOptions {
  std::vector<std::string> command;                // found by PATH
  std::map<std::string, std::string> environment;  // whole
  std::string flight_directory;                    // where its processes keep their flight files
  std::string directory;                           // evidence goes there
  bool recording = true;  // the command's processes are recorded, if they use NCCL
  std::string run;                                 // RINGSCOPE_RUN of its processes
  bool evidence = true;                            // collect from the machine at the start and when a process stalls
  double collector_seconds = 10;                   // that one collector may take
  std::string on_stall;                            // a shell command, once; empty: none
};

struct RunResult {
  int status = 0;     // as waitpid tells it
  int errno_ = 0;     // the command could not be started; 0: it was
  int stalled = 0;    // processes that noticed a stall
  int copied = 0;     // flight files that were copied out
  int processes = 0;  // that recorded
  int collected = 0;  // files from the machine
  std::vector<std::string> notes;
};

// Standard streams are the command's own. Signals sent to this process go on to the command (those that a terminal sends to the
// whole group reach it anyway); a stop is passed on and followed. Returns when the command has ended.
RunResult RunCommand(const RunOptions& options);

// Ends this process as the command ended: its exit code, or the same signal.
[[noreturn]] void EndLike(int status);

}  // namespace ringscope::supervisor

#endif  // RINGSCOPE_SUPERVISOR_RUN_H_
