#include "bench/measure.h"

#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <algorithm>
#include <atomic>

#include "bench/crew.h"
#include "bench/driver.h"

namespace ringscope::bench {
namespace {

int64_t ClockNs(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
}

uint64_t Ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<uint64_t>(ClockNs(CLOCK_MONOTONIC));
#endif
}

// Direct, with a clock around each callback.
struct Timed {
  Direct direct;
  std::vector<uint32_t>* samples;  // with room for all

  template <typename F>
  auto Around(F f) {
    const uint64_t before = Ticks();
    auto result = f();
    samples->push_back(static_cast<uint32_t>(std::min<uint64_t>(Ticks() - before, UINT32_MAX)));
    return result;
  }
  void* Start(abi::v5::Descr& d) {
    return Around([&] { return direct.Start(d); });
  }
  void Stop(void* handle) {
    if (handle != nullptr) Around([&] { return direct.Stop(handle), 0; });
  }
  void State(void* handle, abi::EventState state, abi::StateArgs* arguments) {
    if (handle != nullptr) Around([&] { return direct.State(handle, state, arguments), 0; });
  }
};

// The parent of proxy operations is enqueued before and finished after the measured part:
// `measured` runs between.
template <typename Call, typename F>
void RunUnits(Call& call, const Plugin& plugin, void* context, const Case& work, int units,
              F around) {
  Direct outside{&plugin.table(), context};
  Driver<Direct> before(outside, plugin.version(), 0, plugin.mask());
  before.Pair();  // what a plugin does once a thread
  void* parent = work.work == Case::kProxyOperation ? before.Enqueue(1) : nullptr;
  Driver<Call> driver(call, plugin.version(), 0, plugin.mask());
  around([&] {
    switch (work.work) {
      case Case::kPair:
        for (int i = 0; i < units; ++i) driver.Pair();
        break;
      case Case::kCollective:
        for (int i = 0; i < units; ++i) driver.Collective(work.channels);
        break;
      case Case::kProxyOperation:
        for (int i = 0; i < units; ++i) driver.ProxyOperation(parent);
        break;
    }
  });
  if (parent != nullptr && (plugin.mask() & abi::kKernelCh)) before.FinishKernel(parent, 1);
}

// Lets all threads begin the measured part together.
class Gate {
 public:
  explicit Gate(int threads) : missing_(threads) {}
  void Pass() {
    missing_.fetch_sub(1);
    while (missing_.load() > 0) sched_yield();
  }

 private:
  std::atomic<int> missing_;
};

Crew& TheCrew() {
  static Crew crew;
  return crew;
}

}  // namespace

std::vector<Case> AllCases() {
  return {{"start/stop pair", Case::kPair},
          {"collective, 1 channel", Case::kCollective, 1},
          {"collective, 2 channels", Case::kCollective, 2},
          {"collective, 16 channels", Case::kCollective, 16},
          {"proxy operation, 8 steps", Case::kProxyOperation}};
}

CpuCost MeasureCpu(const Plugin& plugin, const Case& work, const Threads& threads,
                   const std::vector<void*>& contexts, int units) {
  Gate gate(threads.count);
  std::atomic<int64_t> cpu_ns{0};
  std::atomic<uint64_t> callbacks{0};
  TheCrew().Run(contexts.size(), [&](size_t i) {
    Direct call{&plugin.table(), contexts[i]};
    RunUnits(call, plugin, contexts[i], work, units, [&](auto run) {
      gate.Pass();
      const int64_t begin = ClockNs(CLOCK_THREAD_CPUTIME_ID);
      run();
      cpu_ns += ClockNs(CLOCK_THREAD_CPUTIME_ID) - begin;
    });
    callbacks += call.callbacks;
  });
  const double count = static_cast<double>(callbacks.load());
  return {static_cast<double>(cpu_ns.load()) / count,
          callbacks.load() / contexts.size() / static_cast<uint64_t>(units)};
}

void MeasureEach(const Plugin& plugin, const Case& work, const std::vector<void*>& contexts,
                 int units, std::vector<uint32_t>* samples) {
  std::vector<std::vector<uint32_t>> own(contexts.size());
  Gate gate(static_cast<int>(contexts.size()));
  TheCrew().Run(contexts.size(), [&](size_t i) {
    own[i].reserve(static_cast<size_t>(units) * 64);
    Timed call{{&plugin.table(), contexts[i]}, &own[i]};
    RunUnits(call, plugin, contexts[i], work, units, [&](auto run) {
      gate.Pass();
      run();
    });
  });
  for (const auto& part : own) samples->insert(samples->end(), part.begin(), part.end());
}

double TickNs() {
  static const double ns = [] {
    const uint64_t ticks = Ticks();
    const int64_t begin = ClockNs(CLOCK_MONOTONIC);
    while (ClockNs(CLOCK_MONOTONIC) - begin < 50000000) {
    }
    return static_cast<double>(ClockNs(CLOCK_MONOTONIC) - begin) /
           static_cast<double>(Ticks() - ticks);
  }();
  return ns;
}

Spread Percentiles(std::vector<uint32_t>* samples) {
  if (samples->empty()) return {};
  auto at = [&](double share) {
    const size_t n = std::min(samples->size() - 1,
                              static_cast<size_t>(share * static_cast<double>(samples->size())));
    std::nth_element(samples->begin(), samples->begin() + static_cast<long>(n), samples->end());
    return (*samples)[n] * TickNs();
  };
  return {at(0.5), at(0.999), at(1.0)};
}

uint64_t Drive(const Plugin& plugin, const Case& work, void* context, int units) {
  Direct call{&plugin.table(), context};
  RunUnits(call, plugin, context, work, units, [&](auto run) {
    // Fails with EBADF; a tracer sees it. Errors are of no interest.
    if (write(-1, "begin", 5) >= 0) return;
    run();
    if (write(-1, "end", 3) >= 0) return;
  });
  return call.callbacks;
}

}  // namespace ringscope::bench
