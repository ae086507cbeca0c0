// Many processes at once.
//
//   storm LIBRARY HOST fork CHILDREN        children fork while the parent's threads make callbacks at full speed
//   storm LIBRARY HOST restart TIMES        a job of 8 local ranks, killed and started again
//
// HOST: the program manners_host. Exit status 0 when everything was as it must be.
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

#include "recorder/flight/format.h"
#include "tests/manners/host.h"
#include "tests/unit/recorder/in_child.h"

namespace ringscope::manners {
namespace {

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "storm: %s\n", why.c_str());
  std::exit(1);
}
void Check(bool good, const std::string& what) {
  if (!good) Fail(what);
}

std::string g_flight, g_traces;
const char* g_library;
const char* g_host;

// ---- forks

constexpr int kThreads = 2;
constexpr uint64_t kChildOps = 50;

// What one kind of child does; never returns.
[[noreturn]] void BeChild(int kind, Host& host, void* parents_context) {
  alarm(60);
  switch (kind) {
    case 0:
      exit(0);
    case 1:
      _exit(0);
    case 2:
      execl("/bin/true", "true", nullptr);
      _exit(9);
    case 3: {  // uses NCCL itself, ends in order
      void* context = host.Init(1000);
      host.Complete(context, kChildOps);
      host.Finalize(context);
      exit(0);
    }
    case 4: {  // uses NCCL itself, is killed
      host.Complete(host.Init(1000), kChildOps);
      kill(getpid(), SIGKILL);
      _exit(9);
    }
    case 5: {  // a grandchild that uses it
      const pid_t pid = fork();
      if (pid == 0) {
        void* context = host.Init(1001);
        host.Complete(context, kChildOps);
        host.Finalize(context);
        exit(0);
      }
      int status = 0;
      waitpid(pid, &status, 0);
      _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 8);
    }
    default:  // calls what it inherited
      host.Complete(parents_context, kChildOps);
      exit(0);
  }
}
constexpr int kKinds = 7, kKilled = 4;

template <typename Row>
const Row* Rows(const std::string& bytes, flight::Table table) {
  const auto* header = reinterpret_cast<const flight::FileHeader*>(bytes.data());
  for (uint32_t i = 0; i < header->table_count; ++i) {
    if (header->tables[i].table == static_cast<uint32_t>(table))
      return reinterpret_cast<const Row*>(bytes.data() + header->tables[i].offset);
  }
  Fail("a table is missing");
}

// One communicator of the parent after `n` collectives like those of bench::Driver, all over.
void CheckComm(const std::string& bytes, uint64_t id, uint64_t n) {
  const auto* comms = Rows<flight::CommRow>(bytes, flight::Table::kComms);
  const auto* ops = Rows<flight::OpRow>(bytes, flight::Table::kOps);
  for (uint32_t c = 0; c < flight::kCommRows; ++c) {
    const flight::CommRow& comm = comms[c];
    if (comm.stamp == 0 || comm.comm_id != id) continue;
    const auto is = [&](const char* what, uint64_t got, uint64_t want) {
      Check(got == want, "communicator " + std::to_string(id) + ", " + what + ": " + std::to_string(got) + ", not " +
                             std::to_string(want));
    };
    is("collectives", comm.collectives, n);
    is("launched", comm.launched, n);
    is("completed", comm.completed, n);
    is("no_row", comm.no_row, 0);
    const uint32_t first = static_cast<uint32_t>(comm.ring), rows = static_cast<uint32_t>(comm.ring >> 32) + 1;
    std::map<uint64_t, uint32_t> positions;
    for (uint32_t i = first; i < first + rows; ++i) {
      if (ops[i].stamp == 0) continue;
      ++positions[ops[i].position & 0xffffffffff];
      is("count", ops[i].count, 4096);
      is("generation of the kernel lane", ops[i].kernel & 0xffffffff, ops[i].stamp & 0xffffffff);
      is("kernels", ops[i].kernel >> 32, uint64_t{1} << 16 | 1);
      Check(ops[i].returned >= ops[i].entered && ops[i].finished >= ops[i].started, "times run backwards");
    }
    is("rows", positions.size(), std::min<uint64_t>(n, rows));
    if (n > 0) is("oldest position", positions.begin()->first, n >= rows ? n - rows + 1 : 1);
    if (n > 0) is("newest position", positions.rbegin()->first, n);
    return;
  }
  Fail("a communicator of the parent has no row");
}

