#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/ingest/text_reader.h"

namespace ringscope {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

model::Evidence Read(const std::string& text, const std::string& name = "job.log") {
  model::Evidence evidence;
  EXPECT_TRUE(ingest::ReadTextBytes(name, text, &evidence).ok());
  return evidence;
}

TEST(ProcessEnd, LaunchersAndSchedulers) {
  const auto evidence = Read(
      "srun: error: node7: task 3: Killed\n"
      "srun: error: node7: tasks 0-2,5: Exited with exit code 1\n"
      "srun: error: node8: task 9: Segmentation fault (core dumped)\n"
      "srun: error: node8: task 10: Out Of Memory\n"
      "mpirun noticed that process rank 4 with PID 0 on node n3 exited on signal 11 (Segmentation fault).\n"
      "=   RANK 2 PID 55 RUNNING AT n2\n"
      "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGBUS\n"
      "subprocess.CalledProcessError: Command '['python']' died with <Signals.SIGKILL: 9>.\n"
      "[launch.py:325:sigkill_handler] ['python'] exits with return code = -6\n");
  const auto& ends = evidence.work.ends;
  ASSERT_THAT(ends, SizeIs(9));
  EXPECT_EQ(ends[0].signal, 9);
  EXPECT_EQ(ends[0].by.host, "node7");
  EXPECT_THAT(ends[0].ranks, ElementsAre(3));
  EXPECT_THAT(ends[1].ranks, ElementsAre(0, 1, 2, 5));
  EXPECT_EQ(ends[1].exit_code, 1);
  EXPECT_EQ(ends[2].signal, 11);
  EXPECT_TRUE(ends[2].core);
  EXPECT_TRUE(ends[3].out_of_memory);
  EXPECT_EQ(ends[4].signal, 11);
  EXPECT_THAT(ends[4].ranks, ElementsAre(4));
  EXPECT_THAT(ends[5].ranks, ElementsAre(2));
  EXPECT_EQ(ends[6].signal, 7);
  EXPECT_EQ(ends[7].signal, 9);
  EXPECT_EQ(ends[8].signal, 6);
}

TEST(ProcessEnd, CommandsThatRingscopeRunSawFail) {
  const auto evidence = Read(
      "ringscope run: rank 7: the command ended with exit code 64, and none of its processes left a record of a communicator\n"
      "ringscope run: the command ended with exit code 137, and none of its processes left a record of a communicator\n"
      "ringscope run: rank x: the command ended with exit code 1, and none of its processes left a record of a communicator\n"
      "ringscope run: the command ended with exit code 1\n",
      "node1.end.77.command.txt");
  const auto& ends = evidence.work.ends;
  ASSERT_THAT(ends, SizeIs(2));
  EXPECT_EQ(ends[0].exit_code, 64);
  EXPECT_THAT(ends[0].ranks, ElementsAre(7));
  EXPECT_EQ(ends[0].by.host, "node1");
  EXPECT_EQ(ends[1].signal, 9);
  EXPECT_THAT(ends[1].ranks, SizeIs(0));
}

TEST(ProcessEnd, Kubernetes) {
  const auto evidence = Read(
      "Name:         train-worker-2\n"
      "    Last State:     Terminated\n"
      "      Reason:       OOMKilled\n"
      "      Exit Code:    137\n"
      "    State:          Running\n"
      "      Reason:       Started\n"
      "      Exit Code:    0\n"
      "train-worker-3   0/1     Evicted     0          5m\n");
  const auto& ends = evidence.work.ends;
  ASSERT_THAT(ends, SizeIs(3));
  EXPECT_TRUE(ends[0].out_of_memory);
  EXPECT_EQ(ends[0].by.host, "train-worker-2");
  EXPECT_EQ(ends[1].signal, 9);
  EXPECT_EQ(ends[2].reason, "Evicted");
  EXPECT_EQ(ends[2].by.host, "train-worker-3");
}

TEST(HostWork, BarsCheckpointsAndLoaders) {
  using Kind = model::HostWork::Kind;
  const auto evidence = Read(
      "Running tokenizer on dataset:   9%|## | 280000/2969526 [29:55<4:48:08, 155.57 examples/s][E ProcessGroupNCCL.cpp:475] [Rank 2] "
      "x\n"
      "epoch 6 | rank 0 | val loss 1.2043 -> saving\n"
      "[rank1] eval: loader exhausted after 327 batches\n"
      "RuntimeError: saving failed\n");
  const auto& work = evidence.work.host_work;
  ASSERT_THAT(work, SizeIs(3));
  EXPECT_EQ(work[0].kind, Kind::kPreprocess);
  EXPECT_EQ(work[0].by.rank, -1);
  EXPECT_EQ(work[0].done, 280000);
  EXPECT_EQ(work[0].elapsed_s, 29 * 60 + 55);
  EXPECT_EQ(work[1].kind, Kind::kSave);
  EXPECT_EQ(work[1].by.rank, 0);
  EXPECT_EQ(work[2].kind, Kind::kIterations);
  EXPECT_EQ(work[2].done, 327);
  EXPECT_EQ(work[2].by.rank, 1);
  EXPECT_TRUE(work[2].over);
}

TEST(HostWork, ABarThatIsRepaintedKeepsFirstAndLast) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += "Map (num_proc=8): | " + std::to_string(i) + "/500 [00:01<00:02, 1 examples/s]\r";
  const auto evidence = Read(text + "\n");
  ASSERT_THAT(evidence.work.host_work, SizeIs(2));
  EXPECT_EQ(evidence.work.host_work[0].done, 0);
  EXPECT_EQ(evidence.work.host_work[1].done, 499);
}

}  // namespace
}  // namespace ringscope
