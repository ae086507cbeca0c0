// A command of the user's (`ringscope run --on-stall`), with what it may want to know in its environment.
#include <stdlib.h>
#include <unistd.h>

#include <string>

#include "supervisor/collect.h"

namespace ringscope::supervisor {
namespace {

std::string UserCommand(const CollectOptions& options, FILE* out) {
  if (options.command.empty()) return "none was given";
  std::string pids;
  for (const auto& [pid, rank] : options.processes) pids += (pids.empty() ? "" : " ") + std::to_string(pid);
  setenv("RINGSCOPE_EVIDENCE_DIR", options.directory.c_str(), 1);
  setenv("RINGSCOPE_PIDS", pids.c_str(), 1);
  fprintf(out, "$ %s\n", options.command.c_str());
  fflush(out);
  dup2(fileno(out), STDOUT_FILENO);
  dup2(fileno(out), STDERR_FILENO);
  const int status = system(options.command.c_str());
  return status == 0 ? "" : "it ended with status " + std::to_string(status);
}

const RegisterCollector kRegister({"the user's command", "on-stall.txt", true, Collector::kProcesses, UserCommand});

}  // namespace
}  // namespace ringscope::supervisor
