#include "supervisor/commands.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_split.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace ringscope::supervisor {
namespace {

constexpr int kTickMs = 20;  // an exit whose pipe somebody else holds open is noticed this late

double Now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

struct Running {
  pid_t pid = -1;
  int fd = -1;
  bool killed = false;
};

Running Start(const std::vector<std::string>& command, const std::map<std::string, std::string>& environment) {
  Running running;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return running;
  running.fd = ends[0];
  running.pid = fork();
  if (running.pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // A pipe's flags belong to each end: the program's end must block.
    fcntl(ends[1], F_SETFL, 0);
    dup2(ends[1], 1);
    dup2(ends[1], 2);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execvp(words[0], words.data());
    _exit(127);
  }
  close(ends[1]);
  return running;
}

// False at the end of what it printed.
bool Drain(int fd, size_t index, const std::function<void(size_t, std::string_view)>& on_output) {
  char piece[65536];
  for (;;) {
    const ssize_t n = read(fd, piece, sizeof(piece));
    if (n > 0) {
      on_output(index, {piece, static_cast<size_t>(n)});
      continue;
    }
    return n < 0 && (errno == EAGAIN || errno == EINTR);
  }
}

}  // namespace

std::string CommandEnd::Words(double seconds) const {
  if (late) return absl::StrFormat("not done in %g s", seconds);
  if (WIFSIGNALED(status)) return absl::StrCat("signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")");
  return status == 0 ? "" : absl::StrCat("exit code ", WEXITSTATUS(status));
}

std::vector<CommandEnd> RunCommands(const std::vector<std::vector<std::string>>& commands,
                                    const std::map<std::string, std::string>& environment, double seconds,
                                    const std::function<void(size_t, std::string_view)>& on_output) {
  std::vector<Running> running;
  std::vector<CommandEnd> ends(commands.size());
  for (size_t i = 0; i < commands.size(); ++i) {
    running.push_back(Start(commands[i], environment));
    if (running[i].pid < 0) ends[i].status = 127 << 8;
  }
  const double until = Now() + seconds;
  for (;;) {
    std::vector<pollfd> ready;
    bool lives = false;
    for (const Running& r : running) {
      lives |= r.pid > 0;
      ready.push_back({r.pid > 0 ? r.fd : -1, POLLIN, 0});
    }
    if (!lives) break;
    poll(ready.data(), ready.size(), kTickMs);
    const bool late = Now() >= until;
    for (size_t i = 0; i < running.size(); ++i) {
      Running& r = running[i];
      if (r.pid <= 0) continue;
      // Before its pipe is read: what it printed last is in the pipe when it has ended.
      const bool ended = waitpid(r.pid, &ends[i].status, WNOHANG) == r.pid;
      if (r.fd >= 0 && !Drain(r.fd, i, on_output)) {
        close(r.fd);
        r.fd = -1;
      }
      if (ended) {
        r.pid = 0;
      } else if (late && !r.killed) {
        r.killed = ends[i].late = true;
        kill(r.pid, SIGKILL);
      }
    }
    // With its pipe closed a program that still runs wakes nobody.
    bool heard = false;
    for (const Running& r : running) heard |= r.fd >= 0 && r.pid > 0;
    if (!heard) usleep(kTickMs * 1000 / 4);
  }
  for (const Running& r : running) {
    if (r.fd >= 0) close(r.fd);
  }
  return ends;
}

bool OnPath(const std::string& program) {
  const char* path = getenv("PATH");
  for (const absl::string_view folder : absl::StrSplit(path == nullptr ? "/usr/bin:/bin" : path, ':')) {
    if (access(absl::StrCat(folder.empty() ? "." : folder, "/", program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace ringscope::supervisor
