// Messages without a partner; and the ranks that merely have not come yet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/unit/reasoning/expect.h"
#include "tests/unit/testing/job_builder.h"

namespace ringscope::reasoning {
namespace {

using testing::CommRef;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JobBuilder;
using ::testing::Not;
using testing::OpBuilder;

void Pair(JobBuilder* b, CommRef w, int from, int to, uint64_t sent, uint64_t received) {
  b->Messages(w, from, to, true, sent);
  b->Messages(w, to, from, false, received);
}
void End(JobBuilder* b, CommRef w, int ranks) {
  for (int r = 0; r < ranks; ++r) {
    b->Raw(w, r).set_finalized_ns(OpBuilder::Ns(90));
    b->Clean(r).Trace(r, trace::REASON_EXIT, 91);
  }
}

// Pipeline 0 -> 1 -> 2 -> 3 of six micro-batches, then an all-reduce. Rank `odd` receives one less
// and goes on; its sender stays in its last send, everybody else in the all-reduce. `at` maps the
// story's ranks to ranks.
JobBuilder Pipeline(const std::vector<int>& at, bool open) {
  JobBuilder b(4);
  const CommRef w = b.Comm("world", {0, 1, 2, 3});
  for (int r = 0; r < 4; ++r) {
    const int self = at[static_cast<size_t>(r)];
    uint64_t n = 0;
    for (uint64_t k = 1; k <= 6; ++k) {
      if (r > 0 && !(r == 2 && k == 6))
        b.P2p(w, self, ++n, false, at[static_cast<size_t>(r - 1)]).Finished();
      if (r == 3) continue;
      OpBuilder send = b.P2p(w, self, ++n, true, at[static_cast<size_t>(r + 1)]);
      if (open && r == 1 && k == 6)
        send.Running();
      else
        send.Finished();
    }
    if (r > 0) b.Messages(w, self, at[static_cast<size_t>(r - 1)], false, r == 2 ? 5 : 6);
    if (r < 3) b.Messages(w, self, at[static_cast<size_t>(r + 1)], true, 6);
    if (open && r != 1) b.Coll(w, self, 1, 20).Running();
    if (!open) b.Coll(w, self, 1, 20).Finished();
  }
  return b;
}

TEST(MessageCount, RankThatLeftOutAReceiveAndWentOn) {
  std::vector<int> at{0, 1, 2, 3};
  do {
    const auto found = FindUnmatched(Pipeline(at, true).Build());
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].finding.kind(), Kind::p2p_unmatched);
    EXPECT_THAT(RanksOf(found[0]), ElementsAre(at[2])) << "not the victim that hangs in its send";
    EXPECT_EQ(EdgesOf(found[0]),
              (std::set<std::string>{std::to_string(at[1]) + "->" + std::to_string(at[2])}));
    EXPECT_EQ(found[0].finding.confidence(), Confidence::established);
    EXPECT_TRUE(found[0].stops_job);
    EXPECT_TRUE(IsWhole(found[0]));
    auto others = at;
    others.erase(others.begin() + 2);
    std::sort(others.begin(), others.end());
    EXPECT_EQ(CollateralOf(found[0]), others);
    EXPECT_THAT(found[0].finding.title(), HasSubstr("left out a receive"));
  } while (std::next_permutation(at.begin(), at.end()));
}

TEST(MessageCount, SmallMessageWithoutPartnerIsWrongDataNotAHang) {
  JobBuilder b = Pipeline({0, 1, 2, 3}, false);
  EXPECT_THAT(FindUnmatched(b.Build()), IsEmpty())
      << "nothing is said while the ranks may still come";
  End(&b, 0, 4);
  const auto found = FindUnmatched(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(2));
  EXPECT_FALSE(found[0].stops_job);
  EXPECT_THAT(CollateralOf(found[0]), IsEmpty());
}

TEST(MessageCount, AdditionalSendIsBlamedOnTheSender) {
  JobBuilder b(4);
  const CommRef w = b.Comm("world", {0, 1, 2, 3});
  for (int r = 0; r < 4; ++r) Pair(&b, w, r, (r + 1) % 4, r == 2 ? 8 : 7, 7);
  End(&b, w, 4);
  const auto found = FindUnmatched(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(2));
  EXPECT_THAT(found[0].finding.title(), HasSubstr("additional send"));
}

