// Network inside a node; and the jobs where the network is the right path.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/unit/reasoning/expect.h"
#include "tests/unit/testing/job_builder.h"

namespace ringscope::reasoning {
namespace {

using testing::CommRef;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JobBuilder;

// A ring over four ranks with steps on every edge; NCCL said `nodes` nodes.
JobBuilder Ring(uint32_t nodes, int ranks_per_host) {
  JobBuilder b(4);
  b.RanksPerHost(ranks_per_host);
  const CommRef w = b.Comm("world", {0, 1, 2, 3});
  b.Finish(w, 3);
  for (int r = 0; r < 4; ++r) {
    b.Raw(w, r).set_n_nodes(nodes);
    b.Raw(w, r).set_has_steps(true);
    b.EdgeOf(w, r, (r + 1) % 4).Send(3, 12, trace::STEP_FREE, 12).Recv(3, 12, trace::STEP_FREE, 12);
  }
  return b;
}

TEST(Fallback, StepsInsideOneNode) {
  const auto found = FindFallbacks(Ring(1, 4).Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].finding.kind(), Kind::fallback_path);
  EXPECT_EQ(found[0].finding.confidence(), Confidence::probable);
  EXPECT_EQ(found[0].order, Class::kPlan);
  EXPECT_FALSE(found[0].stops_job) << "a slow path is no reason to stand still";
  EXPECT_EQ(EdgesOf(found[0]), (std::set<std::string>{"0->1", "1->2", "2->3", "3->0"}));
  EXPECT_TRUE(IsWhole(found[0]));
  EXPECT_THAT(RanksOf(found[0]), IsEmpty());
}

TEST(Fallback, EnvironmentIsAHint) {
  JobBuilder b = Ring(1, 4);
  (*b.Record(2).mutable_process()->mutable_environment())["NCCL_P2P_DISABLE"] = "1";
  (*b.Record(3).mutable_process()->mutable_environment())["NCCL_SHM_DISABLE"] = "0";
  const auto found = FindFallbacks(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(TextOf(found[0]), HasSubstr("NCCL_P2P_DISABLE=1"));
  EXPECT_THAT(TextOf(found[0]), ::testing::Not(HasSubstr("SHM_DISABLE")));
}

TEST(Fallback, OneRankANodeOrUnknownNodesIsNone) {
  EXPECT_THAT(FindFallbacks(Ring(4, 1).Build()), IsEmpty());
  EXPECT_THAT(FindFallbacks(Ring(0, 4).Build()), IsEmpty());
  // One host name, but NCCL knows four nodes (containers, NCCL_HOSTID): the name does not count.
  EXPECT_THAT(FindFallbacks(Ring(4, 4).Build()), IsEmpty());
}

TEST(Fallback, EdgesInsideOneOfSeveralNodes) {
  const auto found =
      FindFallbacks(Ring(2, 2).Build());  // 0,1 | 2,3: edges 0->1 and 2->3 stay inside
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(EdgesOf(found[0]), (std::set<std::string>{"0->1", "2->3"}));
  JobBuilder b = Ring(2, 2);
  b.Drop(3);  // now names and NCCL's number of nodes cannot be compared
  EXPECT_THAT(FindFallbacks(b.Build()), IsEmpty());
}

TEST(Fallback, NoStepsOrMessageCountsOnlyIsNone) {
  JobBuilder b(2);
  const CommRef w = b.Comm("world", {0, 1});
  b.RanksPerHost(2);
  b.Finish(w, 3);
  for (int r = 0; r < 2; ++r) {
    b.Raw(w, r).set_n_nodes(1);
    b.Messages(w, r, 1 - r, true, 4);
    b.Messages(w, r, 1 - r, false, 4);
  }
  EXPECT_THAT(FindFallbacks(b.Build()), IsEmpty());
}

TEST(Fallback, SendsThatAnotherProcessDrivesAreJudgedByTheirOwner) {
  // PXN: the send of rank 1 to rank 2 on the other host lies in the record of rank 0. Both ends of
  // the edge count, not the driver.
  JobBuilder b(4);
  b.RanksPerHost(2);
  const CommRef w = b.Comm("world", {0, 1, 2, 3});
  b.Finish(w, 2);
  for (int r = 0; r < 4; ++r) b.Raw(w, r).set_n_nodes(2);
  b.EdgeOf(w, 2, 1).Send(2, 12, trace::STEP_FREE, 12);
  auto edge = b.EdgeOf(w, 0, 2);
  edge.Send(2, 12, trace::STEP_FREE, 12);
  edge.last().set_rank(1);  // whose data it is
  EXPECT_THAT(FindFallbacks(b.Build()), IsEmpty());
}

}  // namespace
}  // namespace ringscope::reasoning
