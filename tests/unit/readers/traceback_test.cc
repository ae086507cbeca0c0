#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/ingest/text_reader.h"

namespace ringscope {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

model::Evidence Read(const std::string& text, const std::string& name = "job.log") {
  model::Evidence evidence;
  EXPECT_TRUE(ingest::ReadTextBytes(name, text, &evidence).ok());
  model::ResolveSpeakers(&evidence);
  return evidence;
}

TEST(Traceback, RanksThatAlternateLineByLine) {
  const auto evidence = Read(
      "[rank0]: Traceback (most recent call last):\n"
      "[rank3]: Traceback (most recent call last):\n"
      "[rank0]:   File \"/app/train.py\", line 10, in <module>\n"
      "[rank3]:   File \"/app/train.py\", line 12, in step\n"
      "[rank0]:     loss.backward()\n"
      "[rank3]:     x = table[key]\n"
      "[rank3]:         ~~~~~^^^^^\n"
      "[rank0]: torch.distributed.DistBackendError: NCCL error in: ../NCCLUtils.hpp:1, remote process exited or there was a network "
      "error\n"
      "[rank3]: KeyError: 'vocab'\n"
      "[rank0]: ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n"
      "[rank0]: Last error:\n"
      "[rank0]: NET/IB: something\n"
      "step 12\n");
  const auto& found = evidence.work.exceptions;
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].by.rank, 0);
  EXPECT_EQ(found[0].type, "torch.distributed.DistBackendError");
  ASSERT_THAT(found[0].more, SizeIs(3));
  EXPECT_THAT(found[0].more[2], HasSubstr("NET/IB"));
  EXPECT_EQ(found[1].by.rank, 3);
  EXPECT_EQ(found[1].type, "KeyError");
  EXPECT_EQ(found[1].message, "'vocab'");
  ASSERT_THAT(found[1].frames, SizeIs(1));
  EXPECT_EQ(found[1].frames[0].function, "step");
  EXPECT_EQ(found[1].frames[0].line, 12u);
  EXPECT_EQ(found[1].frames[0].code, "x = table[key]");
}

TEST(Traceback, ChainsLevelsTablesAndSpawn) {
  const auto evidence = Read(
      "Traceback (most recent call last):\n"
      "  File \"a.py\", line 1, in f\n"
      "    g()\n"
      "ValueError: bad\n"
      "\n"
      "During handling of the above exception, another exception occurred:\n"
      "\n"
      "Traceback (most recent call last):\n"
      "  File \"a.py\", line 9, in f\n"
      "RuntimeError: worse\n"
      "(Worker_TP3 pid=812) ERROR Traceback (most recent call last):\n"
      "(Worker_TP3 pid=812) ERROR   File \"v.py\", line 5, in h\n"
      "(Worker_TP3 pid=812) ERROR     self.reg(\n"
      "(Worker_TP3 pid=812) ERROR RuntimeError: NCCL error: unhandled cuda error\n"
      "-- Process 1 terminated with the following error:\n"
      "Traceback (most recent call last):\n"
      "  File \"a.py\", line 9, in f\n"
      "AssertionError\n"
      "  rank      : 6 (local_rank: 2)\n"
      "  traceback : Traceback (most recent call last):\n"
      "    File \"a.py\", line 9, in f\n"
      "      x()\n"
      "  custom.module.BadThing: no\n");
  const auto& found = evidence.work.exceptions;
  ASSERT_THAT(found, SizeIs(5));
  EXPECT_FALSE(found[0].chained_before);
  EXPECT_TRUE(found[1].chained_before);
  EXPECT_EQ(found[1].message, "worse");
  EXPECT_EQ(found[2].by.rank, 3);
  EXPECT_EQ(found[2].message, "NCCL error: unhandled cuda error");
  EXPECT_EQ(found[3].type, "AssertionError");
  EXPECT_EQ(found[3].by.rank, 1);
  EXPECT_EQ(found[4].type, "custom.module.BadThing");
  EXPECT_EQ(found[4].by.rank, 6);
}

TEST(Traceback, OnlyTheFirstLineIsTagged) {
  const auto evidence = Read(
      "[2025-06-02 03:04:05 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
      "  File \"/s/scheduler.py\", line 2261, in run\n"
      "    loop()\n"
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.17 GiB.\n"
      "RuntimeError: Rank 3 failed to pass monitoredBarrier in 1800000 ms\n"
      " Original exception:\n"
      "[/g/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.9]:4411\n");
  const auto& found = evidence.work.exceptions;
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].by.rank, 1);
  EXPECT_EQ(found[0].frames.size(), 1u);
  ASSERT_THAT(found[1].more, SizeIs(2));
  EXPECT_THAT(found[1].more[1], HasSubstr("Connection closed"));
}

TEST(Traceback, WhatEndsAProcessFromCpp) {
  const auto evidence = Read(
      "[rank2]:[E ProcessGroupNCCL.cpp:1895] [PG ID 0 PG GUID 0(default_pg) Rank 2] Process group watchdog thread terminated with "
      "exception: CUDA error: an illegal memory access was encountered\n"
      "terminate called after throwing an instance of 'std::bad_alloc'\n"
      "  what():  std::bad_alloc\n");
  const auto& found = evidence.work.exceptions;
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].by.rank, 2);
  EXPECT_EQ(found[1].type, "std::bad_alloc");
}

TEST(Traceback, LastLineAloneIsReadAndOtherWordsAreNot) {
  const auto evidence = Read(
      "[rank7] torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
      "n1:5:6 [0] misc/x.cc:1 NCCL WARN RuntimeError: not python's\n"
      "the word Error: here\n"
      "loss: 1.2\n"
      "ValueError handling is fine\n");
  ASSERT_THAT(evidence.work.exceptions, SizeIs(1));
  EXPECT_EQ(evidence.work.exceptions[0].by.rank, 7);
}

TEST(Traceback, EndlessAndBrokenInputIsBounded) {
  std::string text = "Traceback (most recent call last):\n";
  for (int i = 0; i < 20000; ++i) text += "  File \"a.py\", line 999999999999, in \n  File \"a.py\", line 1, in f\n";
  for (int i = 0; i < 6000; ++i) text += "[rank" + std::to_string(i) + "]: Traceback (most recent call last):\n";
  for (int i = 0; i < 6000; ++i) text += "ValueError: " + std::to_string(i) + "\n";
  const auto evidence = Read(text);
  EXPECT_LE(evidence.work.exceptions.size(), 4096u);
}

}  // namespace
}  // namespace ringscope
