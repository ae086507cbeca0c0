// torch's watchdog, mismatch reports and torchelastic's table, in the wordings of their releases.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/ingest/text_reader.h"

namespace ringscope {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

model::Evidence Read(const std::string& text, const std::string& name = "job.log") {
  model::Evidence evidence;
  EXPECT_TRUE(ingest::ReadTextBytes(name, text, &evidence).ok());
  model::ResolveSpeakers(&evidence);
  return evidence;
}

TEST(TorchWatchdog, WordingOfEveryRelease) {
  const auto evidence = Read(
      "[E ProcessGroupNCCL.cpp:566] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE, "
      "TensorShape=[1], Timeout(ms)=1800000) ran for 1802710 milliseconds before timing out.\n"
      "[E ProcessGroupNCCL.cpp:828] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=17, OpType=BROADCAST, "
      "TensorShape=[1024, 8], Timeout(ms)=1800000) ran for 1800432 milliseconds before timing out.\n"
      "[rank5]:[E ProcessGroupNCCL.cpp:523] [Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, "
      "OpType=_ALLGATHER_BASE, NumelIn=112, NumelOut=18446744073709551615, Timeout(ms)=600000) ran for 600022 milliseconds before "
      "timing "
      "out.\n");
  const auto& timeouts = evidence.work.timeouts;
  ASSERT_THAT(timeouts, SizeIs(3));
  EXPECT_EQ(timeouts[0].by.rank, 2);
  EXPECT_FALSE(timeouts[0].seq);
  EXPECT_EQ(timeouts[0].shape, "[1]");
  EXPECT_EQ(timeouts[1].seq, 17);
  EXPECT_EQ(timeouts[1].shape, "[1024, 8]");
  EXPECT_EQ(timeouts[2].by.rank, 5);
  EXPECT_EQ(timeouts[2].numel_in, 112u);
  EXPECT_FALSE(timeouts[2].numel_out);
  EXPECT_EQ(timeouts[2].timeout_ms, 600000);
  EXPECT_EQ(timeouts[2].ran_ms, 600022);
}

TEST(TorchWatchdog, CursorsOfEveryRelease) {
  const auto evidence = Read(
      "[rank4]:[E ProcessGroupNCCL.cpp:1537] [PG 3 Rank 1] Timeout at NCCL work: 5, last enqueued NCCL work: 6, last completed NCCL "
      "work: 4.\n"
      "[rank0]:[E321 02:07:08.408271257 ProcessGroupNCCL.cpp:1600] [PG 0 Rank 0] Exception (either an error or timeout) detected by "
      "watchdog at work: 7, last enqueued NCCL work: 8, last completed NCCL work: -1.\n"
      "[rank1]:[E603 17:48:01.005271823 ProcessGroupNCCL.cpp:2268] [PG ID 2 PG GUID 11(mesh_tp) Rank 0]  failure detected by watchdog "
      "at "
      "work sequence id: 41 PG status: last enqueued work: 42, last completed work: 18446744073709551615\n"
      "[E ProcessGroupNCCL.cpp:1300] [PG ID 0 PG GUID 0(default_pg) Rank 6] Received a dump signal due to a collective timeout from  "
      "rank "
      "3 and we will try our best to dump the debug info. Last enqueued NCCL work: 11, last completed NCCL work: 10.This is most\n"
      "[E ProcessGroupNCCL.cpp:1300] [PG ID 5 PG GUID 9(mesh_tp) Rank 1]  failure detected by watchdog at work sequence id: 1 PG "
      "status: "
      "last enqueued work: 1, last completed work: 0\n");
  const auto& cursors = evidence.work.cursors;
  ASSERT_THAT(cursors, SizeIs(5));
  EXPECT_EQ(cursors[0].by.rank, 4);
  EXPECT_EQ(cursors[0].group.Key(), "3");
  EXPECT_EQ(cursors[0].group_rank, 1);
  EXPECT_EQ(cursors[0].failed, 5);
  EXPECT_EQ(cursors[0].enqueued, 6);
  EXPECT_EQ(cursors[0].completed, 4);
  EXPECT_EQ(cursors[1].failed, 7);
  EXPECT_EQ(cursors[1].completed, -1);
  EXPECT_EQ(cursors[2].group.Key(), "11");
  EXPECT_EQ(cursors[2].group.desc, "mesh_tp");
  EXPECT_EQ(cursors[2].completed, -1);
  EXPECT_FALSE(cursors[2].group.spans_job());
  EXPECT_FALSE(cursors[3].failed);
  EXPECT_EQ(cursors[3].enqueued, 11);
  EXPECT_EQ(cursors[3].by.rank, 6);
  // Without a launcher's tag the rank within a smaller group is not taken for the job's.
  EXPECT_EQ(cursors[4].by.rank, -1);
  EXPECT_EQ(cursors[4].group_rank, 1);
}

TEST(TorchWatchdog, GroupComesFromTheCursorLine) {
  const auto evidence = Read(
      "[rank1]:[E603 17:48:01.0 ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=41, "
      "OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600001 milliseconds before timing out.\n"
      "[rank1]:[E603 17:48:01.1 ProcessGroupNCCL.cpp:2268] [PG ID 2 PG GUID 11(mesh_tp) Rank 1]  failure detected by watchdog at work "
      "sequence id: 41 PG status: last enqueued work: 42, last completed work: 40\n");
  ASSERT_THAT(evidence.work.timeouts, SizeIs(1));
  EXPECT_EQ(evidence.work.timeouts[0].group.Key(), "11");
}

TEST(TorchWatchdog, ToldTwiceGluedAndBroken) {
  const auto evidence = Read(
      "Map:  9%|8 | 28/296 [29:55<4:48:08, 155.57 examples/s][E ProcessGroupNCCL.cpp:475] [Rank 2] Watchdog caught collective "
      "operation "
      "timeout: WorkNCCL(SeqNum=2, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800328 milliseconds before "
      "timing out.\n"
      "[E ProcessGroupNCCL.cpp:916] [Rank 2] NCCL watchdog thread terminated with exception: [Rank 2] Watchdog caught collective "
      "operation "
      "timeout: WorkNCCL(SeqNum=2, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800328 milliseconds before "
      "timing out.\n"
      "[E ProcessGroupNCCL.cpp:475] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, OpType=ALLREDUCE, "
      "NumelIn=112, "
      "Numel\n"
      "Out=113, Timeout(ms)=1800000) ran for 1800328 milliseconds before timing out.\n"
      "  what():  [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, OpT\n");
  ASSERT_THAT(evidence.work.timeouts, SizeIs(2));
  EXPECT_EQ(evidence.work.timeouts[0].by.rank, 2);
  EXPECT_EQ(evidence.work.timeouts[1].by.rank, 0);
  EXPECT_EQ(evidence.work.timeouts[1].numel_out, 113u);
}

TEST(TorchWatchdog, ShortenedLinesAndActorsWithARank) {
  const auto evidence = Read(
      "[rank9]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=167, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
      "Timeout(ms)=600000)\n"
      "[rank14]: failure detected by watchdog at work sequence id: 167 PG status: last enqueued work: 167, last completed work: 166\n"
      "(PolicyWorker[rank=8] pid=309) [rank8]:[E129 16:38:47.801786726 ProcessGroupNCCL.cpp:1858] [PG ID 0 PG GUID 0(default_pg) Rank "
      "8] "
      "Received a dump signal due to a collective timeout from this local rank and we will try our best to dump the debug info. Last "
      "enqueued NCCL work: 166, last completed NCCL work: 166.This is\n");
  ASSERT_THAT(evidence.work.timeouts, SizeIs(1));
  EXPECT_EQ(evidence.work.timeouts[0].by.rank, 9);
  ASSERT_THAT(evidence.work.cursors, SizeIs(2));
  EXPECT_EQ(evidence.work.cursors[0].by.rank, 14);
  EXPECT_EQ(evidence.work.cursors[1].by.rank, 8);
  EXPECT_EQ(evidence.work.cursors[1].by.pid, 309);
}

TEST(TorchMismatch, FingerprintsWithAndWithoutSequenceAndComma) {
  const auto evidence = Read(
      "[rank1]: RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint("
      "SequenceNumber=31, OpType=ALLREDUCE, TensorShape=[10, 2], TensorDtypes=Float, TensorDeviceTypes=TensorOptions(dtype=float "
      "(default), device=cuda)), but Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=31, OpType=ALLREDUCE, "
      "TensorShape=[20, 2], TensorDtypes=Float, TensorDeviceTypes=x).Collectives differ in the following aspects: \t Tensor Tensor "
      "shapes: "
      "10, 2vs 20, 2\n"
      "RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running inconsistent collective: CollectiveFingerPrint("
      "SequenceNumber=1OpType=BARRIER), but Rank 2 is running inconsistent collective: CollectiveFingerPrint(OpType=BROADCAST, "
      "TensorShape=[1], TensorDtypes=Long)\n");
  const auto& found = evidence.work.fingerprints;
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].own.rank, 1);
  EXPECT_EQ(found[0].own.shapes, "[10, 2]");
  EXPECT_EQ(found[0].other.rank, 0);
  EXPECT_EQ(found[0].other.shapes, "[20, 2]");
  EXPECT_EQ(found[0].other.seq, 31);
  EXPECT_EQ(found[1].own.op, "BARRIER");
  EXPECT_EQ(found[1].own.seq, 1);
  EXPECT_EQ(found[1].other.op, "BROADCAST");
}

