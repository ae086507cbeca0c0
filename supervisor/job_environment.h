// What a command's environment gets so that its processes are recorded.
#ifndef RINGSCOPE_SUPERVISOR_JOB_ENVIRONMENT_H_
#define RINGSCOPE_SUPERVISOR_JOB_ENVIRONMENT_H_

#include <absl/status/statusor.h>

#include <map>
#include <string>
#include <vector>

namespace ringscope::supervisor {

struct Doors {
  bool plugin = true;    // NCCL_PROFILER_PLUGIN
  bool preload = true;   // LD_PRELOAD
  bool nccl_log = true;  // NCCL_DEBUG and what belongs to it
};

struct JobEnvironment {
  std::map<std::string, std::string> variables;
  std::vector<std::string> notes;  // one sentence for each thing that was left as the user had it, or could not be done
};

// `before` with what is needed added: an existing LD_PRELOAD keeps its place in front; whatever else the user has set stays as it
// is and is noted. `library`: libringscope.so; libringscope-newer.so beside it is preloaded where the NCCL that the command's
// library path leads to has functions younger than 2.18. `directory`, absolute, is where traces and logs go; `run` names this run
// in the records of its processes. Never sets a variable that makes NCCL write its topology or graph: on some ranks only that
// deadlocks initialisation, and a graph that leaves the machine makes it fail (docs/nccl.md).
JobEnvironment EnvironmentFor(const std::map<std::string, std::string>& before, const Doors& doors, const std::string& library,
                              const std::string& directory, const std::string& run);

// libringscope.so: `told` unless empty, else beside the program `self`, or in ../lib or ../lib/ringscope from there. Says where
// it looked when there is none.
absl::StatusOr<std::string> FindLibrary(const std::string& told, const std::string& self);

// Loads `library` in a child process: OK, or why this machine's loader will not have it (architecture, C library).
absl::Status TryToLoad(const std::string& library);

// Whether the libnccl.so.2 that a program with this library path would load has that function; false also where there is none.
bool NcclHas(const std::string& library_path, const std::string& function);

}  // namespace ringscope::supervisor

#endif  // RINGSCOPE_SUPERVISOR_JOB_ENVIRONMENT_H_
