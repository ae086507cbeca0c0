// Drives libringscope.so at full speed for very many callbacks: memory must stay flat, and every
// operation, communicator and edge must be in the record or counted as lost. See bench/README.md;
// `soak --help`.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "bench/driver.h"
#include "bench/flight_view.h"
#include "bench/plugin.h"
#include "bench/scratch.h"

namespace ringscope::bench {
namespace {

constexpr char kHelp[] =
    R"(usage: soak [--callbacks N] [--threads N] libringscope.so
Calls the plugin N times (default 700,000,000) from N threads (default 2), each with communicators of its own that are
created, used, sometimes left hanging, and destroyed. Exit status 1 when resident memory grows or a loss is not counted.
)";
constexpr uint64_t kUnits = 2000;  // operations of one communicator's life
constexpr uint64_t kHangingOps =
    400;  // left open at the end of some lives: more than any ring has rows
constexpr long kMaxGrowthKb = 256;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kJudgeMemory = false;  // a sanitizer's own bookkeeping grows
#else
constexpr bool kJudgeMemory = true;
#endif

std::atomic<uint64_t> g_callbacks{0};
std::atomic<uint64_t> g_lives{0};
std::atomic<uint64_t> g_lost_operations{0};
std::atomic<int> g_failures{0};

void Complain(const std::string& what) {
  // One fault can show up millions of times; ten lines tell enough.
  if (g_failures.fetch_add(1) < 10) std::fprintf(stderr, "soak: FAILED: %s\n", what.c_str());
}

void Expect(bool holds, const char* what, uint64_t got, uint64_t want) {
  if (!holds)
    Complain(std::string(what) + ": got " + std::to_string(got) + ", want " + std::to_string(want));
}

long ResidentKb() {
  long pages = 0, resident = 0;
  if (FILE* f = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(f, "%ld %ld", &pages, &resident) != 2) resident = 0;
    std::fclose(f);
  }
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

// One communicator from creation to destruction. Every fourth ends with operations that never
// finish (an abort).
void Live(const Plugin& plugin, const FlightView& view, uint64_t id, bool hang) {
  void* context = plugin.Init({.id = id});
  Direct call{&plugin.table(), context};
  Driver<Direct> driver(call, plugin.version(), 0);
  for (uint64_t i = 0; i < kUnits; ++i) {
    void* coll = driver.Enqueue(2);
    if (i % 4 == 0) driver.ProxyOperation(coll);
    driver.FinishKernel(coll, 2);
  }
  uint64_t delivered = kUnits;
  const flight::CommRow* comm = view.Comm(id);
  if (comm == nullptr) {
    Complain("communicator " + std::to_string(id) + " has no row though few live");
  } else {
    const uint64_t lost = comm->no_row;
    Expect(lost == 0, "losses of a communicator whose operations all finished", lost, 0);
    if (hang) {
      for (uint64_t i = 0; i < kHangingOps; ++i) driver.Enqueue(2);
      delivered += kHangingOps;
      const uint64_t kept = view.OpsAfter(*comm, kUnits), counted = comm->no_row;
      Expect(kept + counted == kHangingOps, "open operations kept + counted as lost",
             kept + counted, kHangingOps);
      Expect(counted > 0, "operations lost, with more open ones than rows", counted, 1);
      g_lost_operations += counted;
    }
    Expect(comm->collectives == delivered, "position of the newest operation", comm->collectives,
           delivered);
  }
  plugin.Finalize(context);
  ++g_lives;
  g_callbacks += call.callbacks;
}

// More communicators at once than the table holds: those without a row are counted, and cost
// nothing else.
void TooManyCommunicators(const Plugin& plugin, const FlightView& view) {
  const uint64_t before = view.Counter(flight::Counter::kCommNoRow), living = view.LivingComms();
  constexpr uint64_t kMany = flight::kCommRows + 100;
  std::vector<void*> contexts;
  for (uint64_t i = 0; i < kMany; ++i) {
    contexts.push_back(plugin.Init({.id = 1000000 + i}));
    Direct call{&plugin.table(), contexts.back()};
    Driver<Direct>(call, plugin.version(), 0).Collective(1);
    g_callbacks += call.callbacks;
  }
  const uint64_t kept = view.LivingComms() - living,
                 counted = view.Counter(flight::Counter::kCommNoRow) - before;
  Expect(kept + counted == kMany, "communicators kept + counted as lost", kept + counted, kMany);
  std::printf("%llu communicators at once: %llu kept, %llu counted as lost\n",
              static_cast<unsigned long long>(kMany), static_cast<unsigned long long>(kept),
              static_cast<unsigned long long>(counted));
  for (void* context : contexts) plugin.Finalize(context);
}

// More edges busy at once than the table holds.
void TooManyEdges(const Plugin& plugin, const FlightView& view) {
  constexpr uint64_t kId = 2000000, kPeers = 2 * flight::kEdgeRows;
  void* context = plugin.Init({.id = kId, .nodes = 1000, .ranks = kPeers + 1});
  const uint64_t before = view.Counter(flight::Counter::kEdgeNoRow);
  Direct call{&plugin.table(), context};
  Driver<Direct> driver(call, plugin.version(), 0);
  void* coll = driver.Enqueue(1);
  std::vector<void*> open;
  for (uint64_t peer = 1; peer <= kPeers; ++peer)
    open.push_back(driver.StartProxyOperation(coll, static_cast<int>(peer)));
  const uint64_t kept = view.Edges(*view.Comm(kId)),
                 counted = view.Counter(flight::Counter::kEdgeNoRow) - before;
  Expect(kept + counted == kPeers, "edges kept + counted as lost", kept + counted, kPeers);
  Expect(kept > flight::kEdgeRows * 3 / 4, "edges kept when every row is wanted", kept,
         flight::kEdgeRows);
  std::printf("%llu edges at once: %llu kept, %llu counted as lost\n",
              static_cast<unsigned long long>(kPeers), static_cast<unsigned long long>(kept),
              static_cast<unsigned long long>(counted));
  for (void* operation : open) call.Stop(operation);
  driver.FinishKernel(coll, 1);
  plugin.Finalize(context);
  g_callbacks += call.callbacks;
}

uint64_t Number(const char* text) {
  char* end = nullptr;
  const unsigned long long value = text == nullptr ? 0 : std::strtoull(text, &end, 10);
  if (value == 0 || *end != '\0') {
    std::fputs(kHelp, stderr);
    std::exit(64);
  }
  return value;
}

int Run(uint64_t callbacks, unsigned threads, const std::string& path) {
  Scratch scratch(true);
  const Plugin plugin = Plugin::Load(path);
  void* first = plugin.Init(
      {.id = 1});  // makes the flight file; keeps the recorder between the others' lives
  const FlightView view(scratch.folder());
  TooManyCommunicators(plugin, view);
  TooManyEdges(plugin, view);

  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> workers;
  const uint64_t lost_before = view.Counter(flight::Counter::kOpNoRow);
  for (unsigned t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      for (uint64_t life = 0; g_callbacks < callbacks; ++life) {
        Live(plugin, view, 10000000 + life * threads + t, life % 4 == 3);
      }
    });
  }
  long settled = 0, last = 0;
  for (uint64_t next = callbacks / 10; g_callbacks < callbacks;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const uint64_t now = g_callbacks;
    if (now < next) continue;
    next = (now / (callbacks / 10) + 1) * (callbacks / 10);
    last = ResidentKb();
    if (settled == 0) settled = last;
    std::printf("%12llu callbacks  %8llu communicators  resident %ld KiB\n",
                static_cast<unsigned long long>(now),
                static_cast<unsigned long long>(g_lives.load()), last);
    std::fflush(stdout);
  }
  for (auto& worker : workers) worker.join();
  last = ResidentKb();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  plugin.Finalize(first);

  if (kJudgeMemory && settled != 0 && last - settled > kMaxGrowthKb) {
    Complain("resident memory grew from " + std::to_string(settled) + " to " +
             std::to_string(last) + " KiB");
  }
  // Threads that count at the same moment may lose a count of the process-wide sum; each
  // communicator's own is exact.
  const uint64_t lost = g_lost_operations,
                 sum = view.Counter(flight::Counter::kOpNoRow) - lost_before;
  Expect(sum <= lost && sum * 100 >= lost * 95, "process-wide count of lost operations", sum, lost);
  std::printf(
      "%llu callbacks, %llu communicators, %.1f s, %u threads; operations lost and counted: %llu; "
      "resident %ld KiB "
      "(settled at %ld)\nsoak: %s\n",
      static_cast<unsigned long long>(g_callbacks.load()),
      static_cast<unsigned long long>(g_lives.load()), seconds, threads,
      static_cast<unsigned long long>(lost), last, settled, g_failures == 0 ? "passed" : "FAILED");
  return g_failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace ringscope::bench

int main(int argc, char** argv) {
  uint64_t callbacks = 700000000;
  unsigned threads = 2;
  std::string path;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (arg == "--help" || arg == "-h") {
      std::fputs(ringscope::bench::kHelp, stdout);
      return 0;
    }
    if (arg == "--callbacks") {
      callbacks = ringscope::bench::Number(value), ++i;
    } else if (arg == "--threads") {
      threads = static_cast<unsigned>(ringscope::bench::Number(value)), ++i;
    } else {
      path = arg;
    }
  }
  if (path.empty() || path[0] == '-') {
    std::fputs(ringscope::bench::kHelp, stderr);
    return 64;
  }
  return ringscope::bench::Run(callbacks, threads, path);
}
