// Clocks of hosts out of what they did together: the truth lies within the bounds, and nothing is invented where nothing bounds.
#include "analyzer/model/clocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/testing/job_builder.h"

namespace ringscope::model {
namespace {

using ringscope::testing::CommRef;
using ringscope::testing::JobBuilder;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kMs = 1'000'000, kSecond = 1'000'000'000;

TEST(Solve, BothSidesAndTheirAbsence) {
  // value(1) - value(0) within [-3, 5]; value(2) - value(1) at most 2.
  const auto solved = Solve(3, {{1, 0, 5}, {0, 1, 3}, {2, 1, 2}}, 0);
  ASSERT_TRUE(solved);
  EXPECT_EQ((*solved)[1].high, 5);
  EXPECT_EQ((*solved)[1].low, -3);
  EXPECT_EQ((*solved)[2].high, 7);
  EXPECT_FALSE((*solved)[2].low);
}

TEST(Solve, ContradictionsAreFound) {
  EXPECT_FALSE(Solve(2, {{1, 0, 5}, {0, 1, -6}}, 0));
  EXPECT_FALSE(Solve(3, {{1, 0, 5}, {2, 1, -3}, {0, 2, -3}}, 0));
  EXPECT_FALSE(Solve(2, {{1, 1, -1}, {1, 0, 0}}, 0));
}

TEST(Solve, ExtremesDoNotOverflow) {
  const int64_t most = std::numeric_limits<int64_t>::max(), least = std::numeric_limits<int64_t>::min();
  Solve(3, {{1, 0, most}, {2, 1, most}, {0, 2, most}}, 0);
  Solve(3, {{1, 0, least}, {2, 1, least}, {0, 2, least}}, 0);
}

// Hosts with a rank each and clocks of their own; times are made in true time and written by each host's clock.
class Hosts {
 public:
  Hosts(int hosts, unsigned seed) : random_(seed) {
    for (int h = 0; h < hosts; ++h) {
      Host host;
      host.boot = Uniform(1'000 * kSecond, 900'000 * kSecond);
      host.ahead = h == 0 ? 0 : Uniform(-5 * kSecond, 5 * kSecond);
      host.ppm = static_cast<double>(Uniform(-50'000, 50'000)) / 1000;
      hosts_.push_back(host);
    }
  }
  int64_t Uniform(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }
  int64_t Local(int h, int64_t t) const {
    const Host& host = hosts_[static_cast<size_t>(h)];
    return host.boot + t + static_cast<int64_t>(static_cast<double>(t) * host.ppm * 1e-6);
  }
  // The wall clock that is read at `t`, in the job's time.
  int64_t Ahead(int h, int64_t t) const {
    return hosts_[static_cast<size_t>(h)].ahead + (Local(h, t) - hosts_[static_cast<size_t>(h)].boot - t);
  }
  int64_t set_ahead(int h, int64_t ns) { return hosts_[static_cast<size_t>(h)].ahead = ns; }

  std::vector<Record> Records(int n_ops, bool same_rank_last = false) {
    const int n = static_cast<int>(hosts_.size());
    JobBuilder b(n, 100);
    std::vector<int> ranks;
    for (int h = 0; h < n; ++h) ranks.push_back(h);
    const CommRef c = b.Comm("w", ranks, 0x77);
    for (int h = 0; h < n; ++h) b.Finish(c, h, static_cast<uint64_t>(n_ops));
    int64_t t = 10 * kSecond;
    for (int i = 0; i < n_ops; ++i) {
      std::vector<int64_t> enter;
      for (int h = 0; h < n; ++h) enter.push_back(t + Uniform(0, 3 * kMs) + (same_rank_last && h == n - 1 ? 20 * kMs : 0));
      const int64_t last = *std::max_element(enter.begin(), enter.end());
      for (int h = 0; h < n; ++h) {
        trace::Operation& op = *b.Raw(c, h).mutable_operations(i);
        op.set_entered_ns(Local(h, enter[static_cast<size_t>(h)]));
        op.set_returned_ns(op.entered_ns() + 1000);
        op.set_enqueued_ns(op.entered_ns() + 900);
        op.set_started_ns(op.entered_ns() + 2000);
        op.set_finished_ns(Local(h, last + Uniform(80'000, 600'000)));
      }
      t += 100 * kMs;
    }
    end_ = t + kSecond;
    for (int h = 0; h < n; ++h) {
      trace::Trace& r = b.Record(h);
      r.mutable_process()->set_host("host" + std::to_string(h));
      r.mutable_process()->set_boot_id("boot" + std::to_string(h));
      r.mutable_clock()->set_monotonic_ns(Local(h, end_));
      r.mutable_clock()->set_realtime_ns(kEpoch + end_ + Ahead(h, end_));
      r.set_written_ns(Local(h, end_));
      r.mutable_liveness()->set_heartbeat_ns(Local(h, end_));
      r.mutable_liveness()->set_heartbeat_realtime_ns(kEpoch + end_ + Ahead(h, end_));
    }
    return b.Records();
  }
  int64_t end() const { return end_; }
  double Ppm(int h) const { return hosts_[static_cast<size_t>(h)].ppm; }

