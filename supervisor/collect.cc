#include "supervisor/collect.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
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

// Shared memory, not a pipe or the file: what a child told is there after it was killed, and reading it cannot block even if the
// directory's file system does.
struct Told {
  std::atomic<int> opened, ended;
  char file[4096], why_not[1024];
};

void Keep(const std::string& text, char* into, size_t size) { into[text.copy(into, size - 1)] = 0; }

struct Child {
  const Collector* collector = nullptr;
  Told* told = nullptr;
  pid_t pid = -1;
  double started = 0, killed = 0;
  bool over = false;
  Collected result;
};

std::string FileWord(std::string name) {
  if (name.empty()) name = "nohost";
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_' && c != '.') c = '_';
  }
  return name;
}

std::string HostName() {
  if (const char* pretended = getenv("RINGSCOPE_HOST"); pretended != nullptr && *pretended != 0) return pretended;
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

// Nothing of the supervisor's may stay with a child that is left behind: a pipe of the job that it held open would never end.
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

[[noreturn]] void Run(const CollectOptions& options, const Collector& collector, Told* told) {
  absl::Status status;
  try {
    Output out(options.directory, absl::StrCat(options.host, ".", FileWord(options.when)), collector.name,
               [told](const std::string& file) {
                 Keep(file, told->file, sizeof(told->file));
                 told->opened = 1;
               });
    status = collector.collect(options, &out);
    if (!out.status().ok()) status = out.status();
  } catch (...) {
    status = absl::InternalError("its collector failed");
  }
  Keep(std::string(status.message()), told->why_not, sizeof(told->why_not));
  told->ended = 1;
  _exit(0);
}

void Start(const CollectOptions& options, Child* child) {
  child->result.name = child->collector->name;
  child->started = Now();
  void* page = mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) {
    child->over = true;
    child->result.why_not = absl::StrCat("no memory: ", strerror(errno));
    return;
  }
  child->told = new (page) Told();
  const pid_t parent = getpid();
  child->pid = fork();
  if (child->pid == 0) {
    LetGo(parent);
    Run(options, *child->collector, child->told);
  }
  if (child->pid > 0) {
    setpgid(child->pid, child->pid);  // whoever comes first: it must be a group before it can be killed
  } else {
    child->over = true;
    child->result.why_not = absl::StrCat("no process could be started: ", strerror(errno));
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

void Conclude(Child* child, std::string how) {
  child->over = true;
  child->result.seconds = Now() - child->started;
  const Told& told = *child->told;
  if (told.opened != 0) child->result.file = told.file;
  if (how.empty() && told.ended != 0) how = told.why_not;
  if (how.empty() && told.ended == 0) how = "its collector ended without a word";
  if (!how.empty() && told.ended == 0 && told.opened != 0) how += "; the file holds what it wrote until then";
  child->result.why_not = how;
}

void Look(const CollectOptions& options, Child* child) {
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
      how = absl::StrFormat("it took longer than its %g seconds and was killed", options.seconds);
    } else if (info.si_code != CLD_EXITED) {
      how = absl::StrFormat("its collector died of signal %d (%s)", info.si_status, strsignal(info.si_status));
    }
    Conclude(child, child->told->ended != 0 ? "" : how);
  } else if (waited != 0 && errno == ECHILD) {
    Conclude(child, "");  // somebody else reaps this process's children; what it told is there
  } else if (child->killed == 0 && now >= child->started + options.seconds) {
    child->killed = now;
    kill(-child->pid, SIGKILL);
  } else if (child->killed > 0 && now >= child->killed + kGrace) {
    Conclude(child, WhyThere(child->pid));
  }
}

}  // namespace

std::vector<Collected> CollectEvidence(const CollectOptions& asked) {
  CollectOptions options = asked;
  options.host = FileWord(options.host.empty() ? HostName() : options.host);
  std::vector<Child> children;
  for (const Collector& collector : Collectors()) {
    if (collector.wanted(options)) children.emplace_back().collector = &collector;
  }
  for (Child& child : children) Start(options, &child);
  for (bool waits = true; waits;) {
    waits = false;
    for (Child& child : children) {
      if (!child.over) Look(options, &child);
      waits |= !child.over;
    }
    if (waits) usleep(5000);
  }
  std::vector<Collected> results;
  for (Child& child : children) {
    // A child that was left behind goes on with its own mapping.
    if (child.told != nullptr) munmap(child.told, sizeof(Told));
    results.push_back(std::move(child.result));
  }
  return results;
}

}  // namespace ringscope::supervisor
