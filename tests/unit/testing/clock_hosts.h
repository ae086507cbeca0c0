// Hosts with a rank each and clocks of their own; what they do together is made in true time and written down by each host's clock.
#ifndef RINGSCOPE_TESTS_UNIT_TESTING_CLOCK_HOSTS_H_
#define RINGSCOPE_TESTS_UNIT_TESTING_CLOCK_HOSTS_H_

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/testing/job_builder.h"

namespace ringscope::testing {

inline constexpr int64_t kUs = 1'000, kMs = 1'000'000, kSecond = 1'000'000'000;

class ClockHosts {
 public:
  ClockHosts(int hosts, unsigned seed) : random_(seed) {
    for (int h = 0; h < hosts; ++h) {
      Host host;
      host.boot = Uniform(1'000 * kSecond, 900'000 * kSecond);
      host.ahead = h == 0 ? 0 : Uniform(-5 * kSecond, 5 * kSecond);
      host.ppm = static_cast<double>(Uniform(-50'000, 50'000)) / 1000;
      host.gpu = Uniform(1, 1'000'000 * kSecond);
      host.gpu_ppm = static_cast<double>(Uniform(-20'000, 20'000)) / 1000;
      hosts_.push_back(host);
    }
  }
  int64_t Uniform(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }

  struct Plan {
    int ops = 60;
    int64_t apart = 100 * kMs;      // between operations
    int64_t run_ahead = 0;          // calls come so much before their kernels; now and then hardly
    int64_t fastest = 80 * kUs, slowest = 600 * kUs;  // of what the last to come needs
    int64_t polling = 0;            // the proxy sees a kernel's start and end late, by up to so much
    bool gpu_stamps = false;
    bool last_is_last = false;      // the last host comes 20 ms after the others, always
    trace::Func func = trace::ALL_REDUCE;
    int root = -1, odd_root = -1;   // odd_root: of every other operation; -1 the same
  };
  // Local times of a host.
  int64_t Local(int h, int64_t t) const {
    const Host& host = At(h);
    const int64_t slept = host.slept_at == 0 ? 0 : std::clamp<int64_t>(t - host.slept_at, 0, host.slept);
    return host.boot + t + Part(t, host.ppm) - slept;
  }
  int64_t Gpu(int h, int64_t t) const { return (At(h).gpu + t + Part(t, At(h).gpu_ppm)) / 32 * 32; }
  // What the wall clock shows at `t` more than the true time.
  int64_t Ahead(int h, int64_t t) const { return At(h).ahead + Local(h, t) - At(h).boot - t; }
  void set_ahead(int h, int64_t ns) { hosts_[static_cast<size_t>(h)].ahead = ns; }
  // Its monotonic clock stands still for so long from true time `at` on, and the job waits for it.
  void Sleeps(int h, int64_t at, int64_t ns) { hosts_[static_cast<size_t>(h)].slept_at = at, hosts_[static_cast<size_t>(h)].slept = ns; }

  std::vector<model::Record> Records(const Plan& plan) {
    const int n = static_cast<int>(hosts_.size());
    JobBuilder b(n, 100);
    std::vector<int> ranks;
    for (int h = 0; h < n; ++h) ranks.push_back(h);
    const CommRef c = b.Comm("w", ranks, 0x77);
    for (int h = 0; h < n; ++h) b.Finish(c, h, static_cast<uint64_t>(plan.ops));
    int64_t t = 10 * kSecond;
    for (int i = 0; i < plan.ops; ++i) {
      for (const Host& host : hosts_) {
        if (host.slept_at != 0 && t >= host.slept_at && t < host.slept_at + host.slept) t += host.slept;
      }
      std::vector<int64_t> start;
      for (int h = 0; h < n; ++h) start.push_back(t + Uniform(0, 3 * kMs) + (plan.last_is_last && h == n - 1 ? 20 * kMs : 0));
      const int64_t last = *std::max_element(start.begin(), start.end());
      const int root = i % 2 == 1 && plan.odd_root >= 0 ? plan.odd_root : plan.root;
      for (int h = 0; h < n; ++h) {
        const int64_t began = start[static_cast<size_t>(h)];
        // A root of a broadcast waits for nobody, and nobody waits for those that are not the root of a reduce.
        const bool first = plan.func == trace::BROADCAST, alone = plan.func == trace::REDUCE && h != root;
        const int64_t ready = first ? std::max(began, start[static_cast<size_t>(root)]) : alone ? began : last;
        const int64_t ended = ready + Uniform(plan.fastest, plan.slowest);
        const int64_t ahead = plan.run_ahead == 0 ? 0 : i % 8 == h % 8 ? 10 * kUs : Uniform(plan.run_ahead / 2, plan.run_ahead);
        trace::Operation& op = *b.Raw(c, h).mutable_operations(i);
        op.set_func(plan.func);
        op.set_root(root);
        op.set_entered_ns(Local(h, began - ahead));
        op.set_returned_ns(op.entered_ns() + kUs);
        op.set_enqueued_ns(op.entered_ns() + kUs);
        op.set_started_ns(Local(h, began + Uniform(5, 5 + plan.polling)));
        op.set_finished_ns(Local(h, ended + Uniform(5, 5 + plan.polling)));
        if (!plan.gpu_stamps) continue;
        op.set_gpu_started_ns(Gpu(h, began));
        op.set_gpu_finished_ns(Gpu(h, ended));
      }
      t += plan.apart;
    }
    end_ = t + kSecond;
    for (int h = 0; h < n; ++h) {
      trace::Trace& r = b.Record(h);
      r.mutable_process()->set_host("host" + std::to_string(h));
      r.mutable_process()->set_boot_id("boot" + std::to_string(h));
      trace::Clock& clock = *r.mutable_clock();
      clock.set_monotonic_ns(Local(h, end_));
      clock.set_realtime_ns(kEpoch + end_ + Ahead(h, end_));
      clock.set_first_monotonic_ns(clock.monotonic_ns() - end_);
      clock.set_first_realtime_ns(clock.realtime_ns() - end_);
      r.set_written_ns(Local(h, end_));
      r.mutable_liveness()->set_heartbeat_ns(Local(h, end_));
      r.mutable_liveness()->set_heartbeat_realtime_ns(kEpoch + end_ + Ahead(h, end_));
      r.mutable_liveness()->set_last_callback_ns(Local(h, end_));
    }
    return b.Records();
  }
  int64_t end() const { return end_; }
  double Ppm(int h) const { return At(h).ppm; }

 private:
  static constexpr int64_t kEpoch = 1'700'000'000 * kSecond;
  struct Host {
    int64_t boot = 0, ahead = 0, gpu = 0, slept_at = 0, slept = 0;
    double ppm = 0, gpu_ppm = 0;
  };
  static int64_t Part(int64_t t, double ppm) { return static_cast<int64_t>(static_cast<double>(t) * ppm * 1e-6); }
  const Host& At(int h) const { return hosts_[static_cast<size_t>(h)]; }
  std::mt19937 random_;
  std::vector<Host> hosts_;
  int64_t end_ = 0;
};

}  // namespace ringscope::testing

#endif  // RINGSCOPE_TESTS_UNIT_TESTING_CLOCK_HOSTS_H_
