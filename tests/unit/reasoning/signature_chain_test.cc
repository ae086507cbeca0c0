// Ranks that diverged long ago: what their signature chains tell, and what they must not be taken
// for.
#include "analyzer/reasoning/signature_chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "tests/unit/reasoning/expect.h"
#include "tests/unit/testing/chain_writer.h"
#include "tests/unit/testing/job_builder.h"

namespace ringscope::reasoning {
namespace {

using testing::ChainWriter;
using testing::CommRef;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JobBuilder;
using ::testing::Not;

std::vector<int> Iota(int n) {
  std::vector<int> all(static_cast<size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// A job of one communicator; each rank's chain is written by hand. No calls are kept unless a test
// adds them.
struct Chains {
  explicit Chains(int n) : b(n), w(b.Comm("world", Iota(n))), ranks(static_cast<size_t>(n)) {}
  // All ranks make `n` equal calls; those in `odd` make one of 7 elements as their call number
  // `at`.
  Chains& Run(uint64_t n, uint64_t at = 0, const std::vector<int>& odd = {}) {
    for (size_t r = 0; r < ranks.size(); ++r) {
      const bool differs = std::find(odd.begin(), odd.end(), static_cast<int>(r)) != odd.end();
      for (uint64_t k = ranks[r].entered() + 1, last = ranks[r].entered() + n; k <= last; ++k)
        ranks[r].Call(differs && k == at ? 7 : 1024);
    }
    return *this;
  }
  model::Job Job() {
    for (size_t r = 0; r < ranks.size(); ++r) ranks[r].WriteTo(&b.Raw(w, static_cast<int>(r)));
    return b.Build();
  }
  std::vector<Candidate> Find() { return FindMismatches(Job()); }
  // The newest `n` calls of every rank, kept and finished.
  void Keep(uint64_t n, const std::function<uint64_t(int rank, uint64_t k)>& count) {
    for (size_t r = 0; r < ranks.size(); ++r) {
      const uint64_t last = ranks[r].entered();
      for (uint64_t k = last > n ? last - n + 1 : 1; k <= last; ++k) {
        b.Coll(w, static_cast<int>(r), k, 1e-3 * static_cast<double>(k))
            .Count(count(static_cast<int>(r), k))
            .Group(static_cast<uint32_t>(k))
            .Finished();
      }
    }
  }
  JobBuilder b;
  CommRef w;
  std::vector<ChainWriter> ranks;
};

TEST(SignatureChain, BracketsTheRankThatCalledSomethingElse) {
  Chains c(64);
  c.Run(12890, 12830, {37});
  const auto found = c.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(37));
  EXPECT_EQ(found[0].finding.kind(), Kind::collective_mismatch);
  EXPECT_EQ(found[0].finding.confidence(), Confidence::established);
  EXPECT_THAT(found[0].finding.title(),
              HasSubstr("between operations 12,800 and 12,864 of communicator world"));
  EXPECT_THAT(found[0].finding.title(), HasSubstr("rank 37 alone"));
  EXPECT_FALSE(found[0].stops_job);
  EXPECT_TRUE(IsWhole(found[0]));
  Diagnosis d = Diagnose(c.Job());
  EXPECT_EQ(d.state(), State::wrong_data);
  EXPECT_EQ(d.findings_size(), 1);
}

TEST(SignatureChain, TheBracketHoldsTheCallWhereverItWas) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 200; ++round) {
    const uint64_t n = 65 + random() % 100000, at = 1 + random() % n;
    Chains c(4);
    c.Run(n, at, {2});
    const model::Job job = c.Job();
    const auto d = FindDivergence(job, job.communicators[0]);
    // The newest group is not closed: its call is in no chain yet.
    if (at == n) {
      EXPECT_FALSE(d) << n;
      continue;
    }
    ASSERT_TRUE(d) << at << " of " << n;
    EXPECT_LT(d->agreed, at);
    EXPECT_GE(d->differed, at);
    ASSERT_EQ(d->odd.size(), 1u);
    EXPECT_EQ(d->odd[0]->rank, 2);
  }
}

TEST(SignatureChain, EqualCallsAreNoFinding) {
  for (const uint64_t n : {1u, 2u, 64u, 65u, 5000u, 40000u})
    EXPECT_THAT(Chains(5).Run(n).Find(), IsEmpty());
}

TEST(SignatureChain, RanksThatAreNotEquallyFarAreComparedWhereBothWere) {
  Chains c(4);
  c.Run(20000, 15000, {1});
  c.ranks[0].Calls(3);
  c.ranks[1].Calls(700);  // shares the coarse positions only
  c.ranks[3].Calls(5000);
  const model::Job job = c.Job();
  const auto d = FindDivergence(job, job.communicators[0]);
  ASSERT_TRUE(d);
  EXPECT_LT(d->agreed, 15000u);
  EXPECT_GE(d->differed, 15000u);
  ASSERT_EQ(d->odd.size(), 1u);
  EXPECT_EQ(d->odd[0]->rank, 1);
}

TEST(SignatureChain, RanksFarBehindWithoutDifferenceAreNotAccused) {
  Chains c(4);
  c.Run(9000);
  c.ranks[0].Calls(30000);
  c.ranks[2].Calls(1);
  EXPECT_THAT(c.Find(), IsEmpty());
}

TEST(SignatureChain, TwoRanksAreATie) {
  Chains c(2);
  const auto found = c.Run(300, 100, {1}).Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(RanksOf(found[0]), IsEmpty());
  EXPECT_EQ(found[0].finding.confidence(), Confidence::probable);
  EXPECT_THAT(found[0].finding.title(), HasSubstr("rank 0; rank 1; which side is wrong"));
  EXPECT_TRUE(IsWhole(found[0]));
}

TEST(SignatureChain, NobodyIsAccusedWithoutAClearMajority) {
  const auto half = Chains(4).Run(1000, 970, {2, 3}).Find();
  ASSERT_EQ(half.size(), 1u);
  EXPECT_THAT(RanksOf(half[0]), IsEmpty());
  EXPECT_THAT(half[0].finding.title(), HasSubstr("between operations 960 and 999"));
  EXPECT_THAT(half[0].finding.title(), HasSubstr("ranks 0 and 1; ranks 2 and 3"));
  const auto three_to_two = Chains(5).Run(1000, 970, {2, 3}).Find();
  ASSERT_EQ(three_to_two.size(), 1u);
  EXPECT_THAT(RanksOf(three_to_two[0]), IsEmpty());
  const auto four_to_two = Chains(6).Run(1000, 970, {2, 3}).Find();
  ASSERT_EQ(four_to_two.size(), 1u);
  EXPECT_THAT(RanksOf(four_to_two[0]), ElementsAre(2, 3));
}

TEST(SignatureChain, WithRecordsMissingItIsLessSure) {
  Chains c(8);
  c.Run(1000, 700, {3});
  c.b.Drop(0).Drop(1);
  auto found = c.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(3));
  EXPECT_EQ(found[0].finding.confidence(), Confidence::probable);
  EXPECT_THAT(TextOf(found[0]), HasSubstr("only 6 of 8 ranks"));
  for (int r : {2, 5, 6, 7}) c.b.Drop(r);
  found = c.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(RanksOf(found[0]), IsEmpty());
  EXPECT_EQ(found[0].finding.confidence(), Confidence::possible);
}

