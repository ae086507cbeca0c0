// A rank that the records say has not come, and its stack beside them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "analyzer/ingest/text_reader.h"
#include "tests/unit/reasoning/expect.h"
#include "tests/unit/testing/job_builder.h"

namespace ringscope::reasoning {
namespace {

using testing::CommRef;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::JobBuilder;
using ::testing::Not;

// Rank 2 of 4 has not entered the fifth all-reduce. Its process is 1002.
model::Job Absent(const std::string& stack) {
  JobBuilder b(4);
  const CommRef w = b.Comm("world", {0, 1, 2, 3});
  b.Finish(w, 4);
  for (const int r : {0, 1, 3}) b.Coll(w, r, 5).Running();
  model::Job job = b.Build();
  if (!stack.empty()) {
    EXPECT_TRUE(ingest::ReadTextBytes("py-spy.txt", stack, &job.evidence).ok());
  }
  return job;
}
std::string Stack(int pid, const std::string& frames) {
  return "Process " + std::to_string(pid) + ": python train.py\nPython v3.11.4 (/usr/bin/python3.11)\n\nThread " +
         std::to_string(pid) + " (active): \"MainThread\"\n" + frames + "    <module> (train.py:120)\n";
}

TEST(StallStack, SaysWhereTheAbsentRankStands) {
  const Diagnosis d = Diagnose(Absent(Stack(1002,
                                            "    __getitem__ (dataset.py:40)\n    _next_data "
                                            "(torch/utils/data/dataloader.py:675)\n    train (train.py:70)\n")));
  ASSERT_GE(d.findings_size(), 1);
  const Finding& f = d.findings(0);
  EXPECT_EQ(f.kind(), Kind::missing_rank);
  EXPECT_THAT(f.who().ranks(), ElementsAre(2));
  EXPECT_THAT(f.title(), HasSubstr("it stands in __getitem__ (dataset.py:40)"));
  EXPECT_EQ(f.cause().id(), "UC-06");
  EXPECT_EQ(f.cause().confidence(), Confidence::possible) << "a stack is one moment";
  EXPECT_THAT(f.next().text(), HasSubstr("fetches its next input"));
}

TEST(StallStack, CodeOfTheProgramIsNamedButIsNoCause) {
  const Finding f =
      Diagnose(Absent(Stack(1002, "    wait_for_the_next_batch (train.py:15)\n    train (train.py:70)\n"))).findings(0);
  EXPECT_THAT(f.title(), HasSubstr("wait_for_the_next_batch (train.py:15)"));
  EXPECT_EQ(f.cause().id(), "not established");
}

TEST(StallStack, AnotherProcessesStackIsNotItsOwn) {
  for (const int pid : {1001, 77}) {
    const Finding f = Diagnose(Absent(Stack(pid, "    load (dataset.py:40)\n    train (train.py:70)\n"))).findings(0);
    EXPECT_EQ(f.kind(), Kind::missing_rank);
    EXPECT_THAT(f.title(), Not(HasSubstr("dataset.py"))) << pid;
  }
}

TEST(StallStack, AStackInsideACollectiveAccusesOfNothing) {
  const Finding f =
      Diagnose(Absent(Stack(1002, "    all_reduce (torch/distributed/distributed_c10d.py:2501)\n    step (train.py:88)\n")))
          .findings(0);
  EXPECT_EQ(f.cause().id(), "not established");
  EXPECT_THAT(f.next().text(), HasSubstr("See what rank 2 does"));
}

TEST(StallStack, OfARankWithoutARecord) {
  JobBuilder b(3);
  const CommRef w = b.Comm("world", {0, 1, 2});
  b.Finish(w, 4);
  for (const int r : {0, 1}) b.Coll(w, r, 5).Running();
  b.Drop(2);
  model::Job job = b.Build();
  ASSERT_TRUE(ingest::ReadTextBytes("py-spy-rank2.txt", Stack(9, "    wait_for_batch (data.py:12)\n    train (train.py:70)\n"),
                                    &job.evidence)
                  .ok());
  const Finding f = Diagnose(job).findings(0);
  EXPECT_THAT(f.title(), HasSubstr("of which there is no record; it stands in wait_for_batch (data.py:12)"));
  EXPECT_EQ(f.kind(), Kind::undetermined);
}

TEST(StallStack, StacksOfAllThatWaitAddNothing) {
  JobBuilder b(2);
  const CommRef w = b.Comm("world", {0, 1});
  b.Finish(w, 4);
  for (const int r : {0, 1}) b.Coll(w, r, 5).Running();
  model::Job job = b.Build();
  const size_t before = static_cast<size_t>(Diagnose(job).findings_size());
  for (const int pid : {1000, 1001})
    ASSERT_TRUE(
        ingest::ReadTextBytes("py-spy.txt", Stack(pid, "    synchronize (torch/cuda/streams.py:100)\n"), &job.evidence).ok());
  EXPECT_EQ(static_cast<size_t>(Diagnose(job).findings_size()), before);
}

TEST(StallStack, FramesWithoutNamesSayNothing) {
  const Finding f = Diagnose(Absent("=== rank 2 (pid 1002) ===\n[<0>] 0xffffffff81234567\n")).findings(0);
  EXPECT_THAT(f.title(), Not(HasSubstr("stands")));
}

TEST(StallStack, WithoutOneNothingChanges) {
  EXPECT_THAT(Diagnose(Absent("")).findings(0).next().text(), HasSubstr("See what rank 2 does"));
}

}  // namespace
}  // namespace ringscope::reasoning
