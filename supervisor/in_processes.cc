#include "supervisor/in_processes.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <new>

#include "supervisor/collector.h"

namespace ringscope::supervisor {
namespace {

constexpr double kGrace = 1;  // seconds for a killed child to go; one that is still there then sleeps beyond signals

double Now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

// In front of the memory that a function gets.
struct alignas(64) Head {
  std::atomic<int> finished;
};

struct Child {
  Head* head = nullptr;
  pid_t pid = -1;
  double started = 0, killed = 0;
  bool over = false;
  ProcessEnd end;
};

// Nothing of the caller's may stay with a child that is left behind: a pipe of the job that it held open would never end.
void LetGo(pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
  for (int signal_number = 1; signal_number < NSIG; ++signal_number) signal(signal_number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  const int null = open("/dev/null", O_RDWR);
  for (int fd = 0; fd <= 2; ++fd) dup2(null, fd);
  close_range(3, ~0U, 0);
}

[[noreturn]] void Run(const std::function<void(void*)>& function, Head* head) {
  try {
    function(head + 1);
    head->finished = 1;
  } catch (...) {
  }
  _exit(0);
}

void Start(const std::function<void(void*)>& function, size_t bytes, Child* child) {
  child->started = Now();
  void* memory = mmap(nullptr, sizeof(Head) + bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    child->over = true;
    child->end.why_not = absl::StrCat("no memory: ", strerror(errno));
    return;
  }
  child->head = new (memory) Head();
  const pid_t parent = getpid();
  child->pid = fork();
  if (child->pid == 0) {
    LetGo(parent);
    Run(function, child->head);
  }
  if (child->pid > 0) {
    setpgid(child->pid, child->pid);  // whoever comes first: it must be a group before it can be killed
  } else {
    child->over = true;
    child->end.why_not = absl::StrCat("no process could be started: ", strerror(errno));
  }
}

// "sleeps beyond signals in nvidia_ioctl": of a child that was killed and is still there.
std::string WhyThere(pid_t pid) {
  const std::string stat = FirstLine(absl::StrCat("/proc/", pid, "/stat"));
  const size_t at = stat.rfind(") ");
  const std::string state = at == stat.npos ? "?" : stat.substr(at + 2, 1);
  const std::string where = FirstLine(absl::StrCat("/proc/", pid, "/wchan"));
  return absl::StrCat("left behind: process ", pid, " cannot be killed (state ", state,
                      where.empty() || where == "0" ? "" : absl::StrCat(", in ", where), ")");
}

void Conclude(Child* child, const std::string& how) {
  child->over = true;
  child->end.seconds = Now() - child->started;
  child->end.finished = child->head->finished != 0;
  child->end.why_not = how;
  if (how.empty() && !child->end.finished) child->end.why_not = "it ended without a word";
}

void Look(double seconds, Child* child) {
  siginfo_t info;
  info.si_pid = 0;
  // WNOWAIT: as long as it is a zombie its group's number is its own, and what it started can be killed with it.
  const int waited = waitid(P_PID, static_cast<id_t>(child->pid), &info, WEXITED | WNOHANG | WNOWAIT);
  const double now = Now();
  if (waited == 0 && info.si_pid == child->pid) {
    kill(-child->pid, SIGKILL);
    waitpid(child->pid, nullptr, 0);
    std::string how;
    if (child->killed > 0) {
      how = absl::StrFormat("it took longer than its %g seconds and was killed", seconds);
    } else if (info.si_code != CLD_EXITED) {
      how = absl::StrFormat("it died of signal %d (%s)", info.si_status, strsignal(info.si_status));
    }
    Conclude(child, child->head->finished != 0 ? "" : how);
  } else if (waited != 0 && errno == ECHILD) {
    Conclude(child, "");  // somebody else reaps this process's children; what it told is there
  } else if (child->killed == 0 && now >= child->started + seconds) {
    child->killed = now;
    kill(-child->pid, SIGKILL);
  } else if (child->killed > 0 && now >= child->killed + kGrace) {
    Conclude(child, WhyThere(child->pid));
  }
}

}  // namespace

void RunInProcesses(const std::vector<std::function<void(void* shared)>>& functions, size_t bytes, double seconds,
                    const std::function<void(size_t index, const void* shared, const ProcessEnd& end)>& concluded) {
  std::vector<Child> children(functions.size());
  for (size_t i = 0; i < functions.size(); ++i) Start(functions[i], bytes, &children[i]);
  for (bool waits = true; waits;) {
    waits = false;
    for (Child& child : children) {
      if (!child.over) Look(seconds, &child);
      waits |= !child.over;
    }
    if (waits) usleep(5000);
  }
  for (size_t i = 0; i < children.size(); ++i) {
    concluded(i, children[i].head == nullptr ? nullptr : children[i].head + 1, children[i].end);
    // A child that was left behind goes on with its own mapping.
    if (children[i].head != nullptr) munmap(children[i].head, sizeof(Head) + bytes);
  }
}

}  // namespace ringscope::supervisor
