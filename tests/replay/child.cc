#include "tests/replay/child.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/replay/clock.h"
#include "tests/replay/deliver.h"

extern char** environ;

namespace ringscope::replay {
namespace {

uint64_t Hash(const std::string& text) {  // FNV-1a: stable between machines and runs
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

void Put(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }

// The launcher that started the replay is not the launcher of the job.
void ForgetLauncher() {
  static constexpr const char* kPrefixes[] = {"SLURM_",        "OMPI_",  "PMI_",        "PMIX_",
                                              "TORCHELASTIC_", "TORCH_", "MASTER_",     "GROUP_",
                                              "ROLE_",         "NCCL_",  "KUBERNETES_", "JOB_"};
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    for (const char* prefix : kPrefixes) {
      if (std::strncmp(*entry, prefix, std::strlen(prefix)) == 0) {
        names.emplace_back(*entry, std::strcspn(*entry, "="));
      }
    }
  }
  for (const std::string& name : names) unsetenv(name.c_str());
}

void BecomeProcess(const ChildTask& task) {
  const Capture& capture = *task.capture;
  const Process& process = capture.processes[task.process];
  ForgetLauncher();
  unsetenv("RINGSCOPE_HOST");
  // A name of its own as far as the kernel allows it; otherwise the setting that exists for this.
  if (unshare(CLONE_NEWUTS) != 0 || sethostname(process.host.c_str(), process.host.size()) != 0) {
    Put("RINGSCOPE_HOST", process.host);
  }
  Put("RINGSCOPE_BOOT_ID", BootId(capture.name, process.host));
  // A launcher numbers processes; that is the job rank only where each process has one.
  const int rank = capture.several_ranks_per_process ? process.index : process.ranks.front();
  const size_t world = capture.several_ranks_per_process ? capture.processes.size()
                                                         : static_cast<size_t>(capture.job_size);
  Put("RANK", absl::StrCat(rank));
  Put("LOCAL_RANK", absl::StrCat(process.local_index));
  Put("WORLD_SIZE", absl::StrCat(world));
  Put("RINGSCOPE_DIR", task.out);
  Put("RINGSCOPE_FLIGHT_DIR", task.out + "/flight");
  Put("RINGSCOPE_JOB", capture.name);
  Put("NCCL_PROFILER_PLUGIN", task.plugin);
  if (task.options->kill != Options::kNo) Put("RINGSCOPE_TRACES", "0");
}

// A SIGKILL that a timer of the kernel sends: it hits in the middle of whatever this thread does
// some nanoseconds after it was armed. A second thread could not be on time: callbacks are much
// shorter than it takes to wake up.
class Fuse {
 public:
  Fuse() {
    sigevent event = {};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGKILL;
    ready_ = timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
  }

  void Light(uint64_t ns) {
    const itimerspec when = {{0, 0}, {0, static_cast<long>(ns + 1)}};
    if (!ready_ || timer_settime(timer_, 0, &when, nullptr) != 0) kill(getpid(), SIGKILL);
  }

 private:
  timer_t timer_ = {};
  bool ready_ = false;
};

struct KillPoint {
  Options::Kill kill = Options::kNo;
  uint64_t at = 0;  // kAtCall: callbacks that return before; kRandom: callbacks that return before
                    // the one that is hit
  uint64_t delay_ns = 0;
};

// Counts callbacks in the file that outlives the process, and dies where it was told to.
class Counter : public DeliveryObserver {
 public:
  Counter(ReturnedFile file, std::map<uint32_t, size_t> rows, ProcessShared& shared,
          const Event* first, KillPoint point)
      : file_(file), rows_(std::move(rows)), shared_(shared), first_(first), point_(point) {}

  void Entering(const Event& event) override {
    shared_.at_event.store(static_cast<uint64_t>(&event - first_), std::memory_order_relaxed);
    Row(event).entered.fetch_add(1, std::memory_order_seq_cst);
    if (point_.kill == Options::kRandom &&
        shared_.delivered.load(std::memory_order_relaxed) == point_.at) {
      fuse_.Light(point_.delay_ns);
    }
  }

  void Returned(const Event& event) override {
    Row(event).returned.fetch_add(1, std::memory_order_seq_cst);
    const uint64_t count = shared_.delivered.fetch_add(1, std::memory_order_relaxed) + 1;
    if (point_.kill == Options::kAtCall && count == point_.at) kill(getpid(), SIGKILL);
  }

