// The ranking alone: what finders say is given here by finders of the test, switched on for one
// test at a time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "analyzer/reasoning/finder.h"
#include "tests/unit/testing/job_builder.h"

namespace ringscope::reasoning {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<Candidate>& Given() {
  static auto& given = *new std::vector<Candidate>;
  return given;
}
const Register kGiven("given by the test", [](const model::Job&) { return Given(); });

Candidate Make(Kind::Value kind, Class order, std::vector<int> ranks, int comm = 0,
               uint64_t position = 10, bool stops = true) {
  Candidate c;
  c.order = order;
  c.communicator = comm;
  c.position = position;
  c.stops_job = stops;
  c.finding.set_kind(kind);
  c.finding.set_confidence(Confidence::probable);
  c.finding.set_title(Kind::Value_Name(kind));
  for (int r : ranks) c.finding.mutable_who()->add_ranks(r);
  return c;
}

class Ranking : public ::testing::Test {
 protected:
  void TearDown() override { Given().clear(); }
  // Of a job in which the real finders have nothing to say.
  Diagnosis Of(std::vector<Candidate> candidates) {
    Given() = std::move(candidates);
    testing::JobBuilder b(4);
    b.RanksPerHost(1);
    const auto w = b.Comm("world", {0, 1, 2, 3});
    b.Finish(w, 3);
    return Diagnose(b.Build());
  }
  static std::vector<Kind::Value> Kinds(const Diagnosis& d) {
    std::vector<Kind::Value> kinds;
    for (const Finding& f : d.findings()) kinds.push_back(f.kind());
    return kinds;
  }
};

// Flight files of living processes read at second 100; the stall time is 60 s.
TEST_F(Ranking, AWaitThatIsNoStallYetIsSaid) {
  for (const double entered : {99.0, 60.0}) {
    testing::JobBuilder b(4);
    b.RanksPerHost(1);
    const auto w = b.Comm("world", {0, 1, 2, 3});
    b.Finish(w, 3);
    for (int r : {0, 1, 3}) b.Coll(w, r, 4, entered).Running();
    std::vector<model::Record> records = b.Records();
    for (model::Record& r : records) {
      r.trace.mutable_liveness()->set_lock_known(true);
      r.trace.mutable_liveness()->set_lock_held(true);
    }
    const Diagnosis d = Diagnose(model::BuildJob(std::move(records)));
    EXPECT_EQ(d.state(), State::healthy);
    if (entered > 90) {
      EXPECT_EQ(d.summary(), "Nothing wrong was found.");
    } else {
      EXPECT_THAT(d.summary(), HasSubstr("Operations of 3 processes have been open"));
      EXPECT_THAT(d.summary(), HasSubstr("less than the stall time of 60 s"));
    }
  }
}

TEST_F(Ranking, NoCommunicatorThatCouldBePlacedIsNotHealthy) {
  testing::JobBuilder b(2);
  const auto w = b.Comm("world", {0, 1});
  b.Finish(w, 3);
  std::vector<model::Record> records = b.Records();
  for (model::Record& r : records) r.trace.mutable_communicators(0)->set_rank(77);
  const Diagnosis d = Diagnose(model::BuildJob(std::move(records)));
  EXPECT_EQ(d.state(), State::unknown);
  ASSERT_EQ(d.findings_size(), 1);
  EXPECT_EQ(d.findings(0).kind(), Kind::undetermined);
  EXPECT_THAT(d.findings(0).title(), HasSubstr("be placed"));
}

TEST_F(Ranking, NothingFoundWhileARankIsUnseenIsNotHealthy) {
  testing::JobBuilder b(4);
  b.RanksPerHost(1);
  const auto w = b.Comm("world", {0, 1, 2, 3});
  b.Finish(w, 3);
  std::vector<model::Record> records = b.Records();
  std::erase_if(records, [](const model::Record& r) { return r.trace.process().rank() == 2; });
  const Diagnosis d = Diagnose(model::BuildJob(std::move(records)));
  ASSERT_EQ(d.findings_size(), 1);
  EXPECT_EQ(d.findings(0).kind(), Kind::undetermined);
  EXPECT_TRUE(d.findings(0).has_who());
  EXPECT_EQ(d.findings(0).who().ranks_size(), 0) << "silence is no accusation";
  EXPECT_THAT(d.findings(0).title(), HasSubstr("rank 2"));
  EXPECT_EQ(d.state(), State::unknown);
}

TEST_F(Ranking, NothingFoundInARecordWithTimesThatCannotBeIsNotHealthy) {
  testing::JobBuilder b(2);
  const auto w = b.Comm("world", {0, 1});
  b.Finish(w, 3);
  std::vector<model::Record> records = b.Records();
  records[0].trace.set_written_ns(std::numeric_limits<int64_t>::max());
  records[0].trace.clear_communicators();
  const Diagnosis d = Diagnose(model::BuildJob(std::move(records)));
  ASSERT_EQ(d.findings_size(), 1);
  EXPECT_EQ(d.findings(0).kind(), Kind::undetermined);
  EXPECT_EQ(d.findings(0).who().ranks_size(), 0) << "damage is no accusation";
  EXPECT_EQ(d.state(), State::unknown);
}

TEST_F(Ranking, NothingFoundInDamagedRecordsIsNotHealthy) {
  testing::JobBuilder b(4);
  b.RanksPerHost(1);
  const auto w = b.Comm("world", {0, 1, 2, 3});
  b.Finish(w, 3);
  std::vector<model::Record> records = b.Records();
  for (model::Record& r : records) {
    if (r.trace.process().rank() != 1) continue;
    r.torn = true;
    r.trace.clear_communicators();
  }
  const Diagnosis d = Diagnose(model::BuildJob(std::move(records)));
  ASSERT_EQ(d.findings_size(), 1);
  EXPECT_EQ(d.findings(0).kind(), Kind::undetermined);
  EXPECT_THAT(d.findings(0).title(), HasSubstr("damaged or cut short"));
  EXPECT_EQ(d.state(), State::unknown);
}

TEST_F(Ranking, NothingFoundIsHealthy) {
  const Diagnosis d = Of({});
  EXPECT_EQ(d.state(), State::healthy);
  EXPECT_EQ(d.findings_size(), 0);
  EXPECT_EQ(d.ranks_seen(), 4u);
  EXPECT_EQ(d.ranks_total(), 4u);
  EXPECT_THAT(d.summary(), HasSubstr("Nothing wrong"));
}

TEST_F(Ranking, MismatchBeforeTheStallExplainsIt) {
  const Diagnosis d = Of({Make(Kind::edge_stalled, Class::kStall, {}, 0, 13),
                          Make(Kind::collective_mismatch, Class::kMismatch, {1}, 0, 11)});
  EXPECT_THAT(Kinds(d), ElementsAre(Kind::collective_mismatch, Kind::edge_stalled));
  EXPECT_THAT(d.findings(0).explains(), ElementsAre(1u));
  EXPECT_THAT(d.findings(1).explains(), IsEmpty());
  EXPECT_EQ(d.state(), State::hang);
}
TEST_F(Ranking, MismatchAfterTheStallDoesNot) {
  const Diagnosis d = Of({Make(Kind::collective_mismatch, Class::kMismatch, {1}, 0, 20, false),
                          Make(Kind::missing_rank, Class::kStall, {2}, 0, 13)});
  EXPECT_THAT(Kinds(d), ElementsAre(Kind::missing_rank, Kind::collective_mismatch));
  EXPECT_THAT(d.findings(0).explains(), IsEmpty());
}
TEST_F(Ranking, MismatchAloneIsWrongData) {
  const Diagnosis d = Of({Make(Kind::size_mismatch, Class::kMismatch, {1}, 0, 11, false)});
  EXPECT_EQ(d.state(), State::wrong_data);
}
TEST_F(Ranking, LivenessExplainsStallsAndWhatIsUndetermined) {
  const Diagnosis d = Of({Make(Kind::undetermined, Class::kUndetermined, {}, 1),
                          Make(Kind::edge_stalled, Class::kStall, {}),
                          Make(Kind::process_exited, Class::kLiveness, {1})});
  EXPECT_THAT(Kinds(d), ElementsAre(Kind::process_exited, Kind::edge_stalled, Kind::undetermined));
  EXPECT_THAT(d.findings(0).explains(), ElementsAre(1u, 2u));
}
TEST_F(Ranking, StallExplainsSlowness) {
  const Diagnosis d = Of({Make(Kind::rank_slow, Class::kSlow, {1}, 0, 0, false),
                          Make(Kind::missing_rank, Class::kStall, {2})});
  EXPECT_THAT(Kinds(d), ElementsAre(Kind::missing_rank, Kind::rank_slow));
  EXPECT_THAT(d.findings(0).explains(), ElementsAre(1u));
}
TEST_F(Ranking, FallbackPathExplainsNothing) {
  const Diagnosis d = Of({Make(Kind::fallback_path, Class::kPlan, {}, 0, 0, false),
                          Make(Kind::missing_rank, Class::kStall, {2})});
  EXPECT_THAT(Kinds(d), ElementsAre(Kind::missing_rank, Kind::fallback_path));
  EXPECT_THAT(d.findings(0).explains(), IsEmpty());
  EXPECT_EQ(Of({Make(Kind::fallback_path, Class::kPlan, {}, 0, 0, false)}).state(), State::healthy);
}
TEST_F(Ranking, MissingRankExplainsTheMessagesThatAwaitIt) {
  Candidate messages = Make(Kind::p2p_unmatched, Class::kMismatch, {}, 0, 0);
  messages.finding.mutable_who()->add_edges()->set_from(3);
  const Diagnosis d = Of({messages, Make(Kind::missing_rank, Class::kStall, {3})});
  EXPECT_THAT(Kinds(d), ElementsAre(Kind::missing_rank, Kind::p2p_unmatched));
  EXPECT_THAT(d.findings(0).explains(), ElementsAre(1u));
}
TEST_F(Ranking, StallExplainsTheEndOfWhoOnlyWaited) {
  Candidate stall = Make(Kind::missing_rank, Class::kStall, {2});
  for (int r : {0, 1}) stall.finding.mutable_collateral()->add_ranks(r);
  const auto end = [](int rank) {
    return Make(Kind::process_exited, Class::kLiveness, {rank}, 0, 10, false);
  };
  const Diagnosis d = Of({end(0), end(1), end(3), stall});
  EXPECT_EQ(d.state(), State::hang);
  ASSERT_EQ(d.findings_size(), 4);
  EXPECT_EQ(d.findings(0).kind(), Kind::missing_rank);
  ASSERT_EQ(d.findings(0).explains_size(), 2);
  for (uint32_t i : d.findings(0).explains()) {
    EXPECT_NE(d.findings(static_cast<int>(i)).who().ranks(0), 3) << "it did not wait";
  }
}

TEST_F(Ranking, AProgramThatLeavesInOrderHadItsErrorForAReason) {
  Candidate error = Make(Kind::error_reported, Class::kError, {2}, -1, 0);
  error.layer = Layer::kProgram;
  const auto left = [](int rank) {
    Candidate c = Make(Kind::process_exited, Class::kLiveness, {rank});
    c.left_in_order = true;
    return c;
  };
  const Diagnosis same = Of({left(2), error});
  EXPECT_THAT(Kinds(same), ElementsAre(Kind::error_reported, Kind::process_exited));
  EXPECT_THAT(same.findings(0).explains(), ElementsAre(1u));
  EXPECT_EQ(Of({left(1), error}).findings(0).kind(), Kind::process_exited) << "another rank's error is no reason of its own";
}

// What the kernel reported of a job whose ranks all finished, gave their communicators back and left.
TEST_F(Ranking, AJobThatEndedInOrderGotOverWhatWasReported) {
  Candidate fault = Make(Kind::error_reported, Class::kError, {1}, -1, 0);
  fault.layer = Layer::kHardware;
  EXPECT_EQ(Of({fault}).state(), State::hang) << "nobody has ended here";
  for (const bool one_stays : {false, true}) {
    Given() = {fault};
    testing::JobBuilder b(2);
    const auto w = b.Comm("world", {0, 1});
    b.Finish(w, 3);
    for (int r = 0; r < 2; ++r) {
      if (one_stays && r == 1) continue;
      b.Raw(w, r).set_finalized_ns(testing::OpBuilder::Ns(90));
      b.Clean(r).Trace(r, trace::REASON_EXIT, 91);
    }
    const Diagnosis d = Diagnose(b.Build());
    EXPECT_EQ(d.state(), one_stays ? State::hang : State::recovered);
    EXPECT_EQ(d.findings(0).past(), !one_stays);
  }
}

TEST_F(Ranking, PastIsBehindEverything) {
  Candidate past = Make(Kind::process_stopped, Class::kPast, {1}, 0, 0, false);
  EXPECT_EQ(Of({past}).state(), State::recovered);
  const Diagnosis d = Of({past, Make(Kind::rank_slow, Class::kSlow, {2}, 0, 0, false)});
  EXPECT_THAT(Kinds(d), ElementsAre(Kind::rank_slow, Kind::process_stopped));
  EXPECT_TRUE(d.findings(1).past());
  EXPECT_EQ(d.state(), State::slow);
}
TEST_F(Ranking, UndeterminedWithoutAHangIsUnknown) {
  EXPECT_EQ(Of({Make(Kind::undetermined, Class::kUndetermined, {}, -1, 0, false)}).state(),
            State::unknown);
}
TEST_F(Ranking, DefiniteGoesBeforeUndetermined) {
  const Diagnosis d = Of({Make(Kind::undetermined, Class::kUndetermined, {}, 1),
                          Make(Kind::gpu_stalled, Class::kStall, {3})});
  EXPECT_THAT(Kinds(d), ElementsAre(Kind::gpu_stalled, Kind::undetermined));
}

TEST_F(Ranking, TheSameFromTwoFindersIsSaidOnce) {
  Candidate a = Make(Kind::missing_rank, Class::kStall, {2}), b = a;
  a.finding.add_evidence()->set_text("one");
  b.finding.add_evidence()->set_text("one");
  b.finding.add_evidence()->set_text("two");
  b.finding.mutable_collateral()->add_ranks(2);
  b.finding.mutable_collateral()->add_ranks(0);
  const Diagnosis d = Of({a, b});
  ASSERT_EQ(d.findings_size(), 1);
  EXPECT_EQ(d.findings(0).evidence_size(), 2);
  EXPECT_THAT(d.findings(0).collateral().ranks(), ElementsAre(0))
      << "the named rank is not collateral";
}
TEST_F(Ranking, UnmatchedMessageOfTwoFindersIsOneAndKeepsItsRank) {
  const Diagnosis d = Of({Make(Kind::p2p_unmatched, Class::kMismatch, {}, 0, 0),
                          Make(Kind::p2p_unmatched, Class::kStall, {2}, 0, 0)});
  ASSERT_EQ(d.findings_size(), 1);
  EXPECT_THAT(d.findings(0).who().ranks(), ElementsAre(2));
}
TEST_F(Ranking, DifferentRanksAreDifferentFindings) {
  EXPECT_EQ(Of({Make(Kind::missing_rank, Class::kStall, {2}, 0),
                Make(Kind::missing_rank, Class::kStall, {3}, 1)})
                .findings_size(),
            2);
}
TEST_F(Ranking, FindingsNameCauseAndHarmlessOnesStandLast) {
  const Diagnosis d =
      Of({Make(Kind::none, Class::kStall, {1}), Make(Kind::gpu_stalled, Class::kStall, {3})});
  ASSERT_EQ(d.findings_size(), 2);
  EXPECT_EQ(d.findings(0).kind(), Kind::gpu_stalled);
  EXPECT_EQ(d.findings(0).cause().id(), "not established");
  EXPECT_EQ(d.findings(1).kind(), Kind::none);
}

TEST(Diagnose, WithoutRecordsSaysSo) {
  const Diagnosis d = Diagnose(model::BuildJob({}));
  EXPECT_EQ(d.state(), State::unknown);
  EXPECT_EQ(d.findings_size(), 0);
  EXPECT_THAT(d.not_seen(), ::testing::Contains(HasSubstr("no record")));
}
TEST(Diagnose, CountsRanksAndNamesWhatIsMissing) {
  testing::JobBuilder b(4);
  const auto w = b.Comm("world", {0, 1, 2, 3});
  b.Finish(w, 3).Drop(1);
  const Diagnosis d = Diagnose(b.Build());
  EXPECT_EQ(d.ranks_seen(), 3u);
  EXPECT_EQ(d.ranks_total(), 4u);
  EXPECT_THAT(d.not_seen(), ::testing::Contains(HasSubstr("rank 1")));
  EXPECT_THAT(d.summary(), HasSubstr("3 of 4 ranks"));
}

}  // namespace
}  // namespace ringscope::reasoning
