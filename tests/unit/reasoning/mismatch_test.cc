// Wrong arguments, functions and order; and everything that looks like it and is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
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

struct C {
  trace::Func func = trace::ALL_REDUCE;
  uint64_t count = 1024;
  trace::DataType type = trace::FLOAT32;
  int root = 0;
};
const C kReduce{}, kGather{trace::ALL_GATHER, 512}, kScatter{trace::REDUCE_SCATTER, 2048},
    kCast{trace::BROADCAST, 30000};

// Each rank's calls, all finished; ranks[i] are the calls of rank i.
JobBuilder Play(const std::vector<std::vector<C>>& ranks, uint64_t first = 1) {
  JobBuilder b(static_cast<int>(ranks.size()));
  std::vector<int> all(ranks.size());
  std::iota(all.begin(), all.end(), 0);
  const CommRef w = b.Comm("world", all);
  for (size_t r = 0; r < ranks.size(); ++r) {
    for (size_t i = 0; i < ranks[r].size(); ++i) {
      const C& c = ranks[r][i];
      b.Coll(w, static_cast<int>(r), first + i)
          .Func(c.func)
          .Count(c.count)
          .Type(c.type)
          .Root(c.root)
          .Finished();
    }
  }
  return b;
}
std::vector<C> Times(const C& c, int n) { return std::vector<C>(static_cast<size_t>(n), c); }
std::vector<C> With(std::vector<C> calls, size_t i, const C& c) { return calls[i] = c, calls; }

TEST(Mismatch, StopsTheJobThoughCompletionIsHidden) {
  for (const bool goes_on : {false, true}) {
    JobBuilder b(4);
    const CommRef w = b.Comm("world", {0, 1, 2, 3}, 0, false);
    b.Finish(w, 9);
    for (int r = 0; r < 4; ++r) {
      b.Coll(w, r, 10).Count(r == 2 ? 4096 : 1024).Enqueued().raw().set_unfinished(false);
      if (r != 2 || goes_on) b.Coll(w, r, 11).Enqueued().raw().set_unfinished(false);
    }
    const auto found = FindMismatches(b.Build());
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].stops_job, !goes_on);
    EXPECT_THAT(RanksOf(found[0]), ElementsAre(2));
  }
}

TEST(Mismatch, CountOnOneRankNamesIt) {
  const auto same = Times(kReduce, 15);
  const auto found =
      FindMismatches(Play({same, With(same, 10, {trace::ALL_REDUCE, 2048}), same, same}).Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].finding.kind(), Kind::size_mismatch);
  EXPECT_EQ(found[0].finding.confidence(), Confidence::established);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(1));
  EXPECT_EQ(found[0].position, 11u);
  EXPECT_FALSE(found[0].stops_job) << "all operations finished: wrong data, no hang";
  EXPECT_THAT(CollateralOf(found[0]), IsEmpty());
  EXPECT_TRUE(IsWhole(found[0]));
  EXPECT_THAT(found[0].finding.title(), HasSubstr("2048"));
  // The odd one's row comes first, and it is the row of that operation.
  EXPECT_EQ(found[0].finding.evidence(0).rank(), 1);
  EXPECT_EQ(found[0].finding.evidence(0).row(), 10u);
}

TEST(Mismatch, DatatypeRootAndFunctionAreCollectiveMismatches) {
  const auto same = Times(kCast, 12);
  for (const C& odd : {C{trace::BROADCAST, 30000, trace::FLOAT64},
                       C{trace::BROADCAST, 30000, trace::FLOAT32, 3}, kGather}) {
    const auto found = FindMismatches(Play({same, same, same, With(same, 4, odd)}).Build());
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].finding.kind(), Kind::collective_mismatch);
    EXPECT_THAT(RanksOf(found[0]), ElementsAre(3));
  }
}

