// A GPU's timer brought to the clock of its host.
//
// NCCL (2.27.3 and newer) tells when a kernel began and ended by the GPU's globaltimer, which counts from some moment of its own.
// On the host the same kernel was called before that and seen by NCCL's proxy after it, and the proxy polls: now and then at once,
// now and then late. host - gpu is therefore at least the largest "called - began" and at most the smallest "seen - began": what one
// kernel leaves open, others close. The width is the shortest launch plus the shortest delay of the proxy, not the usual ones.
// Two GPUs are never compared by their timers.
#ifndef RINGSCOPE_ANALYZER_MODEL_GPU_CLOCK_H_
#define RINGSCOPE_ANALYZER_MODEL_GPU_CLOCK_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>

#include "analyzer/model/model.h"

namespace ringscope::model {

// globaltimer moves in steps of up to so much, by generation.
inline constexpr int64_t kGpuTimerStepNs = 1'024;
// Two oscillators against each other.
inline constexpr double kGpuDriftPpm = 100;

struct GpuClock {
  int64_t at_ns = 0;          // moment for which the bounds hold, GPU
  int64_t low_ns = 0, high_ns = 0;  // of host - gpu
  size_t kernels = 0;         // that it rests on
  // The host's monotonic clock was at least (at most) this when the GPU's timer showed `gpu_ns`.
  int64_t HostEarliest(int64_t gpu_ns) const;
  int64_t HostLatest(int64_t gpu_ns) const;
};

// Of all GPUs of a job. A member's GPU is that of its process and job rank; where the job rank is unknown, the member's alone.
class GpuClocks {
 public:
  explicit GpuClocks(const Job& job);
  // nullptr: no stamps, or such that contradict each other (a GPU that was reset).
  const GpuClock* Of(const Communicator& communicator, const Member& member) const;

 private:
  using Key = std::tuple<int, int, int>;  // process, job rank; else communicator
  static Key KeyOf(const Communicator& communicator, const Member& member);
  std::map<Key, GpuClock> clocks_;
};

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_GPU_CLOCK_H_
