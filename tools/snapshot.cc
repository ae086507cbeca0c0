// ringscope snapshot: asks running processes for a trace now.
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "analyzer/report/style.h"
#include "recorder/settings.h"
#include "supervisor/ask.h"
#include "tools/command.h"

namespace ringscope::tools {
namespace {

void SayNothing(const char*) {}

bool IsPid(const std::string& word, int32_t* pid) {
  char* end = nullptr;
  const long n = strtol(word.c_str(), &end, 10);
  if (word.empty() || *end != 0 || n <= 0 || n > INT32_MAX) return false;
  *pid = static_cast<int32_t>(n);
  return true;
}

std::string Name(const supervisor::Asked& asked) {
  const std::string pid = "pid " + std::to_string(asked.pid);
  return asked.rank < 0 ? pid : "rank " + std::to_string(asked.rank) + ", " + pid;
}

int Run(const Arguments& arguments) {
  const std::string text = arguments.Get("timeout");
  char* end = nullptr;
  const double seconds = strtod(text.c_str(), &end);
  if (text.empty() || *end != 0 || !(seconds >= 0 && seconds <= 3600)) {
    fprintf(stderr, "ringscope snapshot: --timeout=%s is not a number of seconds from 0 to 3600\n",
            report::Printable(text).c_str());
    return kUsage;
  }
  std::vector<int32_t> pids;
  std::vector<std::string> directories;
  for (const std::string& word : arguments.positional()) {
    int32_t pid = 0;
    struct stat st;
    if (stat(word.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) {
      directories.push_back(word);
    } else if (IsPid(word, &pid)) {
      pids.push_back(pid);
    } else {
      fprintf(stderr, "ringscope snapshot: %s is neither a directory nor a process id\n",
              report::Printable(word).c_str());
      return kUsage;
    }
  }
  if (directories.empty()) {
    recorder::Settings settings;
    recorder::ReadSettings(&settings, SayNothing);
    directories.push_back(settings.flight_dir);
  }
  const std::vector<supervisor::Asked> all = supervisor::AskForTraces(directories, pids, seconds);
  bool every = true;
  for (const supervisor::Asked& asked : all) {
    every &= asked.wrote;
    const std::string what = !asked.wrote ? "no trace: " + asked.why_not
                             : asked.trace.empty()
                                 ? "wrote a trace; its directory cannot be seen from here"
                                 : asked.trace;
    printf("%s: %s\n", Name(asked).c_str(), report::Printable(what).c_str());
  }
  for (int32_t pid : pids) {
    bool found = false;
    for (const supervisor::Asked& asked : all) found |= asked.pid == pid;
    if (!found) {
      every = false;
      fprintf(stderr, "ringscope snapshot: pid %d records nothing in %s\n", pid,
              report::Printable(directories[0]).c_str());
    }
  }
  if (all.empty()) {
    fprintf(stderr,
            "ringscope snapshot: no running process of this user has a flight file in %s; give the "
            "directory (RINGSCOPE_FLIGHT_DIR)\n",
            report::Printable(directories[0]).c_str());
    return kNoInput;
  }
  return every ? kNothingWrong : kFaultFound;
}

}  // namespace

const Command kSnapshot = {
    "snapshot",
    "[PID|DIR]... [--timeout=SECONDS]",
    "ask running processes for a trace now, and say which trace each wrote",
    "Asks every process of this user that records on this machine, or those given by pid, or those "
    "whose flight files lie\n"
    "in DIR (default: RINGSCOPE_FLIGHT_DIR as `ringscope env` shows it). They answer with their "
    "next heartbeat, half a second\n"
    "at most, and go on; nothing of the job is touched. A stopped process cannot answer: its "
    "flight "
    "file is the record.\n"
    "\n"
    "For all nodes of a job that share RINGSCOPE_DIR: touch "
    "RINGSCOPE_DIR/JOB.RESTART/snapshot-now; "
    "within ten seconds each\n"
    "process writes a trace.\n"
    "\n"
    "Exit code: 0 all wrote one, 1 some did not (each line says why), 66 there was nobody to "
    "ask.\n",
    {{"timeout", {}, "10", "how long to wait for the answers", "SECONDS"}},
    Run};

}  // namespace ringscope::tools
