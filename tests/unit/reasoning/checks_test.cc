// What findings predict: on jobs whose finding is right nothing fails; where the evidence contradicts a finding, it is less sure.
#include "analyzer/reasoning/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/reasoning/rivals.h"
#include "tests/unit/reasoning/hang_jobs.h"

namespace ringscope::reasoning {
namespace {

using namespace ringscope::testing;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

Candidate Of(Kind::Value kind, int rank, uint64_t position, Confidence::Value confidence = Confidence::probable) {
  Candidate c;
  c.finding.set_kind(kind);
  c.finding.set_confidence(confidence);
  c.finding.mutable_who()->add_ranks(rank);
  c.communicator = 0;
  c.position = position;
  return c;
}

int Count(const Finding& f, Check::Outcome outcome) {
  return static_cast<int>(
      std::count_if(f.checks().begin(), f.checks().end(), [&](const Check& c) { return c.outcome() == outcome; }));
}

class EveryHang : public ::testing::TestWithParam<int> {};

TEST_P(EveryHang, NothingFailsOfTheRightFinding) {
  const HangCase& c = HangCases()[static_cast<size_t>(GetParam())];
  JobBuilder b(c.ranks);
  c.build(b, Same(c.ranks));
  const Diagnosis d = Diagnose(b.Build());
  for (const Finding& f : d.findings()) {
    for (const Check& check : f.checks()) {
      EXPECT_NE(check.outcome(), Check::fails) << f.title() << ": " << check.expects() << ": " << check.seen();
      EXPECT_THAT(check.expects(), Not(IsEmpty()));
      EXPECT_THAT(check.seen(), Not(IsEmpty()));
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, EveryHang, ::testing::Range(0, static_cast<int>(HangCases().size())));

// Rank 2 of four is outside, all others wait for it.
JobBuilder Skipped() {
  JobBuilder b(4);
  SkipJob(b, Same(4));
  return b;
}

TEST(Checks, AMissingRankSentNothing) {
  Candidate c = Of(Kind::missing_rank, 2, 11);
  AddChecks(Skipped().Build(), &c);
  EXPECT_EQ(Count(c.finding, Check::holds), c.finding.checks_size());
  EXPECT_GE(c.finding.checks_size(), 1);
  EXPECT_EQ(c.finding.confidence(), Confidence::probable);
}

TEST(Checks, AWrongRankIsContradicted) {
  // Rank 1 is accused: its neighbour has steps of the operation from it, and rank 2 waits for nothing.
  Candidate c = Of(Kind::missing_rank, 1, 11);
  AddChecks(Skipped().Build(), &c);
  EXPECT_GE(Count(c.finding, Check::fails), 1);
  EXPECT_EQ(c.finding.confidence(), Confidence::possible);
  EXPECT_EQ(c.finding.checks(0).outcome(), Check::fails) << "what contradicts stands first";
}

TEST(Checks, OneThatFailsTakesOneStep) {
  Candidate c = Of(Kind::missing_rank, 1, 11, Confidence::established);
  AddChecks(Skipped().Build(), &c);
  EXPECT_LT(c.finding.confidence(), Confidence::established);
}

TEST(Checks, WhatWasNotRecordedIsAskedFor) {
  JobBuilder b = Skipped();
  b.Drop(0);
  Candidate c = Of(Kind::missing_rank, 2, 11);
  AddChecks(b.Build(), &c);
  ASSERT_EQ(Count(c.finding, Check::not_seen), 1);
  EXPECT_EQ(Count(c.finding, Check::fails), 0);
  for (const Check& check : c.finding.checks()) {
    if (check.outcome() == Check::not_seen) {
      EXPECT_THAT(check.seen(), HasSubstr("collect the other 1"));
    }
  }
}

TEST(Checks, AGpuThatWaitsForDataIsNotTheOneThatStandsStill) {
  JobBuilder b(4);
  const CommRef w = World(b, Same(4), 10);
  RunAll(b, w, 4, 11);
  RingEdge(b, w, 0, 1, 11, Owes(5), Waits(5));
  RingEdge(b, w, 1, 2, 11, Owes(7), Waits(7));
  RingEdge(b, w, 2, 3, 11, Owes(8), Full(1));
  RingEdge(b, w, 3, 0, 11, Owes(3), Waits(3));
  Candidate right = Of(Kind::gpu_stalled, 3, 11), wrong = Of(Kind::gpu_stalled, 1, 11);
  const model::Job job = b.Build();
  AddChecks(job, &right);
  AddChecks(job, &wrong);
  EXPECT_EQ(Count(right.finding, Check::holds), 2);
  EXPECT_EQ(Count(right.finding, Check::fails), 0);
  EXPECT_EQ(Count(wrong.finding, Check::fails), 1);
  EXPECT_EQ(wrong.finding.confidence(), Confidence::possible);
}

TEST(Checks, NothingToCheckWithoutAPlace) {
  Candidate c = Of(Kind::missing_rank, 2, 0);
  AddChecks(Skipped().Build(), &c);
  EXPECT_THAT(c.finding.checks(), IsEmpty());
  c = Of(Kind::missing_rank, 99, 11);
  AddChecks(Skipped().Build(), &c);
  EXPECT_THAT(c.finding.checks(), IsEmpty());
}

Finding Named(Kind::Value kind, int rank, Confidence::Value confidence) {
  Finding f;
  f.set_kind(kind);
  f.set_confidence(confidence);
  f.set_title("rank " + std::to_string(rank));
  f.mutable_who()->add_ranks(rank);
  return f;
}

TEST(Rivals, AsSureAndNotExplained) {
  Diagnosis d;
  *d.add_findings() = Named(Kind::missing_rank, 1, Confidence::probable);
  *d.add_findings() = Named(Kind::missing_rank, 2, Confidence::probable);
  *d.add_findings() = Named(Kind::missing_rank, 3, Confidence::possible);
  *d.add_findings() = Named(Kind::missing_rank, 1, Confidence::probable);
  AddRivals(&d);
  ASSERT_THAT(d.findings(0).rivals(), SizeIs(2));
  EXPECT_EQ(d.findings(0).rivals(0).finding(), 1);
  EXPECT_EQ(d.findings(0).rivals(1).finding(), -1) << "what looks alike by its nature";
  d.mutable_findings(0)->clear_rivals();
  d.mutable_findings(0)->add_explains(1);
  AddRivals(&d);
  EXPECT_THAT(d.findings(0).rivals(), SizeIs(1));
  d.mutable_findings(0)->clear_rivals();
  d.mutable_findings(0)->set_confidence(Confidence::established);
  AddRivals(&d);
  EXPECT_THAT(d.findings(0).rivals(), IsEmpty());
}

}  // namespace
}  // namespace ringscope::reasoning