TEST(SignatureChain, TheFirstToDivergeIsNamedTheLaterOnesAreNot) {
  Chains c(8);
  c.Run(4200, 1000, {5});
  c.Run(4250 - 4200, 4210, {2});
  const auto found = c.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(5));
  EXPECT_THAT(TextOf(found[0]), HasSubstr("rank 2 left the others' chain only later"));
}

TEST(SignatureChain, OrderInsideAGroupMeansNothing) {
  std::mt19937_64 random(3);
  Chains c(4);
  for (int g = 0; g < 200; ++g) {
    std::vector<uint64_t> counts(1 + random() % 20);
    for (uint64_t& n : counts) n = 1 + random() % 9;
    for (ChainWriter& rank : c.ranks) {
      std::shuffle(counts.begin(), counts.end(), random);
      rank.BeginGroup();
      for (const uint64_t n : counts) rank.Call(n);
      rank.EndGroup();
    }
  }
  EXPECT_THAT(c.Find(), IsEmpty());
  c.ranks[1].Call(5);
  for (size_t r : {0u, 2u, 3u}) c.ranks[r].Call(6);
  c.Run(70);
  ASSERT_EQ(c.Find().size(), 1u);
  EXPECT_THAT(RanksOf(c.Find()[0]), ElementsAre(1));
}

