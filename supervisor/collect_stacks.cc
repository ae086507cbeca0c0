// Where the job's processes stand: py-spy's stacks where it is installed and may look, else what procfs tells of their threads.
#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <unistd.h>

#include <algorithm>

#include "supervisor/collector.h"
#include "supervisor/commands.h"

namespace ringscope::supervisor {
namespace {

constexpr size_t kMostThreads = 1024;  // of one process
constexpr size_t kMostText = 200;      // of one thread's kernel stack and call
constexpr double kShareOfPySpy = 0.6;  // of the budget; the rest is for procfs where py-spy did not answer

// As people write above a stack; the analyzer takes rank and pid from it.
std::string Heading(const JobProcess& process) {
  return process.rank < 0 ? absl::StrCat("=== pid ", process.pid, " ===\n")
                          : absl::StrCat("=== rank ", process.rank, " (pid ", process.pid, ") ===\n");
}

// "[<0>] futex_wait+0x1a/0x60\n…" -> "futex_wait < do_futex < …".
std::string OneLine(const std::string& kernel_stack) {
  std::string text;
  for (absl::string_view frame : absl::StrSplit(kernel_stack, '\n', absl::SkipWhitespace())) {
    if (const size_t at = frame.find("] "); at != frame.npos) frame.remove_prefix(at + 2);
    absl::StrAppend(&text, text.empty() ? "" : " < ", frame.substr(0, frame.find('+')));
  }
  return text.substr(0, kMostText);
}

std::string OfStatus(const std::string& status, absl::string_view key) {
  for (const absl::string_view line : absl::StrSplit(status, '\n')) {
    if (absl::StartsWith(line, key) && line.size() > key.size() && line[key.size()] == ':')
      return std::string(absl::StripAsciiWhitespace(line.substr(key.size() + 1)));
  }
  return "";
}

// Nothing here reads the process's memory (cmdline, environ, maps): a process that holds its own memory's lock for ever would
// hold the reader, too.
std::string OfProcfs(const std::string& process_folder, int32_t pid) {
  std::string text;
  const std::string main_stack = SmallFile(absl::StrCat(process_folder, "/task/", pid, "/stack"));
  if (!main_stack.empty()) absl::StrAppend(&text, main_stack, main_stack.back() == '\n' ? "" : "\n");
  const std::string whole = SmallFile(process_folder + "/status");
  absl::StrAppend(&text, "process ", OfStatus(whole, "Name"), ": state ", OfStatus(whole, "State"), ", threads ",
                  OfStatus(whole, "Threads"), ", traced by ", OfStatus(whole, "TracerPid"), ", resident ",
                  OfStatus(whole, "VmRSS"), "\n");
  std::vector<std::string> threads = Names(process_folder + "/task");
  const size_t more = threads.size() - std::min(threads.size(), kMostThreads);
  threads.resize(threads.size() - more);
  for (const std::string& thread : threads) {
    const std::string folder = absl::StrCat(process_folder, "/task/", thread), status = SmallFile(folder + "/status");
    absl::StrAppend(&text, "thread ", thread, " ", FirstLine(folder + "/comm"), ": state ", OfStatus(status, "State"));
    if (const std::string place = FirstLine(folder + "/wchan"); !place.empty() && place != "0")
      absl::StrAppend(&text, ", in ", place);
    if (const std::string call = FirstLine(folder + "/syscall"); !call.empty())
      absl::StrAppend(&text, ", system call ", call.substr(0, kMostText));
    const std::string stack = OneLine(SmallFile(folder + "/stack"));
    absl::StrAppend(&text, stack.empty() ? "" : ", kernel stack ", stack, "\n");
  }
  if (more > 0) absl::StrAppend(&text, more, " more threads\n");
  return text;
}

// --nonblocking: py-spy would else stop the process with ptrace, and a py-spy that is killed then may leave it stopped. What
// hangs does not move, so its stack is right without that.
std::vector<std::string> PySpy(const JobProcess& process) {
  return {"py-spy", "dump", "--nonblocking", "--pid", absl::StrCat(process.pid)};
}

absl::Status Stacks(const CollectOptions& options, Output* out) {
  const size_t n = options.processes.size();
  std::vector<std::vector<std::string>> commands;
  for (const JobProcess& process : options.processes) commands.push_back(PySpy(process));
  std::vector<std::string> said(n);
  std::vector<CommandEnd> ends(n);
  const bool installed = OnPath("py-spy");
  const double seconds = options.seconds * kShareOfPySpy;
  if (installed) ends = RunCommands(commands, {}, seconds, [&](size_t i, std::string_view text) { said[i] += text; });
  size_t dumped = 0, seen = 0;
  std::string why;
  for (size_t i = 0; i < n; ++i) {
    const JobProcess& process = options.processes[i];
    const std::string folder = absl::StrCat(options.procfs, "/", process.pid);
    std::string text = Heading(process);
    if (installed && ends[i].good()) {
      ++dumped;
      absl::StrAppend(&text, said[i], "\n");
    } else if (access(folder.c_str(), F_OK) != 0) {
      absl::StrAppend(&text, "no such process\n\n");
    } else {
      ++seen;
      if (installed) {
        why = absl::StrCat("py-spy: ", ends[i].Words(seconds));
        absl::StrAppend(&text, why, " ", absl::StripAsciiWhitespace(said[i].substr(0, said[i].find('\n'))), "\n");
      }
      absl::StrAppend(&text, OfProcfs(folder, process.pid), "\n");
    }
    out->Write(text);
  }
  if (dumped == n) return absl::OkStatus();
  if (dumped + seen == 0) return absl::NotFoundError("none of the processes is there any more");
  return absl::UnavailableError(absl::StrCat("stacks of ", dumped, " of ", n, " processes; of ", seen,
                                             " only what procfs tells (", installed ? why : "py-spy is not on PATH", ")"));
}

bool Wanted(const CollectOptions& options) { return WantedAtStall(options) && !options.processes.empty(); }

const RegisterCollector kRegister({"stacks", Wanted, Stacks});

}  // namespace
}  // namespace ringscope::supervisor
