// ringscope run: a command with recording switched on.
#include "supervisor/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>

#include "analyzer/report/style.h"
#include "recorder/settings.h"
#include "supervisor/job_environment.h"
#include "tools/command.h"

extern char** environ;

namespace ringscope::tools {
namespace {

void SayNothing(const char*) {}

std::string Self() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

int Run(const Arguments& arguments) {
  if (arguments.positional().empty()) {
    fprintf(stderr, "ringscope run: give a command: ringscope run [flags] -- COMMAND ...\n");
    return kUsage;
  }
  std::map<std::string, std::string> variables;
  for (char** line = environ; *line != nullptr; ++line) {
    const char* equals = strchr(*line, '=');
    if (equals != nullptr) variables[std::string(*line, static_cast<size_t>(equals - *line))] = equals + 1;
  }
  const bool verbose = arguments.Get("verbose") == "yes";
  const absl::StatusOr<std::string> library = supervisor::FindLibrary(arguments.Get("library"), Self());
  const absl::Status loads = library.ok() ? supervisor::TryToLoad(*library) : library.status();
  supervisor::RunOptions options;
  options.command = arguments.positional();
  const std::string given = arguments.Get("dir");
  std::error_code error;
  options.directory =
      std::filesystem::absolute(
          given.empty() ? variables["RINGSCOPE_DIR"].empty() ? "ringscope-traces" : variables["RINGSCOPE_DIR"] : given, error)
          .lexically_normal()
          .string();
  if (!given.empty()) variables.erase("RINGSCOPE_DIR");
  if (variables["RINGSCOPE_DIR"].empty()) variables.erase("RINGSCOPE_DIR");
  std::filesystem::create_directories(options.directory, error);
  if (error) {
    fprintf(stderr, "ringscope run: %s cannot be made: %s. Give --dir\n", report::Printable(options.directory).c_str(),
            error.message().c_str());
    return kUsage;
  }
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  options.run = std::to_string(getpid()) + "-" + std::to_string(now.tv_sec);
  if (loads.ok()) {
    const supervisor::Doors doors = {arguments.Get("plugin") == "yes", arguments.Get("preload") == "yes",
                                     arguments.Get("nccl-log") == "yes"};
    const supervisor::JobEnvironment environment =
        supervisor::EnvironmentFor(variables, doors, *library, options.directory, options.run);
    options.environment = environment.variables;
    options.recording = doors.plugin || doors.preload;
    for (const std::string& note : environment.notes) fprintf(stderr, "ringscope run: %s\n", report::Printable(note).c_str());
  } else {
    // The job matters more than its record.
    fprintf(stderr, "ringscope run: nothing will be recorded: %s\n", report::Printable(std::string(loads.message())).c_str());
    options.environment = variables;
    options.recording = false;
  }
  recorder::Settings settings;
  recorder::ReadSettings(&settings, SayNothing);
  options.flight_directory = settings.flight_dir;
  options.evidence = arguments.Get("evidence") == "yes";
  options.on_stall = arguments.Get("on-stall");
  char* end = nullptr;
  options.collector_seconds = strtod(arguments.Get("evidence-seconds").c_str(), &end);
  if (*end != 0 || !(options.collector_seconds > 0 && options.collector_seconds <= 3600)) {
    fprintf(stderr, "ringscope run: --evidence-seconds=%s is not a number of seconds up to 3600\n",
            report::Printable(arguments.Get("evidence-seconds")).c_str());
    return kUsage;
  }

  const supervisor::RunResult result = supervisor::RunCommand(options);
  if (result.errno_ != 0) {
    fprintf(stderr, "ringscope run: %s cannot be started: %s\n", report::Printable(options.command[0]).c_str(),
            strerror(result.errno_));
    return result.errno_ == ENOENT ? 127 : 126;
  }
  for (const std::string& note : result.notes) fprintf(stderr, "ringscope run: %s\n", report::Printable(note).c_str());
  if (result.processes > 0 || result.stalled > 0) {
    const std::string files =
        result.collected > 0 ? ", " + std::to_string(result.collected) + " files of evidence from this machine" : "";
    fprintf(stderr, "ringscope run: %d %s left a record%s%s. Next: ringscope diagnose %s\n", result.processes,
            result.processes == 1 ? "process" : "processes", result.stalled > 0 ? ", and a stall was noticed" : "", files.c_str(),
            report::Printable(options.directory).c_str());
  } else if (verbose) {
    fprintf(stderr, "ringscope run: no process left anything open; traces of their ends lie in %s\n",
            report::Printable(options.directory).c_str());
  }
  supervisor::EndLike(result.status);
}

}  // namespace

const Command kRun = {
    "run",
    "[flags] -- COMMAND ...",
    "run a command with recording switched on, and keep what it leaves",
    "Sets what is needed in the command's environment and runs it: its output, exit code and signals are its own. The profiler\n"
    "plugin door (NCCL_PROFILER_PLUGIN, NCCL 2.23 and later) and the preload door (LD_PRELOAD) are both opened; what is set "
    "already\n"
    "stays, and is said. NCCL's log goes to the trace directory unless NCCL_DEBUG is set. At the end the flight files of "
    "processes\n"
    "that did not end in order are copied to DIR/flight, and one line says what to do next.\n"
    "\n"
    "Start it where the ranks are started, one on each node or one for each rank:\n"
    "  ringscope run -- torchrun --nproc-per-node 8 train.py\n"
    "  srun ringscope run -- python train.py\n"
    "\n"
    "Exit code: the command's (126, 127: it could not be started).\n",
    {{"dir", {}, "", "where traces, logs and evidence go; default: RINGSCOPE_DIR, else ringscope-traces", "DIR"},
     {"library", {}, "", "libringscope.so; default: beside this program, or in ../lib", "FILE"},
     {"plugin", {"yes", "no"}, "yes", "NCCL's own events, by the profiler plugin"},
     {"preload", {"yes", "no"}, "yes", "the application's calls of NCCL and CUDA, by LD_PRELOAD"},
     {"nccl-log", {"yes", "no"}, "yes", "NCCL_DEBUG=INFO into DIR, unless it is set"},
     {"evidence",
      {"yes", "no"},
      "yes",
      "ask the machine at the start and when a rank stalls: NVLinks, ports, kernel log, stacks"},
     {"evidence-seconds", {}, "10", "that one question to the machine may take", "SECONDS"},
     {"on-stall",
      {},
      "",
      "a shell command to run once when a rank stalls; docs/preload.md says what it gets",
      "COMMAND"},
     {"verbose", {"yes", "no"}, "no", "say where things are even when nothing was left"}},
    Run};

}  // namespace ringscope::tools
