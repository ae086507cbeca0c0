// What the recorder takes besides time on NCCL's threads: size of the flight file, size of a trace,
// threads, CPU time while nothing happens. `footprint LIBRARY [SECONDS]`; exit status 1 when a size
// is above its limit.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/driver.h"
#include "bench/plugin.h"
#include "bench/scratch.h"

namespace ringscope::bench {
namespace {

constexpr uint64_t kComms = 8, kOperations = 256;
constexpr uintmax_t kFlightLimit = 3u << 20, kTraceLimit = 96u << 10;

double CpuSeconds() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

// Largest file with this ending below `folder`; 0 when there is none.
uintmax_t Largest(const std::string& folder, const char* extension) {
  uintmax_t size = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == extension) size = std::max(size, entry.file_size());
  }
  return size;
}

int Run(const std::string& path, double seconds) {
  Scratch scratch(true);
  setenv("RINGSCOPE_TRACES", "8", 1);
  const Plugin plugin = Plugin::Load(path);
  std::vector<void*> contexts;
  for (uint64_t id = 1; id <= kComms; ++id) {
    contexts.push_back(plugin.Init({.id = id}));
    Direct call{&plugin.table(), contexts.back()};
    Driver<Direct> driver(call, plugin.version(), 0);
    for (uint64_t i = 0; i < kOperations; ++i) {
      void* coll = driver.Enqueue(2);
      driver.ProxyOperation(coll);
      driver.FinishKernel(coll, 2);
    }
  }
  const uintmax_t flight = Largest(scratch.folder(), ".flight");
  const auto threads = std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                                     std::filesystem::directory_iterator());
  const double before = CpuSeconds();
  timespec pause = {static_cast<time_t>(seconds), 0};
  nanosleep(&pause, nullptr);
  const double idle = (CpuSeconds() - before) / seconds;
  for (void* context : contexts) plugin.Finalize(context);  // the last one asks for a trace
  uintmax_t trace = 0;
  for (int tries = 0; tries < 100 && trace == 0; ++tries) {
    usleep(50000);
    trace = Largest(scratch.folder(), ".trace");
  }
  std::printf(
      "flight file %ju bytes (limit %ju)\ntrace of %ju communicators with %ju operations each: %ju "
      "bytes (limit %ju)\n"
      "threads besides the caller: %td\nidle: %.4f %% of a core\n",
      flight, kFlightLimit, static_cast<uintmax_t>(kComms), static_cast<uintmax_t>(kOperations),
      trace, kTraceLimit, threads - 1, idle * 100);
  const bool ok =
      flight > 0 && flight <= kFlightLimit && trace > 0 && trace <= kTraceLimit && threads == 2;
  std::printf("footprint: %s\n", ok ? "passed" : "FAILED");
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace ringscope::bench

int main(int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') {
    std::fputs("usage: footprint LIBRARY [SECONDS]\n", stderr);
    return 64;
  }
  return ringscope::bench::Run(argv[1], argc > 2 ? std::atof(argv[2]) : 3);
}
