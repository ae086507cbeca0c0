#include "supervisor/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

namespace ringscope::supervisor {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<Collector>& All() {
  static auto& all = *new std::vector<Collector>;
  return all;
}

struct Running {
  Collected result;
  pid_t child = -1;
  int answer = -1;   // why there is nothing
  std::string part;  // the file while it grows
  bool over = false;
};

std::string Plain(const std::string& name) {
  std::string plain;
  for (const char c : name) plain += isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.' ? c : '_';
  return plain.empty() ? "host" : plain;
}

void Start(const Collector& collector, const CollectOptions& options, Running* r) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    r->result.why_not = strerror(errno);
    r->over = true;
    return;
  }
  r->child = fork();
  if (r->child == 0) {
    // Its own group, so that what it starts ends with it; and not to outlive whoever asked.
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    FILE* out = fopen(r->part.c_str(), "w");
    const std::string why_not =
        out == nullptr ? std::string("its file cannot be made: ") + strerror(errno) : collector.collect(options, out);
    if (out != nullptr) fclose(out);
    [[maybe_unused]] const ssize_t n = write(ends[1], why_not.data(), why_not.size());
    _exit(0);
  }
  close(ends[1]);
  r->answer = ends[0];
  if (r->child < 0) {
    r->result.why_not = strerror(errno);
    r->over = true;
  }
}

void Finish(Running* r, const std::string& whole, Clock::time_point start) {
  r->over = true;
  r->result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  char text[256];
  const ssize_t n = read(r->answer, text, sizeof(text));
  if (n > 0) r->result.why_not.assign(text, static_cast<size_t>(n));
  std::error_code error;
  if (std::filesystem::file_size(r->part, error) > 0 && !error) {
    std::filesystem::rename(r->part, whole, error);
    if (!error) r->result.file = whole;
  } else if (r->result.why_not.empty()) {
    r->result.why_not = "it said nothing";
  }
  std::filesystem::remove(r->part, error);
}

}  // namespace

RegisterCollector::RegisterCollector(const Collector& collector) { All().push_back(collector); }

std::vector<Collected> CollectEvidence(const CollectOptions& options) {
  char name[256] = "host";
  gethostname(name, sizeof(name) - 1);
  const std::string base =
      options.directory + "/" + Plain(options.host.empty() ? name : options.host) + "." + Plain(options.when) + ".";
  std::vector<Running> running;
  std::error_code error;
  std::filesystem::create_directories(options.directory, error);
  std::vector<Collector> collectors = All();
  std::sort(collectors.begin(), collectors.end(),
            [](const Collector& a, const Collector& b) { return strcmp(a.file, b.file) < 0; });
  const Clock::time_point start = Clock::now();
  for (const Collector& collector : collectors) {
    if (collector.after_stall && options.when != "stall") continue;
    if (collector.about == Collector::kMachine && !options.of_machine) continue;
    Running r;
    r.result.name = collector.name;
    // Runs of one machine share the directory.
    const bool own = collector.about == Collector::kProcesses && !options.run.empty();
    r.part = base + (own ? Plain(options.run) + "." : "") + collector.file + ".part";
    if (error) {
      r.result.why_not = options.directory + " cannot be made: " + error.message();
      r.over = true;
    } else {
      Start(collector, options, &r);
    }
    running.push_back(std::move(r));
  }
  const auto until = start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.seconds));
  const auto whole = [&](const Running& r) { return r.part.substr(0, r.part.size() - strlen(".part")); };
  for (bool killed = false;;) {
    bool waits = false;
    for (Running& r : running) {
      if (r.over) continue;
      int status = 0;
      if (waitpid(r.child, &status, WNOHANG) == r.child) {
        if (WIFSIGNALED(status)) r.result.why_not = killed ? "it did not come back in its time" : "it died";
        Finish(&r, whole(r), start);
      } else {
        waits = true;
      }
    }
    if (!waits) break;
    if (!killed && Clock::now() >= until) {
      for (Running& r : running) {
        if (!r.over) kill(-r.child, SIGKILL), kill(r.child, SIGKILL);
      }
      killed = true;
    } else if (killed && Clock::now() >= until + std::chrono::seconds(1)) {
      for (Running& r : running) {
        if (r.over) continue;
        r.result.why_not = "it hangs in the kernel and cannot be ended; process " + std::to_string(r.child) + " is left behind";
        Finish(&r, whole(r), start);
      }
      break;
    }
    usleep(10000);
  }
  std::vector<Collected> results;
  for (Running& r : running) {
    if (r.answer >= 0) close(r.answer);
    results.push_back(std::move(r.result));
  }
  return results;
}

}  // namespace ringscope::supervisor
