// A command that failed before any of its processes had used NCCL: nothing of it is recorded, so the run itself says that it was.
#ifndef RINGSCOPE_SUPERVISOR_EARLY_END_H_
#define RINGSCOPE_SUPERVISOR_EARLY_END_H_

#include <cstdint>
#include <map>
#include <string>

namespace ringscope::supervisor {

// Whether a trace of a process of `run` lies in `directory`. Traces from before `since_ns` (nanoseconds since 1970) are not
// looked at.
bool LeftATrace(const std::string& directory, const std::string& run, int64_t since_ns);

// Writes HOST.end.N.command.txt into `directory`/evidence: one line with the exit code, and the rank if `environment` tells it.
// The file's path; empty: it could not be written.
std::string NoteEarlyEnd(const std::string& directory, const std::map<std::string, std::string>& environment, int exit_code);

}  // namespace ringscope::supervisor

#endif  // RINGSCOPE_SUPERVISOR_EARLY_END_H_