// All-to-all as grouped send and receive of 4 ranks; `late` has done one round less.
JobBuilder AllToAll(int late) {
  JobBuilder b(4);
  const CommRef w = b.Comm("world", {0, 1, 2, 3});
  for (int r = 0; r < 4; ++r) {
    for (int p = 0; p < 4; ++p) {
      if (p == r) continue;
      const uint64_t n = r == late ? 8 : 9;
      b.Messages(w, r, p, true, n);
      b.Messages(w, r, p, false, n);
      if (r != late && p == late) b.P2p(w, r, 100, false, p, 20).Running();
    }
  }
  return b;
}

TEST(MessageCount, RankThatHasNotComeYetIsNotUnmatched) {
  for (int late = 0; late < 4; ++late)
    EXPECT_THAT(FindUnmatched(AllToAll(late).Build()), IsEmpty());
}

TEST(MessageCount, RankThatWaitsForAThirdIsNotUnmatched) {
  // Rank 2 waits in a receive from rank 3, which sleeps; rank 1 waits in a send to rank 2. Rank 2
  // will come back.
  JobBuilder b(4);
  const CommRef w = b.Comm("world", {0, 1, 2, 3});
  b.P2p(w, 1, 1, true, 2).Running();
  b.P2p(w, 2, 1, false, 3).Running();
  Pair(&b, w, 1, 2, 6, 5);
  Pair(&b, w, 3, 2, 5, 6);
  EXPECT_THAT(FindUnmatched(b.Build()), IsEmpty());
  // In another communicator, for somebody else: the same.
  JobBuilder c(4);
  const CommRef all = c.Comm("world", {0, 1, 2, 3}), pair = c.Comm("tp", {2, 3});
  c.P2p(all, 1, 1, true, 2).Running();
  Pair(&c, all, 1, 2, 6, 5);
  c.Coll(pair, 0, 1).Running();
  EXPECT_THAT(FindUnmatched(c.Build()), IsEmpty());
}

TEST(MessageCount, WaitThroughOtherRanksAndCommunicatorsClosesTheCycle) {
  // Rank 2 left out the receive from 1 and waits for 3 in "dp"; 3 waits for 1 in "pair"; 1 cannot
  // come.
  JobBuilder b(4);
  const CommRef w = b.Comm("world", {0, 1, 2, 3}), dp = b.Comm("dp", {2, 3}),
                pair = b.Comm("pair", {3, 1});
  Pair(&b, w, 0, 1, 6, 6);
  Pair(&b, w, 1, 2, 6, 5);
  Pair(&b, w, 2, 3, 6, 6);
  b.P2p(w, 1, 12, true, 2).Running();
  b.Coll(dp, 0, 1, 20).Running();
  b.Coll(pair, 0, 1, 20).Running();
  const auto found = FindUnmatched(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(2));
  EXPECT_THAT(CollateralOf(found[0]), ElementsAre(1, 3));
}

TEST(MessageCount, RankThatSkippedAnAllToAllAndWentOn) {
  // The others have the following all-reduce queued behind the all-to-all; rank 3 runs it and waits
  // for them.
  for (bool arrived : {true, false}) {
    JobBuilder b = AllToAll(3);
    for (int r = 0; r < 3; ++r) b.Coll(0, r, 1, 21).Enqueued();
    if (arrived) b.Coll(0, 3, 1, 20).Running();
    const auto found = FindUnmatched(b.Build());
    if (!arrived) {
      EXPECT_THAT(found, IsEmpty()) << "it may still come";
      continue;
    }
    ASSERT_EQ(found.size(), 1u);
    EXPECT_THAT(RanksOf(found[0]), ElementsAre(3));
    EXPECT_THAT(CollateralOf(found[0]), ElementsAre(0, 1, 2));
    EXPECT_TRUE(found[0].stops_job);
  }
}

TEST(MessageCount, WhatIsQueuedWaitsForNobodyYet) {
  // Rank 3 sleeps before sending to 0 and 1. Behind that receive rank 1 has queued an all-reduce
  // and a send to 0; rank 0 waits on its host before it calls the receive. Nobody but 3 is to
  // blame.
  JobBuilder b(4);
  const CommRef w = b.Comm("world", {0, 1, 2, 3});
  for (int r = 0; r < 2; ++r) {
    b.P2p(w, r, 1, false, 3, 10).Running();
    b.Coll(w, r, 1, 11).Enqueued();
    Pair(&b, w, 3, r, 0, 1);
  }
  b.Coll(w, 2, 1, 11).Running();
  b.P2p(w, 1, 2, true, 0, 12).Enqueued();
  Pair(&b, w, 1, 0, 1, 0);
  EXPECT_THAT(FindUnmatched(b.Build()), IsEmpty());
}

