// Freezes and stalls that are over; and the ones that accuse nobody.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/reasoning/expect.h"
#include "tests/unit/testing/job_builder.h"

namespace ringscope::reasoning {
namespace {

using testing::CommRef;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JobBuilder;
using testing::OpBuilder;

void Freeze(JobBuilder* b, int rank, double begin, double seconds) {
  trace::Liveness& live = *b->Record(rank).mutable_liveness();
  live.set_freezes(1);
  live.set_freeze_begin_ns(OpBuilder::Ns(begin));
  live.set_freeze_ns(static_cast<int64_t>(seconds * 1e9));
}

// Four ranks, operations 1-9 a second apart. Rank `late` comes to operation 5 `delay` seconds late;
// the others are in it.
JobBuilder Pause(int late, double delay) {
  JobBuilder b(4);
  const CommRef w = b.Comm("world", {0, 1, 2, 3});
  for (int r = 0; r < 4; ++r) {
    for (uint64_t k = 1; k <= 9; ++k) {
      const double shift = k > 5 ? delay : 0, t = static_cast<double>(k) + shift;
      const double entered = t + (k == 5 && r == late ? delay : 0);
      const double end = t + 0.1 + (k == 5 ? delay : 0);
      b.Coll(w, r, k, entered).Kernel(entered + 0.01, end);
    }
  }
  return b;
}

TEST(Past, FreezeThatTheOthersWaitedFor) {
  JobBuilder b = Pause(1, 14);
  Freeze(&b, 1, 4.2, 14.5);
  const auto found = FindPast(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].finding.kind(), Kind::process_stopped);
  EXPECT_EQ(found[0].finding.confidence(), Confidence::possible);
  EXPECT_TRUE(found[0].finding.past());
  EXPECT_EQ(found[0].order, Class::kPast);
  EXPECT_FALSE(found[0].stops_job);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(1));
  EXPECT_THAT(CollateralOf(found[0]), ElementsAre(0, 2, 3));
  EXPECT_TRUE(IsWhole(found[0]));
}

// What a stop too short for the recorder thread leaves: the GPU ended operation 4 at once, the host
// saw it after `delay`.
JobBuilder UnseenEnd(int stopped, double delay) {
  JobBuilder b = Pause(stopped, delay);
  for (trace::Operation& op : *b.Raw(0, stopped).mutable_operations()) {
    if (op.position() == 4) op.set_finished_ns(OpBuilder::Ns(5 + delay));
  }
  return b;
}

TEST(Past, KernelWhoseEndWasSeenLateWhileTheOthersWaited) {
  const auto found = FindPast(UnseenEnd(2, 1.5).Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].finding.kind(), Kind::process_stopped);
  EXPECT_EQ(found[0].finding.confidence(), Confidence::possible);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(2));
  EXPECT_THAT(CollateralOf(found[0]), ElementsAre(0, 1, 3));
  EXPECT_EQ(found[0].finding.evidence(0).row(), 3u);
  EXPECT_TRUE(IsWhole(found[0]));
}

// It stopped before its kernel began, so the host saw start and end at once: only the GPU's timer on the host's clock tells.
TEST(Past, KernelOfWhichTheHostSawNothingInTime) {
  JobBuilder b = Pause(2, 1.5);
  for (trace::Operation& op : *b.Raw(0, 2).mutable_operations()) {
    if (op.position() != 4) continue;
    op.set_started_ns(OpBuilder::Ns(6.45));
    op.set_finished_ns(OpBuilder::Ns(6.46));
    op.set_gpu_finished_ns(OpBuilder::Ns(4.015));
  }
  const auto found = FindPast(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].finding.kind(), Kind::process_stopped);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(2));
}

TEST(Past, LateRankWhoseThreadsRanIsNotStopped) {
  EXPECT_THAT(FindPast(Pause(2, 1.5).Build()),
              IsEmpty());  // it saw its kernel end in time: busy elsewhere
  EXPECT_THAT(FindPast(UnseenEnd(2, -0.7).Build()), IsEmpty());  // too short
  JobBuilder b = UnseenEnd(2, 1.5);                              // it made calls meanwhile
  b.Coll(b.Comm("solo", {2}), 0, 9, 4.9).Finished();
  EXPECT_THAT(FindPast(b.Build()), IsEmpty());
  JobBuilder all = UnseenEnd(2, 1.5);  // everybody's ends were seen late: the machine
  for (int r : {0, 1, 3}) {
    for (trace::Operation& op : *all.Raw(0, r).mutable_operations()) {
      if (op.position() == 4) op.set_finished_ns(OpBuilder::Ns(5.6));
    }
  }
  EXPECT_THAT(FindPast(all.Build()), IsEmpty());
}

TEST(Past, FreezeAndStallOfOneStoryAreOneFinding) {
  JobBuilder b = Pause(1, 70);
  Freeze(&b, 1, 4.2, 70.5);
  for (int r : {0, 2, 3}) b.Stalled(0, r, 5, 5.02, 65, 75.1);
  const auto found = FindPast(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].finding.kind(), Kind::process_stopped);
}