TEST(SignatureChain, ChainsOfDifferentEventsAreNotCompared) {
  Chains c(8);
  c.Run(1000);
  for (int r : {5, 6, 7}) {
    c.ranks[static_cast<size_t>(r)] = ChainWriter();
    c.ranks[static_cast<size_t>(r)].Calls(1000, 4096);  // launch events count bytes
    c.b.Raw(c.w, r).set_api_events(false);
    c.b.Raw(c.w, r).set_profiler_api(4);
  }
  EXPECT_THAT(c.Find(), IsEmpty());
  c.Run(100, 1050, {2});
  const auto found = c.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(2));
  EXPECT_THAT(TextOf(found[0]), HasSubstr("chains of 3 ranks are not comparable"));
  EXPECT_NE(found[0].finding.confidence(), Confidence::established);
}

TEST(SignatureChain, ReplaysOfGraphsShowOnlyWhereTheyHaveProxyOperations) {
  // Launch events, no kernel events: ranks 0 and 3 have network edges and see each replay.
  Chains c(4);
  c.Run(500);
  for (int r : {0, 3}) c.ranks[static_cast<size_t>(r)].Calls(64, 99);
  c.Run(500);
  for (int r : {1, 2}) c.ranks[static_cast<size_t>(r)].Calls(64);
  for (int r = 0; r < 4; ++r) {
    auto& raw = c.b.Raw(c.w, r);
    raw.set_api_events(false);
    raw.set_profiler_api(2);
    raw.set_completion_visible(false);
    raw.set_has_steps(r == 0 || r == 3);
  }
  EXPECT_THAT(c.Find(), IsEmpty());
}

TEST(SignatureChain, LaunchesAreLessSureThanCalls) {
  Chains c(4);
  c.Run(1000, 900, {1});
  for (int r = 0; r < 4; ++r) {
    c.b.Raw(c.w, r).set_api_events(false);
    c.b.Raw(c.w, r).set_profiler_api(4);
  }
  const auto found = c.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(1));
  EXPECT_EQ(found[0].finding.confidence(), Confidence::probable);
}

TEST(SignatureChain, AProcessThatLostItsGroupsIsNotCompared) {
  Chains c(4);
  c.Run(1000, 900, {1});
  auto& counter = *c.b.Record(1).add_counters();
  counter.set_name("thread_no_row");
  counter.set_value(2);
  counter.set_loss(true);
  EXPECT_THAT(c.Find(), IsEmpty());
}

TEST(SignatureChain, CallsThatAreKeptAndEqualRefuteTheHash) {
  // Rank 2 grouped the same calls differently.
  Chains c(4);
  c.Run(900);
  for (size_t r = 0; r < 4; ++r) {
    if (r == 2) c.ranks[r].BeginGroup();
    c.ranks[r].Call(1024);
    c.ranks[r].Call(1024);
    c.ranks[r].EndGroup();
  }
  c.Run(90);
  ASSERT_EQ(c.Find().size(), 1u) << "without the calls nothing is known but the difference";
  c.Keep(200, [](int, uint64_t) { return 1024; });
  EXPECT_THAT(c.Find(), IsEmpty());
}

TEST(SignatureChain, TheCallItselfIsSaidWhileItIsKept) {
  Chains c(4);
  c.Run(1000, 900, {1});
  c.Keep(200, [](int r, uint64_t k) { return r == 1 && k == 900 ? 7 : 1024; });
  const auto found = c.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].finding.kind(), Kind::size_mismatch);
  EXPECT_EQ(found[0].position, 900u);
  EXPECT_THAT(found[0].finding.title(), HasSubstr("operation 900"));
  EXPECT_THAT(TextOf(found[0]), HasSubstr("agree up to operation 896 and differ at operation 960"));
  EXPECT_TRUE(IsWhole(found[0]));
}

