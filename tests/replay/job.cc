#include "tests/replay/job.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/replay/child.h"
#include "tests/replay/clock.h"
#include "tests/replay/leftovers.h"
#include "tests/replay/names.h"

namespace ringscope::replay {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

struct Running {
  int32_t pid = 0;
  bool alive = false;
  bool stopped = false;
  bool ended_by_us = false;
  int status = 0;
};

class Job {
 public:
  Job(const Capture& capture, const std::vector<ProcessPlan>& plans, const Options& options,
      uint64_t cut_t, const std::string& out, const std::string& plugin, Shared& shared)
      : capture_(capture),
        plans_(plans),
        options_(options),
        cut_t_(cut_t),
        out_(out),
        plugin_(plugin),
        shared_(shared) {
    running_.resize(capture.processes.size());
    scale_.first_t = capture.first_t;
    scale_.speed = options.speed;
  }

  // True in a child.
  bool Start(int* exit_code) {
    const int self = getpid();
    std::fflush(nullptr);
    for (size_t p = 0; p < running_.size(); ++p) {
      if (!capture_.processes[p].has_events) continue;
      const pid_t pid = fork();
      if (pid == 0) {
        *exit_code = RunChild({&capture_, &plans_[p], &options_, &shared_, p, out_, plugin_, self});
        return true;
      }
      if (pid < 0) {
        Fail(absl::StrCat("process ", p, " cannot be started: ", strerror(errno)));
        return false;
      }
      running_[p].pid = pid;
      running_[p].alive = true;
    }
    return false;
  }

  void Run() {
    const uint64_t begun = NowNs();
    while (errors_.empty() &&
           !All([&](size_t p) { return shared_.process(p).ready.load() != 0; })) {
      Reap();
      if (NowNs() > begun + 60 * kSecond)
        Fail("the processes did not come up within 60 s; is the machine overloaded?");
      SleepUntil(NowNs() + kSecond / 1000);
    }
    if (errors_.empty()) {
      scale_.start_ns = NowNs() + 3'000'000;
      shared_.job().start_ns.store(scale_.start_ns, std::memory_order_release);
      PlayCallbacks();
    }
    if (errors_.empty()) LetStallsBeNoticed();
    KillAll();
  }

  void Describe(JobResult& result) {
    for (size_t p = 0; p < running_.size(); ++p) {
      result.pids.push_back(running_[p].pid);
      result.delivered += shared_.process(p).delivered.load();
      result.left_out += shared_.process(p).left_out.load();
      result.ends.push_back(InWords(p));
    }
    if (!errors_.empty()) result.status = absl::InternalError(absl::StrJoin(errors_, "\n"));
  }

 private:
  template <typename Predicate>
  bool All(Predicate predicate) {
    for (size_t p = 0; p < running_.size(); ++p) {
      if (running_[p].alive && !predicate(p)) return false;
    }
    return true;
  }

  void Fail(std::string message) { errors_.push_back(std::move(message)); }

  // A stop without end: nothing more will come from this process.
  bool StoppedForGood(size_t p) const { return running_[p].stopped && ContinuedAt(p) == 0; }

  uint64_t ContinuedAt(size_t p) const {
    for (const Action& action : plans_[p].actions) {
      if (action.kind == Action::kStopSelf && action.continued_t != 0)
        return scale_.At(action.continued_t);
    }
    return 0;
  }

  void Reap() {
    for (size_t p = 0; p < running_.size(); ++p) {
      Running& child = running_[p];
      if (!child.alive) continue;
      int status;
      while (child.alive &&
             waitpid(child.pid, &status, WNOHANG | WUNTRACED | WCONTINUED) == child.pid) {
        if (WIFSTOPPED(status)) {
          child.stopped = true;
        } else if (WIFCONTINUED(status)) {
          child.stopped = false;
        } else {
          child.alive = false;
          child.status = status;
          Judge(p);
        }
      }
      const uint64_t when = child.stopped ? ContinuedAt(p) : 0;
      if (child.alive && when != 0 && NowNs() >= when) kill(child.pid, SIGCONT);
    }
  }

  // Was that how the process was to end?
  void Judge(size_t p) {
    const Running& child = running_[p];
    if (child.ended_by_us) return;
    if (WIFSIGNALED(child.status)) {
      const bool planned =
          std::any_of(plans_[p].actions.begin(), plans_[p].actions.end(),
                      [](const Action& action) { return action.kind == Action::kKillSelf; });
      if (WTERMSIG(child.status) == SIGKILL && (planned || options_.kill != Options::kNo)) return;
      Fail(absl::StrCat("process ", p, " died of ", strsignal(WTERMSIG(child.status)),
                        " in or after ", LastCall(p)));
    } else if (WEXITSTATUS(child.status) == kSetUpFailed) {
      Fail(absl::StrCat("process ", p, " could not load or begin (see above)"));
    } else if (!plans_[p].exits || WEXITSTATUS(child.status) != plans_[p].exit_code) {
      Fail(absl::StrCat("process ", p, " ended with exit code ", WEXITSTATUS(child.status),
                        " after ", LastCall(p)));
    }
  }

