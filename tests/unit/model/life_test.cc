// Who lived, was frozen, had gone or had ended: each kind of evidence alone, and the ones that must
// not accuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/testing/job_builder.h"

namespace ringscope {
namespace {

using model::Life;
using ::testing::HasSubstr;
using testing::JobBuilder;

Life LifeOf(const model::Job& job, int rank) {
  for (const auto& p : job.processes) {
    if (p.job_rank == rank) return p.life;
  }
  return Life::kUnknown;
}

JobBuilder Job(int ranks) {
  JobBuilder b(ranks);
  std::vector<int> all;
  for (int r = 0; r < ranks; ++r) all.push_back(r);
  b.Comm("world", all);
  return b;
}

TEST(Life, CleanEndIsExited) {
  JobBuilder b = Job(2);
  b.Clean(0).Clean(1);
  EXPECT_EQ(LifeOf(b.Build(), 0), Life::kExited);
}

TEST(Life, FrozenByWitness) {
  JobBuilder b = Job(3);
  b.LastSeen(1, 30).Saw(0, 1, trace::Sibling::FROZEN, 40, "T");
  const model::Job job = b.Build();
  EXPECT_EQ(LifeOf(job, 1), Life::kFrozen);
  EXPECT_THAT(job.processes[1].life_evidence, HasSubstr("state T"));
}

// The same silence, on a host where recorder threads had to wait for a processor.
TEST(Life, SilenceOnAStarvedHostIsNoFreeze) {
  for (const int64_t starved_ms : {0, 200, 3000}) {
    JobBuilder b = Job(3);
    b.LastSeen(1, 94).Saw(0, 1, trace::Sibling::FROZEN, 99);
    std::vector<model::Record> records = b.Records();
    for (model::Record& r : records) {
      if (r.trace.process().rank() == 2)
        r.trace.mutable_liveness()->set_starved_ns(starved_ms * 1000000);
    }
    const Life life = LifeOf(model::BuildJob(std::move(records)), 1);
    EXPECT_EQ(life == Life::kFrozen, starved_ms < 3000) << starved_ms;
  }
}

TEST(Life, AFreeLockAndAStoppedProcessAreFactsOnAStarvedHostToo) {
  for (const bool stopped : {false, true}) {
    JobBuilder b = Job(3);
    b.LastSeen(1, 94).Saw(0, 1, stopped ? trace::Sibling::FROZEN : trace::Sibling::GONE, 99, stopped ? "T" : "");
    std::vector<model::Record> records = b.Records();
    for (model::Record& r : records) r.trace.mutable_liveness()->set_starved_ns(3000000000);
    EXPECT_EQ(LifeOf(model::BuildJob(std::move(records)), 1), stopped ? Life::kFrozen : Life::kGone);
  }
}

TEST(Life, TheNewestWitnessCounts) {
  JobBuilder b = Job(3);
  b.LastSeen(1, 30).Saw(0, 1, trace::Sibling::FROZEN, 40).Saw(2, 1, trace::Sibling::GONE, 50);
  EXPECT_EQ(LifeOf(b.Build(), 1), Life::kGone);
}

TEST(Life, AFrozenProcessThatWentOnIsNotFrozen) {
  JobBuilder b = Job(3);
  b.Saw(0, 1, trace::Sibling::FROZEN, 40).LastSeen(1, 100);
  EXPECT_EQ(LifeOf(b.Build(), 1), Life::kRunning);
}

TEST(Life, SilenceAloneCannotTellKilledFromFrozen) {
  JobBuilder b = Job(4);
  b.LastSeen(2, 30);
  const model::Job job = b.Build();
  EXPECT_EQ(LifeOf(job, 2), Life::kGoneOrFrozen);
  for (int r : {0, 1, 3}) EXPECT_EQ(LifeOf(job, r), Life::kRunning);
}

// Its thread waits for a network file system: the heartbeat stops, the process does not.
TEST(Life, AThreadThatWaitsForAFileSystemIsNoFrozenProcess) {
  JobBuilder b = Job(4);
  b.LastSeen(2, 30);
  auto& live = *b.Record(2).mutable_liveness();
  live.set_thread_in_call_ns(live.heartbeat_ns() + 1000000);
  const model::Job job = b.Build();
  EXPECT_EQ(LifeOf(job, 2), Life::kUnknown);
  EXPECT_THAT(job.processes[2].life_evidence, HasSubstr("waits for a file system"));

  live.set_lock_known(true);
  live.set_lock_held(true);
  EXPECT_EQ(LifeOf(b.Build(), 2), Life::kRunning);
  live.set_process_state("T");  // the kernel knows better
  EXPECT_EQ(LifeOf(b.Build(), 2), Life::kFrozen);
  live.set_lock_held(false);  // nor does it hide an end that the lock shows
  live.clear_process_state();
  b.Saw(0, 2, trace::Sibling::GONE, 60);
  EXPECT_EQ(LifeOf(b.Build(), 2), Life::kGone);
}

TEST(Life, SilenceWithinThreeHeartbeatsSaysNothing) {
  JobBuilder b = Job(4);
  b.LastSeen(2, 98.6);  // heartbeat 0.5 s: three are 1.5 s
  EXPECT_EQ(LifeOf(b.Build(), 2), Life::kRunning);
}

// A scheduler that ends one process after the other must not make the last one the only survivor.
TEST(Life, OneStragglerOfAKillDoesNotAccuseTheRest) {
  JobBuilder b = Job(4);
  for (int r : {0, 1, 2}) b.LastSeen(r, 90);
  const model::Job job = b.Build();
  for (int r = 0; r < 4; ++r) EXPECT_EQ(LifeOf(job, r), Life::kRunning) << r;
}

TEST(Life, OneSurvivorThatWaitedForTheStallTimeDoes) {
  JobBuilder b = Job(4);
  for (int r : {0, 1, 2}) b.LastSeen(r, 20);
  EXPECT_EQ(LifeOf(b.Build(), 1), Life::kGoneOrFrozen);
}

TEST(Life, TheLockTellsWhereTheFileLies) {
  JobBuilder b = Job(3);
  for (int r = 0; r < 3; ++r) {
    b.Record(r).mutable_liveness()->set_lock_known(true);
    b.Record(r).mutable_liveness()->set_lock_held(r != 1);
  }
  b.LastSeen(1, 30).LastSeen(2, 30);
  const model::Job job = b.Build();
  EXPECT_EQ(LifeOf(job, 0), Life::kRunning);
  EXPECT_EQ(LifeOf(job, 1), Life::kGone);
  EXPECT_EQ(LifeOf(job, 2), Life::kFrozen);
  b.Record(0).mutable_liveness()->set_process_state("T");
  EXPECT_EQ(LifeOf(b.Build(), 0), Life::kFrozen);
}

TEST(Life, AFreeLockAfterEverybodyWasKilledAccusesNobody) {
  JobBuilder b = Job(3);
  for (int r = 0; r < 3; ++r) b.Record(r).mutable_liveness()->set_lock_known(true);
  const model::Job job = b.Build();
  for (int r = 0; r < 3; ++r) EXPECT_EQ(LifeOf(job, r), Life::kRunning) << r;
}

TEST(Life, TheOneThatDidNotEndInOrderWhenAllOthersDid) {
  JobBuilder b = Job(3);
  b.Clean(0).Clean(2).LastSeen(1, 99.9);
  b.Record(1).mutable_liveness()->set_last_callback_ns(testing::OpBuilder::Ns(99.8));
  EXPECT_EQ(LifeOf(b.Build(), 1), Life::kGoneOrFrozen);
  // Idle for long while the others waited and ended: it may have been ended with them.
  b.Record(1).mutable_liveness()->set_last_callback_ns(testing::OpBuilder::Ns(20));
  EXPECT_EQ(LifeOf(b.Build(), 1), Life::kRunning);
}

TEST(Life, SilenceAfterATraceSaysNothing) {
  JobBuilder b = Job(3);
  b.Trace(1, trace::REASON_STALL, 30);
  EXPECT_EQ(LifeOf(b.Build(), 1), Life::kUnknown);
}

TEST(Life, ExtremeTimesDoNotOverflow) {
  JobBuilder b = Job(3);
  for (int64_t v : {INT64_MAX, INT64_MIN, int64_t{-1}}) {
    b.Record(1).mutable_clock()->set_monotonic_ns(v);
    b.Record(1).mutable_liveness()->set_heartbeat_realtime_ns(v);
    b.Record(1).set_written_ns(v);
    b.Record(2).mutable_clock()->set_realtime_ns(v);
    b.Record(0).mutable_settings()->set_heartbeat_seconds(v < 0 ? NAN : 1e300);
    const model::Job job = b.Build();
    EXPECT_THAT(job.not_seen,
                ::testing::Contains(HasSubstr("rank1.flight: holds times that cannot be")));
    for (const auto& p : job.processes) {
      EXPECT_GE(p.last_sign_ns, 0);
      EXPECT_LE(p.last_sign_ns, int64_t{1} << 62);
    }
  }
}

}  // namespace
}  // namespace ringscope
