// What a wrapped call costs: CPU ns that the preloaded library adds to calls whose real functions do nothing. Runs itself with
// and without LD_PRELOAD, in turns, so that the ratio means something on a busy machine.
//
//   preload LIBRARY FAKE_FOLDER       FAKE_FOLDER: the do-nothing libraries (build/<preset>/bench/quiet)
//
// Also: how much longer /bin/true and `python3 -c pass` take to start.
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

extern char** environ;

struct NcclId {
  char bytes[128];
};
extern "C" {
int ncclCommInitRank(void** comm, int n, NcclId id, int rank);
int ncclAllReduce(const void* send, void* receive, size_t count, int type, int op, void* comm, void* stream);
int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int kind, void* stream);
int cudaStreamSynchronize(void* stream);
int cudaGetLastError();
}

namespace {

double CpuNs() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

constexpr int kCalls = 200000;
void* g_comm = nullptr;

template <typename Call>
double NsPerCall(Call call) {
  for (int i = 0; i < kCalls / 10; ++i) call();
  const double start = CpuNs();
  for (int i = 0; i < kCalls; ++i) call();
  return (CpuNs() - start) / kCalls;
}

// The least of several rounds on each of `threads` threads, averaged over the threads.
template <typename Call>
double Measure(int threads, Call call) {
  std::vector<double> least(static_cast<size_t>(threads), 1e18);
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      for (int round = 0; round < 5; ++round)
        least[static_cast<size_t>(t)] = std::min(least[static_cast<size_t>(t)], NsPerCall(call));
    });
  }
  double sum = 0;
  for (std::thread& thread : all) thread.join();
  for (const double ns : least) sum += ns;
  return sum / threads;
}

// As a child: prints "name threads ns" lines.
int Child() {
  NcclId id = {};
  ncclCommInitRank(&g_comm, 1, id, 0);
  static char memory[64];
  for (const int threads : {1, 4}) {
    printf("cudaGetLastError %d %.2f\n", threads, Measure(threads, [] { cudaGetLastError(); }));
    printf("cudaStreamSynchronize %d %.2f\n", threads, Measure(threads, [] { cudaStreamSynchronize(memory); }));
    printf("cudaMemcpyAsync %d %.2f\n", threads, Measure(threads, [] { cudaMemcpyAsync(memory, memory, 64, 1, memory); }));
    printf("ncclAllReduce %d %.2f\n", threads, Measure(threads, [] { ncclAllReduce(memory, memory, 64, 7, 0, g_comm, memory); }));
  }
  return 0;
}

std::string Output(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  char part[512];
  while (pipe != nullptr && fgets(part, sizeof(part), pipe) != nullptr) text += part;
  if (pipe != nullptr) pclose(pipe);
  return text;
}

// Seconds that `command` takes, with this library preloaded or (nullptr) none; least of several.
double Start(const char* library, std::vector<std::string> command) {
  double least = 1e18;
  for (int round = 0; round < 40; ++round) {
    std::vector<std::string> lines;
    for (char** e = environ; *e != nullptr; ++e) {
      if (strncmp(*e, "LD_PRELOAD=", 11) != 0) lines.push_back(*e);
    }
    if (library != nullptr) lines.push_back(std::string("LD_PRELOAD=") + library);
    std::vector<char*> environment, words;
    for (std::string& line : lines) environment.push_back(line.data());
    environment.push_back(nullptr);
    for (std::string& word : command) words.push_back(word.data());
    words.push_back(nullptr);
    timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    pid_t pid = 0;
    int status = 0;
    if (posix_spawnp(&pid, words[0], nullptr, nullptr, words.data(), environment.data()) != 0) return -1;
    waitpid(pid, &status, 0);
    clock_gettime(CLOCK_MONOTONIC, &b);
    least = std::min(least, static_cast<double>(b.tv_sec - a.tv_sec) + static_cast<double>(b.tv_nsec - a.tv_nsec) / 1e9);
  }
  return least;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--child") == 0) return Child();
  if (argc != 3) {
    fprintf(stderr, "usage: %s LIBRARY FAKE_FOLDER\n", argv[0]);
    return 64;
  }
  char whole[4096];
  const std::string library = realpath(argv[1], whole) != nullptr ? whole : argv[1];
  const std::string paths =
      std::string("LD_LIBRARY_PATH=") + argv[2] + " RINGSCOPE_FLIGHT_DIR=/dev/shm/ringscope-bench RINGSCOPE_TRACES=0 ";
  const std::string self = std::string(argv[0]) + " --child";
  struct Row {
    std::string name;
    double bare = 1e18, wrapped = 1e18;
  };
  std::vector<Row> rows;
  for (int turn = 0; turn < 3; ++turn) {
    for (const bool preload : {false, true}) {
      const std::string text = Output(paths + (preload ? "LD_PRELOAD=" + library + " " : "") + self);
      size_t row = 0;
      for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1, ++row) {
        char name[64];
        int threads = 0;
        double ns = 0;
        if (sscanf(text.c_str() + at, "%63s %d %lf", name, &threads, &ns) != 3) break;
        if (rows.size() <= row)
          rows.push_back({std::string(name) + (threads > 1 ? ", " + std::to_string(threads) + " threads" : "")});
        double& least = preload ? rows[row].wrapped : rows[row].bare;
        least = std::min(least, ns);
      }
    }
  }
  printf("CPU ns a call (least of 15 rounds)      bare    wrapped      added\n");
  for (const Row& r : rows) printf("  %-32s %9.1f %10.1f %10.1f\n", r.name.c_str(), r.bare, r.wrapped, r.wrapped - r.bare);
  printf("start of a process (least of 40)         bare    preloaded    ratio\n");
  for (const auto& [name, command] : {std::pair<const char*, std::vector<std::string>>{"/bin/true", {"/bin/true"}},
                                      {"python3 -c pass", {"python3", "-c", "pass"}}}) {
    const double bare = Start(nullptr, command), wrapped = Start(library.c_str(), command);
    printf("  %-32s %7.2f ms %7.2f ms %9.3f\n", name, bare * 1e3, wrapped * 1e3, wrapped / bare);
  }
  return rows.empty() ? 1 : 0;
}
