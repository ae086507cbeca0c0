#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "analyzer/ingest/text_reader.h"

namespace ringscope {
namespace {

model::Evidence Read(std::string_view text, const std::string& path = "nccl.log") {
  model::Evidence evidence;
  EXPECT_TRUE(ingest::ReadTextBytes(path, text, &evidence).ok());
  model::ResolveSpeakers(&evidence);
  return evidence;
}

TEST(NcclInit, EveryReleasesLine) {
  const auto e = Read(
      "n1:5:6 [1] NCCL INFO comm 0x55 rank 1 nranks 4 cudaDev 1 nvmlDev 3 - Init COMPLETE\n"
      "n1:7:8 [2] NCCL INFO comm 0x56 rank 2 nranks 4 cudaDev 2 busId 61000 - Init COMPLETE\n"
      "n1:9:9 [3] NCCL INFO comm 0x57 rank 3 nranks 4 cudaDev 3 nvmlDev 3 busId 1061000 commId 0x9a - Init START\n"
      "n1:9:9 [3] NCCL INFO comm 0x57 rank 3 nranks 4 cudaDev 3 nvmlDev 3 busId 1061000 commId 0x9a - Init COMPLETE\n"
      "n2:4:4 [0] NCCL INFO [Rank 0] ncclCommInitRankConfig comm 0x58 rank 0 nranks 4 cudaDev 0 nvmlDev 0 busId 1b000 commId "
      "0x9a - Init START\n"
      "n2:4:4 [0] NCCL INFO ncclCommSplit comm 0x60 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 parent 0x58 splitCount 2 "
      "color 0 key 0- Init START\n"
      "n2:4:4 [0] NCCL INFO comm 0x58 rank 0 nRanks 4 cudaDev 0 busId 1b000 - Abort START\n"
      "n2:4:4 [0] NCCL INFO comm 0x58 rank 0 nranks 4 cudaDev 0 busId 1b000 - Abort COMPLETE\n");
  ASSERT_EQ(e.log_ranks.size(), 5u);
  EXPECT_EQ(e.log_ranks[0].nvml_device, 3);
  EXPECT_FALSE(e.log_ranks[0].bus_id);
  EXPECT_EQ(e.log_ranks[1].bus_id, model::ParseBusId("0000:61:00.0"));
  EXPECT_EQ(e.log_ranks[2].bus_id, model::ParseBusId("0010:61:00.0"));
  EXPECT_EQ(e.log_ranks[2].communicator, "0x9a");
  EXPECT_EQ(e.log_ranks[2].started.line, 3u);
  EXPECT_EQ(e.log_ranks[2].completed.line, 4u);
  EXPECT_EQ(e.log_ranks[3].name, "ncclCommInitRankConfig");
  EXPECT_EQ(e.log_ranks[3].ended.line, 7u);
  EXPECT_TRUE(e.log_ranks[3].aborted);
  EXPECT_TRUE(e.log_ranks[4].split);
  // The split's rank is none of the job.
  EXPECT_EQ(e.log_ranks[4].by.rank, 0);
  EXPECT_EQ(model::RankOfGpu(e, "n1", *model::ParseBusId("61:00.0")), 2);
  EXPECT_EQ(model::RankOfDevice(e, "n2", 0), 0);
}

TEST(NcclInit, DamagedLinesGiveNothing) {
  EXPECT_TRUE(Read("comm 0x55 rank 9 nranks 4 cudaDev 1 busId 61000 - Init COMPLETE\n").log_ranks.empty());
  EXPECT_TRUE(Read("comm 0x55 rank 99999999999999999999 nranks 4 cudaDev 1 busId 61000 - Init COMPLETE\n").log_ranks.empty());
  EXPECT_FALSE(Read("comm 0x55 rank 1 nranks 4 cudaDev 1 busId fffffffffffffffffffffff - Init COMPLETE\n").log_ranks[0].bus_id);
  EXPECT_TRUE(Read("comm 0x55 rank 1 nranks 4 cudaDev 1 busId 61000 - Init COMP").log_ranks.empty());
}

TEST(NcclInit, PointersAreUsedAgain) {
  const auto e = Read(
      "n1:5:6 [0] NCCL INFO comm 0x55 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 61000 commId 0x1 - Init START\n"
      "n1:5:6 [0] NCCL INFO comm 0x55 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 61000 commId 0x1 - Init COMPLETE\n"
      "n1:5:6 [0] NCCL INFO comm 0x55 rank 0 nranks 2 cudaDev 0 busId 61000 - Destroy COMPLETE\n"
      "n1:5:6 [0] NCCL INFO comm 0x55 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 61000 commId 0x2 - Init START\n");
  ASSERT_EQ(e.log_ranks.size(), 2u);
  EXPECT_FALSE(e.log_ranks[1].completed.known());
  EXPECT_FALSE(e.log_ranks[0].aborted);
}

// srun -l with one task a node: "0:" stands before the lines of eight ranks.
TEST(Speakers, ATaskNumberIsNoRank) {
  const auto e = Read(
      "0: n1:5:6 [0] NCCL INFO comm 0x55 rank 0 nranks 4 cudaDev 0 busId 61000 - Init COMPLETE\n"
      "0: n1:6:6 [1] NCCL INFO comm 0x55 rank 1 nranks 4 cudaDev 1 busId 62000 - Init COMPLETE\n"
      "1: n2:5:6 [0] NCCL INFO comm 0x55 rank 2 nranks 4 cudaDev 0 busId 61000 - Init COMPLETE\n"
      "1: n2:6:6 [1] NCCL INFO comm 0x55 rank 3 nranks 4 cudaDev 1 busId 62000 - Init COMPLETE\n"
      "1: n2:6:6 [1] misc/shmutils.cc:88 NCCL WARN Error: failed to extend /dev/shm/nccl-a to 9 bytes, error: No space left on "
      "device (28)\n");
  ASSERT_EQ(e.events.size(), 1u);
  EXPECT_EQ(e.events[0].by.rank, 3);
}

TEST(Speakers, ALauncherNumbersRanksInItsOwnOrder) {
  const auto e = Read(
      "[1,3]<stdout>:n1:5:6 [0] NCCL INFO comm 0x55 rank 0 nranks 2 cudaDev 0 busId 61000 - Init COMPLETE\n"
      "n1:5:9 [0] misc/shmutils.cc:88 NCCL WARN Error: failed to extend /dev/shm/nccl-a to 9 bytes, error: No space left on "
      "device (28)\n");
  EXPECT_EQ(e.events[0].by.rank, 3);
}

TEST(Speakers, OneProcessOfSeveralGpusWithoutInitLines) {
  const char* text =
      "n1:5:6 [0] misc/shmutils.cc:88 NCCL WARN Error: failed to extend /dev/shm/nccl-a to 9 bytes, error: No space left on "
      "device (28)\n"
      "n1:5:7 [2] misc/shmutils.cc:132 NCCL WARN Error while creating shared memory segment /dev/shm/nccl-a (size 9)\n";
  EXPECT_EQ(Read(text).events[0].by.rank, 0);
  EXPECT_EQ(Read(text).events[1].by.rank, 2);
  // A second process: then the device is no rank.
  EXPECT_EQ(
      Read(std::string(text) +
           "n1:6:7 [3] misc/shmutils.cc:132 NCCL WARN Error while creating shared memory segment /dev/shm/nccl-a (size 9)\n")
          .events[0]
          .by.rank,
      -1);
}

TEST(Speakers, AProxyNamesItsOwnRank) {
  const auto e = Read(
      "n1:7:8 [3] include/alloc.h:178 NCCL WARN Cuda failure 'out of memory'\n"
      "n1:7:8 [3] proxy.cc:1519 NCCL WARN [Proxy Service 11] Failed to execute operation Setup from rank 3, retcode 1\n"
      "n1:9:8 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer n1<51159>\n");
  EXPECT_EQ(e.events[0].by.rank, 11);
}

TEST(RankNotes, Clauses) {
  const auto e = Read(
      "rank 2 = PCI 3b:00; ranks 0,1,3 time out; rank 2 prints nothing\n"
      "rank 5 -> b3:00.0 (no output after 1840 s)\n"
      "rank 11: node2 GPU 3\n"
      "Rank 4 runs on host gpu-17, device 1, pid 3120\n"
      "node3: ranks 16-23\n",
      "map.txt");
  EXPECT_EQ(model::RankOfGpu(e, "", *model::ParseBusId("3b:00.0")), 2);
  EXPECT_EQ(model::RankOfGpu(e, "", *model::ParseBusId("0000:b3:00.0")), 5);
  EXPECT_EQ(model::RankOfDevice(e, "node2", 3), 11);
  EXPECT_EQ(model::RankOfDevice(e, "gpu-17", 1), 4);
  EXPECT_EQ(model::RankOfDevice(e, "node3", 2), 18);
  EXPECT_EQ(model::RankOfDevice(e, "node3", 9), -1);
}

TEST(RankNotes, ProseSaysNothing) {
  for (const char* text :
       {"rank 3: hangs at step 12\n", "rank 0 = the one that saves\n", "ranks 0-7 time out\n", "rank 99999999999: gpu 1\n",
        "[Rank 2] Watchdog caught collective operation timeout\n", "rank 1:\n", "Rank 3: Traceback (most recent call last):\n"}) {
    EXPECT_TRUE(Read(text, "map.txt").log_ranks.empty()) << text;
  }
}

TEST(RankNotes, TableOfTheTests) {
  const auto e = Read(
      "# Using devices\n#  Rank  0 Group  0 Pid  4242 on  node7 device  0 [0x61] NVIDIA A100\n#   Rank  1 Pid  4243 on  node7 "
      "device  1 [0000:62:00] NVIDIA A100\n");
  ASSERT_EQ(e.log_ranks.size(), 2u);
  EXPECT_EQ(model::RankOfGpu(e, "node7", *model::ParseBusId("61:00.0")), 0);
  EXPECT_EQ(e.log_ranks[1].by.pid, 4243);
}

TEST(Versions, WhereverTheyStand) {
  const auto e = Read(
      "NCCL version 2.28.9+cuda12.9\n"
      "RuntimeError: NCCL error in: ../torch/csrc/x.cpp:1269, internal error, NCCL version 2.14.3\n"
      "[pip3] nvidia-nccl-cu11==2.14.3\n"
      "nvidia-nccl-cu12                         2.27.3\n"
      "(EngineCore pid=210) INFO 08-16 09:01:11 [parallel_state.py:1331] vLLM is using nccl==2.28.9\n"
      "# nccl-tests version 2.17.2 nccl-headers=22707 nccl-library=22705\n"
      "Linux gb200 6.8.0-1021-nvidia-64k aarch64\n");
  std::string all;
  for (const auto& v : e.versions) all += v.component + " " + v.version + "; ";
  EXPECT_THAT(
      all, ::testing::AllOf(::testing::HasSubstr("nccl 2.28.9; "), ::testing::HasSubstr("nccl 2.14.3; "),
                            ::testing::HasSubstr("nvidia-nccl-cu11 2.14.3; "), ::testing::HasSubstr("nvidia-nccl-cu12 2.27.3; "),
                            ::testing::HasSubstr("nccl 2.27.5; "), ::testing::HasSubstr("machine aarch64; ")));
}

TEST(Trials, OnlyNotes) {
  auto e = Read("8+8 ranks: ok\n7+7 ranks: ok\n7+8 ranks: hang 3/3\n", "matrix.txt");
  ASSERT_EQ(e.trials.size(), 3u);
  EXPECT_EQ(e.trials[2].variant, "7+8 ranks");
  EXPECT_TRUE(e.trials[2].bad());
  e = Read("--enforce-eager: 3 h ok\nnccl 2.28.9 + graphs: dead after 2-3 requests (5 of 5)\nRDMA error counters: 0\n", "ab.txt");
  ASSERT_EQ(e.trials.size(), 2u);
  EXPECT_EQ(e.trials[0].variant, "--enforce-eager");
  e = Read("| 2.27.3 | works |\n| 2.28.9 | hangs |\nNCCL_NVLS_ENABLE=0 -> no hang\n", "ab.txt");
  EXPECT_EQ(e.trials.size(), 3u);
  EXPECT_FALSE(e.trials[2].bad());
  // A log.
  EXPECT_TRUE(Read("RuntimeError: NCCL failed\nINFO: ok\nworker: failed\nworker: ok\n[E foo] x: failed\n2026-01-02 03:04:05 x: "
                   "ok\n2026-01-02 03:04:05 y: ok\n"
                   "2026-01-02 03:04:05 z: ok\n",
                   "a.log")
                  .trials.empty());
}

TEST(Ulimit, BesideAndBelow) {
  auto e = Read(
      "$ mpirun -np 1 bash -c \"ulimit -l\"\n8192\nulimit -n: 1024\nmax locked memory           (kbytes, -l) 64\n"
      "Max locked memory         67108864             67108864             bytes     \n");
  ASSERT_EQ(e.settings.size(), 4u);
  EXPECT_EQ(e.settings[0].name + e.settings[0].value, "ulimit -l8192");
  EXPECT_EQ(e.settings[1].name + e.settings[1].value, "ulimit -n1024");
  EXPECT_EQ(e.settings[3].value, "65536");
}

TEST(Environment, Assignments) {
  auto e = Read(
      "export NCCL_P2P_DISABLE=1\nNCCL_DEBUG=INFO NCCL_ALGO=\"Ring,Tree\" python train.py\nmpirun -x NCCL_IB_DISABLE=1 -x PATH "
      "./all_reduce\nVLLM_USE_NCCL_SYMM_MEM=1\n"
      "NCCL_NVLS_ENABLE=0: works\nNCCL_PROTO=Simple -> ok\n");
  std::string all;
  for (const auto& s : e.settings) all += s.name + "=" + s.value + "; ";
  EXPECT_EQ(all, "NCCL_P2P_DISABLE=1; NCCL_DEBUG=INFO; NCCL_ALGO=Ring,Tree; NCCL_IB_DISABLE=1; VLLM_USE_NCCL_SYMM_MEM=1; ");
}

}  // namespace
}  // namespace ringscope