TEST(TorchMismatch, DesyncReport) {
  using State = model::DesyncLine::State;
  const auto evidence = Read(
      "[rank0]:[E515 18:36:47.343377708 ProcessGroupNCCL.cpp:1937] Rank 0\n"
      "         - [0] Timeout at collective: ALLREDUCE, #15\n"
      "         - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:\n"
      "             [7] finished collective #12, but didn't join collective #13 (count from 1)\n"
      "         - Snapshot of ranks' latest states:\n"
      "           #12 finished ranks:\n"
      "             [7] finished ALLREDUCE\n"
      "           #15 started ranks:\n"
      "             [0, 1, 2] started ALLREDUCE\n"
      "\t - To our best knowledge, ranks [4, 5] are the lagging ranks that caused this timeout. They never joined any collectives\n");
  const auto& lines = evidence.work.desync;
  ASSERT_THAT(lines, SizeIs(4));
  EXPECT_EQ(lines[0].state, State::kFinishedNotJoinedNext);
  EXPECT_THAT(lines[0].ranks, ElementsAre(7));
  EXPECT_EQ(lines[0].seq, 12);
  EXPECT_EQ(lines[1].state, State::kFinished);
  EXPECT_EQ(lines[2].state, State::kStarted);
  EXPECT_EQ(lines[2].seq, 15);
  EXPECT_EQ(lines[2].op, "ALLREDUCE");
  EXPECT_EQ(lines[3].state, State::kNeverJoined);
  EXPECT_THAT(lines[3].ranks, ElementsAre(4, 5));
}

