#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/reasoning/stall_finder.h"
#include "tests/unit/reasoning/hang_jobs.h"

namespace ringscope::reasoning {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JobBuilder;
using testing::Same;

// All records on one machine, so that processes see each other's locks.
void OneMachine(JobBuilder& b, int ranks) {
  for (int r = 0; r < ranks; ++r) b.Record(r).mutable_process()->set_boot_id("one");
}

JobBuilder Skipping(double last_sign_of_2) {
  JobBuilder b(4);
  testing::SkipJob(b, Same(4));
  OneMachine(b, 4);
  b.LastSeen(2, last_sign_of_2);
  return b;
}

TEST(Liveness, KilledBeforeTheCall) {
  JobBuilder b = Skipping(11);
  b.Saw(0, 2, trace::Sibling::GONE, 40);
  const auto found = FindLiveness(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].finding.kind(), Kind::process_exited);
  EXPECT_THAT(found[0].finding.who().ranks(), ElementsAre(2));
  EXPECT_EQ(found[0].finding.confidence(), Confidence::established);
  EXPECT_EQ(found[0].order, Class::kLiveness);
  EXPECT_TRUE(found[0].stops_job);
  EXPECT_THAT(found[0].finding.collateral().ranks(), ElementsAre(0, 1, 3));
}

TEST(Liveness, StoppedBeforeTheCall) {
  JobBuilder b = Skipping(11);
  b.Saw(0, 2, trace::Sibling::FROZEN, 40, "T");
  const auto found = FindLiveness(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].finding.kind(), Kind::process_stopped);
  EXPECT_THAT(found[0].finding.who().ranks(), ElementsAre(2));
}

TEST(Liveness, ItsOwnRecordIsLostButNeighboursSawItsEnd) {
  for (const auto state : {trace::Sibling::GONE, trace::Sibling::FROZEN}) {
    JobBuilder b = Skipping(11);
    b.Saw(0, 2, state, 40).Drop(2);
    const auto found = FindLiveness(b.Build());
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].finding.kind(), state == trace::Sibling::GONE ? Kind::process_exited : Kind::process_stopped);
    EXPECT_THAT(found[0].finding.who().ranks(), ElementsAre(2));
    EXPECT_EQ(found[0].finding.confidence(), Confidence::probable);
    EXPECT_TRUE(found[0].stops_job);
  }
}

TEST(Liveness, ItsOwnRecordIsLostAndNeighboursSawItAliveOrNotAtAll) {
  JobBuilder b = Skipping(11);
  b.Drop(2);
  EXPECT_THAT(FindLiveness(b.Build()), IsEmpty());
  b.Saw(0, 2, trace::Sibling::GONE, 40).Saw(1, 2, trace::Sibling::ALIVE, 50);
  EXPECT_THAT(FindLiveness(b.Build()), IsEmpty()) << "whoever looked last";
}

TEST(Liveness, SilentEarlyAndSeenByNobodyIsGoneOrFrozen) {
  const auto found = FindLiveness(Skipping(11).Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].finding.kind(), Kind::process_exited);
  EXPECT_EQ(found[0].finding.confidence(), Confidence::possible);
  EXPECT_THAT(found[0].finding.title(), HasSubstr("gone or frozen"));
}

TEST(Liveness, WhoLivedThroughTheWaitIsNotWhy) {
  // Killed when the others had waited for most of the time: it had not entered, and that is why
  // they waited.
  JobBuilder b = Skipping(90);
  b.Saw(0, 2, trace::Sibling::GONE, 99);
  const model::Job job = b.Build();
  EXPECT_THAT(FindLiveness(job), IsEmpty());
  const auto stalls = FindStalls(job);
  ASSERT_EQ(stalls.size(), 1u);
  EXPECT_EQ(stalls[0].finding.kind(), Kind::missing_rank);
}

TEST(Liveness, AllEndedTogetherAccusesNobody) {
  JobBuilder b = Skipping(100);
  for (int r : {1, 2, 3}) b.Saw(0, r, trace::Sibling::GONE, 100);
  EXPECT_THAT(FindLiveness(b.Build()), IsEmpty());
}

TEST(Liveness, EndOfAHealthyJobIsNoFinding) {
  JobBuilder b(4);
  testing::World(b, Same(4), 10);
  OneMachine(b, 4);
  b.LastSeen(3, 20).Saw(0, 3, trace::Sibling::GONE, 40);
  for (int r : {0, 1, 2}) b.Clean(r);
  EXPECT_THAT(FindLiveness(b.Build()), IsEmpty())
      << "nobody waits for rank 3 and it left nothing open";
}

TEST(Liveness, DiedWithAnOperationThatOthersFinished) {
  JobBuilder b(2);
  const auto w = testing::World(b, Same(2), 10);
  OneMachine(b, 2);
  b.Coll(w, 0, 11).Finished();
  b.Coll(w, 1, 11).Running();
  b.LastSeen(1, 11.2).Saw(0, 1, trace::Sibling::GONE, 90);
  const auto found = FindLiveness(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].finding.kind(), Kind::process_exited);
  EXPECT_THAT(found[0].finding.who().ranks(), ElementsAre(1));
}