int Forks(int children) {
  setenv("RINGSCOPE_TRACES", "0", 1);
  Host host(g_library);
  void* contexts[kThreads];
  for (int t = 0; t < kThreads; ++t) contexts[t] = host.Init(100 + static_cast<uint64_t>(t));
  std::atomic<bool> stop{false};
  uint64_t done[kThreads] = {};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      while (!stop) {
        host.Complete(contexts[t], 10);
        done[t] += 10;
      }
    });
  }
  std::map<pid_t, int> running;
  int started = 0, killed = 0;
  while (started < children || !running.empty()) {
    while (started < children && running.size() < 25) {
      const int kind = started % kKinds;
      const pid_t pid = fork();
      if (pid == 0) BeChild(kind, host, contexts[started % kThreads]);
      Check(pid > 0, "fork failed");
      running[pid] = kind;
      ++started;
    }
    int status = 0;
    const pid_t pid = wait(&status);
    const int kind = running[pid];
    running.erase(pid);
    if (kind == kKilled) {
      Check(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "a child that kills itself ended in another way");
      ++killed;
    } else {
      Check(WIFEXITED(status) && WEXITSTATUS(status) == 0,
            "a child of kind " + std::to_string(kind) + " ended with status " + std::to_string(status));
    }
  }
  stop = true;
  for (auto& t : threads) t.join();
  std::string own;
  size_t files = 0;
  for (const std::string& f : FilesBelow(g_flight)) {
    ++files;
    if (f.find("-" + std::to_string(getpid()) + "-") != std::string::npos) own = ReadAll(f);
  }
  Check(!own.empty(), "the parent's file is gone");
  for (int t = 0; t < kThreads; ++t) CheckComm(own, 100 + static_cast<uint64_t>(t), done[t]);
  // Traces are off, so children that end in order leave their file, too: each start keeps the newest two of the dead; those
  // that run at once see each other alive.
  Check(files <= 1 + 2 + 25, std::to_string(files) + " flight files are left");
  std::printf("%d children (%d killed) beside %llu collectives of the parent: its record is right; %zu flight files\n", started,
              killed, static_cast<unsigned long long>(done[0] + done[1]), files);
  return 0;
}

// ---- restarts

constexpr int kRanks = 8;

pid_t StartRank(int rank, int ready) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  dup2(ready, 1);
  setenv("RANK", std::to_string(rank).c_str(), 1);
  setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
  execl(g_host, g_host, g_library, "hang", nullptr);
  _exit(9);
}

// Files that were finished, that is, have a magic.
size_t Published() {
  size_t count = 0;
  for (const std::string& f : FilesBelow(g_flight)) count += ReadAll(f).substr(0, 8) == "RNGSCOPE";
  return count;
}

int Restarts(int times) {
  size_t most = 0;
  for (int n = 0; n <= times; ++n) {
    int ready[2];
    Check(pipe(ready) == 0, "no pipe");
    fcntl(ready[0], F_SETFD, FD_CLOEXEC);
    std::vector<pid_t> pids;
    for (int r = 0; r < kRanks; ++r) pids.push_back(StartRank(r, ready[1]));
    close(ready[1]);
    const bool last = n == times;
    // Most are killed once all ranks record; some while they start.
    char c;
    int up = 0;
    for (const int wanted = n % 5 == 4 && !last ? 4 : kRanks; up < wanted; ++up) Check(read(ready[0], &c, 1) == 1, "a rank did not start");
    if (last) {
      // All that is left of the dead: two of each rank. (What died while it made its file goes a minute later.)
      const bool few = Eventually([] { return Published() <= kRanks * (1 + 2); });
      if (!few) {
        for (const pid_t pid : pids) kill(pid, SIGKILL);
        Fail(std::to_string(Published()) + " files stay");
      }
    }
    for (const pid_t pid : pids) kill(pid, SIGKILL);
    for (const pid_t pid : pids) waitpid(pid, nullptr, 0);
    close(ready[0]);
    most = std::max(most, Published());
  }
  const size_t left = Published(), unfinished = FilesBelow(g_flight).size() - left;
  Check(left >= kRanks, "the newest files were removed");
  std::map<std::string, int> of_rank;
  for (const std::string& f : FilesBelow(g_flight)) {
    if (ReadAll(f).substr(0, 8) != "RNGSCOPE") continue;
    const size_t at = f.find("-rank");
    ++of_rank[f.substr(at, f.find('-', at + 1) - at)];
  }
  for (const auto& [rank, count] : of_rank) Check(count <= 3, rank + " has " + std::to_string(count) + " files");
  // 64 dead ones in all at any time, and those that run.
  Check(most <= 64 + kRanks, std::to_string(most) + " files at once");
  std::printf("%d restarts of %d ranks: at most %zu flight files, %zu at the end; %zu of processes killed while they made theirs\n",
              times, kRanks, most, left, unfinished);
  return 0;
}

}  // namespace
}  // namespace ringscope::manners

int main(int argc, char** argv) {
  using namespace ringscope::manners;
  if (argc != 5 || std::atoi(argv[4]) <= 0) {
    std::fputs("usage: storm LIBRARY HOST fork|restart NUMBER\n", stderr);
    return 64;
  }
  g_library = argv[1];
  g_host = argv[2];
  ringscope::TempDir dir;
  g_flight = dir.path() + "/flight";
  g_traces = dir.path() + "/traces";
  setenv("RINGSCOPE_FLIGHT_DIR", g_flight.c_str(), 1);
  setenv("RINGSCOPE_DIR", g_traces.c_str(), 1);
  setenv("RINGSCOPE_JOB", "j", 1);
  setenv("RINGSCOPE_HOST", "h", 1);
  setenv("RINGSCOPE_STALL_SECONDS", "60", 1);
  return std::strcmp(argv[3], "fork") == 0 ? Forks(std::atoi(argv[4])) : Restarts(std::atoi(argv[4]));
}
