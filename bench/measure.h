// Measures one case of one plugin: CPU time over a batch, or each callback by itself.
#ifndef RINGSCOPE_BENCH_MEASURE_H_
#define RINGSCOPE_BENCH_MEASURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "bench/plugin.h"

namespace ringscope::bench {

// What NCCL does in one unit of a case.
struct Case {
  std::string name;
  enum Work { kPair, kCollective, kProxyOperation } work;
  int channels = 0;  // of the collective
};
std::vector<Case> AllCases();

struct Threads {
  int count = 1;
  bool shared = false;  // one communicator for all threads, else one each
};

struct CpuCost {
  double ns = 0;           // thread CPU time per callback, all threads together
  uint64_t callbacks = 0;  // in one unit
};

// Runs `units` units on each thread and returns the CPU time (CLOCK_THREAD_CPUTIME_ID) a callback.
// `contexts` has one entry a thread (all equal when shared).
CpuCost MeasureCpu(const Plugin& plugin, const Case& work, const Threads& threads,
                   const std::vector<void*>& contexts, int units);

// Runs `units` units on each thread, reads a clock before and after every callback and appends each
// difference, in clock ticks, to `samples`. What the clock itself costs is in every sample: compare
// with those of the empty table.
void MeasureEach(const Plugin& plugin, const Case& work, const std::vector<void*>& contexts,
                 int units, std::vector<uint32_t>* samples);

// Nanoseconds a tick of the clock of MeasureEach().
double TickNs();

struct Spread {
  double p50 = 0, p999 = 0, max = 0;  // ns
};
Spread Percentiles(std::vector<uint32_t>* samples);

// Runs `units` units without looking at any clock, between two marks that a system call tracer can
// see: write(-1, "begin"). Returns the callbacks made.
uint64_t Drive(const Plugin& plugin, const Case& work, void* context, int units);

}  // namespace ringscope::bench

#endif  // RINGSCOPE_BENCH_MEASURE_H_
