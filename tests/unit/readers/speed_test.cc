// Step times, benchmarks, places of ranks, DCGM. Names and numbers are invented.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "analyzer/ingest/text_reader.h"

namespace ringscope {
namespace {

using model::StepTime;
using ::testing::ElementsAre;

model::Evidence Read(const std::string& text, const std::string& name = "log.txt") {
  model::Evidence evidence;
  EXPECT_TRUE(ingest::ReadTextBytes(name, text, &evidence).ok());
  return evidence;
}

const StepTime* Find(const model::Evidence& e, int64_t step, StepTime::Scope scope, int rank, StepTime::Part part) {
  for (const StepTime& t : e.hardware.speed.steps) {
    if (t.step == step && t.scope == scope && t.rank == rank && t.part == part) return &t;
  }
  return nullptr;
}

TEST(Steps, SentencesWithSeveralSubjects) {
  const auto e = Read(
      "step 10 rank 0..15 fwd+bwd 0.41-0.43 s, reduce wait 0.02 s\n"
      "step 60 rank 11 fwd+bwd 1.92 s, reduce wait 0.01 s ; other ranks fwd+bwd 0.42 s, reduce wait 1.52 s\n"
      "step 814 total 2.97s input 2.46s allreduce 0.12s   (worker 3 input 2.46s, others 0.02s + wait)\n");
  const StepTime* slow = Find(e, 60, StepTime::Scope::kRank, 11, StepTime::Part::kCompute);
  ASSERT_NE(slow, nullptr);
  EXPECT_DOUBLE_EQ(slow->seconds, 1.92);
  EXPECT_EQ(slow->where.line, 2u);
  const StepTime* others = Find(e, 60, StepTime::Scope::kOthers, -1, StepTime::Part::kCompute);
  ASSERT_NE(others, nullptr);
  EXPECT_DOUBLE_EQ(others->seconds, 0.42);
  const StepTime* all = Find(e, 10, StepTime::Scope::kAll, -1, StepTime::Part::kCompute);
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(all->last, 15);
  const StepTime* total = Find(e, 814, StepTime::Scope::kUnnamed, -1, StepTime::Part::kTotal);
  ASSERT_NE(total, nullptr);
  EXPECT_DOUBLE_EQ(total->seconds, 2.97);
  ASSERT_NE(Find(e, 814, StepTime::Scope::kRank, 3, StepTime::Part::kInput), nullptr);
  ASSERT_NE(Find(e, 814, StepTime::Scope::kOthers, -1, StepTime::Part::kInput), nullptr);
  EXPECT_NE(Find(e, 814, StepTime::Scope::kUnnamed, -1, StepTime::Part::kWait), nullptr);
}

TEST(Steps, RanksOfWrappersAndOtherUnits) {
  const auto e = Read(
      "[rank3]: step 100 data_time=0.310 step_time=0.520\n"
      "rank 11 step 412 4.1 s\n"
      "[rank2]:iteration 7/ 500 | fwd 120 ms | bwd 250ms | data 3.5 ms\n"
      "Epoch: [1][100/5005]\tTime 8.719 (0.361)\tData 8.597 (0.230)\tLoss 1.29 (1.27)\n");
  const StepTime* data = Find(e, 100, StepTime::Scope::kRank, 3, StepTime::Part::kInput);
  ASSERT_NE(data, nullptr);
  EXPECT_DOUBLE_EQ(data->seconds, 0.310);
  const StepTime* bare = Find(e, 412, StepTime::Scope::kRank, 11, StepTime::Part::kTotal);
  ASSERT_NE(bare, nullptr);
  EXPECT_DOUBLE_EQ(bare->seconds, 4.1);
  const StepTime* fwd = Find(e, 7, StepTime::Scope::kRank, 2, StepTime::Part::kCompute);
  ASSERT_NE(fwd, nullptr);
  EXPECT_DOUBLE_EQ(fwd->seconds, 0.120);
  const StepTime* epoch = Find(e, 100, StepTime::Scope::kUnnamed, -1, StepTime::Part::kInput);
  ASSERT_NE(epoch, nullptr);
  EXPECT_DOUBLE_EQ(epoch->seconds, 8.597);
}

TEST(Steps, Tables) {
  const auto long_table = Read(
      "step  rank  data_ms  fwd_ms  comm_ms\n"
      "----  ----  -------  ------  -------\n"
      "1     0     2.0      200     40\n"
      "1     1     2.1      410     1\n");
  const StepTime* slow = Find(long_table, 1, StepTime::Scope::kRank, 1, StepTime::Part::kCompute);
  ASSERT_NE(slow, nullptr);
  EXPECT_DOUBLE_EQ(slow->seconds, 0.410);
  const auto wide = Read(
      "step,rank0,rank1,rank2\n"
      "10,0.50,0.51,1.90\n");
  const StepTime* r2 = Find(wide, 10, StepTime::Scope::kRank, 2, StepTime::Part::kTotal);
  ASSERT_NE(r2, nullptr);
  EXPECT_DOUBLE_EQ(r2->seconds, 1.90);
  const auto listed = Read(
      "times across ranks (ms):\n"
      "    forward-compute:\n"
      "        rank  0: 120.5\n"
      "        rank  1: 480.0\n");
  const StepTime* r1 = Find(listed, 0, StepTime::Scope::kRank, 1, StepTime::Part::kCompute);
  ASSERT_NE(r1, nullptr);
  EXPECT_DOUBLE_EQ(r1->seconds, 0.480);
}

TEST(Steps, NoTimesWhereNoneAreMeant) {
  const auto e = Read(
      "step 1200 loss 1.883 tok/s 11873\n"
      "[Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5) ran for 1800090 milliseconds before timing "
      "out.\n"
      "rank 3 exited after 600 s\n"
      "step 5 failed after 3 s\n"
      "iteration 99999999999999999999999 time 1.0 s\n");
  for (const StepTime& t : e.hardware.speed.steps) EXPECT_LT(t.seconds, 700) << t.quote;
  EXPECT_EQ(Find(e, 5, StepTime::Scope::kUnnamed, -1, StepTime::Part::kTotal), nullptr);
}

TEST(Benchmarks, TrialsOverNodes) {
  const auto e = Read(
      "trial nodes(8)                     busbw_gbps\n"
      " 1    n1101..n1103,n1147           363.1\n"
      " 2    n1101..n1104                 364.3\n");
  ASSERT_EQ(e.hardware.speed.trials.size(), 2u);
  EXPECT_THAT(e.hardware.speed.trials[0].nodes, ElementsAre("n1101", "n1102", "n1103", "n1147"));
  EXPECT_DOUBLE_EQ(e.hardware.speed.trials[0].value, 363.1);
  EXPECT_TRUE(e.hardware.speed.trials[0].more_is_better);
  const auto other = Read(
      "nodes=gpu[01-03],gpu07 busbw=45.1\n"
      "host_a host_b time_us\n"
      "node1 node2 12.5\n");
  ASSERT_EQ(other.hardware.speed.trials.size(), 2u);
  EXPECT_THAT(other.hardware.speed.trials[0].nodes, ElementsAre("gpu01", "gpu02", "gpu03", "gpu07"));
  EXPECT_FALSE(other.hardware.speed.trials[1].more_is_better);
  const auto hostile = Read("nodes busbw\nn1..n999999999 5\nn[1-9999999] 3\nn5..n1 4\n");
  for (const model::NodeTrial& t : hostile.hardware.speed.trials) EXPECT_LE(t.nodes.size(), 4096u);
}

TEST(Benchmarks, NcclTests) {
  const auto e = Read(
      "# nThread 1 nGpus 8 minBytes 8 maxBytes 1024 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: "
      "0\n"
      "#  Rank  0 Group  0 Pid   4711 on      node3 device  0 [0000:61:00] NVIDIA H100 80GB HBM3\n"
      "#  Rank  1 Group  0 Pid   4711 on      node3 device  1 [0x62] NVIDIA H100 80GB HBM3\n"
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
      "     1048576        262144     float     sum      -1    45.60   23.00   40.25      0    45.10   23.25   40.69      3\n"
      "# Out of bounds values : 3 FAILED\n");
  ASSERT_EQ(e.hardware.speed.nccl_tests.size(), 1u);
  const model::NcclTestRow& row = e.hardware.speed.nccl_tests[0];
  EXPECT_EQ(row.bytes, 1048576u);
  EXPECT_DOUBLE_EQ(row.busbw, 40.25);
  EXPECT_DOUBLE_EQ(row.in_place_busbw, 40.69);
  EXPECT_EQ(row.wrong, 3);
  ASSERT_EQ(e.hardware.places.size(), 2u);
  EXPECT_EQ(e.hardware.places[0].host, "node3");
  EXPECT_EQ(e.hardware.places[1].gpu, 1);
}

TEST(Places, Notes) {
  const auto e = Read(
      "rank 11 = node2 GPU 3\n"
      "node4 GPU 1 -> rank 25\n"
      "rank 2: gpu 2\n");
  ASSERT_EQ(e.hardware.places.size(), 3u);
  EXPECT_EQ(e.hardware.places[0].rank, 11);
  EXPECT_EQ(e.hardware.places[0].host, "node2");
  EXPECT_EQ(e.hardware.places[0].gpu, 3);
  EXPECT_EQ(e.hardware.places[1].rank, 25);
  EXPECT_EQ(e.hardware.places[1].host, "node4");
  EXPECT_EQ(e.hardware.places[2].gpu, 2);
}

TEST(Dcgm, LinksDiagnosisMetricsAndTheService) {
  const auto e = Read(
      "+----------------------+\n"
      "|  NvLink Link Status  |\n"
      "+----------------------+\n"
      "GPUs:\n"
      "    gpuId 0:\n"
      "        U U U X\n"
      "    gpuId 1:\n"
      "        U D U _\n"
      "NvSwitches:\n"
      "    physicalId 8:\n"
      "        U U D\n"
      "| PCIe                      | Fail - GPU 3                                   |\n"
      "|                           | GPU 3 link is slow                             |\n"
      "DCGM_FI_DEV_SM_CLOCK{gpu=\"0\",UUID=\"GPU-1\",device=\"nvidia0\",Hostname=\"nodeA\"} 1980\n"
      "DCGM_FI_DEV_SM_CLOCK{gpu=\"1\",UUID=\"GPU-2\",device=\"nvidia1\",Hostname=\"nodeA\"} 345\n"
      "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL{gpu=\"1\",UUID=\"GPU-2\",Hostname=\"nodeA\"} 4\n"
      "* nvidia-fabricmanager.service - NVIDIA fabric manager service\n"
      "     Loaded: loaded (/lib/systemd/system/nvidia-fabricmanager.service; enabled)\n"
      "     Active: failed (Result: exit-code) since Mon 2026-03-02 08:00:00 UTC; 2h ago\n");
  const auto& snapshots = e.hardware.snapshots;
  ASSERT_GE(snapshots.size(), 2u);
  ASSERT_EQ(snapshots[0].gpus.size(), 2u);
  EXPECT_EQ(snapshots[0].gpus[0].links[3].state, model::LinkReading::State::kDisabled);
  EXPECT_EQ(snapshots[0].gpus[1].links.size(), 3u);
  EXPECT_EQ(snapshots[0].gpus[1].links[1].state, model::LinkReading::State::kInactive);
  const auto& metrics = snapshots[1];
  EXPECT_EQ(metrics.by.host, "nodeA");
  ASSERT_EQ(metrics.gpus.size(), 2u);
  EXPECT_EQ(metrics.gpus[1].Value("clocks.sm"), "345");
  EXPECT_EQ(metrics.gpus[1].links[0].counters.at("recovery"), 4);
  ASSERT_EQ(e.hardware.verdicts.size(), 2u);
  EXPECT_EQ(e.hardware.verdicts[0].test, "PCIe");
  EXPECT_THAT(e.hardware.verdicts[0].gpus, ElementsAre(3));
  EXPECT_EQ(e.hardware.verdicts[1].result, "failed (Result: exit-code)");
}

}  // namespace
}  // namespace ringscope