 private:
  ReturnedThread& Row(const Event& event) { return file_.thread(rows_.at(event.tid)); }

  ReturnedFile file_;
  std::map<uint32_t, size_t> rows_;
  ProcessShared& shared_;
  const Event* first_;
  KillPoint point_;
  Fuse fuse_;
};

// The captured threads, each a real one. They act strictly one after another, in the order of the
// recording: a turn is a stretch of consecutive actions of one thread, and goes from hand to hand.
class Threads {
 public:
  Threads(const ChildTask& task, Deliverer& deliverer) : task_(task), deliverer_(deliverer) {
    const Process& process = Proc();
    for (const Action& action : task.plan->actions) {
      const auto [at, fresh] = of_tid_.try_emplace(action.tid, workers_.size());
      if (fresh) workers_.push_back(std::make_unique<Worker>());
      Worker& worker = *workers_[at->second];
      worker.tid = action.tid;
      const size_t index = static_cast<size_t>(&action - task.plan->actions.data());
      if (turns_.empty() || turns_.back().worker != at->second)
        turns_.push_back({at->second, index, index});
      turns_.back().end = index + 1;
      if (action.kind == Action::kCall) {
        const Event& event = process.events[action.event];
        worker.last_load = event.load;
        worker.only_helps = worker.only_helps && (event.callback == Callback::kInit ||
                                                  event.callback == Callback::kFinalize);
        last_load_ = event.load;
      }
    }
    for (size_t turn = 0; turn < turns_.size(); ++turn)
      workers_[turns_[turn].worker]->turns.push_back(turn);
  }

  std::vector<uint32_t> Tids() const {
    std::vector<uint32_t> tids;
    for (const auto& worker : workers_) tids.push_back(worker->tid);
    return tids;
  }
  std::map<uint32_t, size_t> Rows() const { return of_tid_; }

  void Begin() {
    for (auto& worker : workers_) {
      if (worker->tid == Proc().pid) continue;  // that one is main
      worker->thread = std::thread([this, &worker = *worker] {
        if (const auto name = Proc().thread_names.find(worker.tid);
            name != Proc().thread_names.end()) {
          pthread_setname_np(pthread_self(), name->second.substr(0, 15).c_str());
        }
        Work(worker);
      });
    }
  }

  // Returns when every action is done.
  void RunMain(const TimeScale& scale) {
    scale_ = scale;
    if (turns_.empty()) return;
    HandOn(0);
    for (auto& worker : workers_) {
      if (worker->tid == Proc().pid) Work(*worker);
    }
    done_.wait(0);
  }

  // Helper threads of NCCL end with their job; a proxy's thread ends with its communicator. The
  // others are there as long as the process is.
  void End() {
    end_.store(1);
    end_.notify_all();
    for (auto& worker : workers_) {
      if (worker->thread.joinable()) worker->thread.join();
    }
  }

 private:
  struct Worker {
    uint32_t tid = 0;
    std::vector<size_t> turns;
    std::atomic<int> allowed{0};  // number of the turn that may run, plus one
    std::thread thread;
    uint32_t last_load = 0;
    bool only_helps = true;
  };
  struct Turn {
    size_t worker;
    size_t begin, end;  // actions
  };

  const Process& Proc() const { return task_.capture->processes[task_.process]; }

  void HandOn(size_t turn) {
    if (turn == turns_.size()) {
      task_.shared->process(task_.process).done.store(1, std::memory_order_release);
      done_.store(1);
      done_.notify_all();
      return;
    }
    Worker& next = *workers_[turns_[turn].worker];
    next.allowed.store(static_cast<int>(turn) + 1);
    next.allowed.notify_one();
  }

  void Work(Worker& worker) {
    for (size_t turn : worker.turns) {
      for (int seen = worker.allowed.load(); seen < static_cast<int>(turn) + 1;
           seen = worker.allowed.load()) {
        worker.allowed.wait(seen);
      }
      for (size_t i = turns_[turn].begin; i < turns_[turn].end; ++i) Do(task_.plan->actions[i]);
      HandOn(turn + 1);
    }
    const bool main = worker.tid == Proc().pid;
    const bool leaves = worker.only_helps || worker.last_load < last_load_;
    if (!main && !leaves) end_.wait(0);
  }