TEST(Mismatch, WhatNeedNotAgreeIsNotCompared) {
  // A root where there is none, algorithm, protocol, stream, thread; the vector all-gather has a
  // count of its own on each rank.
  JobBuilder b(4);
  const CommRef w = b.Comm("world", {0, 1, 2, 3});
  for (int r = 0; r < 4; ++r) {
    OpBuilder op = b.Coll(w, r, 1)
                       .Root(r - 1)
                       .Stream(static_cast<uint64_t>(r))
                       .Thread(static_cast<uint32_t>(r))
                       .Finished();
    op.raw().set_algo(r % 2 == 0 ? trace::RING : trace::TREE);
    op.raw().set_proto(r == 3 ? trace::LL : trace::SIMPLE);
    b.Coll(w, r, 2).Func(trace::ALL_GATHER_V).Count(static_cast<uint64_t>(100 + r)).Finished();
    b.P2p(w, r, 1, r % 2 == 0, r ^ 1).Count(static_cast<uint64_t>(r)).Finished();
  }
  EXPECT_THAT(FindMismatches(b.Build()), IsEmpty());
}

TEST(Mismatch, HangSomewhereElseStillBlamesTheFirstDifference) {
  // Rank 1 calls an all-gather in operation 3 and finishes everything; the others hang in
  // operation 5.
  JobBuilder b(4);
  const CommRef w = b.Comm("world", {0, 1, 2, 3});
  for (int r = 0; r < 4; ++r) {
    for (uint64_t k = 1; k <= 5; ++k) {
      OpBuilder op = b.Coll(w, r, k);
      if (r == 1 && k == 3) op.Func(trace::ALL_GATHER);
      if (r != 1 && k == 5)
        op.Running();
      else
        op.Finished();
    }
  }
  const auto found = FindMismatches(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(1));
  EXPECT_EQ(found[0].position, 3u);
  EXPECT_TRUE(found[0].stops_job);
  EXPECT_THAT(CollateralOf(found[0]), ElementsAre(0, 2, 3));
}

TEST(Mismatch, OnlyTheFirstDifferenceOfACommunicatorIsTold) {
  const auto same = Times(kReduce, 9);
  const auto odd = With(With(same, 2, kGather), 6, kScatter);
  const auto found = FindMismatches(Play({same, same, odd, With(same, 7, kCast)}).Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].position, 3u);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(2));
}

TEST(Mismatch, HalfAgainstHalfNamesNobody) {
  const auto a = Times(kReduce, 6), b = With(a, 3, {trace::ALL_REDUCE, 4096});
  for (const auto& ranks : {std::vector{a, b}, std::vector{a, b, b, a}}) {
    const auto found = FindMismatches(Play(ranks).Build());
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].finding.kind(), Kind::size_mismatch);
    EXPECT_THAT(RanksOf(found[0]), IsEmpty());
    EXPECT_EQ(found[0].finding.confidence(), Confidence::probable);
    EXPECT_EQ(found[0].finding.who().communicators_size(), 1);
    EXPECT_THAT(found[0].finding.title(), HasSubstr("intent"));
  }
}

TEST(Mismatch, ThreeCampsWithoutMajorityNameNobody) {
  const auto a = Times(kReduce, 6);
  const auto found = FindMismatches(Play({a, With(a, 3, kGather), With(a, 3, kCast)}).Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(RanksOf(found[0]), IsEmpty());
}

TEST(Mismatch, NarrowMajorityIsNotEstablished) {
  const auto a = Times(kReduce, 6), b = With(a, 3, kGather);
  const auto found = FindMismatches(Play({a, b, a, b, a}).Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(1, 3));
  EXPECT_EQ(found[0].finding.confidence(), Confidence::probable);
}

TEST(Mismatch, SwappedCallsAreAnOrder) {
  auto same = Times(kReduce, 10);
  same.push_back(kReduce);
  same.push_back(kCast);
  auto swapped = same;
  std::swap(swapped[10], swapped[11]);
  // With and without operations after the swap: at the end of the program nothing follows.
  for (int more : {0, 1, 5}) {
    auto a = same, b = swapped;
    for (int i = 0; i < more; ++i) a.push_back(kGather), b.push_back(kGather);
    const auto found = FindMismatches(Play({a, b, a, a}).Build());
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].finding.kind(), Kind::order_mismatch) << more;
    EXPECT_THAT(RanksOf(found[0]), ElementsAre(1));
    EXPECT_EQ(found[0].position, 11u);
  }
}

std::vector<C> Period(int n) {
  std::vector<C> calls;
  const C period[] = {kReduce, kGather, {trace::ALL_REDUCE, 77}, kScatter};
  for (int i = 0; i < n; ++i) calls.push_back(period[i % 4]);
  return calls;
}

