// Communicators of the profiler tables v1 to v3, whose init tells neither id nor rank nor size.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/testing/job_builder.h"

namespace ringscope {
namespace {

using testing::CommRef;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JobBuilder;
using ::testing::Not;
using ::testing::SizeIs;

constexpr uint32_t kNotTold = 0xffffffff;

// Makes every communicator of the job one of table v2: no sizes, calls known from their launch.
void Early(JobBuilder* b, int ranks, bool hashes = true) {
  for (int r = 0; r < ranks; ++r) {
    for (auto& c : *b->Record(r).mutable_communicators()) {
      c.set_profiler_api(2);
      c.set_n_ranks(0);
      c.set_n_nodes(0);
      c.set_api_events(false);
      c.set_completion_visible(false);
      c.clear_name();
      if (!hashes) c.set_comm_id(0);
      for (auto& op : *c.mutable_operations()) {
        op.set_from_api(false);
        op.set_stream(0);
      }
    }
  }
}

TEST(Untold, RanksWithOneHashAreOneCommunicatorOfAtLeastTheirNumber) {
  JobBuilder b(3);
  const CommRef w = b.Comm("", {0, 1, 2});
  b.Finish(w, 2);
  Early(&b, 3);
  const model::Job job = b.Build();
  ASSERT_THAT(job.communicators, SizeIs(1));
  EXPECT_EQ(job.communicators[0].n_ranks, 3);
  EXPECT_FALSE(job.communicators[0].size_known);
  EXPECT_EQ(job.communicators[0].SizeText(), "at least 3");
  for (int r = 0; r < 3; ++r) EXPECT_TRUE(job.communicators[0].members[r].has_record());
  EXPECT_THAT(job.not_seen, Not(Contains(HasSubstr("left out"))));
}

TEST(Untold, ConnectionsNameRanksWithoutARecord) {
  JobBuilder b(5);
  const CommRef w = b.Comm("", {0, 1, 2, 3, 4});
  b.Finish(w, 2);
  b.EdgeOf(w, 0, 1).Send(2, 8, trace::STEP_FREE, 8);
  b.EdgeOf(w, 4, 0).Recv(2, 8, trace::STEP_FREE, 8);
  Early(&b, 5);
  b.Drop(4);
  const model::Job job = b.Build();
  ASSERT_THAT(job.communicators, SizeIs(1));
  ASSERT_EQ(job.communicators[0].n_ranks, 5) << "rank 0 receives from rank 4";
  EXPECT_FALSE(job.communicators[0].members[4].has_record());
}

TEST(Untold, ASizeThatOneRankWasToldHoldsForAll) {
  JobBuilder b(2);
  const CommRef w = b.Comm("", {0, 1});
  b.Finish(w, 2);
  Early(&b, 2);
  b.Raw(w, 1).set_n_ranks(8);
  model::Job job = b.Build();
  ASSERT_THAT(job.communicators, SizeIs(1));
  EXPECT_EQ(job.communicators[0].n_ranks, 8);
  EXPECT_TRUE(job.communicators[0].size_known);
  b.Raw(w, 1).set_n_ranks(1);  // a lie: it is rank 1 itself
  job = b.Build();
  EXPECT_EQ(job.communicators[0].n_ranks, 2);
  EXPECT_FALSE(job.communicators[0].size_known);
}

// NCCL 2.23 gives all splits of one color of one parent the same hash.
TEST(Untold, SplitsWithOneHashAreToldApartByTimeAndMembers) {
  JobBuilder b(4);
  const CommRef first = b.Comm("", {0, 1}, 77), second = b.Comm("", {1, 0}, 77),
                third = b.Comm("", {2, 3}, 77);
  for (const CommRef c : {first, second, third}) b.Finish(c, 2);
  Early(&b, 4);
  const model::Job job = b.Build();
  ASSERT_THAT(job.communicators, SizeIs(3));
  for (const auto& c : job.communicators) {
    ASSERT_EQ(c.n_ranks, 2);
    EXPECT_NE(c.members[0].process, c.members[1].process);
    EXPECT_EQ(c.id, 77u);
  }
  EXPECT_EQ(job.communicators[0].members[0].process, 0);
  EXPECT_EQ(job.communicators[1].members[0].process, 1);
  EXPECT_EQ(job.communicators[2].members[0].process, 2);
}

TEST(Untold, ASilentRankIsTheOneThatTheOthersNameAndNobodyHas) {
  JobBuilder b(4);
  const CommRef w = b.Comm("", {0, 1, 2, 3});
  for (int r : {0, 1, 3}) b.Coll(w, r, 1).Enqueued();
  b.EdgeOf(w, 1, 2).Send(1, 12, trace::SEND_WAIT, 0);
  Early(&b, 4);
  b.Raw(w, 2).set_rank(kNotTold);
  b.Raw(w, 2).set_comm_id(0);
  const model::Job job = b.Build();
  ASSERT_THAT(job.communicators, SizeIs(1));
  ASSERT_EQ(job.communicators[0].n_ranks, 4);
  EXPECT_EQ(job.communicators[0].members[2].process, 2);
  EXPECT_EQ(job.communicators[0].members[2].collectives, 0u);
  EXPECT_THAT(job.not_seen, Contains(HasSubstr("its rank there is the launcher's")));
}

TEST(Untold, ASilentRankThatNobodyNamesStaysOut) {
  JobBuilder b(4);
  const CommRef low = b.Comm("", {0, 1}), high = b.Comm("", {2, 3});
  b.Finish(low, 2);
  Early(&b, 4);
  for (int r : {0, 1}) {
    b.Raw(high, r).set_rank(kNotTold);
    b.Raw(high, r).set_comm_id(0);
  }
  const model::Job job = b.Build();
  ASSERT_THAT(job.communicators, SizeIs(1));
  EXPECT_EQ(job.communicators[0].n_ranks, 2) << "2 and 3 are in another one";
}

TEST(Untold, WithoutAHashOnlyWhatIsUnambiguousIsJoined) {
  JobBuilder b(4);
  const CommRef w = b.Comm("", {0, 1, 2, 3});
  b.Finish(w, 2);
  Early(&b, 4, false);
  EXPECT_THAT(b.Build().communicators, SizeIs(1));

  JobBuilder pairs(4);
  const CommRef world = pairs.Comm("", {0, 1, 2, 3});
  const CommRef low = pairs.Comm("", {0, 1}), high = pairs.Comm("", {2, 3});
  for (const CommRef c : {world, low, high}) pairs.Finish(c, 2);
  Early(&pairs, 4, false);
  const model::Job job = pairs.Build();
  ASSERT_THAT(job.communicators, SizeIs(1)) << "which rank 1 belongs to which rank 0 is not known";
  EXPECT_EQ(job.communicators[0].n_ranks, 4);
  EXPECT_THAT(job.not_seen, Contains(HasSubstr("cannot be told from others")));
}

TEST(Untold, SeveralRanksOfOneProcessWithoutAHash) {
  JobBuilder b(1);
  for (int r = 0; r < 4; ++r) {
    const CommRef c = b.Comm("", {0});
    b.Finish(c, 2);
    b.Raw(c, 0).set_rank(static_cast<uint32_t>(r));
  }
  Early(&b, 1, false);
  const model::Job job = b.Build();
  ASSERT_THAT(job.communicators, SizeIs(1));
  EXPECT_EQ(job.communicators[0].n_ranks, 4);
}

TEST(Untold, AbsurdRanksAreLeftOut) {
  JobBuilder b(2);
  const CommRef w = b.Comm("", {0, 1});
  b.Finish(w, 2);
  Early(&b, 2);
  b.Raw(w, 1).set_rank(0xfffffffe);
  b.EdgeOf(w, 0, 1).Send(1, 12, trace::SEND_WAIT, 0).last().set_peer(0xfffffff0);
  const model::Job job = b.Build();
  ASSERT_THAT(job.communicators, SizeIs(1));
  EXPECT_LE(job.communicators[0].n_ranks, 2);
  EXPECT_THAT(job.not_seen, Contains(HasSubstr("says rank 4294967294")));
}

TEST(Untold, RecordsOfAnotherJobIdWithTheSameHashBelongTogether) {
  JobBuilder b(2);
  const CommRef w = b.Comm("", {0, 1});
  b.Finish(w, 2);
  Early(&b, 2);
  b.Raw(w, 0).set_n_ranks(2);  // only one of them was told
  b.Record(1).mutable_process()->set_job_id("damaged");
  const model::Job job = b.Build();
  EXPECT_THAT(job.processes, SizeIs(2));
  EXPECT_THAT(job.left_out, IsEmpty());
}

}  // namespace
}  // namespace ringscope
