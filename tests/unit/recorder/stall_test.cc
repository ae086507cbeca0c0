#include "recorder/stall.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/unit/recorder/test_image.h"

namespace ringscope::recorder {
namespace {

using flight::Load;

constexpr uint64_t kPeriod = kSecond / 2;
constexpr uint64_t kStall = 60 * kSecond, kFirst = 300 * kSecond;

class StallTest : public testing::Test {
 protected:
  StallTest() : watch_(new StallWatch) { watch_->Init(&image_.image(), kStall, kFirst, kPeriod); }

  // Looks every half second from `from` to `to` (seconds after kStart); the moment of the first
  // finding, 0 if none.
  double FirstFinding(double from, double to) {
    for (double t = from; t <= to; t += 0.5) {
      last_ = watch_->Look(At(t), frozen_until_);
      noticed_ |= last_.noticed;
      recovered_ |= last_.recovered;
      if (last_.noticed) return t;
    }
    return 0;
  }
  static uint64_t At(double seconds) { return kStart + static_cast<uint64_t>(seconds * 1e9); }

  // A communicator in which one operation has completed at second 1, and an open one was entered at
  // second 2.
  OpRow& Stuck(bool visible = true) {
    image_.AddComm(0, flight::kCommApiEvents | (visible ? flight::kCommCompletionVisible : 0u));
    image_.AddFinished(0, 0, 1, At(1));
    OpSpec s;
    s.row = 1;
    s.position = 2;
    s.entered = At(2);
    s.returned = At(2) + 50;
    s.enqueued = At(2) + 40;
    s.group = 2;
    return image_.AddOp(0, s);
  }
  flight::StallFinding& Finding(uint32_t i) { return image_.header()->stalls[i]; }

