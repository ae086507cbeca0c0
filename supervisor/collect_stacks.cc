// Where the job's processes stand: py-spy's stacks where it is installed, and what procfs shows of every thread.
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "supervisor/collect.h"

namespace ringscope::supervisor {
namespace {

bool OnPath(const char* program) {
  const char* path = getenv("PATH");
  std::string all = path == nullptr ? "" : path;
  for (size_t at = 0; at <= all.size();) {
    const size_t end = std::min(all.find(':', at), all.size());
    if (access((all.substr(at, end - at) + "/" + program).c_str(), X_OK) == 0) return true;
    at = end + 1;
  }
  return false;
}

std::string PySpy(const CollectOptions& options, FILE* out) {
  if (options.processes.empty()) return "no process to look at";
  if (!OnPath("py-spy")) return "py-spy is not installed";
  for (const auto& [pid, rank] : options.processes) {
    fprintf(out, "%s# rank %d, pid %d\n", rank < 0 ? "# of no known rank\n" : "", rank, pid);
    fflush(out);
    const std::string command = "py-spy dump --pid " + std::to_string(pid) + " 2>&1";
    FILE* pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) continue;
    char part[4096];
    for (size_t n; (n = fread(part, 1, sizeof(part), pipe)) > 0;) fwrite(part, 1, n, out);
    pclose(pipe);
    fputc('\n', out);
    fflush(out);
  }
  return "";
}

void Copy(const std::string& file, const char* label, FILE* out) {
  std::ifstream in(file);
  std::string line;
  for (int n = 0; n < 40 && std::getline(in, line); ++n) fprintf(out, "    %s %s\n", label, line.c_str());
}

std::string Threads(const CollectOptions& options, FILE* out) {
  if (options.processes.empty()) return "no process to look at";
  for (const auto& [pid, rank] : options.processes) {
    fprintf(out, "process %d, rank %d\n", pid, rank);
    std::error_code error;
    std::vector<std::string> tasks;
    for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", error))
      tasks.push_back(task.path().string());
    std::sort(tasks.begin(), tasks.end());
    for (const std::string& task : tasks) {
      fprintf(out, "  thread %s\n", task.substr(task.rfind('/') + 1).c_str());
      for (const char* file : {"comm", "wchan", "syscall", "stack"}) Copy(task + "/" + file, file, out);
      fflush(out);
    }
    if (error) fprintf(out, "  gone\n");
  }
  return "";
}

const RegisterCollector kPySpy({"Python stacks", "py-spy.txt", true, Collector::kProcesses, PySpy});
const RegisterCollector kThreads({"threads", "threads.txt", true, Collector::kProcesses, Threads});

}  // namespace
}  // namespace ringscope::supervisor
