// Asking processes that record, on this machine, for a trace now.
#ifndef RINGSCOPE_SUPERVISOR_ASK_H_
#define RINGSCOPE_SUPERVISOR_ASK_H_

#include <cstdint>
#include <string>
#include <vector>

namespace ringscope::supervisor {

// One process that was asked, and what came of it.
struct Asked {
  int32_t pid = 0;    // in its own pid namespace
  int64_t rank = -1;  // job rank; -1 unknown
  std::string flight_file;
  bool wrote = false;
  std::string trace;    // the trace written; empty where its directory cannot be seen from here
  std::string why_not;  // one phrase when it did not write
};

// Asks every living process of this user whose flight file lies in one of `directories` (not below
// them), with pid in `pids` when that is not empty, and waits until each has answered, at most
// `seconds`. Files of other users, dead processes, links and whatever is no flight file are passed
// over. Only the asked bit of each header page is written.
std::vector<Asked> AskForTraces(const std::vector<std::string>& directories, const std::vector<int32_t>& pids, double seconds);

}  // namespace ringscope::supervisor

#endif  // RINGSCOPE_SUPERVISOR_ASK_H_