TEST(MessageCount, GroupedMessagesStartTogether) {
  // One group of a send and a receive each, in a ring of three: everybody sends to the right and
  // receives from the right too.
  JobBuilder b(3);
  const CommRef w = b.Comm("world", {0, 1, 2});
  for (int r = 0; r < 3; ++r) {
    b.P2p(w, r, 1, true, (r + 1) % 3).Group(7).Enqueued();
    b.P2p(w, r, 2, false, (r + 1) % 3).Group(7).Enqueued();
    Pair(&b, w, r, (r + 1) % 3, 1, 0);
    Pair(&b, w, (r + 1) % 3, r, 0, 1);
  }
  const auto found = FindUnmatched(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(0, 1, 2));
  EXPECT_EQ(EdgesOf(found[0]).size(), 6u);
}

TEST(MessageCount, AbortedCommunicatorsAreNotAtRest) {
  JobBuilder b(4);
  const CommRef w = b.Comm("world", {0, 1, 2, 3});
  for (int r = 0; r < 4; ++r) {
    Pair(&b, w, r, (r + 1) % 4, r == 2 ? 8 : 7, 7);
    b.Coll(w, r, 1).Running();
  }
  End(&b, w, 4);  // finalized with the operation open
  EXPECT_THAT(FindUnmatched(b.Build()), IsEmpty());
}

TEST(MessageCount, OneSiblingIsNoVote) {
  JobBuilder b(3);
  const CommRef w = b.Comm("world", {0, 1, 2});
  Pair(&b, w, 0, 1, 6, 6);
  Pair(&b, w, 1, 2, 6, 5);
  End(&b, w, 3);
  const auto found = FindUnmatched(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(RanksOf(found[0]), IsEmpty());
}

TEST(MessageCount, BothSendFirstIsACycleWithoutCulprit) {
  JobBuilder b(2);
  const CommRef w = b.Comm("world", {0, 1});
  for (int r = 0; r < 2; ++r) b.P2p(w, r, 7, true, 1 - r).Running();
  Pair(&b, w, 0, 1, 4, 3);
  Pair(&b, w, 1, 0, 4, 3);
  const auto found = FindUnmatched(b.Build());
  ASSERT_EQ(found.size(), 1u) << "one story, one finding";
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(0, 1));
  EXPECT_EQ(EdgesOf(found[0]).size(), 2u);
  EXPECT_THAT(CollateralOf(found[0]), IsEmpty());
  EXPECT_TRUE(found[0].stops_job);
  EXPECT_NE(found[0].finding.confidence(), Confidence::established);
}

TEST(MessageCount, RingOfSendsIsACycleOfAll) {
  JobBuilder b(5);
  const CommRef w = b.Comm("world", {0, 1, 2, 3, 4});
  for (int r = 0; r < 5; ++r) {
    b.P2p(w, r, 7, true, (r + 1) % 5).Running();
    Pair(&b, w, r, (r + 1) % 5, 4, 3);
  }
  const auto found = FindUnmatched(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(0, 1, 2, 3, 4));
}

TEST(MessageCount, CaughtInMidFlightIsNothing) {
  // The same picture a moment after the calls: nothing stood still for the stall time.
  JobBuilder b(2, 8);
  const CommRef w = b.Comm("world", {0, 1});
  for (int r = 0; r < 2; ++r) b.P2p(w, r, 7, true, 1 - r).Running();
  Pair(&b, w, 0, 1, 4, 3);
  Pair(&b, w, 1, 0, 4, 3);
  EXPECT_THAT(FindUnmatched(b.Build()), IsEmpty());
}

TEST(MessageCount, MovingStepsAreNoStandstill) {
  JobBuilder b(2);
  const CommRef w = b.Comm("world", {0, 1});
  for (int r = 0; r < 2; ++r) {
    b.P2p(w, r, 7, true, 1 - r).Running();
    b.EdgeOf(w, r, 1 - r).P2p().Send(7, 500, trace::SEND_WAIT, 300).ChangedAt(99.9);
  }
  Pair(&b, w, 0, 1, 4, 3);
  Pair(&b, w, 1, 0, 4, 3);
  EXPECT_THAT(FindUnmatched(b.Build()), IsEmpty());
}

