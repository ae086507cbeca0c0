// BuildJob on jobs written down with JobBuilder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/testing/job_builder.h"

namespace ringscope {
namespace {

using model::Life;
using model::Truth;
using testing::CommRef;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JobBuilder;

TEST(BuildJob, JoinsRanksOfOneCommunicator) {
  JobBuilder b(4);
  const CommRef w = b.Comm("world", {0, 1, 2, 3});
  for (int r : {0, 1, 3}) {
    b.Finish(w, r, 6);
    b.Coll(w, r, 7).Running();
  }
  b.Finish(w, 2, 6);
  const model::Job job = b.Build();
  ASSERT_EQ(job.communicators.size(), 1u);
  const model::Communicator& c = job.communicators[0];
  EXPECT_EQ(c.n_ranks, 4);
  EXPECT_TRUE(c.completion_visible);
  EXPECT_EQ(c.Label(), "world (0x10000000)");
  EXPECT_EQ(c.members[2].collectives, 6u);
  EXPECT_EQ(c.members[2].Collective(7), nullptr);
  const model::Op* op = c.members[1].Collective(7);
  ASSERT_NE(op, nullptr);
  EXPECT_EQ(op->started, Truth::kYes);
  EXPECT_EQ(op->finished, Truth::kNo);
  EXPECT_EQ(c.members[1].first_kept, 1u);
  EXPECT_THAT(job.missing_job_ranks, IsEmpty());
  EXPECT_EQ(job.HostOf(3), "host0");
}

// Texts say "of communicator " before it.
TEST(BuildJob, ACommunicatorWithoutANameIsCalledByItsId) {
  JobBuilder b(2);
  b.Finish(b.Comm("", {0, 1}, 0xabc), 3);
  const model::Job job = b.Build();
  ASSERT_EQ(job.communicators.size(), 1u);
  EXPECT_EQ(job.communicators[0].Label(), "0xabc");
}

TEST(BuildJob, HiddenCompletionIsUnknownNeverNo) {
  JobBuilder b(2);
  const CommRef w = b.Comm("world", {0, 1}, 0, /*completion_visible=*/false);
  for (int r : {0, 1}) b.Coll(w, r, 1).Enqueued();
  const model::Job job = b.Build();
  const model::Op* op = job.communicators[0].members[0].Collective(1);
  ASSERT_NE(op, nullptr);
  EXPECT_EQ(op->enqueued, Truth::kYes);
  EXPECT_EQ(op->started, Truth::kUnknown);
  EXPECT_EQ(op->finished, Truth::kUnknown);
  EXPECT_THAT(job.not_seen, Contains(HasSubstr("completion on the GPU was not visible")));
}

TEST(BuildJob, CursorsOfAnOpenCallAreNo) {
  JobBuilder b(1);
  const CommRef w = b.Comm("world", {0});
  b.Coll(w, 0, 1).Entered();
  const model::Job job = b.Build();
  const model::Op* op = job.communicators[0].members[0].Collective(1);
  EXPECT_EQ(op->returned, Truth::kNo);
  EXPECT_EQ(op->enqueued, Truth::kNo);
  EXPECT_EQ(op->started, Truth::kNo);
}

TEST(BuildJob, MissingRankIsNamedAndKeepsItsPlace) {
  JobBuilder b(4);
  const CommRef w = b.Comm("world", {0, 1, 2, 3});
  const CommRef tp = b.Comm("tp", {2, 3});
  b.Finish(w, 3);
  b.Finish(tp, 3);
  b.Drop(3);
  const model::Job job = b.Build();
  EXPECT_THAT(job.missing_job_ranks, ElementsAre(3));
  EXPECT_THAT(job.not_seen, Contains("no record of rank 3 of 4"));
  EXPECT_FALSE(job.communicators[0].members[3].has_record());
  EXPECT_EQ(job.communicators[0].members[3].job_rank, 3);
  EXPECT_EQ(job.communicators[1].members[1].job_rank, 3);
}

TEST(BuildJob, GoneWhenANeighbourSawItsLockFree) {
  JobBuilder b(2);
  b.Comm("world", {0, 1});
  b.LastSeen(1, 20).Saw(0, 1, trace::Sibling::GONE, 25);
  const model::Job job = b.Build();
  EXPECT_EQ(job.processes[1].life, Life::kGone);
  EXPECT_THAT(job.processes[1].life_evidence, HasSubstr("rank 0 saw"));
  EXPECT_EQ(job.processes[0].life, Life::kRunning);
}

TEST(BuildJob, KilledTogetherAccusesNobody) {
  JobBuilder b(3);
  b.Comm("world", {0, 1, 2});
  b.LastSeen(1, 99.4).Saw(0, 1, trace::Sibling::GONE, 99.9);
  const model::Job job = b.Build();
  for (const auto& p : job.processes) EXPECT_EQ(p.life, Life::kRunning) << p.life_evidence;
}

}  // namespace
}  // namespace ringscope