TEST(Liveness, FrozenVictimIsNotAccused) {
  // Rank 2 is missing; rank 0, which waits for it, is stopped later by a debugger for the rest of
  // the time.
  JobBuilder b = Skipping(100);
  b.LastSeen(0, 70).Saw(1, 0, trace::Sibling::FROZEN, 99, "T");
  const Diagnosis d = Diagnose(b.Build());
  ASSERT_GE(d.findings_size(), 1);
  EXPECT_EQ(d.findings(0).kind(), Kind::missing_rank);
  EXPECT_THAT(d.findings(0).who().ranks(), ElementsAre(2));
}

TEST(Liveness, WhoGaveUpWaitingIsExplained) {
  // Rank 2 is missing and lives on; the others are ended by their timeout.
  JobBuilder b = Skipping(200);
  for (int r : {0, 1, 3}) b.LastSeen(r, 100).Saw(2, r, trace::Sibling::GONE, 199);
  const Diagnosis d = Diagnose(b.Build());
  ASSERT_EQ(d.findings_size(), 4);
  EXPECT_EQ(d.findings(0).kind(), Kind::missing_rank);
  EXPECT_THAT(d.findings(0).who().ranks(), ElementsAre(2));
  EXPECT_EQ(d.findings(0).explains_size(), 3);
}

// ---- Creation
JobBuilder Creating() {
  JobBuilder b(4);
  b.RanksPerHost(1);
  b.Comm("world", Same(4));
  OneMachine(b, 4);
  return b;
}

TEST(Liveness, CreationHangsAtAStoppedProcess) {
  JobBuilder b = Creating();
  b.LastSeen(2, 5).Saw(0, 2, trace::Sibling::FROZEN, 90, "T");
  const Diagnosis d = Diagnose(b.Build());
  EXPECT_EQ(d.state(), State::init_hang);
  ASSERT_GE(d.findings_size(), 1);
  EXPECT_EQ(d.findings(0).kind(), Kind::process_stopped);
  EXPECT_THAT(d.findings(0).who().ranks(), ElementsAre(2));
}
TEST(Liveness, SilenceInCreationIsTakenForAStop) {
  JobBuilder b = Creating();
  b.LastSeen(2, 5);
  const auto found = FindLiveness(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].finding.kind(), Kind::process_stopped);
  EXPECT_EQ(found[0].finding.confidence(), Confidence::possible);
}
TEST(Liveness, CreatedAndAllAliveIsNoFinding) {
  EXPECT_THAT(FindLiveness(Creating().Build()), IsEmpty());
}
TEST(Liveness, CreatedWithoutARecordIsUndetermined) {
  JobBuilder b = Creating();
  b.Drop(2);
  const auto found = FindLiveness(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].finding.kind(), Kind::undetermined);
  EXPECT_THAT(found[0].finding.who().ranks(), IsEmpty());
  EXPECT_THAT(found[0].finding.title(), HasSubstr("rank 2"));
}
TEST(Liveness, HalfHaltedInCreationAccusesNobody) {
  JobBuilder b = Creating();
  b.LastSeen(2, 5).LastSeen(3, 5);
  for (const Candidate& c : FindLiveness(b.Build()))
    EXPECT_EQ(c.finding.kind(), Kind::undetermined);
}

// All finished what they called at second 10, and rank 2 was last seen at second 11.
JobBuilder QuietAfter(double callback) {
  JobBuilder b(4);
  const testing::CommRef w = b.Comm("world", {0, 1, 2, 3});
  for (int r = 0; r < 4; ++r) {
    b.Coll(w, r, 1, 10).Finished();
    b.Record(r).mutable_liveness()->set_last_callback_ns(testing::OpBuilder::Ns(r == 2 ? 10 : callback));
  }
  OneMachine(b, 4);
  b.LastSeen(2, 11);
  return b;
}

TEST(Liveness, GoneWhileTheOthersStandOutsideOfOperations) {
  JobBuilder b = QuietAfter(12);
  b.Saw(0, 2, trace::Sibling::GONE, 40);
  const auto found = FindLiveness(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].finding.kind(), Kind::process_exited);
  EXPECT_THAT(found[0].finding.who().ranks(), ElementsAre(2));
  EXPECT_THAT(found[0].finding.collateral().ranks(), ElementsAre(0, 1, 3));
  EXPECT_TRUE(found[0].stops_job);
}

TEST(Liveness, GoneWhileTheOthersGoOnIsNoFinding) {
  JobBuilder b = QuietAfter(99);
  b.Saw(0, 2, trace::Sibling::GONE, 40);
  EXPECT_THAT(FindLiveness(b.Build()), IsEmpty());
}

}  // namespace
}  // namespace ringscope::reasoning
