#include "tests/replay/options.h"

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace ringscope::replay {
namespace {

absl::Status Wrong(absl::string_view option, absl::string_view value, absl::string_view remedy) {
  return absl::InvalidArgumentError(absl::StrCat(option, " ", value, ": ", remedy));
}

absl::Status Set(Options& options, absl::string_view option, const std::string& value) {
  if (option == "--out") {
    options.out = value;
  } else if (option == "--plugin") {
    options.plugin = value;
  } else if (option == "--cut") {
    options.cut = value;
  } else if (option == "--speed") {
    if (value == "max") {
      options.speed = 0;
    } else if (!absl::SimpleAtod(value, &options.speed) || !(options.speed > 0) ||
               options.speed > 1e9) {
      return Wrong(option, value, "give a factor above 0, as in --speed 20, or max");
    }
  } else if (option == "--as-api") {
    if (!absl::SimpleAtoi(value, &options.as_api) || options.as_api < 1 || options.as_api > 6)
      return Wrong(option, value, "give a version of the profiler table, 1 to 6");
  } else if (option == "--drop-rank") {
    if (!absl::SimpleAtoi(value, &options.drop_rank) || options.drop_rank < 0) {
      return Wrong(option, value, "give a job rank, 0 or higher");
    }
  } else if (option == "--end") {
    const size_t colon = value.find(':');
    const std::string how = colon == std::string::npos ? "" : value.substr(colon + 1);
    if (!absl::SimpleAtoi(value.substr(0, colon), &options.end_process) ||
        options.end_process < 0 || (how != "idle" && how != "killed" && how != "stopped")) {
      return Wrong(option, value, "write --end=P:idle, P:killed or P:stopped, P a process from 0");
    }
    options.end_how = how == "idle"     ? Options::kIdle
                      : how == "killed" ? Options::kKilled
                                        : Options::kStopped;
  } else if (option == "--permute") {
    options.permute = true;
    if (!absl::SimpleAtoi(value, &options.permute_seed))
      return Wrong(option, value, "give a whole number as seed");
  }
  return absl::OkStatus();
}

absl::Status SetKill(Options& options, absl::string_view value) {
  if (value.empty()) {
    options.kill = Options::kAtEnd;
  } else if (absl::StartsWith(value, "random")) {
    options.kill = Options::kRandom;
    value.remove_prefix(6);
    if (!value.empty() &&
        (value[0] != ':' || !absl::SimpleAtoi(value.substr(1), &options.kill_seed))) {
      return Wrong("--kill", absl::StrCat("random", value),
                   "write --kill=random or --kill=random:SEED");
    }
  } else {
    options.kill = Options::kAtCall;
    if (!absl::SimpleAtoi(value, &options.kill_at)) {
      return Wrong("--kill", value,
                   "write --kill, --kill=N (a number of callbacks) or --kill=random:SEED");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& arguments) {
  static constexpr absl::string_view kValued[] = {"--out",       "--plugin",  "--cut", "--speed",
                                                  "--drop-rank", "--permute", "--end", "--as-api"};
  Options options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    if (argument == "--help" || argument == "-h") {
      options.help = true;
      return options;
    }
    if (name == "--kill") {
      const std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
      if (equals != std::string::npos && value.empty())
        return Wrong("--kill=", "", "a value is missing after '='");
      if (absl::Status status = SetKill(options, value); !status.ok()) return status;
      continue;
    }
    bool known = false;
    for (absl::string_view option : kValued) known = known || name == option;
    if (known) {
      if (equals == std::string::npos && i + 1 == arguments.size())
        return Wrong(name, "", "a value is missing");
      const std::string value =
          equals == std::string::npos ? arguments[++i] : argument.substr(equals + 1);
      if (value.empty()) return Wrong(name, "", "the value is empty");
      if (absl::Status status = Set(options, name, value); !status.ok()) return status;
    } else if (absl::StartsWith(argument, "-") && argument != "-") {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown option ", argument, "; see replay --help"));
    } else if (options.capture.empty()) {
      options.capture = argument;
    } else {
      return absl::InvalidArgumentError(absl::StrCat("more than one capture: ", options.capture,
                                                     " and ", argument,
                                                     "; replay takes one at a time"));
    }
  }
  if (options.capture.empty())
    return absl::InvalidArgumentError("no capture given; see replay --help");
  if (options.out.empty())
    return absl::InvalidArgumentError("no --out DIR given: where shall the job's files go?");
  return options;
}

std::string Help() {
  return R"(replay CAPTURE --out DIR [options]

Plays a captured job again: every process of the capture becomes a process of its own that loads the profiler plugin as
NCCL does and makes the captured callbacks, in the captured threads and order, at the captured times. Afterwards DIR holds
what that job would have left behind, so that

    replay tests/replay/captures/b1_rank2_skips_op10 --out /tmp/job --speed 20
    ringscope diagnose /tmp/job

is the whole way from a job to its diagnosis. DIR must be new or empty.

  --speed X          X times as fast, or "max"; default 1. Only the times between callbacks are scaled, never the plugin's
                     own settings: with RINGSCOPE_STALL_SECONDS=2 a hang takes its 2 seconds at any speed.
  --kill             Nobody gets to write anything: every process stays until the job has been quiet for the stall time and
                     0.7 s, then all are killed at once (SIGKILL). Only flight files remain.
  --kill=N           Each process is killed directly after the N-th callback that returned in it.
  --kill=random[:S]  Each process is killed at a random moment, possibly within a callback; S is a seed.
  --drop-rank N      Afterwards removes what the process of job rank N left: its traces, flight file and NCCL log.
  --permute SEED     Renames the ranks of the job at random, everywhere; DIR/permutation.json tells {"old": new}.
                     --drop-rank then takes the new number.
  --cut T            At instant T every process is killed, as when a scheduler ends a job that still moves. T is seconds after
                     the job's first callback, or the captured clock in ns (from 1e9 on), or hang:F, the fraction F of the
                     time between the first entry into the hung operation and the job's last callback.
  --end P:HOW        Process P (from 0) does not enter the hung operation: before it, it is "killed" or "stopped", or stays
                     "idle" and calls nothing more.
  --as-api N         Plays the callbacks to the plugin's table of version N, as the shim of the captured NCCL does for a plugin
                     that has no newer one. The capture must have been made through version N or a later one.
  --plugin PATH      The plugin to load; default $RINGSCOPE_PLUGIN, else libringscope.so beside this program.

How a process ends is taken from the capture's app.rank<N>.log: it is really stopped, continued or killed, exits, or lives
on. Processes that live on are ended when the stall had time to be noticed: RINGSCOPE_STALL_SECONDS (60) and 1.5 s after the
last callback, five times that while no operation of the hung communicator had ever completed; sooner, when every process
with an open operation has written its stall trace.

DIR afterwards: traces (DIR/<job>.<restart>/<host>/...trace), DIR/flight/*.flight, DIR/logs/nccl-debug.rank<N>.log with
pids, hosts and ranks as in this replay; with --kill=N and --kill=random also DIR/returned.<N>.bin, how many callbacks of
each thread returned (layout in shared.h).

Exit code: 0 the replay went as planned, 1 it did not (a process crashed, say), 64 wrong usage, 66 unreadable capture.
)";
}

double StallSeconds() {
  const char* text = getenv("RINGSCOPE_STALL_SECONDS");
  double seconds = 0;
  return text != nullptr && absl::SimpleAtod(text, &seconds) && seconds > 0 ? seconds : 60;
}

}  // namespace ringscope::replay