TEST(Past, FreezeThatDelayedNobodyIsNone) {
  JobBuilder b(4);
  const CommRef w = b.Comm("world", {0, 1, 2, 3});
  b.Finish(w, 5);
  Freeze(&b, 1, 20, 30);
  EXPECT_THAT(FindPast(b.Build()), IsEmpty());
}

TEST(Past, ShortFreezesAreNone) {
  JobBuilder b = Pause(1, 0.25);
  Freeze(&b, 1, 4.9, 0.28);
  EXPECT_THAT(FindPast(b.Build()), IsEmpty());
  JobBuilder slow = Pause(1, 5);  // less than two periods of the recorder thread
  slow.Record(1).mutable_settings()->set_heartbeat_seconds(3);
  Freeze(&slow, 1, 4.9, 5);
  EXPECT_THAT(FindPast(slow.Build()), IsEmpty());
}

TEST(Past, CallbacksDuringTheFreezeContradictIt) {
  JobBuilder b = Pause(1, 14);
  Freeze(&b, 1, 4.2, 14.5);
  b.Coll(0, 1, 100, 11).Finished();
  EXPECT_THAT(FindPast(b.Build()), IsEmpty());
}

TEST(Past, FreezeOfTheWholeMachineAccusesNobody) {
  JobBuilder b = Pause(1, 14);
  for (int r = 0; r < 4; ++r) Freeze(&b, r, 4.2, 14.5);
  EXPECT_THAT(FindPast(b.Build()), IsEmpty());
  // All of one host; the other host waited.
  JobBuilder host = Pause(1, 14);
  host.RanksPerHost(2);
  for (int r = 0; r < 2; ++r) Freeze(&host, r, 4.2, 14.5);
  for (trace::Operation& op : *host.Raw(0, 0).mutable_operations()) {
    if (op.position() == 5)
      op.set_entered_ns(OpBuilder::Ns(19)), op.set_started_ns(OpBuilder::Ns(19.01));
  }
  EXPECT_THAT(FindPast(host.Build()), IsEmpty());
}

TEST(Past, ProcessThatIsStillFrozenOrGoneIsNotPast) {
  JobBuilder b = Pause(1, 14);
  Freeze(&b, 1, 4.2, 14.5);
  b.LastSeen(1, 40);
  b.Saw(0, 1, trace::Sibling::FROZEN, 95, "T");
  EXPECT_THAT(FindPast(b.Build()), IsEmpty());
}

TEST(Past, LatecomerOfAResolvedStall) {
  JobBuilder b = Pause(0, 70);
  for (int r : {1, 2, 3}) b.Stalled(0, r, 5, 5.02, 65, 75.1);
  const auto found = FindPast(b.Build());
  ASSERT_EQ(found.size(), 1u) << "three reporters, one stall";
  EXPECT_EQ(found[0].finding.kind(), Kind::missing_rank);
  EXPECT_TRUE(found[0].finding.past());
  EXPECT_EQ(found[0].finding.confidence(), Confidence::possible);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(0));
  EXPECT_THAT(CollateralOf(found[0]), ElementsAre(1, 2, 3));
  EXPECT_TRUE(IsWhole(found[0]));
}

TEST(Past, LatecomerThatWaitedElsewhereIsNotNamed) {
  // Rank 0 was in another communicator's operation until it came.
  JobBuilder b = Pause(0, 70);
  const CommRef pair = b.Comm("pair", {0, 1});
  b.Coll(pair, 0, 1, 4.5).Kernel(4.6, 74.9);
  for (int r : {1, 2, 3}) b.Stalled(0, r, 5, 5.02, 65, 75.1);
  const auto found = FindPast(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].finding.kind(), Kind::undetermined);
  EXPECT_THAT(RanksOf(found[0]), IsEmpty());
  EXPECT_THAT(found[0].finding.title(), HasSubstr("do not tell"));
}

TEST(Past, StallOfAllAlikeNamesNobody) {
  JobBuilder b(4);
  const CommRef w = b.Comm("world", {0, 1, 2, 3});
  for (int r = 0; r < 4; ++r) {
    b.Coll(w, r, 1, 1).Kernel(1.1, 80);
    b.Stalled(w, r, 1, 1.1, 61, 80);
  }
  const auto found = FindPast(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].finding.kind(), Kind::undetermined);
  EXPECT_THAT(RanksOf(found[0]), IsEmpty());
}

TEST(Past, StallsThatLastOrWereGivenUpAreNotPast) {
  JobBuilder b = Pause(0, 70);
  for (int r : {1, 2, 3}) b.Stalled(0, r, 5, 5.02, 65);
  EXPECT_THAT(FindPast(b.Build()), IsEmpty());
  JobBuilder open(2);
  const CommRef w = open.Comm("world", {0, 1});
  open.Coll(w, 0, 1).Running();
  open.Stalled(w, 0, 1, 1, 61, 80);
  EXPECT_THAT(FindPast(open.Build()), IsEmpty());
}

}  // namespace
}  // namespace ringscope::reasoning