TEST(Mismatch, MissingAndAdditionalCallsAreShifts) {
  const auto same = Period(24);
  auto missing = same, extra = same;
  missing.erase(missing.begin() + 9);
  extra.insert(extra.begin() + 9, kCast);
  const auto less = FindMismatches(Play({same, same, missing, same}).Build());
  ASSERT_EQ(less.size(), 1u);
  EXPECT_EQ(less[0].finding.kind(), Kind::collective_mismatch);
  EXPECT_THAT(RanksOf(less[0]), ElementsAre(2));
  EXPECT_EQ(less[0].position, 10u);
  EXPECT_THAT(less[0].finding.title(), HasSubstr("leaves out AllGather of 512"));
  const auto more = FindMismatches(Play({extra, same, same, same}).Build());
  ASSERT_EQ(more.size(), 1u);
  EXPECT_EQ(more[0].finding.kind(), Kind::collective_mismatch);
  EXPECT_THAT(RanksOf(more[0]), ElementsAre(0));
  EXPECT_THAT(more[0].finding.title(), HasSubstr("in addition"));
}

TEST(Mismatch, MissingCallOfATwoStepPeriodIsNotAnOrder) {
  std::vector<C> same;
  for (int i = 0; i < 12; ++i) same.push_back(i % 2 == 0 ? kReduce : kGather);
  auto missing = same;
  missing.erase(missing.begin() + 4);
  const auto found = FindMismatches(Play({same, missing, same, same}).Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].finding.kind(), Kind::collective_mismatch);
  EXPECT_THAT(found[0].finding.title(), HasSubstr("leaves out"));
}

TEST(Mismatch, ARankBehindOrAheadIsNoMismatch) {
  const auto same = Period(12);
  const std::vector<C> behind(same.begin(), same.begin() + 7);
  EXPECT_THAT(FindMismatches(Play({same, same, behind, same}).Build()), IsEmpty());
}

// Operations first..last of one ncclGroup.
void Group(JobBuilder* b, CommRef w, int rank, uint32_t group, uint64_t first,
           const std::vector<C>& calls) {
  for (size_t i = 0; i < calls.size(); ++i) {
    b->Coll(w, rank, first + i).Func(calls[i].func).Count(calls[i].count).Group(group).Finished();
  }
}

TEST(Mismatch, OrderInsideAGroupMeansNothing) {
  for (bool wrong : {false, true}) {
    JobBuilder b(3);
    const CommRef w = b.Comm("world", {0, 1, 2});
    for (int r = 0; r < 3; ++r) {
      b.Finish(w, r, 2);
      std::vector<C> calls{kReduce, kGather, kScatter};
      std::rotate(calls.begin(), calls.begin() + r, calls.end());
      if (wrong && r == 2) {
        for (C& c : calls) c.count += c.func == trace::ALL_GATHER;
      }
      Group(&b, w, r, static_cast<uint32_t>(40 + r), 3, calls);  // group numbers are a thread's own
      b.Finish(w, r, 8, 6);
    }
    const auto found = FindMismatches(b.Build());
    if (!wrong) {
      EXPECT_THAT(found, IsEmpty());
      continue;
    }
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].finding.kind(), Kind::size_mismatch);
    EXPECT_THAT(RanksOf(found[0]), ElementsAre(2));
    EXPECT_THAT(found[0].finding.title(), HasSubstr("513"));
    EXPECT_THAT(found[0].finding.title(), Not(HasSubstr("2048"))) << "what agrees is not listed";
  }
}

TEST(Mismatch, TwoGroupsInARowStayTwo) {
  JobBuilder b(2);
  const CommRef w = b.Comm("world", {0, 1});
  for (int r = 0; r < 2; ++r) {
    Group(&b, w, r, 1, 1, {kReduce, kGather});
    Group(&b, w, r, 2, 3,
          r == 0 ? std::vector<C>{kScatter, kCast} : std::vector<C>{kScatter, kGather});
  }
  const auto found = FindMismatches(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].position, 3u);
}