  TestImage image_;
  std::unique_ptr<StallWatch> watch_;
  StallRound last_ = {};
  uint64_t frozen_until_ = 0;
  uint32_t noticed_ = 0, recovered_ = 0;
};

TEST_F(StallTest, NothingOpenIsNoStall) {
  image_.AddComm(0);
  for (uint32_t i = 0; i < 200; ++i) image_.AddFinished(0, i, i + 1, At(1));
  EXPECT_EQ(FirstFinding(1, 1000), 0);
  EXPECT_EQ(last_.quiet_since, 0u);
}

TEST_F(StallTest, AnOperationWithoutProgress) {
  Stuck();
  EXPECT_NEAR(FirstFinding(2, 200), 62, 1);
  EXPECT_EQ(Load(Finding(0).what), uint64_t{1} << 63 | 1);
  EXPECT_EQ(Load(Finding(0).since), At(2) + 50);
  EXPECT_EQ(Load(Finding(0).resolved), 0u);
  EXPECT_EQ(last_.quiet_since, At(2) + 50);
  EXPECT_EQ(FirstFinding(63, 500), 0);  // once
}

TEST_F(StallTest, FirstOperationGetsMoreTime) {
  image_.AddComm(0);
  OpSpec s;
  s.entered = At(2);
  image_.AddOp(0, s);
  EXPECT_NEAR(FirstFinding(2, 500), 302, 1);
}

TEST_F(StallTest, OnlyEnqueuedWithoutVisibleCompletionIsNone) {
  Stuck(false);
  EXPECT_EQ(FirstFinding(2, 1000), 0);
  // But a call that does not return is one, visible or not.
  OpSpec s;
  s.row = 2;
  s.position = 3;
  s.entered = At(1000);
  s.group = 3;
  image_.AddOp(0, s);
  EXPECT_NEAR(FirstFinding(1000, 1200), 1060, 1);
  EXPECT_EQ(Load(Finding(0).what) & 0xffff, 2u);
}

TEST_F(StallTest, StepsKeepAnOperationAlive) {
  Stuck();
  EdgeRow& edge = image_.AddEdge(5, 0, 1, true);
  Set(edge.ops, 1);
  for (double t = 2; t < 300; t += 0.5) {
    Set(edge.changed, At(t) & ~uint64_t{1});
    last_ = watch_->Look(At(t), 0);
    ASSERT_EQ(last_.noticed, 0u) << t;
  }
  EXPECT_NEAR(FirstFinding(300, 500), 359.5, 1);
}

TEST_F(StallTest, StepsOfAnotherCommunicatorDoNot) {
  Stuck();
  image_.AddComm(1);
  EdgeRow& edge = image_.AddEdge(5, 1, 1, true);
  for (double t = 2; t < 61; t += 0.5) {
    Set(edge.changed, At(t));
    last_ = watch_->Look(At(t), 0);
  }
  EXPECT_NEAR(FirstFinding(61, 200), 62, 1);
}

TEST_F(StallTest, KernelsKeepItAlive) {
  Stuck();
  for (double t = 2; t < 300; t += 0.5) {
    Set(image_.comm(0).last_progress, At(t));
    ASSERT_EQ(watch_->Look(At(t), 0).noticed, 0u);
  }
}

TEST_F(StallTest, ItRecovers) {
  OpRow& row = Stuck();
  EXPECT_GT(FirstFinding(2, 200), 0);
  Set(row.kernel, 1 | uint64_t{2} << 32 | uint64_t{2} << 48);
  Set(row.finished, At(100));
  Set(image_.comm(0).last_progress, At(100));
  EXPECT_EQ(FirstFinding(100, 110), 0);
  EXPECT_EQ(recovered_, 1u);
  EXPECT_EQ(Load(Finding(0).resolved), At(100));
  // A later stall of the same communicator is a finding of its own.
  OpSpec s;
  s.row = 2;
  s.position = 3;
  s.entered = At(120);
  s.group = 3;
  Set(image_.comm(0).completed, 2);
  image_.AddOp(0, s);
  EXPECT_NEAR(FirstFinding(120, 300), 180, 1);
  EXPECT_EQ(Load(Finding(1).what) & 0xffff, 2u);
}

TEST_F(StallTest, ProgressWithoutAnEndIsRecoveryToo) {
  Stuck();
  EXPECT_GT(FirstFinding(2, 200), 0);
  Set(image_.comm(0).last_progress, At(100));
  EXPECT_EQ(FirstFinding(100, 104), 0);
  EXPECT_EQ(recovered_, 0u) << "one movement may be an abort";
  Set(image_.comm(0).last_progress, At(105));
  EXPECT_EQ(FirstFinding(105, 110), 0);
  EXPECT_EQ(recovered_, 1u);
  EXPECT_NEAR(FirstFinding(110, 300), 165, 1);
}

TEST_F(StallTest, OneMovementIsANewStallAfterTheStallTime) {
  Stuck();
  EXPECT_GT(FirstFinding(2, 200), 0);
  Set(image_.comm(0).last_progress, At(100));
  EXPECT_NEAR(FirstFinding(100, 300), 160, 1);
  EXPECT_EQ(recovered_, 1u);
}

TEST_F(StallTest, WhatFinishedJustBeforeTheCommunicatorEndedRecovered) {
  OpRow& row = Stuck();
  EXPECT_GT(FirstFinding(2, 200), 0);
  Set(row.kernel, 1 | uint64_t{2} << 32 | uint64_t{2} << 48);
  Set(row.finished, At(100));
  Set(image_.comm(0).last_progress, At(100));
  Set(image_.comm(0).finalized, At(100.1));
  EXPECT_EQ(FirstFinding(100.2, 110), 0);
  EXPECT_EQ(recovered_, 1u);
  EXPECT_EQ(Load(Finding(0).resolved), At(100.2));
}

TEST_F(StallTest, TheLastStepOfAnAbortIsNoRecovery) {
  Stuck();
  EXPECT_GT(FirstFinding(2, 200), 0);
  Set(image_.comm(0).last_progress, At(100));
  EXPECT_EQ(FirstFinding(100, 103), 0);
  Set(image_.comm(0).finalized, At(103));
  EXPECT_EQ(FirstFinding(103, 300), 0);
  EXPECT_EQ(recovered_, 0u);
  EXPECT_EQ(Load(Finding(0).resolved), 0u);
}

TEST_F(StallTest, AbortedCommunicatorsAreLeftAlone) {
  Stuck();
  Set(image_.comm(0).finalized, At(10));
  EXPECT_EQ(FirstFinding(10, 300), 0);
  EXPECT_TRUE(watch_->AnythingOpen());
}

TEST_F(StallTest, TimeInWhichWeStoodStillDoesNotCount) {
  Stuck();
  frozen_until_ = At(500);
  EXPECT_NEAR(FirstFinding(500, 700), 560, 1);
}

TEST_F(StallTest, SeveralCommunicatorsAndMoreStallsThanSlots) {
  for (uint32_t c = 0; c < 12; ++c) {
    image_.AddComm(c);
    image_.AddFinished(c, 0, 1, At(1));
    OpSpec s;
    s.row = 1;
    s.position = 2;
    s.entered = At(2);
    s.group = 2;
    image_.AddOp(c, s);
  }
  EXPECT_GT(FirstFinding(2, 200), 0);
  EXPECT_EQ(noticed_, 0xffu);
  EXPECT_EQ(FirstFinding(63, 300), 0);
}

TEST_F(StallTest, UninstrumentedKindsAreNone) {
  // Under the v6 table a broadcast gets no launch event: returned, its group over, nothing behind
  // it.
  image_.AddComm(0, flight::kCommApiEvents | flight::kCommCompletionVisible, 6);
  image_.AddFinished(0, 0, 1, At(1));
  OpSpec s;
  s.row = 1;
  s.position = 2;
  s.func = flight::Func::kBroadcast;
  s.entered = At(2);
  s.returned = At(2) + 10;
  s.group = 2;
  image_.AddOp(0, s);
  Set(image_.image().threads[0].group, 2);
  EXPECT_EQ(FirstFinding(2, 500), 0);
  // While the group lasts, the call does.
  Set(image_.image().threads[0].call, static_cast<uint64_t>(flight::Call::kGroupEnd));
  EXPECT_GT(FirstFinding(500, 502), 0);
}

TEST_F(StallTest, CommunicatorsOfOneRankHaveNone) {
  image_.AddComm(0);
  Set(image_.comm(0).ranks, uint64_t{1} << 32);
  OpSpec s;
  s.entered = At(2);
  s.returned = At(3);
  image_.AddOp(0, s);
  EXPECT_EQ(FirstFinding(2, 500), 0);
}

TEST_F(StallTest, CapturedOperationsHaveNone) {
  image_.AddComm(0);
  image_.AddFinished(0, 0, 1, At(1));
  OpSpec s;
  s.row = 1;
  s.position = 2;
  s.entered = At(2);
  s.returned = At(3);
  s.flags |= flight::kOpGraph;
  s.group = 2;
  image_.AddOp(0, s);
  EXPECT_EQ(FirstFinding(2, 500), 0);
}

}  // namespace
}  // namespace ringscope::recorder