 private:
  static constexpr int64_t kEpoch = 1'700'000'000 * kSecond;
  struct Host {
    int64_t boot = 0, ahead = 0;
    double ppm = 0;
  };
  std::mt19937 random_;
  std::vector<Host> hosts_;
  int64_t end_ = 0;
};

const HostClock& ClockOf(const Job& job, int h) {
  for (const HostClock& c : job.clocks) {
    if (c.boot_id == "boot" + std::to_string(h)) return c;
  }
  ADD_FAILURE() << "no clock of host " << h;
  return job.clocks.front();
}

TEST(AlignClocks, TheTruthIsAlwaysWithinTheBounds) {
  int64_t widest = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    Hosts hosts(5, seed);
    const Job job = BuildJob(hosts.Records(60));
    ASSERT_EQ(job.clocks.size(), 5u);
    const HostClock& reference = ClockOf(job, 0);
    for (int h = 1; h < 5; ++h) {
      const HostClock& c = ClockOf(job, h);
      ASSERT_GE(c.error_ns, 0);
      const int64_t truth = hosts.Ahead(h, hosts.end()) - hosts.Ahead(0, hosts.end()), told = c.ahead_ns - reference.ahead_ns;
      EXPECT_LE(std::abs(truth - told), c.error_ns + reference.error_ns) << "seed " << seed << " host " << h;
      widest = std::max(widest, c.error_ns);
      if (c.has_drift) {
        EXPECT_LE(std::abs(c.drift_ppm - (hosts.Ppm(h) - hosts.Ppm(0))), c.drift_error_ppm + 1) << "seed " << seed;
      }
    }
  }
  EXPECT_LT(widest, 3 * kMs) << "ranks enter within 3 ms of each other and finish within 0.6 ms";
}

TEST(AlignClocks, TheSameRankAlwaysLastBoundsOneSide) {
  Hosts hosts(2, 7);
  hosts.set_ahead(1, 2 * kSecond);
  const Job job = BuildJob(hosts.Records(40, true));
  const HostClock& c = ClockOf(job, 1);
  const int64_t truth = hosts.Ahead(1, hosts.end()) - hosts.Ahead(0, hosts.end());
  EXPECT_LE(std::abs(truth - (c.ahead_ns - ClockOf(job, 0).ahead_ns)), c.error_ns + ClockOf(job, 0).error_ns);
  EXPECT_GT(c.error_ns, 5 * kMs) << "20 ms of lateness look like 20 ms of clock";
}

TEST(AlignClocks, NothingInCommonNothingBounded) {
  Hosts hosts(2, 9);
  std::vector<Record> records = hosts.Records(1);
  for (Record& r : records) {
    for (auto& op : *r.trace.mutable_communicators(0)->mutable_operations()) {
      op.set_finished_ns(0);
      op.set_unfinished(true);
    }
  }
  const Job job = BuildJob(records);
  EXPECT_EQ(ClockOf(job, 1).error_ns, -1);
  for (const Process& p : job.processes) EXPECT_EQ(p.clock_shift_ns, 0) << "the wall clock is believed";
}

TEST(AlignClocks, OneMachineHasOneClock) {
  Hosts hosts(3, 3);
  std::vector<Record> records = hosts.Records(4);
  for (Record& r : records) r.trace.mutable_process()->set_boot_id("the same");
  EXPECT_TRUE(BuildJob(records).clocks.empty());
}

TEST(AlignClocks, ClocksThatAreOffAreSaid) {
  Hosts hosts(4, 11);
  for (int h = 1; h < 4; ++h) hosts.set_ahead(h, h == 2 ? 3 * kSecond : 0);
  const Job job = BuildJob(hosts.Records(30));
  EXPECT_THAT(job.not_seen, Contains(HasSubstr("host2 3.0 s ahead")));
  EXPECT_THAT(job.not_seen, Not(Contains(HasSubstr("host1 "))));
  EXPECT_LT(std::abs(ClockOf(job, 1).ahead_ns), 50 * kMs) << "one wrong clock moves no other";
}

TEST(AlignClocks, AContradictionIsSaidAndBelievesTheWallClocks) {
  Hosts hosts(2, 13);
  std::vector<Record> records = hosts.Records(12);
  // A machine that slept: its monotonic clock lost 30 s in mid-run.
  for (Record& r : records) {
    if (r.trace.process().boot_id() != "boot1") continue;
    auto& ops = *r.trace.mutable_communicators(0)->mutable_operations();
    for (int i = 0; i < ops.size(); i += 2) {
      for (auto set : {&trace::Operation::set_entered_ns}) (ops[i].*set)(ops[i].entered_ns() - 30 * kSecond);
      ops[i].set_finished_ns(ops[i].finished_ns() - 30 * kSecond);
    }
  }
  const Job job = BuildJob(records);
  EXPECT_THAT(job.not_seen, Contains(HasSubstr("cannot be aligned")));
  EXPECT_EQ(ClockOf(job, 1).error_ns, -1);
}

TEST(AlignClocks, SignsOfLifeAreInTheJobsTime) {
  Hosts hosts(3, 17);
  hosts.set_ahead(1, -4 * kSecond);
  const Job job = BuildJob(hosts.Records(30));
  int64_t low = std::numeric_limits<int64_t>::max(), high = 0;
  for (const Process& p : job.processes) {
    low = std::min(low, p.last_sign_ns);
    high = std::max(high, p.last_sign_ns);
  }
  EXPECT_LT(high - low, 20 * kMs) << "all wrote at one time";
}

}  // namespace
}  // namespace ringscope::model