TEST(Mismatch, MissingRecordsLowerConfidence) {
  const auto same = Times(kReduce, 6), odd = With(same, 3, kGather);
  JobBuilder b = Play({same, odd, same, same, same});
  b.Drop(4);
  auto found = FindMismatches(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].finding.confidence(), Confidence::probable);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(1));
  b.Drop(3).Drop(2);  // two of five left
  found = FindMismatches(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].finding.confidence(), Confidence::possible);
  EXPECT_THAT(RanksOf(found[0]), IsEmpty());
}

TEST(Mismatch, LostRowsLowerConfidence) {
  const auto same = Times(kReduce, 6);
  JobBuilder b = Play({same, With(same, 3, kGather), same, same});
  b.Raw(0, 2).set_no_row(1);
  const auto found = FindMismatches(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].finding.confidence(), Confidence::possible);
  EXPECT_THAT(TextOf(found[0]), HasSubstr("lost operations"));
}

TEST(Mismatch, WindowsThatDoNotOverlapSayNothing) {
  JobBuilder b(3);
  const CommRef w = b.Comm("world", {0, 1, 2});
  b.Finish(w, 0, 10);  // kept 1-10
  for (uint64_t k = 20; k <= 25; ++k) b.Coll(w, 1, k).Func(trace::ALL_GATHER).Finished();
  b.Raw(w, 2).set_collectives(25);  // kept nothing
  EXPECT_THAT(FindMismatches(b.Build()), IsEmpty());
}

TEST(Mismatch, OnlyPositionsThatWereKeptAreCompared) {
  // Rank 2 kept 8-12 only; the difference of rank 1 at 5 is outvoted by those that kept it.
  JobBuilder b(4);
  const CommRef w = b.Comm("world", {0, 1, 2, 3});
  for (int r : {0, 1, 3}) {
    for (uint64_t k = 1; k <= 12; ++k)
      b.Coll(w, r, k).Count(r == 1 && k == 5 ? 9 : 1024).Finished();
  }
  b.Finish(w, 2, 12, 8);
  const auto found = FindMismatches(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].position, 5u);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(1));
  EXPECT_EQ(found[0].finding.confidence(), Confidence::probable);
}