  void Do(const Action& action) {
    const uint64_t when = scale_.At(action.t);
    // A sleep that is shorter than falling asleep takes only adds delay; what is late is caught up
    // without pauses.
    if (when > NowNs() + 10'000) SleepUntil(when);
    switch (action.kind) {
      case Action::kCall:
        if (absl::Status status = deliverer_.Deliver(Proc().events[action.event]); !status.ok()) {
          std::fprintf(stderr, "replay: %s\n", std::string(status.message()).c_str());
          _exit(kSetUpFailed);
        }
        break;
      case Action::kKillSelf:
        kill(getpid(), SIGKILL);
        break;
      case Action::kStopSelf:
        pthread_kill(pthread_self(), SIGSTOP);  // stops the whole process before this call returns
        break;
    }
  }

  const ChildTask& task_;
  Deliverer& deliverer_;
  TimeScale scale_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::map<uint32_t, size_t> of_tid_;
  std::vector<Turn> turns_;
  uint32_t last_load_ = 0;
  std::atomic<int> done_{0};
  std::atomic<int> end_{0};
};

KillPoint KillPointOf(const ChildTask& task) {
  KillPoint point;
  point.kill = task.options->kill;
  if (point.kill == Options::kAtCall) point.at = task.options->kill_at;
  if (point.kill == Options::kRandom) {
    const std::string seed = absl::StrCat(task.options->kill_seed, "/", task.process);
    point.at = Hash("call" + seed) % std::max<size_t>(1, task.plan->actions.size());
    point.delay_ns = Hash("delay" + seed) % 10000;
  }
  return point;
}

[[noreturn]] void LiveOn() {
  for (;;) pause();
}

}  // namespace

std::string BootId(const std::string& capture, const std::string& host) {
  const uint64_t a = Hash(absl::StrCat("a/", capture, "/", host)),
                 b = Hash(absl::StrCat("b/", capture, "/", host));
  return absl::StrFormat("%08x-%04x-4%03x-8%03x-%012x", a >> 32, (a >> 16) & 0xffff, a & 0xfff,
                         (b >> 48) & 0xfff, b & 0xffffffffffff);
}

int RunChild(const ChildTask& task) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != task.parent_pid) return kSetUpFailed;
  prctl(PR_SET_TIMERSLACK, 1UL);
  BecomeProcess(task);

  ProcessShared& shared = task.shared->process(task.process);
  const Process& process = task.capture->processes[task.process];
  SetNcclVersion(task.capture->number);
  PluginTable plugin(task.plugin, task.capture->as_api);
  const Options& options = *task.options;
  std::unique_ptr<Counter> counter;
  struct Forward
      : DeliveryObserver {  // the counter needs the threads' rows, the threads need the deliverer
    Counter* to = nullptr;
    void Entering(const Event& event) override { to->Entering(event); }
    void Returned(const Event& event) override { to->Returned(event); }
  } forward;
  Deliverer deliverer(*task.capture, task.process, plugin, *task.shared, &forward);
  Threads threads(task, deliverer);
  const bool counts_outlive = options.kill == Options::kAtCall || options.kill == Options::kRandom;
  absl::StatusOr<ReturnedFile> returned =
      ReturnedFile::Make(counts_outlive ? task.out : "", process.index, threads.Tids());
  if (!returned.ok()) {
    std::fprintf(stderr, "replay: %s\n", std::string(returned.status().message()).c_str());
    shared.failed.store(1);
    return kSetUpFailed;
  }
  counter = std::make_unique<Counter>(*returned, threads.Rows(), shared, process.events.data(),
                                      KillPointOf(task));
  forward.to = counter.get();
  if (const auto name = process.thread_names.find(process.pid);
      name != process.thread_names.end()) {
    pthread_setname_np(pthread_self(), name->second.substr(0, 15).c_str());
  }
  threads.Begin();
  shared.pid.store(getpid(), std::memory_order_release);
  shared.ready.store(1, std::memory_order_release);

  TimeScale scale;
  while ((scale.start_ns = task.shared->job().start_ns.load(std::memory_order_acquire)) == 0)
    usleep(500);
  scale.first_t = task.capture->first_t;
  scale.speed = options.speed;
  SleepUntil(scale.start_ns);
  if (options.kill == Options::kAtCall && options.kill_at == 0) kill(getpid(), SIGKILL);
  threads.RunMain(scale);
  shared.done.store(1, std::memory_order_release);
  if (!task.plan->exits || options.kill != Options::kNo) LiveOn();
  SleepUntil(scale.At(task.plan->exit_t));
  threads.End();
  return task.plan->exit_code;
}

}  // namespace ringscope::replay