TEST(MessageCount, RankThatEndedItsProgram) {
  JobBuilder b(3);
  const CommRef w = b.Comm("world", {0, 1, 2});
  b.Finish(w, 3);
  Pair(&b, w, 0, 1, 6, 6);
  Pair(&b, w, 1, 2, 6, 5);
  Pair(&b, w, 2, 0, 6, 6);
  b.P2p(w, 1, 12, true, 2, 20).Running();
  b.Raw(w, 2).set_finalized_ns(OpBuilder::Ns(40));
  b.Clean(2).Trace(2, trace::REASON_EXIT, 41);
  const auto found = FindUnmatched(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(2));
  EXPECT_TRUE(found[0].stops_job);
}

TEST(MessageCount, RankThatEndedEarlyIsAnotherFindersCase) {
  for (bool short_of_collectives : {true, false}) {
    JobBuilder b(3);
    const CommRef w = b.Comm("world", {0, 1, 2});
    Pair(&b, w, 0, 1, 6, 6);
    Pair(&b, w, 1, 2, 6, 5);
    Pair(&b, w, 0, 2, 6, short_of_collectives ? 6 : 5);
    if (short_of_collectives) b.Coll(w, 0, 1, 30).Running();
    b.P2p(w, 1, 12, true, 2, 20).Running();
    b.Raw(w, 2).set_finalized_ns(OpBuilder::Ns(40));
    b.Clean(2).Trace(2, trace::REASON_EXIT, 41);
    EXPECT_THAT(FindUnmatched(b.Build()), IsEmpty()) << short_of_collectives;
  }
}

TEST(MessageCount, EndedEarlyByTheCollectivesOfAnotherCommunicator) {
  JobBuilder b(4);
  const CommRef w = b.Comm("pipeline", {0, 1, 2, 3}), all = b.Comm("world", {0, 1, 2, 3});
  for (int r : {0, 1, 2}) b.Coll(all, r, 1, 20).Running();
  Pair(&b, w, 0, 1, 6, 6), Pair(&b, w, 1, 2, 6, 6), Pair(&b, w, 3, 2, 5, 6);
  b.P2p(w, 2, 6, false, 3, 10).Running();
  b.Clean(3).Trace(3, trace::REASON_EXIT, 12);
  EXPECT_THAT(FindUnmatched(b.Build()), IsEmpty()) << "it left out an all-reduce, too";
}

TEST(MessageCount, WaitThatAlsoEndsAtAThirdIsNoCycle) {
  // Rank 2 lacks a send to rank 0 and waits in the all-reduce for ranks 0 and 3; rank 3's kernel does not start.
  for (const bool third : {false, true}) {
    JobBuilder b(4);
    const CommRef w = b.Comm("pipeline", {0, 1, 2, 3}), all = b.Comm("world", {0, 1, 2, 3});
    Pair(&b, w, 2, 0, 5, 6), Pair(&b, w, 0, 2, 6, 6), Pair(&b, w, 1, 3, 6, 6), Pair(&b, w, 3, 1, 6, 6);
    b.P2p(w, 0, 12, false, 2, 10).Running();
    for (int r : {1, 2}) b.Coll(all, r, 1, 11).Running();
    third ? b.Coll(all, 3, 1, 11).Enqueued() : b.Coll(all, 3, 1, 11).Running();
    EXPECT_EQ(FindUnmatched(b.Build()).size(), third ? 0u : 1u);
  }
}

TEST(MessageCount, MessagesQueuedOnAnotherStreamBehindAGpuThatStandsStill) {
  // Rank 0 has queued messages to rank 1 behind (by an event) an all-reduce that its GPU does not start; rank 1 died before its turn.
  for (const bool stands : {true, false}) {
    JobBuilder b(2);
    const CommRef w = b.Comm("experts", {0, 1}), all = b.Comm("world", {0, 1});
    if (stands) b.Coll(all, 0, 1, 9).Stream(0x100).Enqueued();
    b.Coll(all, 1, 1, 9).Stream(0x100).Running();
    auto send = b.P2p(w, 0, 1, true, 1, 10).Stream(0x200);
    stands ? send.Enqueued() : send.Running();
    Pair(&b, w, 0, 1, 1, 0);
    EXPECT_EQ(FindUnmatched(b.Build()).size(), stands ? 0u : 1u);
  }
}

