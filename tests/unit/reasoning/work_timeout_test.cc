// Watchdog timeouts of several ranks read together: who is named, and when nobody is.
#include <absl/strings/str_cat.h>

#include "tests/unit/reasoning/text_job.h"

namespace ringscope::reasoning {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Timeout(int rank, int seq, const std::string& op, const std::string& size = "NumelIn=1, NumelOut=1, ") {
  return absl::StrCat("[rank", rank, "]:[E603 17:48:01.005271823 ProcessGroupNCCL.cpp:632] [Rank ", rank,
                      "] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=", seq, ", OpType=", op, ", ", size,
                      "Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n");
}
std::string Failed(int rank, int seq, int enqueued, int completed, const std::string& group = "PG ID 0 PG GUID 0(default_pg)") {
  return absl::StrCat("[rank", rank, "]:[E603 17:48:01.1 ProcessGroupNCCL.cpp:2268] [", group, " Rank ", rank,
                      "]  failure detected by watchdog at work sequence id: ", seq, " PG status: last enqueued work: ", enqueued,
                      ", last completed work: ", completed, "\n");
}
std::string Dump(int rank, int from, int enqueued, int completed) {
  return absl::StrCat("[rank", rank, "]:[E603 17:48:02.1 ProcessGroupNCCL.cpp:1400] [PG ID 0 PG GUID 0(default_pg) Rank ", rank,
                      "] Received a dump signal due to a collective timeout from  rank ", from,
                      " and we will try our best to dump the debug info. Last enqueued NCCL work: ", enqueued,
                      ", last completed NCCL work: ", completed, ".\n");
}

TEST(WorkTimeout, TheRankThatHadNotEnqueuedItSaysSoItself) {
  const Diagnosis d =
      DiagnoseTexts({{"job.log", Timeout(0, 100, "ALLREDUCE") + Failed(0, 100, 101, 99) + Timeout(1, 100, "ALLREDUCE") +
                                     Failed(1, 100, 100, 99) + Dump(2, 0, 99, 99) + Dump(3, 0, 100, 99)}});
  EXPECT_EQ(FirstKind(d), Kind::missing_rank);
  EXPECT_THAT(FirstRanks(d), ElementsAre(2));
  EXPECT_THAT(FirstCollateral(d), ElementsAre(0, 1));
  EXPECT_EQ(d.findings(0).confidence(), Confidence::probable);
}

TEST(WorkTimeout, ASilentRankIsNotNamed) {
  const Diagnosis d =
      DiagnoseTexts({{"job.log", Timeout(0, 100, "ALLREDUCE") + Timeout(1, 100, "ALLREDUCE") + Timeout(3, 100, "ALLREDUCE")}});
  EXPECT_EQ(FirstKind(d), Kind::undetermined);
  EXPECT_THAT(FirstRanks(d), IsEmpty());
  EXPECT_THAT(FirstText(d), HasSubstr("other ranks"));
}

TEST(WorkTimeout, OneRanksLogIsNotEnough) {
  const Diagnosis d = DiagnoseTexts({{"rank-9.log", Timeout(9, 190, "_ALLGATHER_BASE") + Failed(9, 190, 190, 189)}});
  EXPECT_EQ(FirstKind(d), Kind::undetermined);
  EXPECT_THAT(FirstRanks(d), IsEmpty());
  EXPECT_THAT(FirstCollateral(d), ElementsAre(9));
}

TEST(WorkTimeout, ARankThatWaitsInAnotherGroupOnlyPassesItOn) {
  const Diagnosis d =
      DiagnoseTexts({{"job.log", Timeout(0, 100, "ALLREDUCE") + Failed(0, 100, 100, 99) + Timeout(1, 100, "ALLREDUCE") +
                                     Failed(1, 100, 100, 99) + Timeout(2, 7, "ALLGATHER") +
                                     Failed(2, 7, 7, 6, "PG ID 1 PG GUID 5(mesh_tp)") + Dump(2, 0, 99, 99)}});
  EXPECT_EQ(FirstKind(d), Kind::undetermined);
  EXPECT_THAT(FirstRanks(d), IsEmpty());
}

TEST(WorkTimeout, FirstProcessTokenizesWhileTheOthersWait) {
  const std::string bar = "Running tokenizer on dataset:  9%|# | 28/296 [09:55<48:08, 1 examples/s]";
  const Diagnosis d =
      DiagnoseTexts({{"run.log", bar +
                                     "[E ProcessGroupNCCL.cpp:475] [Rank 2] Watchdog caught collective operation timeout: "
                                     "WorkNCCL(SeqNum=2, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for "
                                     "600328 milliseconds before timing out.\n" +
                                     Timeout(1, 2, "ALLREDUCE")}});
  EXPECT_EQ(FirstKind(d), Kind::missing_rank);
  EXPECT_THAT(FirstRanks(d), ElementsAre(0));
  EXPECT_EQ(FirstCause(d), "UC-06");
}

TEST(WorkTimeout, RankThatSavesByItsOwnWords) {
  const Diagnosis d = DiagnoseTexts({{"rank0.log", "[2026-01-01 10:00:00] Saving model checkpoint to /ckpt/step-500\n"},
                                     {"rank1.log", Timeout(1, 40, "BROADCAST")},
                                     {"rank2.log", Timeout(2, 40, "BROADCAST")}});
  EXPECT_EQ(FirstKind(d), Kind::missing_rank);
  EXPECT_THAT(FirstRanks(d), ElementsAre(0));
  EXPECT_EQ(FirstCause(d), "FW-07");
}

TEST(WorkTimeout, RankZeroThatTimedOutTooIsNotTheBusyOne) {
  const Diagnosis d = DiagnoseTexts(
      {{"run.log", "Saving model checkpoint to /ckpt\n" + Timeout(0, 40, "BROADCAST") + Timeout(1, 40, "BROADCAST")}});
  EXPECT_EQ(FirstKind(d), Kind::undetermined);
}

TEST(WorkMismatch, OneAgainstThreeIsTheOddOne) {
  const Diagnosis d = DiagnoseTexts({{"job.log", Timeout(0, 500, "ALLREDUCE") + Timeout(1, 500, "_ALLGATHER_BASE") +
                                                     Timeout(2, 500, "ALLREDUCE") + Timeout(3, 500, "ALLREDUCE")}});
  EXPECT_EQ(FirstKind(d), Kind::collective_mismatch);
  EXPECT_THAT(FirstRanks(d), ElementsAre(1));
  EXPECT_THAT(FirstCollateral(d), ElementsAre(0, 2, 3));
}

TEST(WorkMismatch, SizesThatMustAgreeAndSizesThatNeedNot) {
  const std::string a = "NumelIn=100, NumelOut=100, ", b = "NumelIn=90, NumelOut=90, ";
  const Diagnosis d = DiagnoseTexts(
      {{"job.log", Timeout(0, 500, "ALLREDUCE", a) + Timeout(1, 500, "ALLREDUCE", a) + Timeout(2, 500, "ALLREDUCE", b)}});
  EXPECT_EQ(FirstKind(d), Kind::size_mismatch);
  EXPECT_THAT(FirstRanks(d), ElementsAre(2));
  const Diagnosis other = DiagnoseTexts({{"job.log", Timeout(0, 500, "ALLTOALL_BASE", a) + Timeout(1, 500, "ALLTOALL_BASE", a) +
                                                         Timeout(2, 500, "ALLTOALL_BASE", b)}});
  EXPECT_EQ(FirstKind(other), Kind::undetermined);
}

TEST(WorkMismatch, TwoRanksAreATieUnlessTheirBatchesTell) {
  const std::string logs = Timeout(0, 500, "ALLREDUCE") + Timeout(1, 500, "_ALLGATHER_BASE");
  const Diagnosis tie = DiagnoseTexts({{"job.log", logs}});
  EXPECT_EQ(FirstKind(tie), Kind::collective_mismatch);
  EXPECT_THAT(FirstRanks(tie), ElementsAre(0, 1));
  EXPECT_THAT(FirstText(tie), HasSubstr("cannot be told"));
  const Diagnosis told = DiagnoseTexts(
      {{"job.log", "[rank1]: eval: dataloader exhausted after 31 batches\n[rank0]: eval: batch 32 of this rank\n" + logs}});
  EXPECT_THAT(FirstRanks(told), ElementsAre(1));
  EXPECT_EQ(FirstCause(told), "UC-04");
}

TEST(WorkMismatch, SameNumberInDifferentGroupsIsNone) {
  const Diagnosis d = DiagnoseTexts({{"job.log", Timeout(0, 7, "ALLREDUCE") + Failed(0, 7, 7, 6, "PG ID 1 PG GUID 3(tp)") +
                                                     Timeout(1, 7, "BROADCAST") + Failed(1, 7, 7, 6, "PG ID 2 PG GUID 9(dp)")}});
  EXPECT_EQ(FirstKind(d), Kind::undetermined);
}

std::string Print(int a, const std::string& x, int b, const std::string& y) {
  const auto one = [](const std::string& what) {
    return "CollectiveFingerPrint(SequenceNumber=12, " + what + ", TensorDtypes=Float)";
  };
  return absl::StrCat("[rank", a, "]: RuntimeError: Detected mismatch between collectives on ranks. Rank ", a,
                      " is running collective: ", one(x), ", but Rank ", b, " is running collective: ", one(y),
                      ".Collectives differ in the following aspects: Op type: x\n");
}

TEST(Fingerprint, RanksBelowTheFirstDifferenceAgree) {
  const Diagnosis d =
      DiagnoseTexts({{"job.log", Print(0, "OpType=ALLREDUCE, TensorShape=[8]", 3, "OpType=BROADCAST, TensorShape=[8]")}});
  EXPECT_EQ(FirstKind(d), Kind::collective_mismatch);
  EXPECT_THAT(FirstRanks(d), ElementsAre(3));
}

TEST(Fingerprint, TwoSizesAreATieWithAHint) {
  const Diagnosis d =
      DiagnoseTexts({{"job.log", Print(1, "OpType=ALLREDUCE, TensorShape=[800]", 0, "OpType=ALLREDUCE, TensorShape=[900]")}});
  EXPECT_EQ(FirstKind(d), Kind::size_mismatch);
  EXPECT_THAT(FirstRanks(d), ElementsAre(1));
  EXPECT_EQ(d.findings(0).confidence(), Confidence::possible);
  EXPECT_THAT(FirstText(d), HasSubstr("cannot be told"));
}

TEST(Desync, RankThatDidNotJoinTheNextCollective) {
  const Diagnosis d =
      DiagnoseTexts({{"job.log",
                      "\t - [0] Timeout at collective: ALLREDUCE, #15\n"
                      "\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:\n"
                      "\t     [7] finished collective #12, but didn't join collective #13 (count from 1)\n"
                      "\t - Snapshot of ranks' latest states:\n"
                      "\t   #12 finished ranks:\n\t     [7] finished ALLREDUCE\n"
                      "\t   #15 started ranks:\n\t     [0, 1, 2] started ALLREDUCE\n"}});
  EXPECT_EQ(FirstKind(d), Kind::missing_rank);
  EXPECT_THAT(FirstRanks(d), ElementsAre(7));
}

TEST(Desync, DifferentOperationsAtOnePosition) {
  const Diagnosis d =
      DiagnoseTexts({{"job.log",
                      "\t - [0] Timeout at collective: ALLREDUCE, #15\n"
                      "\t - Snapshot of ranks' latest states:\n"
                      "\t   #15 started ranks:\n\t     [0, 2] started ALLREDUCE\n\t     [1] started _ALLGATHER_BASE\n"}});
  EXPECT_EQ(FirstKind(d), Kind::collective_mismatch);
  EXPECT_THAT(FirstRanks(d), ElementsAre(1));
}

std::string TimedOut(int rank, const std::string& op, int seq) {
  const std::string r = std::to_string(rank);
  return "[default" + r + "]:[rank" + r + "]:[E817 22:40:21.11 ProcessGroupNCCL.cpp:607] [Rank " + r +
         "] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=" + std::to_string(seq) + ", OpType=" + op +
         ", NumelIn=64, NumelOut=64, Timeout(ms)=1800000) ran for 1800047 milliseconds before timing out.\n";
}
std::string GlooOut(int local) {
  return "[default" + std::to_string(local) +
         "]:RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv "
         "operation to "
         "complete\n";
}

TEST(HostCollective, WhoWaitsOnTheHostForThoseThatWaitOnTheGpu) {
  const Diagnosis d = DiagnoseTexts(
      {{"job.log", TimedOut(0, "ALLREDUCE", 44) + TimedOut(1, "ALLREDUCE", 44) + TimedOut(2, "ALLREDUCE", 44) + GlooOut(3)}});
  EXPECT_EQ(FirstKind(d), Kind::missing_rank);
  EXPECT_THAT(FirstRanks(d), ElementsAre(3)) << "the row of local ranks says that local rank 3 is rank 3";
  EXPECT_THAT(FirstCollateral(d), ElementsAre(0, 1, 2));
}

TEST(HostCollective, AllInIt) {
  // Rank 0 waits on both; nobody went another way.
  const Diagnosis d = DiagnoseTexts({{"job.log", TimedOut(0, "ALLREDUCE", 44) + TimedOut(1, "ALLREDUCE", 44) + GlooOut(0)}});
  EXPECT_NE(FirstKind(d), Kind::missing_rank);
}

TEST(HostCollective, LocalRanksOfSeveralHostsAreNoRanks) {
  // Hosts are not named and their lines are mixed: local rank 1 is rank 1 and rank 9.
  std::string mixed = TimedOut(0, "ALLREDUCE", 44) + TimedOut(1, "ALLREDUCE", 44);
  std::string other = TimedOut(8, "ALLREDUCE", 44) + TimedOut(9, "ALLREDUCE", 44);
  for (const char* from : {"[default8]", "[default9]"}) {
    const size_t at = other.find(from);
    other[at + 8] = static_cast<char>(other[at + 8] - 8);
  }
  const Diagnosis d = DiagnoseTexts({{"job.log", mixed + other + GlooOut(3)}});
  EXPECT_NE(FirstKind(d), Kind::missing_rank);
}

TEST(Sends, BothSidesSendFirst) {
  const Diagnosis d = DiagnoseTexts({{"rank0.log", TimedOut(0, "SEND", 2)}, {"rank1.log", TimedOut(1, "SEND", 2)}});
  EXPECT_EQ(FirstKind(d), Kind::order_mismatch);
  EXPECT_THAT(FirstRanks(d), ElementsAre());
  EXPECT_EQ(d.findings(0).confidence(), Confidence::possible);
}

TEST(Sends, OneThatReceivesOrOneAloneTellsNothing) {
  EXPECT_NE(FirstKind(DiagnoseTexts({{"a.log", TimedOut(0, "SEND", 2)}, {"b.log", TimedOut(1, "RECV", 2)}})),
            Kind::order_mismatch);
  EXPECT_NE(FirstKind(DiagnoseTexts({{"a.log", TimedOut(0, "SEND", 2)}})), Kind::order_mismatch);
}

}  // namespace
}  // namespace ringscope::reasoning
