#include "supervisor/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <set>

#include "supervisor/collect.h"
#include "supervisor/early_end.h"
#include "supervisor/flight_watch.h"
#include "supervisor/turn.h"

extern char** environ;

namespace ringscope::supervisor {
namespace {

// Everything that can be sent to a process on purpose; those of the terminal (INT, QUIT, TSTP) among them.
constexpr int kPassed[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT, SIGTSTP, SIGWINCH, SIGPIPE};
constexpr int kLookMs = 1000;  // how often flight files are looked at

sigset_t Set(bool with_child) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kPassed) sigaddset(&set, signal);
  if (with_child) sigaddset(&set, SIGCHLD);
  return set;
}

pid_t Start(const RunOptions& options, const sigset_t& mask_before, int* error) {
  int told[2];
  if (pipe2(told, O_CLOEXEC) != 0) {
    *error = errno;
    return -1;
  }
  const pid_t child = fork();
  if (child == 0) {
    std::vector<std::string> lines;
    for (const auto& [name, value] : options.environment) lines.push_back(name + "=" + value);
    std::vector<char*> environment, words;
    for (std::string& line : lines) environment.push_back(line.data());
    environment.push_back(nullptr);
    for (const std::string& word : options.command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    sigprocmask(SIG_SETMASK, &mask_before, nullptr);
    environ = environment.data();
    execvp(words[0], words.data());
    const int why = errno;
    [[maybe_unused]] const ssize_t n = write(told[1], &why, sizeof(why));
    _exit(127);
  }
  close(told[1]);
  if (child < 0 || read(told[0], error, sizeof(*error)) != static_cast<ssize_t>(sizeof(*error))) *error = child < 0 ? errno : 0;
  close(told[0]);
  return child;
}

class Run {
 public:
  Run(const RunOptions& options, RunResult* result) : options_(options), result_(*result) {}

  void Do() {
    const sigset_t all = Set(true);
    sigset_t before;
    sigprocmask(SIG_BLOCK, &all, &before);
    child_ = Start(options_, before, &result_.errno_);
    if (child_ > 0 && result_.errno_ == 0) {
      // What counters are worth is their difference. In a process of its own: the command is not to wait for it.
      const pid_t before_it = options_.evidence && Turn("start") ? Collect("start", {}, true) : -1;
      const int signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
      while (!over_) {
        pollfd ready = {signals, POLLIN, 0};
        poll(&ready, 1, kLookMs);
        signalfd_siginfo info;
        while (read(signals, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) Take(info);
        Reap();
        if (!over_) Look();
      }
      close(signals);
      if (before_it > 0) kill(before_it, SIGKILL), waitpid(before_it, nullptr, 0);
      Settle();
      CopyTheDead();
      NoteFailure();
    } else if (child_ > 0) {
      waitpid(child_, nullptr, 0);
    }
    sigprocmask(SIG_SETMASK, &before, nullptr);
  }

 private:
  void Take(const signalfd_siginfo& info) {
    if (info.ssi_signo == SIGCHLD) return;
    // What a terminal sends goes to the whole foreground group: the command has it.
    const bool of_terminal = info.ssi_code == SI_KERNEL && (info.ssi_signo == SIGINT || info.ssi_signo == SIGQUIT ||
                                                            info.ssi_signo == SIGTSTP || info.ssi_signo == SIGWINCH);
    if (!of_terminal) kill(child_, static_cast<int>(info.ssi_signo));
  }

  void Reap() {
    int status = 0;
    while (waitpid(child_, &status, WNOHANG | WUNTRACED | WCONTINUED) == child_) {
      if (WIFSTOPPED(status)) {
        // Follow it, so that a shell sees its job stopped.
        raise(SIGSTOP);
        continue;
      }
      if (WIFCONTINUED(status)) continue;
      result_.status = status;
      over_ = true;
      return;
    }
  }

  void Look() {
    std::vector<JobProcess> processes;
    bool fresh = false;
    for (const Watched& w : LookAtRun(options_.flight_directory, options_.run)) {
      if (w.alive) processes.push_back({w.pid, w.rank, w.stalls > 0});
      // Who makes the others wait notices no stall itself: where it has a run of its own, this is how that learns of it.
      fresh |= w.woken;
      if (w.stalls == 0 || !stalled_.insert(w.path).second) continue;
      ++result_.stalled;
      fresh = true;
    }
    // The first stall of the run is asked about: of those that follow it, most wait for it.
    if (!fresh || asking_ > 0 || !options_.evidence) return;
    asking_ = Collect("stall", std::move(processes), Turn("stall"));
  }

  // True when this run is the one that asks the machine. The turn is kept until the command ends, so that nobody asks again.
  bool Turn(const char* what) { return TakeTurn(options_.directory, what) != -1; }

  pid_t Collect(const char* when, std::vector<JobProcess> processes, bool of_machine) {
    const pid_t child = fork();
    if (child != 0) return child;
    CollectOptions options;
    std::error_code error;
    options.directory = std::filesystem::absolute(options_.directory, error).string() + "/evidence";
    options.when = when;
    options.processes = std::move(processes);
    options.of_host = of_machine;
    options.since_ns = began_ns_;
    options.seconds = options_.collector_seconds;
    options.on_stall = options_.on_stall;
    int files = 0;
    for (const Collected& c : CollectEvidence(options)) files += !c.file.empty();
    _exit(files > 100 ? 100 : files);
  }

  // The answers about the stall are worth waiting for, also when the command has been ended meanwhile.
  void Settle() {
    int status = 0;
    if (asking_ > 0 && waitpid(asking_, &status, 0) == asking_ && WIFEXITED(status)) result_.collected = WEXITSTATUS(status);
  }

  // A container takes /dev/shm with it; a killed rank's file is all that is left of it.
  void CopyTheDead() {
    // Who was killed with the command lets go of its file a moment later.
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    const auto alive = [&] {
      for (const Watched& w : LookAtRun(options_.flight_directory, options_.run)) {
        if (w.alive) return true;
      }
      return false;
    };
    while (alive() && std::chrono::steady_clock::now() < until) usleep(20000);
    for (const Watched& w : LookAtRun(options_.flight_directory, options_.run)) {
      ++result_.processes;
      if (w.alive) result_.notes.push_back("pid " + std::to_string(w.pid) + " lives on; its flight file stays at " + w.path);
      std::string why_not;
      if (CopyOut(w, options_.directory + "/flight", &why_not)) {
        ++result_.copied;
      } else {
        result_.notes.push_back("could not be copied out: " + why_not);
      }
    }
  }

  // A command that met a mistake in its arguments leaves no record: without a word of its end there would be nothing to read.
  void NoteFailure() {
    const bool failed = WIFEXITED(result_.status) && WEXITSTATUS(result_.status) != 0;
    if (!failed || !options_.evidence || !options_.recording || result_.processes > 0) return;
    if (LeftATrace(options_.directory, options_.run, began_ns_)) return;
    NoteEarlyEnd(options_.directory, options_.environment, WEXITSTATUS(result_.status));
  }

  const RunOptions& options_;
  RunResult& result_;
  const int64_t began_ns_ =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  pid_t child_ = -1, asking_ = -1;
  bool over_ = false;
  std::set<std::string> stalled_;
};

}  // namespace

RunResult RunCommand(const RunOptions& options) {
  RunResult result;
  Run(options, &result).Do();
  return result;
}

void EndLike(int status) {
  fflush(nullptr);
  if (!WIFSIGNALED(status)) _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  // No core of ours beside the command's.
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  const int number = WTERMSIG(status);
  signal(number, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
  raise(number);
  _exit(128 + number);
}

}  // namespace ringscope::supervisor