TEST(TorchElastic, TableAndAgentLines) {
  const auto evidence = Read(
      "W1104 10:11:12.000000 139 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 77 closing signal SIGTERM\n"
      "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 3 (pid: 80) of binary: /usr/bin/python\n"
      "Traceback (most recent call last):\n"
      "  File \"/usr/bin/torchrun\", line 8, in <module>\n"
      "    sys.exit(main())\n"
      "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
      "============================================================\n"
      "train.py FAILED\n"
      "------------------------------------------------------------\n"
      "Failures:\n"
      "[1]:\n"
      "  time      : 2025-01-02_03:04:05\n"
      "  host      : n1\n"
      "  rank      : 4 (local_rank: 4)\n"
      "  exitcode  : 1 (pid: 81)\n"
      "  error_file: <N/A>\n"
      "  traceback : To enable traceback see: https://example.org\n"
      "------------------------------------------------------------\n"
      "Root Cause (first observed failure):\n"
      "[0]:\n"
      "  time      : 2025-01-02_03:04:04\n"
      "  host      : n1\n"
      "  rank      : 11 (local_rank: 3)\n"
      "  exitcode  : -9 (pid: 80)\n"
      "  error_file: <N/A>\n"
      "  traceback : Signal 9 (SIGKILL) received by PID 80\n"
      "============================================================\n");
  const auto& ends = evidence.work.ends;
  ASSERT_THAT(ends, SizeIs(4));
  EXPECT_TRUE(ends[0].stopped_by_us);
  EXPECT_EQ(ends[1].signal, 9);
  EXPECT_EQ(ends[1].by.pid, 80);
  EXPECT_THAT(ends[2].ranks, ElementsAre(4));
  EXPECT_EQ(ends[2].exit_code, 1);
  EXPECT_FALSE(ends[2].first);
  EXPECT_THAT(ends[3].ranks, ElementsAre(11));
  EXPECT_TRUE(ends[3].first);
  EXPECT_EQ(ends[3].signal, 9);
  EXPECT_EQ(ends[3].by.host, "n1");
}

TEST(TorchReaders, HostileInputIsHarmless) {
  std::string text;
  for (int i = 0; i < 200; ++i) {
    text +=
        "[Rank 999999999999] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=99999999999999999999999, OpType=, "
        "NumelIn=99999999999999999999999999, Timeout(ms)=-1\n";
    text += "last enqueued work: 999999999999999999999999, last completed work: \n";
    text += "[1,2,] are the lagging ranks that caused this timeout [[[[ joined but didn't finish collective #\n";
    text += "Rank 1 is running collective: CollectiveFingerPrint(CollectiveFingerPrint(CollectiveFingerPrint(\n";
    text += "  rank      : 99999999999 (local_rank: \n  exitcode  : \xff\xfe (pid: )\nRoot Cause (first observed failure):\n[0]:\n";
    text += "failed (exitcode: -999999999) local_rank: 1 (pid: 1)\n";
  }
  const auto evidence = Read(text);
  EXPECT_THAT(evidence.work.timeouts, IsEmpty());
  for (const auto& end : evidence.work.ends) EXPECT_EQ(end.signal, 0);
}

}  // namespace
}  // namespace ringscope
