// Clocks of hosts out of what they did together: the truth lies within the bounds, and nothing is invented where nothing bounds.
#include "analyzer/model/clocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

#include "analyzer/model/job_time.h"
#include "tests/unit/testing/clock_hosts.h"

namespace ringscope::model {
namespace {

using namespace ringscope::testing;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const HostClock& ClockOf(const Job& job, int h) {
  for (const HostClock& c : job.clocks) {
    if (c.boot_id == "boot" + std::to_string(h)) return c;
  }
  ADD_FAILURE() << "no clock of host " << h;
  return job.clocks.front();
}
int Reference(const Job& job, int hosts) {
  for (int h = 0; h < hosts; ++h) {
    if (ClockOf(job, h).reference) return h;
  }
  return -1;
}
int64_t Median(std::vector<int64_t> v) {
  std::sort(v.begin(), v.end());
  return v.empty() ? -1 : v[v.size() / 2];
}

// Truth against what is told, of every host against the reference; gathers the errors.
void Check(const ClockHosts& hosts, const Job& job, int n, const std::string& what, std::vector<int64_t>* errors) {
  const int r = Reference(job, n);
  ASSERT_GE(r, 0) << what;
  for (int h = 0; h < n; ++h) {
    if (h == r) continue;
    const HostClock& c = ClockOf(job, h);
    ASSERT_GE(c.error_ns, 0) << what << " host " << h;
    const int64_t truth = hosts.Ahead(h, hosts.end()) - hosts.Ahead(r, hosts.end()), told = c.ahead_ns - ClockOf(job, r).ahead_ns;
    EXPECT_LE(std::abs(truth - told), c.error_ns + 2) << what << " host " << h;
    errors->push_back(c.error_ns);
    const double drift = c.has_drift ? std::abs(c.drift_ppm - (hosts.Ppm(h) - hosts.Ppm(r))) : 0;
    EXPECT_LE(drift, c.drift_error_ppm + 1) << what << " host " << h;
  }
}

TEST(AlignClocks, TheTruthIsAlwaysWithinTheBounds) {
  std::vector<int64_t> errors;
  for (unsigned seed = 1; seed <= 1000; ++seed) {
    ClockHosts hosts(5, seed);
    Check(hosts, BuildJob(hosts.Records({})), 5, "seed " + std::to_string(seed), &errors);
  }
  // A second passes between the last operation and the reading of the wall clock: 100 µs of each error.
  std::printf("error, 5 hosts, 60 all-reduces of 80-600 us: median %lld us, most %lld us\n", static_cast<long long>(Median(errors) / kUs),
              static_cast<long long>(*std::max_element(errors.begin(), errors.end()) / kUs));
  EXPECT_LT(Median(errors), 600 * kUs);
  EXPECT_LT(*std::max_element(errors.begin(), errors.end()), 3 * kMs);
}

TEST(AlignClocks, SmallCollectivesBoundTightly) {
  std::vector<int64_t> errors;
  for (unsigned seed = 1; seed <= 50; ++seed) {
    ClockHosts hosts(5, seed);
    ClockHosts::Plan plan;
    plan.apart = 4 * kMs;
    Check(hosts, BuildJob(hosts.Records(plan)), 5, "seed " + std::to_string(seed), &errors);
  }
  std::printf("error, the same every 4 ms: median %lld us\n", static_cast<long long>(Median(errors) / kUs));
  EXPECT_LT(Median(errors), 300 * kUs);
}

// Calls run 60 ms ahead of their kernels and the proxy polls every millisecond: the GPU's timer tells what both hide.
TEST(AlignClocks, TheGpusTimerClosesWhatRunsAhead) {
  int64_t medians[2];
  for (const bool stamps : {false, true}) {
    std::vector<int64_t> errors;
    for (unsigned seed = 1; seed <= 50; ++seed) {
      ClockHosts hosts(4, seed);
      ClockHosts::Plan plan;
      plan.ops = 32, plan.apart = 20 * kMs, plan.run_ahead = 60 * kMs, plan.polling = 1 * kMs, plan.gpu_stamps = stamps;
      Check(hosts, BuildJob(hosts.Records(plan)), 4, "seed " + std::to_string(seed), &errors);
    }
    medians[stamps] = Median(errors);
  }
  std::printf("error, calls that run ahead: %lld us, with GPU stamps %lld us\n", static_cast<long long>(medians[0] / kUs),
              static_cast<long long>(medians[1] / kUs));
  EXPECT_LT(2 * medians[1], medians[0]);
}

TEST(AlignClocks, TheSameRankAlwaysLastBoundsOneSide) {
  ClockHosts hosts(2, 7);
  hosts.set_ahead(1, 2 * kSecond);
  ClockHosts::Plan plan;
  plan.last_is_last = true;
  std::vector<int64_t> errors;
  Check(hosts, BuildJob(hosts.Records(plan)), 2, "", &errors);
  EXPECT_GT(errors[0], 5 * kMs) << "20 ms of lateness look like 20 ms of clock";
}

TEST(AlignClocks, BroadcastsOfOneRootBoundOneSideOfTwoRootsBoth) {
  for (const trace::Func func : {trace::BROADCAST, trace::REDUCE}) {
    ClockHosts hosts(3, 5);
    for (int h = 0; h < 3; ++h) hosts.set_ahead(h, 0);
    ClockHosts::Plan plan;
    plan.func = func;
    plan.root = 1;
    const Job job = BuildJob(hosts.Records(plan));
    for (int h = 0; h < 3; ++h) EXPECT_TRUE(ClockOf(job, h).reference || ClockOf(job, h).error_ns == -1) << h;
    for (const Process& p : job.processes) {
      const JobTime sign = LastSignOf(p);
      EXPECT_TRUE(sign.assumed || sign.error_ns == 0);
    }
    plan.odd_root = 2;
    for (const HostClock& clock : BuildJob(hosts.Records(plan)).clocks) {
      // Host 0 is never a root: of a broadcast it only leaves, of a reduce it only comes.
      EXPECT_EQ(clock.error_ns == -1, clock.boot_id == "boot0") << clock.host;
    }
  }
}

TEST(AlignClocks, NothingInCommonNothingBounded) {
  ClockHosts hosts(2, 9);
  ClockHosts::Plan plan;
  plan.ops = 1;
  std::vector<Record> records = hosts.Records(plan);
  for (Record& r : records) {
    for (auto& op : *r.trace.mutable_communicators(0)->mutable_operations()) {
      op.set_finished_ns(0);
      op.set_unfinished(true);
    }
  }
  const Job job = BuildJob(records);
  for (const Process& p : job.processes)
    EXPECT_EQ(p.ToRealtime(p.trace.clock().monotonic_ns()), p.trace.clock().realtime_ns()) << "the wall clock is believed";
  EXPECT_EQ(OrderOf(LastSignOf(job.processes[0]), LastSignOf(job.processes[1])), Order::kCannotTell);
}

TEST(AlignClocks, CallsThatDifferAndRanksThatGaveUpBoundNothing) {
  ClockHosts hosts(2, 21);
  const std::vector<Record> records = hosts.Records({});
  std::vector<Record> differ = records;
  for (auto& op : *differ[0].trace.mutable_communicators(0)->mutable_operations()) op.set_count(2048);
  Job job = BuildJob(differ);
  EXPECT_EQ(ClockOf(job, 0).error_ns + ClockOf(job, 1).error_ns, -1);
  std::vector<Record> captured = records;
  for (auto& op : *captured[0].trace.mutable_communicators(0)->mutable_operations()) op.set_graph_captured(true);
  job = BuildJob(captured);
  EXPECT_EQ(ClockOf(job, 0).error_ns + ClockOf(job, 1).error_ns, -1);
}

TEST(AlignClocks, OneMachineHasOneClock) {
  ClockHosts hosts(3, 3);
  ClockHosts::Plan plan;
  plan.ops = 4;
  std::vector<Record> records = hosts.Records(plan);
  for (Record& r : records) r.trace.mutable_process()->set_boot_id("the same");
  // The wall clock was set between the anchors of two processes: their times compare all the same.
  for (Record& r : records) r.trace.mutable_clock()->set_monotonic_ns(5'000 * kSecond), r.trace.mutable_clock()->clear_first_realtime_ns();
  records[1].trace.mutable_clock()->set_realtime_ns(records[0].trace.clock().realtime_ns() + 7 * kSecond);
  records[1].trace.mutable_clock()->set_monotonic_ns(5'001 * kSecond);
  const Job job = BuildJob(records);
  EXPECT_TRUE(job.clocks.empty());
  const int64_t t = 4'000 * kSecond;
  EXPECT_EQ(job.processes[0].ToRealtime(t), job.processes[1].ToRealtime(t));
  EXPECT_EQ(OrderOf(ToJobTime(job.processes[0], t), ToJobTime(job.processes[1], t + 1)), Order::kBefore);
}

TEST(AlignClocks, ClocksThatAreOffAreSaid) {
  ClockHosts hosts(4, 11);
  for (int h = 1; h < 4; ++h) hosts.set_ahead(h, h == 2 ? 3 * kSecond : 0);
  const Job job = BuildJob(hosts.Records({}));
  EXPECT_THAT(job.not_seen, Contains(HasSubstr("host2 3.0 s ahead")));
  EXPECT_THAT(job.not_seen, Not(Contains(HasSubstr("host1 "))));
  EXPECT_LT(std::abs(ClockOf(job, 1).ahead_ns), 50 * kMs) << "one wrong clock moves no other";
}

TEST(AlignClocks, AWallClockThatWasSetIsSaid) {
  ClockHosts hosts(2, 15);
  std::vector<Record> records = hosts.Records({});
  auto& clock = *records[1].trace.mutable_clock();
  clock.set_first_realtime_ns(clock.first_realtime_ns() + 3 * kSecond);
  EXPECT_THAT(BuildJob(records).not_seen, Contains(HasSubstr("the wall clock of host1 was set 3.0 s back")));
}

// The host whose clock stood still is in all contradictions; with two hosts it may be either.
TEST(AlignClocks, AMachineThatSleptIsNamed) {
  for (const int n : {2, 4}) {
    for (const int ops : {20, 400}) {  // within what is looked at, and between its two ends
      ClockHosts hosts(n, 13);
      ClockHosts::Plan plan;
      plan.ops = ops;
      hosts.Sleeps(1, 10 * kSecond + plan.apart * ops / 2 - 50 * kMs, 30 * kSecond);
      const Job job = BuildJob(hosts.Records(plan));
      std::vector<int64_t> errors;
      Check(hosts, job, n, "ops " + std::to_string(ops), &errors);
      EXPECT_THAT(job.not_seen, Contains(::testing::AllOf(HasSubstr("host1"), HasSubstr(" 30.0 s"), HasSubstr("slept"))))
          << n << " hosts, " << ops;
      for (int h = 0; n > 2 && h < n; ++h) EXPECT_EQ(ClockOf(job, h).doubt.empty(), h != 1) << n << " " << h;
      // Times of before compare no better than that.
      const Process& slept = job.processes[1];
      EXPECT_GT(ToJobTime(slept, slept.trace.communicators(0).operations(0).entered_ns()).error_ns +
                    ToJobTime(job.processes[0], job.processes[0].trace.communicators(0).operations(0).entered_ns()).error_ns,
                29 * kSecond);
    }
  }
}

TEST(AlignClocks, OneOperationThatCannotBeIsLeftOutAndNamed) {
  ClockHosts hosts(4, 17);
  std::vector<Record> records = hosts.Records({});
  auto& op = *records[2].trace.mutable_communicators(0)->mutable_operations(55);
  op.set_finished_ns(op.finished_ns() - 50 * kMs);
  op.set_entered_ns(op.entered_ns() - 60 * kMs);
  const Job job = BuildJob(records);
  std::vector<int64_t> errors;
  Check(hosts, job, 4, "", &errors);
  EXPECT_LT(*std::max_element(errors.begin(), errors.end()), 3 * kMs);
  EXPECT_THAT(job.not_seen, Contains(HasSubstr("operation 56 of communicator w")));
}

TEST(AlignClocks, SignsOfLifeAreInTheJobsTime) {
  ClockHosts hosts(3, 17);
  hosts.set_ahead(1, -4 * kSecond);
  const Job job = BuildJob(hosts.Records({}));
  int64_t low = std::numeric_limits<int64_t>::max(), high = 0;
  for (const Process& p : job.processes) {
    low = std::min(low, p.last_sign_ns);
    high = std::max(high, p.last_sign_ns);
  }
  EXPECT_LT(high - low, 20 * kMs) << "all wrote at one time";
}

// A host that never did anything bounds nothing, and is no reason that the others are not bounded.
TEST(AlignClocks, AnIdleHostIsNotTheReference) {
  ClockHosts hosts(4, 19);
  std::vector<Record> records = hosts.Records({});
  records[0].trace.mutable_communicators(0)->clear_operations();
  records[0].trace.mutable_communicators(0)->set_collectives(0);
  const Job job = BuildJob(records);
  EXPECT_EQ(ClockOf(job, 0).error_ns, -1);
  for (int h = 1; h < 4; ++h) EXPECT_LT(ClockOf(job, h).error_ns + 1, 3 * kMs) << h;
}

// Who fell behind has nothing newer in common with the others, but the others have, and what is old still bounds it.
TEST(AlignClocks, WhoFellBehindIsBoundedByWhatIsOlder) {
  ClockHosts hosts(4, 23);
  ClockHosts::Plan plan;
  plan.ops = 400;
  std::vector<Record> records = hosts.Records(plan);
  auto& c = *records[3].trace.mutable_communicators(0);
  while (c.operations_size() > 100) c.mutable_operations()->RemoveLast();
  c.set_collectives(100);
  const Job job = BuildJob(records);
  std::vector<int64_t> errors;
  Check(hosts, job, 4, "", &errors);
  EXPECT_LT(*std::max_element(errors.begin(), errors.end()), 20 * kMs);
}

TEST(AlignClocks, ManyHosts) {
  for (const int n : {2, 256, 4096}) {
    ClockHosts hosts(n, 29);
    ClockHosts::Plan plan;
    plan.ops = 40;
    const std::vector<Record> records = hosts.Records(plan);
    const auto begin = std::chrono::steady_clock::now();
    const Job job = BuildJob(records);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::vector<int64_t> errors;
    Check(hosts, job, n, "", &errors);
    std::printf("%d hosts: built in %.3f s, error median %lld us\n", n, seconds, static_cast<long long>(Median(errors) / kUs));
    EXPECT_LT(seconds, 5);
  }
}

TEST(AlignClocks, HostileTimesDoNoHarm) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    ClockHosts hosts(3, seed);
    ClockHosts::Plan plan;
    plan.ops = 40, plan.gpu_stamps = true;
    std::vector<Record> records = hosts.Records(plan);
    const auto wild = [&] {
      const int64_t values[] = {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min(), -1, 1, int64_t{1} << 58};
      return hosts.Uniform(0, 1) == 0 ? values[hosts.Uniform(0, 4)] : hosts.Uniform(-(int64_t{1} << 62), int64_t{1} << 62);
    };
    for (Record& r : records) {
      for (auto& op : *r.trace.mutable_communicators(0)->mutable_operations()) {
        if (hosts.Uniform(0, 2) == 0) op.set_entered_ns(wild());
        if (hosts.Uniform(0, 2) == 0) op.set_finished_ns(wild());
        if (hosts.Uniform(0, 2) == 0) op.set_gpu_started_ns(wild());
      }
      if (seed % 2 == 0) r.trace.mutable_clock()->set_realtime_ns(wild());
      if (seed % 3 == 0) r.trace.mutable_clock()->set_monotonic_ns(wild());
    }
    EXPECT_EQ(BuildJob(records).processes.size(), 3u);
  }
}

}  // namespace
}  // namespace ringscope::model
