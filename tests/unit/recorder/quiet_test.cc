// The process that does nothing, on a made-up clock.
#include "recorder/quiet.h"

#include <gtest/gtest.h>

#include "tests/unit/recorder/test_image.h"

namespace ringscope::recorder {
namespace {

constexpr uint64_t kPeriod = kSecond / 2;
constexpr uint64_t kStall = 60 * kSecond;

class QuietTest : public testing::Test {
 protected:
  QuietTest() { watch_.Init(&image_.image(), kStall, kPeriod, 0); }

  // Looks every half second from `from` to `to` (seconds); the first moment of a report, 0 if none.
  double Report(double from, double to, bool waits = false) {
    for (double t = from; t <= to; t += 0.5) {
      if (watch_.Look(At(t), frozen_until_, waits)) return t;
    }
    return 0;
  }
  static uint64_t At(double seconds) { return kStart + static_cast<uint64_t>(seconds * 1e9); }
  void Operation(double at) {
    image_.AddFinished(0, next_, next_ + 1, At(at));
    ++next_;
    Set(image_.comm(0).last_progress, At(at));
  }

  TestImage image_;
  QuietWatch watch_;
  uint64_t frozen_until_ = 0;
  uint32_t next_ = 0;
};

TEST_F(QuietTest, OnceAfterTheStallTime) {
  image_.AddComm(0);
  Operation(1);
  EXPECT_NEAR(Report(1, 200), 61, 5);
  EXPECT_EQ(Report(70, 2000), 0);
}

TEST_F(QuietTest, EachQuietPeriodAgain) {
  image_.AddComm(0);
  Operation(1);
  EXPECT_NEAR(Report(1, 200), 61, 5);
  Operation(100);
  EXPECT_NEAR(Report(100, 400), 160, 5);
  Operation(500);
  EXPECT_NEAR(Report(500, 700), 560, 5);
}

TEST_F(QuietTest, WithoutOperationsItIsNotYetAtWork) {
  image_.AddComm(0);
  EXPECT_EQ(Report(1, 1000), 0);
}

TEST_F(QuietTest, WithoutCommunicatorsThereIsNothingToWaitFor) {
  image_.AddComm(0);
  Operation(1);
  Set(image_.comm(0).finalized, At(2));
  EXPECT_EQ(Report(2, 1000), 0);
}

TEST_F(QuietTest, WhoWaitsIsTheStallRulesAffair) {
  image_.AddComm(0);
  Operation(1);
  EXPECT_EQ(Report(1, 1000, /*waits=*/true), 0);
  EXPECT_NEAR(Report(1000, 1200), 1060, 5);  // it counts from the end of the wait
}

TEST_F(QuietTest, ALongTransferIsWork) {
  image_.AddComm(0);
  Operation(1);
  EdgeRow& edge = image_.AddEdge(5, 0, 1, true);
  for (double t = 1; t < 500; t += 0.5) {
    Set(edge.changed, At(t) & ~uint64_t{1});
    ASSERT_FALSE(watch_.Look(At(t), 0, false)) << t;
  }
  EXPECT_NEAR(Report(500, 700), 560, 6);
}

TEST_F(QuietTest, CallbacksOfTheProgressLoopAreNone) {
  image_.AddComm(0);
  Operation(1);
  double reported = 0;
  for (double t = 1; t < 200 && reported == 0; t += 0.5) {
    // What a turn of NCCL 2.24's loop may touch: nothing but counters of odd events.
    Set(image_.image().counters[static_cast<uint32_t>(flight::Counter::kUnaskedEvent)],
        static_cast<uint64_t>(t * 1000));
    if (watch_.Look(At(t), 0, false)) reported = t;
  }
  EXPECT_NEAR(reported, 61, 5);
}

TEST_F(QuietTest, TimeInWhichWeStoodStillDoesNotCount) {
  image_.AddComm(0);
  Operation(1);
  EXPECT_EQ(Report(1, 20), 0);
  frozen_until_ = At(500);
  EXPECT_NEAR(Report(500, 700), 560, 5);
}

}  // namespace
}  // namespace ringscope::recorder