TEST(MessageCount, UnevenBothWaysConvictsNeitherOfTheTwo) {
  // Rank 3 left out a receive from rank 2, and both now send. The other pairs are even.
  JobBuilder b(4);
  const CommRef w = b.Comm("pipeline", {0, 1, 2, 3});
  for (const auto& [from, to] : {std::pair{0, 1}, {1, 0}, {1, 2}, {2, 1}}) Pair(&b, w, from, to, 6, 6);
  Pair(&b, w, 2, 3, 6, 5), Pair(&b, w, 3, 2, 6, 5);
  for (int r : {2, 3}) b.P2p(w, r, 24, true, 5 - r, 10).Running();
  for (const Candidate& c : FindUnmatched(b.Build())) {
    EXPECT_NE(c.finding.confidence(), Confidence::established);
    EXPECT_NE(c.finding.who().ranks_size(), 1);
  }
}

TEST(MessageCount, WhoWaitsForAMessageHasNotComeToItsOwn) {
  // 3 -> 2 -> 1 -> 0; rank 3 leaves out its last send and goes on to the all-reduce.
  JobBuilder b(4);
  const CommRef w = b.Comm("pipeline", {0, 1, 2, 3}), all = b.Comm("world", {0, 1, 2, 3});
  Pair(&b, w, 3, 2, 5, 6), Pair(&b, w, 2, 1, 5, 6), Pair(&b, w, 1, 0, 5, 6);
  for (int r : {0, 1, 2}) b.P2p(w, r, 11, false, r + 1, 10).Running();
  b.Coll(all, 3, 1, 11).Running();
  const auto found = FindUnmatched(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(EdgesOf(found[0]), std::set<std::string>{"3->2"});
}

TEST(MessageCount, UnevenTrafficConvictsNobody) {
  // Mixture of experts: every pair has its own number. The missing partner is told, its owner is
  // not.
  JobBuilder b(4);
  const CommRef w = b.Comm("world", {0, 1, 2, 3});
  uint64_t n = 3;
  for (int r = 0; r < 4; ++r) {
    for (int p = 0; p < 4; ++p) {
      if (r != p) Pair(&b, w, r, p, n, n - (r == 1 && p == 2 ? 1 : 0)), n += 2;
    }
  }
  End(&b, w, 4);
  const auto found = FindUnmatched(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(RanksOf(found[0]), IsEmpty());
  EXPECT_EQ(EdgesOf(found[0]), (std::set<std::string>{"1->2"}));
  EXPECT_EQ(found[0].finding.confidence(), Confidence::probable);
}

TEST(MessageCount, CountsThatMayBeIncompleteProveNothing) {
  for (int what = 0; what < 3; ++what) {
    JobBuilder b = Pipeline({0, 1, 2, 3}, true);
    if (what == 0) {
      trace::Counter& counter = *b.Record(2).add_counters();
      counter.set_name("edge_no_row");
      counter.set_value(1);
    } else if (what == 1) {
      b.Drop(2);
    }
    auto records = b.Records();
    if (what == 2) records[2].torn = true;
    EXPECT_THAT(FindUnmatched(model::BuildJob(records)), IsEmpty()) << what;
  }
}

TEST(MessageCount, MissingRecordElsewhereLowersConfidence) {
  JobBuilder b(5);
  const CommRef w = b.Comm("world", {0, 1, 2, 3, 4});
  for (int r = 0; r < 4; ++r) Pair(&b, w, r, (r + 1) % 4, 7, r == 1 ? 6 : 7);
  End(&b, w, 5);
  b.Drop(4);
  const auto found = FindUnmatched(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(2));
  EXPECT_EQ(found[0].finding.confidence(), Confidence::probable);
}

TEST(MessageCount, SendToSelfAndEqualCountsAreNothing) {
  JobBuilder b(2);
  const CommRef w = b.Comm("world", {0, 1});
  b.Messages(w, 0, 0, true, 5);
  b.Messages(w, 0, 0, false, 4);
  Pair(&b, w, 0, 1, 9, 9);
  End(&b, w, 2);
  EXPECT_THAT(FindUnmatched(b.Build()), IsEmpty());
}

}  // namespace
}  // namespace ringscope::reasoning
