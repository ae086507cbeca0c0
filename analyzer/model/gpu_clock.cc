#include "analyzer/model/gpu_clock.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "analyzer/model/safe_math.h"

namespace ringscope::model {
namespace {

// Stamps are kept with the newest operations only (recorder/flight/encode_comm.cc: 32, and the open ones).
constexpr size_t kLookedAt = 256;

struct Sample {
  int64_t gpu, before, after;  // host times between which it lies; 0 unknown
};

int64_t Drifted(int64_t distance) {
  return static_cast<int64_t>(std::min(std::abs(static_cast<double>(distance)) * kGpuDriftPpm * 1e-6, 4e18));
}

void Collect(const Member& m, std::vector<Sample>* samples) {
  for (size_t i = m.ops.size(), looked = 0; i-- > 0 && looked < kLookedAt; ++looked) {
    const Op& op = m.ops[i];
    // A replayed graph was called when it was captured: its calls say nothing about its kernels.
    if (!op.full || op.raw.gpu_started_ns() == 0 || op.raw.graph_captured()) continue;
    samples->push_back({op.raw.gpu_started_ns(), op.raw.entered_ns(), op.raw.started_ns()});
    if (op.raw.gpu_finished_ns() != 0 && op.finished == Truth::kYes)
      samples->push_back({op.raw.gpu_finished_ns(), op.raw.entered_ns(), op.raw.finished_ns()});
  }
}

}  // namespace

int64_t GpuClock::HostEarliest(int64_t gpu_ns) const { return SatSub(SatAdd(gpu_ns, low_ns), Drifted(SatSub(gpu_ns, at_ns))); }

int64_t GpuClock::HostLatest(int64_t gpu_ns) const {
  return SatAdd(SatAdd(SatAdd(gpu_ns, high_ns), kGpuTimerStepNs), Drifted(SatSub(gpu_ns, at_ns)));
}

GpuClocks::Key GpuClocks::KeyOf(const Communicator& communicator, const Member& member) {
  return member.job_rank >= 0 ? Key(member.process, member.job_rank, -1) : Key(member.process, -1 - member.rank, communicator.index);
}

GpuClocks::GpuClocks(const Job& job) {
  std::map<Key, std::vector<Sample>> samples;
  for (const Communicator& c : job.communicators) {
    for (const Member& m : c.members) {
      if (m.has_record()) Collect(m, &samples[KeyOf(c, m)]);
    }
  }
  for (const auto& [key, of] : samples) {
    GpuClock clock;
    for (const Sample& s : of) clock.at_ns = std::max(clock.at_ns, s.gpu);
    bool low = false, high = false;
    for (const Sample& s : of) {
      const int64_t drifted = Drifted(SatSub(clock.at_ns, s.gpu));
      // The timer may have stood at `gpu` for a step already.
      if (s.before != 0) {
        const int64_t least = SatSub(SatSub(SatSub(s.before, s.gpu), kGpuTimerStepNs), drifted);
        clock.low_ns = low ? std::max(clock.low_ns, least) : least;
        low = true;
      }
      if (s.after != 0) {
        const int64_t most = SatAdd(SatSub(s.after, s.gpu), drifted);
        clock.high_ns = high ? std::min(clock.high_ns, most) : most;
        high = true;
      }
    }
    clock.kernels = of.size();
    if (low && high && clock.low_ns <= clock.high_ns) clocks_.emplace(key, clock);
  }
}

const GpuClock* GpuClocks::Of(const Communicator& communicator, const Member& member) const {
  const auto found = clocks_.find(KeyOf(communicator, member));
  return found == clocks_.end() ? nullptr : &found->second;
}

}  // namespace ringscope::model
