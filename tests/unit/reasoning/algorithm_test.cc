// Ranks that run the same call by different algorithms; and what looks like it and is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analyzer/ingest/text_reader.h"
#include "tests/unit/reasoning/expect.h"
#include "tests/unit/testing/job_builder.h"

namespace ringscope::reasoning {
namespace {

using testing::CommRef;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JobBuilder;

// An all-reduce that all ranks have started and none has finished, by those algorithms.
JobBuilder Hanging(const std::vector<trace::Algo>& algos) {
  JobBuilder b(static_cast<int>(algos.size()));
  std::vector<int> all;
  for (size_t r = 0; r < algos.size(); ++r) all.push_back(static_cast<int>(r));
  const CommRef w = b.Comm("world", all);
  b.Finish(w, 4);
  for (size_t r = 0; r < algos.size(); ++r) {
    auto op = b.Coll(w, static_cast<int>(r), 5).Running();
    op.raw().set_algo(algos[r]);
    op.raw().set_proto(trace::SIMPLE);
  }
  return b;
}
const Finding* Of(const Diagnosis& d) {
  for (const Finding& f : d.findings()) {
    if (f.kind() == Kind::collective_mismatch) return &f;
  }
  return nullptr;
}
std::vector<int> Who(const Finding& f) { return {f.who().ranks().begin(), f.who().ranks().end()}; }

TEST(Algorithm, TheRankThatFellBackFromNvlsIsNamed) {
  const Diagnosis d = Diagnose(Hanging({trace::NVLS, trace::NVLS, trace::RING, trace::NVLS}).Build());
  ASSERT_GE(d.findings_size(), 1);
  const Finding& f = d.findings(0);
  EXPECT_EQ(d.state(), State::hang);
  EXPECT_EQ(f.kind(), Kind::collective_mismatch);
  EXPECT_EQ(f.confidence(), Confidence::established);
  EXPECT_EQ(f.cause().id(), "FB-04");
  EXPECT_EQ(f.cause().confidence(), Confidence::probable) << "no release is known";
  EXPECT_THAT(Who(f), ElementsAre(2));
  EXPECT_THAT(std::vector<int>(f.collateral().ranks().begin(), f.collateral().ranks().end()), ElementsAre(0, 1, 3));
  EXPECT_THAT(f.title(), HasSubstr("rank 2 by RING/SIMPLE, the others by NVLS/SIMPLE"));
}

TEST(Algorithm, OfTwoHalvesThoseWithoutNvlsDiffer) {
  const Diagnosis d = Diagnose(Hanging({trace::NVLS, trace::RING, trace::RING, trace::RING}).Build());
  const Finding* f = Of(d);
  ASSERT_NE(f, nullptr);
  EXPECT_THAT(Who(*f), ElementsAre(1, 2, 3));
}

TEST(Algorithm, OtherwiseTheMinority) {
  const Finding* f = nullptr;
  const Diagnosis d = Diagnose(Hanging({trace::RING, trace::TREE, trace::TREE, trace::TREE}).Build());
  ASSERT_NE(f = Of(d), nullptr);
  EXPECT_EQ(f->cause().id(), "NC-04");
  EXPECT_THAT(Who(*f), ElementsAre(0));
}

TEST(Algorithm, ATieNamesNobody) {
  const Diagnosis d = Diagnose(Hanging({trace::RING, trace::RING, trace::TREE, trace::TREE}).Build());
  const Finding* f = Of(d);
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->confidence(), Confidence::probable);
  EXPECT_THAT(Who(*f), IsEmpty());
}

TEST(Algorithm, AReleaseThatFallsBackRankByRankEstablishesTheCause) {
  for (const auto& [version, established] : {std::pair<std::string, bool>{"2.28.9", true}, {"2.29.7", false}}) {
    model::Job job = Hanging({trace::NVLS, trace::NVLS, trace::RING, trace::NVLS}).Build();
    ASSERT_TRUE(ingest::ReadTextBytes("rank0.log", "NCCL version " + version + "+cuda12.8\n", &job.evidence).ok());
    const Diagnosis d = Diagnose(job);
    const Finding* f = Of(d);
    ASSERT_NE(f, nullptr);
    EXPECT_EQ(f->cause().confidence() == Confidence::established, established) << version;
  }
}

TEST(Algorithm, WhatFinishedOrIsAnotherCallIsNotCompared) {
  JobBuilder finished(2);
  CommRef w = finished.Comm("world", {0, 1});
  for (int r = 0; r < 2; ++r) finished.Coll(w, r, 1).Finished().raw().set_algo(r == 0 ? trace::RING : trace::TREE);
  EXPECT_EQ(Of(Diagnose(finished.Build())), nullptr);

  JobBuilder other(3);
  w = other.Comm("world", {0, 1, 2});
  other.Finish(w, 4);
  for (int r = 0; r < 3; ++r) {
    auto op = other.Coll(w, r, 5).Count(r == 2 ? 4096 : 1024).Running();
    op.raw().set_algo(r == 2 ? trace::TREE : trace::RING);
  }
  const Diagnosis d = Diagnose(other.Build());
  EXPECT_EQ(d.findings(0).kind(), Kind::size_mismatch);
  EXPECT_EQ(Of(d), nullptr);

  // A table that does not tell the algorithm.
  EXPECT_EQ(Of(Diagnose(Hanging({trace::RING, trace::ALGO_UNKNOWN, trace::RING}).Build())), nullptr);
}

}  // namespace
}  // namespace ringscope::reasoning