TEST(SignatureChain, CallsThatDifferLaterGiveTheKindAndAreNotToldTwice) {
  // Rank 1 calls twice the size from operation 8,000 on; the records begin at 8,900.
  Chains c(4);
  c.Run(7999);
  for (uint64_t k = 8000; k <= 9100; ++k) {
    for (size_t r = 0; r < 4; ++r) c.ranks[r].Call(r == 1 ? 2048 : 1024);
  }
  c.Keep(200, [](int r, uint64_t) { return r == 1 ? 2048 : 1024; });
  const auto found = c.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].finding.kind(), Kind::size_mismatch);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(1));
  EXPECT_LE(found[0].position, 8000u);
  EXPECT_THAT(TextOf(found[0]), HasSubstr("the first that differ"));
  EXPECT_EQ(Diagnose(c.Job()).findings_size(), 1);
}

TEST(SignatureChain, AHangLongAfterIsExplained) {
  Chains c(4);
  c.Run(5000, 4950, {2});
  for (size_t r : {0u, 1u, 3u}) c.ranks[r].Call(1024);  // rank 2 does not come to operation 5,001
  for (int r = 0; r < 4; ++r) {
    for (uint64_t k = 4999; k <= (r == 2 ? 5000 : 5001); ++k) {
      auto op = c.b.Coll(c.w, r, k, 5).Group(static_cast<uint32_t>(k));
      if (k == 5001)
        op.Running();
      else
        op.Finished();
    }
  }
  const Diagnosis d = Diagnose(c.Job());
  EXPECT_EQ(d.state(), State::hang);
  ASSERT_GE(d.findings_size(), 2);
  EXPECT_EQ(d.findings(0).kind(), Kind::collective_mismatch);
  EXPECT_THAT(d.findings(0).title(), HasSubstr("rank 2 alone"));
  EXPECT_EQ(d.findings(0).explains_size(), d.findings_size() - 1);
}

TEST(SignatureChain, ADeadProcessIsWhatStopsTheJob) {
  Chains c(4);
  c.Run(5000, 4500, {2});
  c.Keep(2, [](int, uint64_t) { return 1024; });
  c.b.LastSeen(3, 6);
  for (int r : {0, 1, 2}) {
    c.ranks[static_cast<size_t>(r)].Call(1024);
    c.b.Coll(c.w, r, 5001, 6).Group(5001).Running();
    c.b.Saw(r, 3, trace::Sibling::GONE, 20);
  }
  const Diagnosis d = Diagnose(c.Job());
  EXPECT_EQ(d.findings(0).kind(), Kind::process_exited);
  EXPECT_THAT(d.findings(0).who().ranks(), ElementsAre(3));
}

TEST(SignatureChain, CommunicatorsThatShareAnIdMayBeMistaken) {
  Chains c(4);
  c.Run(1000, 900, {1});
  c.b.Comm("again", {0, 1, 2, 3}, c.b.Raw(c.w, 0).comm_id());
  const auto found = c.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].finding.confidence(), Confidence::possible);
}

TEST(SignatureChain, ChainsThatContradictThemselvesSayNothing) {
  Chains c(4);
  c.Run(1000);
  c.Job();
  // A damaged word: equal again later.
  c.b.Raw(c.w, 1).mutable_checkpoints(2)->set_hash(1);
  EXPECT_THAT(FindMismatches(c.b.Build()), IsEmpty());
}

TEST(SignatureChain, NumbersOfTheChainAreNotThoseOfTheOperationsWhereGraphsArePlayed) {
  Chains c(4);
  c.Run(1000, 900, {1});
  const model::Job plain = c.Job();
  for (int r = 0; r < 4; ++r) {
    c.b.Raw(c.w, r).set_collectives(1500);  // 500 replays are no calls
    c.b.Coll(c.w, r, 1500, 5).Finished();
  }
  const auto found = FindMismatches(c.b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].position, 0u);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(1));
}

TEST(SignatureChain, FourThousandRanks) {
  constexpr int kRanks = 4000;
  JobBuilder b(kRanks);
  const CommRef w = b.Comm("world", Iota(kRanks));
  ChainWriter plain, odd;
  plain.Calls(40000);
  odd.Calls(39000);
  odd.Call(7);
  odd.Calls(999);
  for (int r = 0; r < kRanks; ++r) (r == 1234 ? odd : plain).WriteTo(&b.Raw(w, r));
  const model::Job job = b.Build();
  const auto start = std::chrono::steady_clock::now();
  const auto found = FindMismatches(job);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  RecordProperty("seconds", std::to_string(took.count()));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(1234));
  EXPECT_LT(found[0].finding.evidence_size(), 20);
}

}  // namespace
}  // namespace ringscope::reasoning