TEST(Mismatch, DifferenceAtTheStartOfTheWindowMayBeOlder) {
  const auto same = Period(12);
  std::vector<C> shifted(same.begin() + 1, same.end());
  const auto found = FindMismatches(Play({same, shifted, same}, 500).Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(TextOf(found[0]), HasSubstr("may have begun before"));
}

TEST(Mismatch, LaunchEventsAreNotComparedWithCalls) {
  JobBuilder b(3);
  const CommRef w = b.Comm("world", {0, 1, 2});
  for (int r = 0; r < 3; ++r) {
    OpBuilder op = b.Coll(w, r, 1).Func(trace::ALL_GATHER).Count(r == 2 ? 4096 : 1024).Finished();
    op.Type(r == 2 ? trace::INT8 : trace::FLOAT32);
    op.raw().set_from_api(r != 2);
  }
  EXPECT_THAT(FindMismatches(b.Build()), IsEmpty());
}

TEST(Mismatch, RanksWhoseRowsAreOfBothKindsAreLeftOut) {
  JobBuilder b(3);
  const CommRef w = b.Comm("world", {0, 1, 2});
  for (int r = 0; r < 3; ++r) {
    b.Finish(w, r, 1);
    OpBuilder op = b.Coll(w, r, 2).Func(trace::ALL_GATHER).Count(r == 2 ? 4096 : 1024).Finished();
    op.raw().set_from_api(r != 2);
  }
  EXPECT_THAT(FindMismatches(b.Build()), IsEmpty());
}

TEST(Mismatch, UnequalStepsOnBothEndsAreEvidence) {
  JobBuilder b(4);
  const CommRef w = b.Comm("world", {0, 1, 2, 3});
  for (int r = 0; r < 4; ++r) {
    b.Finish(w, r, 3);
    OpBuilder op = b.Coll(w, r, 4).Count(r == 1 ? 9000000 : 1024);
    if (r == 1)
      op.Running();
    else
      op.Finished();
  }
  b.EdgeOf(w, 1, 2).Send(4, 60, trace::SEND_WAIT, 14).Recv(4, 12, trace::RECV_WAIT, 11);
  const auto found = FindMismatches(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(TextOf(found[0]), HasSubstr("60 steps at the sender, 12 at the receiver"));
}

TEST(Mismatch, CommunicatorsAreJudgedOneByOne) {
  JobBuilder b(4);
  const CommRef world = b.Comm("world", {0, 1, 2, 3}), pair = b.Comm("tp", {2, 3});
  b.Finish(world, 5);
  for (int r = 0; r < 2; ++r) b.Coll(pair, r, 1).Count(r == 0 ? 5 : 6).Finished();
  const auto found = FindMismatches(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].finding.title(), HasSubstr("ranks disagree"));
  EXPECT_THAT(found[0].finding.title(), HasSubstr("rank 3")) << "job ranks, not ranks of the pair";
}

// Who is named follows the rank that is odd, in whatever order the records come and whoever it is.
TEST(Mismatch, PermutationInvariant) {
  std::mt19937 random(7);
  for (int round = 0; round < 40; ++round) {
    const int n = 3 + static_cast<int>(random() % 6);
    const int odd = static_cast<int>(random() % static_cast<unsigned>(n));
    std::vector<C> same;
    for (int i = 0; i < 30; ++i)
      same.push_back({static_cast<trace::Func>(3 + random() % 3), 100 + random() % 5});
    const size_t at = random() % 30;
    std::vector<std::vector<C>> ranks(static_cast<size_t>(n), same);
    ranks[static_cast<size_t>(odd)][at].count += 1000;
    JobBuilder b = Play(ranks);
    auto records = b.Records();
    std::shuffle(records.begin(), records.end(), random);
    const auto found = FindMismatches(model::BuildJob(records));
    ASSERT_EQ(found.size(), 1u);
    EXPECT_THAT(RanksOf(found[0]), ElementsAre(odd));
    EXPECT_EQ(found[0].position, at + 1);
    EXPECT_EQ(found[0].finding.kind(), Kind::size_mismatch);
  }
}

// Equal programs, each seen through its own hole: random windows, groups of any shape, a rank that
// is behind.
TEST(Mismatch, EqualProgramsNeverDisagree) {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    const int n = 2 + static_cast<int>(random() % 5);
    std::vector<int> all(static_cast<size_t>(n));
    std::iota(all.begin(), all.end(), 0);
    JobBuilder b(n);
    const CommRef w = b.Comm("world", all);
    std::vector<C> calls;
    std::vector<uint32_t> groups;
    for (int i = 0; i < 40; ++i) {
      calls.push_back({static_cast<trace::Func>(3 + random() % 3), 1 + random() % 3});
      groups.push_back(random() % 3 == 0 ? 0 : static_cast<uint32_t>(1 + i / 4));
    }
    for (int r = 0; r < n; ++r) {
      auto mine = calls;
      for (size_t i = 0; i < mine.size();) {  // shuffled inside each group
        size_t j = i + 1;
        while (j < mine.size() && groups[i] != 0 && groups[j] == groups[i]) ++j;
        std::shuffle(mine.begin() + static_cast<long>(i), mine.begin() + static_cast<long>(j),
                     random);
        i = j;
      }
      // The ring's window may begin anywhere; at its end the rank may be in the middle of filling a
      // group.
      const size_t first = random() % 20, last = 20 + random() % 20;
      for (size_t i = first; i <= last; ++i) {
        OpBuilder op = b.Coll(w, r, i + 1).Func(mine[i].func).Count(mine[i].count).Group(groups[i]);
        if (groups[i] != 0 && groups[i] == groups[last])
          op.Returned();
        else
          op.Finished();
      }
    }
    EXPECT_THAT(FindMismatches(b.Build()), IsEmpty()) << round;
  }
}

TEST(Mismatch, HostilePositionsDoNotHurt) {
  JobBuilder b(2);
  const CommRef w = b.Comm("world", {0, 1});
  for (int r = 0; r < 2; ++r) {
    for (uint64_t k : {uint64_t{0}, uint64_t{1}, uint64_t{1}, UINT64_MAX - 1, UINT64_MAX}) {
      b.Coll(w, r, k).Count(static_cast<uint64_t>(r)).Group(1).Finished();
    }
  }
  EXPECT_LE(FindMismatches(b.Build()).size(), 1u);
}

}  // namespace
}  // namespace ringscope::reasoning
