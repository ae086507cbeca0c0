// Bounds between clocks: what follows from them, and what contradicts itself.
#include "analyzer/model/clock_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "analyzer/model/gpu_clock.h"
#include "analyzer/model/job_time.h"
#include "tests/unit/testing/clock_hosts.h"

namespace ringscope::model {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

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
  FindContradiction(3, {{1, 0, least}, {2, 1, least}, {0, 2, least}});
}

TEST(FindContradiction, NamesTheCycleAndItsSize) {
  EXPECT_FALSE(FindContradiction(2, {{1, 0, 5}, {0, 1, -5}}));
  const auto found = FindContradiction(4, {{1, 0, 5}, {2, 1, -3}, {0, 2, -3}, {3, 0, 1}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->by_ns, 1);
  EXPECT_THAT(found->nodes, ::testing::UnorderedElementsAre(0, 1, 2));
}

// Clocks 0 and 1 are equal; operations 2 to 5 say so, 4 does not (it says that 1 is 100 off).
TEST(DropContradictions, TheOneThatContradictsAllOthersGoes) {
  std::vector<Bound> bounds;
  for (int op = 2; op < 6; ++op) {
    const int64_t off = op == 4 ? 100 : 0;
    for (const int clock : {0, 1}) {
      const int64_t at = clock == 1 ? off : 0;
      bounds.push_back({clock, op, at + 1});
      bounds.push_back({op, clock, 1 - at});
    }
  }
  const Settled settled = DropContradictions(2, 6, {0, 0, 10, 20, 15, 30}, &bounds);
  EXPECT_THAT(settled.dropped, ElementsAre(4));
  EXPECT_EQ(bounds.size(), 12u);
  EXPECT_FALSE(FindContradiction(6, bounds));
}

// From an age on all say something else: the newer ones stay.
TEST(DropContradictions, OfTwoTimesTheNewerStays) {
  std::vector<Bound> bounds;
  std::vector<int64_t> ages{0, 0};
  for (int op = 2; op < 202; ++op) {
    const int64_t off = op % 2 == 0 ? 0 : 100;  // the odd ones are older
    ages.push_back(op % 2 == 0 ? op : 1000 + op);
    bounds.push_back({0, op, 1});
    bounds.push_back({op, 0, 1});
    bounds.push_back({1, op, off + 1});
    bounds.push_back({op, 1, 1 - off});
  }
  const Settled settled = DropContradictions(2, 202, ages, &bounds);
  EXPECT_FALSE(FindContradiction(202, bounds));
  EXPECT_FALSE(bounds.empty());
  for (const int op : settled.dropped) EXPECT_NE(op, 2) << "the newest";
  const auto solved = Solve(202, bounds, 0);
  ASSERT_TRUE(solved);
  EXPECT_GE(*(*solved)[1].low, -2);
}

JobTime At(int64_t ns, int64_t error, int clock) { return {ns, error, clock, false}; }

TEST(OrderOf, NeedsMoreThanBothErrors) {
  EXPECT_EQ(OrderOf(At(100, 10, 0), At(131, 20, 1)), Order::kBefore);
  EXPECT_EQ(OrderOf(At(131, 20, 1), At(100, 10, 0)), Order::kAfter);
  EXPECT_EQ(OrderOf(At(100, 10, 0), At(130, 20, 1)), Order::kCannotTell);
  EXPECT_EQ(OrderOf(At(100, 10, 0), At(101, 20, 0)), Order::kBefore) << "one clock";
  EXPECT_EQ(OrderOf(JobTime{}, At(101, 20, 0)), Order::kCannotTell) << "what did not happen";
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(OrderOf(At(-most, most, 0), At(most, most, 1)), Order::kCannotTell);
}

TEST(GpuClocks, TheTruthIsWithinAndTheWidthIsTheBestCase) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    ringscope::testing::ClockHosts hosts(2, seed);
    ringscope::testing::ClockHosts::Plan plan;
    plan.ops = 30, plan.run_ahead = 50'000'000, plan.polling = 2'000'000, plan.gpu_stamps = true;
    const Job job = BuildJob(hosts.Records(plan));
    const GpuClocks clocks(job);
    const Communicator& c = job.communicators[0];
    for (int h = 0; h < 2; ++h) {
      const GpuClock* gpu = clocks.Of(c, c.members[static_cast<size_t>(h)]);
      ASSERT_NE(gpu, nullptr);
      for (const int64_t t : {11'000'000'000, 12'500'000'000}) {
        EXPECT_LE(gpu->HostEarliest(hosts.Gpu(h, t)), hosts.Local(h, t));
        EXPECT_GE(gpu->HostLatest(hosts.Gpu(h, t)), hosts.Local(h, t));
      }
      EXPECT_LT(gpu->high_ns - gpu->low_ns, 1'500'000) << "launches are 10 us to 50 ms, the proxy's delay up to 2 ms";
    }
  }
}

TEST(GpuClocks, StampsThatContradictEachOtherTellNothing) {
  ringscope::testing::ClockHosts hosts(2, 3);
  ringscope::testing::ClockHosts::Plan plan;
  plan.ops = 10, plan.gpu_stamps = true;
  std::vector<Record> records = hosts.Records(plan);
  auto& op = *records[0].trace.mutable_communicators(0)->mutable_operations(4);
  op.set_gpu_started_ns(op.gpu_started_ns() / 2);  // a GPU that was reset
  const Job job = BuildJob(records);
  const Communicator& c = job.communicators[0];
  EXPECT_EQ(GpuClocks(job).Of(c, c.members[0]), nullptr);
  EXPECT_NE(GpuClocks(job).Of(c, c.members[1]), nullptr);
}

}  // namespace
}  // namespace ringscope::model