  std::string LastCall(size_t p) {
    const Process& process = capture_.processes[p];
    const uint64_t at = shared_.process(p).at_event.load();
    if (shared_.process(p).delivered.load() == 0 || at >= process.events.size())
      return "no callback";
    const Event& event = process.events[at];
    static constexpr const char* kNames[] = {"init", "start", "state", "stop", "finalize"};
    return absl::StrCat("callback ", kNames[static_cast<int>(event.callback)], " ",
                        event.type == 0 ? "" : TypeName(event.type), " (n ", event.n, " of rank",
                        process.index, ".jsonl)");
  }

  void PlayCallbacks() {
    const bool nobody_exits = options_.kill != Options::kNo;
    uint64_t exit_limit = 0;
    for (;;) {
      Reap();
      if (!errors_.empty()) return;
      const bool settled =
          All([&](size_t p) { return shared_.process(p).done.load() != 0 || StoppedForGood(p); });
      if (settled && cut_t_ != 0) {
        SleepUntil(scale_.At(cut_t_));
        return;
      }
      if (settled) {
        // Those that end by themselves have until their captured end, and some time for their last
        // words.
        uint64_t last = NowNs();
        for (size_t p = 0; p < running_.size(); ++p) {
          if (plans_[p].exits) last = std::max(last, scale_.At(plans_[p].exit_t));
        }
        if (exit_limit == 0) exit_limit = last + 30 * kSecond;
        if (nobody_exits || All([&](size_t p) { return !plans_[p].exits || StoppedForGood(p); }))
          return;
        if (NowNs() > exit_limit) {
          Fail(
              "a process that was to exit still runs 30 s later: its exit hangs, in the plugin "
              "perhaps");
          return;
        }
      }
      SleepUntil(NowNs() + kSecond / 500);
    }
  }

  void LetStallsBeNoticed() {
    if (cut_t_ != 0 || options_.kill == Options::kAtCall || options_.kill == Options::kRandom)
      return;
    const bool silent = options_.kill == Options::kAtEnd;
    std::vector<size_t> watched;  // those that should notice
    uint64_t last = scale_.start_ns;
    double stall = StallSeconds();
    bool long_stall = false, any = false;
    for (size_t p = 0; p < running_.size(); ++p) {
      last = std::max(last, scale_.At(plans_[p].last_t));
      if (!running_[p].alive) continue;
      any = true;
      long_stall = long_stall || plans_[p].long_stall;
      if (plans_[p].open_operations && !running_[p].stopped) watched.push_back(p);
    }
    if (!any) return;
    stall = stall * (long_stall ? 5 : 1) + (silent ? 0.7 : 1.5);
    // Callbacks can have come late on a busy machine: the stall counts from when they came.
    uint64_t deadline =
        std::max(last, NowNs()) + static_cast<uint64_t>(stall * static_cast<double>(kSecond));
    bool told = silent || watched.empty();
    while (NowNs() < deadline) {
      Reap();
      if (!errors_.empty()) return;
      if (!told && std::all_of(watched.begin(), watched.end(), [&](size_t p) {
            return !running_[p].alive || HasStallTrace(out_, running_[p].pid);
          })) {
        told = true;
        deadline = std::min(deadline, NowNs() + 6 * kSecond / 10);
      }
      SleepUntil(std::min(deadline, NowNs() + kSecond / 20));
    }
  }

  void KillAll() {
    for (Running& child : running_) {
      if (!child.alive) continue;
      child.ended_by_us = true;
      kill(child.pid, SIGKILL);
    }
    for (Running& child : running_) {
      if (!child.alive) continue;
      while (waitpid(child.pid, &child.status, 0) < 0 && errno == EINTR) {
      }
      child.alive = false;
    }
  }

  std::string InWords(size_t p) const {
    const Running& child = running_[p];
    if (child.pid == 0) return "not started (no callbacks captured)";
    const std::string who =
        absl::StrCat("pid ", child.pid, " on ", capture_.processes[p].host, ": ");
    if (child.ended_by_us)
      return who + (child.stopped ? "stopped, then ended from outside"
                                  : "lived on, then ended from outside");
    if (WIFSIGNALED(child.status))
      return absl::StrCat(who, "killed by ", strsignal(WTERMSIG(child.status)));
    return absl::StrCat(who, "exit code ", WEXITSTATUS(child.status));
  }

  const Capture& capture_;
  const std::vector<ProcessPlan>& plans_;
  const Options& options_;
  uint64_t cut_t_;
  std::string out_, plugin_;
  Shared& shared_;
  TimeScale scale_;
  std::vector<Running> running_;
  std::vector<std::string> errors_;
};

}  // namespace

JobResult RunJob(const Capture& capture, const std::vector<ProcessPlan>& plans,
                 const Options& options, uint64_t cut_t, const std::string& out,
                 const std::string& plugin) {
  JobResult result;
  const uint64_t begun = NowNs();
  absl::StatusOr<Shared> shared = Shared::Make(capture);
  if (!shared.ok()) {
    result.status = shared.status();
    return result;
  }
  Job job(capture, plans, options, cut_t, out, plugin, *shared);
  if (job.Start(&result.exit_code)) {
    result.is_child = true;
    return result;
  }
  job.Run();
  job.Describe(result);
  result.seconds = static_cast<double>(NowNs() - begun) / static_cast<double>(kSecond);
  return result;
}

}  // namespace ringscope::replay
