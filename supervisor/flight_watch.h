// The flight files of one run's processes on this machine: who has stalled, who has died, what they leave.
#ifndef RINGSCOPE_SUPERVISOR_FLIGHT_WATCH_H_
#define RINGSCOPE_SUPERVISOR_FLIGHT_WATCH_H_

#include <cstdint>
#include <string>
#include <vector>

namespace ringscope::supervisor {

struct Watched {
  std::string path;
  int32_t pid = 0;    // in its own pid namespace
  int64_t rank = -1;  // job rank; -1 unknown
  std::string host;
  bool alive = false;   // holds its lock
  bool clean = false;   // ended in order
  uint32_t stalls = 0;  // that it has noticed and that last
  bool woken = false;   // another process of the job on this machine has stalled, and asked it for a trace
};

// Files of this user in `directory` whose processes carry RINGSCOPE_RUN=`run`. Only reads.
std::vector<Watched> LookAtRun(const std::string& directory, const std::string& run);

// Copies a flight file to `into` (made where missing); false and `*why_not` when that failed. The copy is sparse-safe and atomic:
// it has its name when it is whole.
bool CopyOut(const Watched& file, const std::string& into, std::string* why_not);

}  // namespace ringscope::supervisor

#endif  // RINGSCOPE_SUPERVISOR_FLIGHT_WATCH_H_
