// Calls that NCCL's log lists, from text to finding.
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/ingest/text_reader.h"
#include "analyzer/reasoning/finder.h"

namespace ringscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Call(int rank, int number, const std::string& function = "AllReduce", int count = 1024, int op_count = -1) {
  return absl::StrCat("[rank", rank, "]:n1:", 100 + rank, ":7 [0] NCCL INFO ", function, ": opCount ",
                      absl::Hex(op_count >= 0 ? op_count : number), " sendbuff 0x7f1 recvbuff 0x7f2 count ", count,
                      " datatype 7 op 0 root 0 comm 0x55", rank, " [nranks=4] stream 0x9\n");
}

Diagnosis Of(const std::string& text) {
  model::Job job;
  EXPECT_TRUE(ingest::ReadTextBytes("job.log", text, &job.evidence).ok());
  model::ResolveSpeakers(&job.evidence);
  return reasoning::Diagnose(job);
}

std::string Agreeing(int from, int to, int op_count = -1) {
  std::string text;
  for (int number = from; number < to; ++number) {
    for (int rank = 0; rank < 4; ++rank) text += Call(rank, number, "AllReduce", 1024 + number % 7, op_count);
  }
  return text;
}

TEST(LoggedCalls, AgreeingRanksSayNothing) { EXPECT_EQ(Of(Agreeing(0, 50)).findings_size(), 0); }

TEST(LoggedCalls, TheOddSizeIsNamed) {
  std::string text = Agreeing(0, 20);
  for (int rank = 0; rank < 4; ++rank) text += Call(rank, 20, "AllReduce", rank == 2 ? 99 : 1024);
  const Diagnosis d = Of(text + Agreeing(21, 30));
  ASSERT_GE(d.findings_size(), 1);
  EXPECT_EQ(d.findings(0).kind(), Kind::size_mismatch);
  EXPECT_THAT(d.findings(0).who().ranks(), ElementsAre(2));
  EXPECT_THAT(d.findings(0).collateral().ranks(), ElementsAre(0, 1, 3));
  EXPECT_THAT(d.findings(0).title(), HasSubstr("operation 14 (opCount)"));
}

TEST(LoggedCalls, TwoAgainstTwoIsATie) {
  std::string text = Agreeing(0, 20);
  for (int rank = 0; rank < 4; ++rank) text += Call(rank, 20, rank % 2 ? "AllGather" : "AllReduce");
  const Diagnosis d = Of(text);
  ASSERT_GE(d.findings_size(), 1);
  EXPECT_EQ(d.findings(0).kind(), Kind::collective_mismatch);
  EXPECT_THAT(d.findings(0).who().ranks(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(d.findings(0).title(), HasSubstr("which side is wrong the log does not tell"));
}

// The counter of a single-node communicator stays 0 since 2.27: our own numbers serve, for logs that begin together.
TEST(LoggedCalls, WithoutACounter) {
  std::string text = Agreeing(0, 20, 0);
  for (int rank = 0; rank < 4; ++rank) text += Call(rank, 20, "AllReduce", rank == 1 ? 99 : 1024, 0);
  const Diagnosis d = Of(text);
  ASSERT_GE(d.findings_size(), 1);
  EXPECT_THAT(d.findings(0).who().ranks(), ElementsAre(1));
}

TEST(LoggedCalls, LogsThatBeginApartAreComparedByCounter) {
  std::string text;
  for (int rank = 0; rank < 4; ++rank) {
    for (int number = 10 * rank; number < 60; ++number) text += Call(rank, number, "AllReduce", 5 + number % 3);
  }
  EXPECT_EQ(Of(text).findings_size(), 0);
}

TEST(LoggedCalls, ARankAheadIsNoMismatchAndNoStall) {
  EXPECT_EQ(Of(Agreeing(0, 20) + Call(0, 20) + Call(0, 21) + Call(1, 20)).findings_size(), 0);
}

TEST(LoggedCalls, InAJobThatStandsStillTheRankBehindIsNamed) {
  std::string text = Agreeing(0, 20);
  for (const int rank : {0, 1, 3}) text += Call(rank, 20);
  text += "[rank0]:[E102 03:04:05.1 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=21, "
          "OpType=ALLREDUCE, NumelIn=1024, NumelOut=1024, Timeout(ms)=600000) ran for 600041 milliseconds before timing out.\n";
  const Diagnosis d = Of(text);
  ASSERT_GE(d.findings_size(), 1);
  EXPECT_EQ(d.findings(0).kind(), Kind::missing_rank);
  EXPECT_THAT(d.findings(0).who().ranks(), ElementsAre(2));
}

// Two communicators of one size in each process, and no init lines: which belong together is not known.
TEST(LoggedCalls, AmbiguousCommunicatorsAreNotCompared) {
  std::string text = Agreeing(0, 5);
  text += "[rank0]:n1:100:7 [0] NCCL INFO AllGather: opCount 0 sendbuff 0x1 recvbuff 0x2 count 8 datatype 7 op 0 root 0 comm 0x77 "
          "[nranks=4] stream 0x9\n";
  EXPECT_EQ(Of(text).findings_size(), 0);
}

TEST(LoggedCalls, CutLinesAreNotedAndLeftOut) {
  std::string text = Agreeing(0, 20) + "[rank0]:n1:100:7 [0] NCCL INFO AllReduce: opCount 14 sendbuff 0x7f1 recvbuff 0x7f2 coun\n";
  model::Job job;
  EXPECT_TRUE(ingest::ReadTextBytes("job.log", text, &job.evidence).ok());
  EXPECT_EQ(job.evidence.calls.histories.size(), 4u);
  EXPECT_THAT(job.evidence.files[0].notes, ElementsAre(HasSubstr("line 81: a call")));
}

TEST(LoggedCalls, LongHistoriesAreBounded) {
  std::string text;
  for (int number = 0; number < 20000; ++number) text += Call(0, number);
  model::Job job;
  EXPECT_TRUE(ingest::ReadTextBytes("job.log", text, &job.evidence).ok());
  ASSERT_EQ(job.evidence.calls.histories.size(), 1u);
  EXPECT_EQ(job.evidence.calls.histories[0].collectives, 20000u);
  EXPECT_LE(job.evidence.calls.histories[0].calls.size(), 2 * model::kLoggedCalls);
}

}  // namespace
}  // namespace ringscope
