#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "analyzer/ingest/text_reader.h"
#include "analyzer/readers/nccl_plan_lines.h"

namespace ringscope {
namespace {

using model::PathType;

model::Evidence Read(const std::string& text) {
  model::Evidence evidence;
  EXPECT_TRUE(ingest::ReadTextBytes("nccl.log", text, &evidence).ok());
  return evidence;
}

struct Via {
  const char* text;
  int from, to;
  const char* via;
};

TEST(NcclPlanLines, TransportsOfAllReleases) {
  for (const Via& v : {
           Via{"Ring 00 : 0[0] -> 1[1] via P2P/direct pointer", 0, 1, "P2P/direct pointer"},
           Via{"Ring 00 : 3 -> 4 [send] via NET/IB/0/GDRDMA", 3, 4, "NET/IB/0/GDRDMA"},
           Via{"Ring 01 : 0[1b000] -> 1[1c000] via direct shared memory", 0, 1, "direct shared memory"},
           Via{"Channel 00 : 0[1a000] -> 1[3b000] via P2P/IPC/read", 0, 1, "P2P/IPC/read"},
           Via{"Channel 07/0 : 12[c3000] -> 3[61000] [receive] via NET/IB/1(11)/GDRDMA/Shared", 12, 3,
               "NET/IB/1(11)/GDRDMA/Shared"},
           Via{"Channel 00/1 : 1[1] -> 0[0] via P2P/CUMEM/read", 1, 0, "P2P/CUMEM/read"},
           Via{"Channel 00 : 5[5] -> 1[1] via SHM/direct/direct", 5, 1, "SHM/direct/direct"},
           Via{"Channel 00/0 : 0[0] -> 6[6] via P2P/indirect/2[2]", 0, 6, "P2P/indirect/2[2]"},
           Via{"Channel 00/0 : 0[0] -> 72[0] via P2P/MNNVL", 0, 72, "P2P/MNNVL"},
       }) {
    model::TransportLine line;
    ASSERT_TRUE(ingest::TransportShape(v.text, &line)) << v.text;
    EXPECT_EQ(line.from, v.from) << v.text;
    EXPECT_EQ(line.to, v.to) << v.text;
    EXPECT_EQ(line.via, v.via);
  }
  for (const char* text : {"Channel 00/24 : 0 1 2", "Ring 00 : 1 -> 2 -> 3", "Channel : 0 -> 1 via x", "Channel 0 : 0 -> via P2P",
                           "Ring 00 : 1 -> 2 via ", "Channel 99999999999999 : 0 -> 1 via SHM", "Channel 00 : 0[0 -> 1[1] via SHM",
                           "Channel 00 : -1[0] -> 1[1] via SHM"}) {
    model::TransportLine line;
    EXPECT_FALSE(ingest::TransportShape(text, &line)) << text;
  }
}

TEST(NcclPlanLines, TreesOfBothDirections) {
  int me = -1;
  std::vector<model::PlanTree> trees;
  ASSERT_TRUE(ingest::TreesShape("Trees [0] 1/4/-1->0->-1 [1] -1/-1/-1->0->1", &me, &trees));
  EXPECT_EQ(me, 0);
  ASSERT_EQ(trees.size(), 2u);
  EXPECT_EQ(trees[0].down[1], 4);
  EXPECT_EQ(trees[1].up, 1);
  ASSERT_TRUE(ingest::TreesShape("Trees [0] 2->0->1/4/-1 [1] 2->0->1/", &me, &trees));  // up to 2.6, cut short
  ASSERT_EQ(trees.size(), 1u);
  EXPECT_EQ(trees[0].up, 2);
  EXPECT_EQ(trees[0].down[0], 1);
}

TEST(NcclPlanLines, Patterns) {
  model::PlanPattern p;
  ASSERT_TRUE(
      ingest::PatternShape("Pattern 4, crossNic 0, nChannels 14, bw 25.000000/25.000000, type NVL/PIX, sameChannels 1", &p));
  EXPECT_EQ(p.channels, 14);
  EXPECT_DOUBLE_EQ(p.bw_intra, 25);
  EXPECT_EQ(p.intra, PathType::kNvl);
  ASSERT_TRUE(
      ingest::PatternShape("Pattern 4, crossNic 0, nChannels 2, speed 10.000000/10.000000, type SYS/PXB, sameChannels 1", &p));
  EXPECT_EQ(p.intra, PathType::kSys);
  EXPECT_FALSE(ingest::PatternShape("Pattern 4, crossNic x", &p));
}

TEST(NcclPlan, OneRankOfAnNvswitchMachine) {
  const model::Evidence e = Read(
      "n1:9:9 [3] NCCL INFO Using network IB\n"
      "n1:9:9 [3] NCCL INFO ncclCommInitRank comm 0x5 rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId 61000 commId 0xab - Init START\n"
      "n1:9:9 [3] NCCL INFO === System : maxBw 370.8 totalBw 370.8 ===\n"
      "n1:9:9 [3] NCCL INFO CPU/0-0 (1/1/3)\n"
      "n1:9:9 [3] NCCL INFO + PCI[48.0] - PCI/0-60000 (1000c03010001000)\n"
      "n1:9:9 [3] NCCL INFO               + PCI[48.0] - NIC/0-62000\n"
      "n1:9:9 [3] NCCL INFO                             + NET[50.0] - NET/0-3 (0/1003/1/50.000000)\n"
      "n1:9:9 [3] NCCL INFO               + PCI[48.0] - DEV/0-61000 (10de233010de16c1)\n"
      "n1:9:9 [3] NCCL INFO                             + LOC[5000.0] - GPU/0-61000\n"
      "n1:9:9 [3] NCCL INFO                             + NVL[350.2] - NVS/0-0\n"
      "n1:9:9 [3] NCCL INFO + SYS[22.0] - CPU/0-1\n"
      "n1:9:9 [3] NCCL INFO ==========================================\n"
      "n1:9:9 [3] NCCL INFO GPU/0-61000 :GPU/0-61000 (0/5000.0/LOC) GPU/0-9d000 (4/350.2/NVL) NVS/0-0 (2/350.2/NVL) NET/0-3 "
      "(4/48.0/PIX)\n"
      "n1:9:9 [3] NCCL INFO Pattern 4, crossNic 0, nChannels 14, bw 25.000000/25.000000, type NVL/PIX, sameChannels 1\n"
      "n1:9:9 [3] NCCL INFO comm 0x5 rank 3 nRanks 8 nNodes 1 localRanks 8 localRank 3 MNNVL 0\n"
      "n1:9:9 [3] NCCL INFO Channel 00/28 :    0   1   2   3   4   5   6   7\n"
      "n1:9:9 [3] NCCL INFO Ring 00 : 2 -> 3 -> 4\n"
      "n1:9:9 [3] NCCL INFO Trees [0] 4/-1/-1->3->2\n"
      "n1:9:9 [3] NCCL INFO Channel 00/0 : 3[3] -> 4[4] via P2P/IPC\n"
      "n1:9:9 [3] NCCL INFO Channel 01/0 : 3[3] -> 4[4] via P2P/IPC\n"
      "n1:9:9 [3] NCCL INFO 28 coll channels, 28 collnet channels, 0 nvls channels, 32 p2p channels, 32 p2p channels per peer\n"
      "n1:9:9 [3] NCCL INFO ncclCommInitRank comm 0x5 rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId 61000 commId 0xab - Init COMPLETE\n"
      "n1:9:44 [3] NCCL INFO Channel 00/1 : 3[3] -> 6[6] via SHM/direct\n");
  ASSERT_EQ(e.plan.plans.size(), 1u);
  const model::RankPlan& plan = e.plan.plans[0];
  EXPECT_EQ(plan.rank, 3);
  EXPECT_EQ(plan.bus_id, 0x61000u);
  EXPECT_EQ(plan.n_nodes, 1);
  EXPECT_EQ(plan.coll_channels, 28);
  EXPECT_EQ(plan.channels, 28);
  EXPECT_EQ(plan.network, "IB");
  EXPECT_TRUE(plan.completed);
  ASSERT_EQ(plan.rings.size(), 1u);
  EXPECT_EQ(plan.rings[0].order.size(), 8u);
  EXPECT_EQ(plan.rings[0].prev, 2);
  ASSERT_EQ(e.plan.transports.size(), 2u);  // lines that differ in the channel alone are one; the late one belongs here too
  EXPECT_EQ(e.plan.transports[0].channels, 2);
  EXPECT_EQ(e.plan.transports[1].plan, 0);
  ASSERT_EQ(e.plan.systems.size(), 1u);
  const model::TopologySystem& system = e.plan.systems[0];
  EXPECT_TRUE(system.nvswitch);
  ASSERT_EQ(system.gpus.size(), 1u);
  EXPECT_EQ(system.gpus[0].product, 0x10de2330u);
  EXPECT_EQ(system.gpus[0].parent, 0x60000u);
  ASSERT_EQ(system.gpus[0].links.size(), 1u);
  EXPECT_DOUBLE_EQ(system.gpus[0].links[0].bw, 350.2);
  ASSERT_EQ(system.nics.size(), 1u);
  EXPECT_EQ(system.nics[0].parent, 0x60000u);
  ASSERT_EQ(system.paths.size(), 3u);
  EXPECT_EQ(system.paths[1].type, PathType::kNvl);
  EXPECT_TRUE(system.paths[2].to_net);
}

TEST(NcclPlan, OlderTopologyWithoutSystemIds) {
  const model::Evidence e = Read(
      "n1:9:9 [0] NCCL INFO === System : maxWidth 21.0 totalWidth 132.0 ===\n"
      "n1:9:9 [0] NCCL INFO CPU/0 (1/1/2)\n"
      "n1:9:9 [0] NCCL INFO + PCI[12.0] - GPU/1B000 (0)\n"
      "n1:9:9 [0] NCCL INFO               + NVL[44.0] - GPU/43000\n"
      "n1:9:9 [0] NCCL INFO + PCI[12.0] - GPU/43000 (1)\n"
      "n1:9:9 [0] NCCL INFO               + NVL[44.0] - GPU/1B000\n"
      "n1:9:9 [0] NCCL INFO GPU/1B000 :GPU/1B000 (0/5000.000000/LOC) GPU/43000 (1/44.000000/NVL) CPU/0 (1/12.000000/PHB)\n");
  ASSERT_EQ(e.plan.systems.size(), 1u);
  ASSERT_EQ(e.plan.systems[0].gpus.size(), 2u);
  EXPECT_EQ(e.plan.systems[0].gpus[1].rank, 1);
  EXPECT_EQ(e.plan.systems[0].gpus[0].links[0].peer, 0x43000u);
  EXPECT_EQ(e.plan.systems[0].paths.size(), 2u);
}

TEST(NcclPlan, InterleavedRanksAndSecondCommunicator) {
  const model::Evidence e = Read(
      "n1:1:1 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1a000 commId 0xab - Init START\n"
      "n1:2:2 [1] NCCL INFO ncclCommInitRank comm 0x6 rank 1 nranks 2 cudaDev 1 nvmlDev 1 busId 1b000 commId 0xab - Init START\n"
      "n1:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC\n"
      "n1:2:2 [1] NCCL INFO Channel 00/0 : 1[1] -> 0[0] via P2P/IPC\n"
      "n1:1:1 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1a000 commId 0xab - Init COMPLETE\n"
      "n1:1:1 [0] NCCL INFO ncclCommSplit comm 0x9 rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 1a000 parent 0x5 color 0 key 0 commId "
      "0xcd - Init START\n"
      "n1:1:1 [0] NCCL INFO 2 coll channels, 0 nvls channels, 2 p2p channels, 2 p2p channels per peer\n");
  ASSERT_EQ(e.plan.plans.size(), 3u);
  EXPECT_EQ(e.plan.transports[0].plan, 0);
  EXPECT_EQ(e.plan.transports[1].plan, 1);
  EXPECT_TRUE(e.plan.plans[2].split);
  EXPECT_EQ(e.plan.plans[2].coll_channels, 2);
  EXPECT_EQ(e.plan.plans[0].coll_channels, -1);
}

TEST(NcclPlan, ReleasesWithoutStartLines) {
  const model::Evidence e = Read(
      "n1:1:7 [0] NCCL INFO Ring 00 : 0[1a000] -> 1[1b000] via direct shared memory\n"
      "n1:1:7 [0] NCCL INFO comm 0x5 rank 0 nranks 2 cudaDev 0 busId 1a000 - Init COMPLETE\n"
      "n1:1:7 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1\n"
      "n1:1:7 [0] NCCL INFO comm 0x8 rank 0 nranks 4 cudaDev 0 busId 1a000 - Init COMPLETE\n");
  ASSERT_EQ(e.plan.plans.size(), 2u);
  EXPECT_EQ(e.plan.plans[0].n_ranks, 2);
  EXPECT_EQ(e.plan.plans[1].n_ranks, 4);
  EXPECT_EQ(e.plan.plans[1].trees.size(), 1u);
}

TEST(NcclPlan, DamageIsLeftOut) {
  std::string text;
  const std::string lines[] = {
      "n1:9:9 [3] NCCL INFO === System : maxBw 370.8 totalBw 370.8 ===",
      "n1:9:9 [3] NCCL INFO               + PCI[48.0] - DEV/0-61000 (10de233010de16c1)",
      "n1:9:9 [3] NCCL INFO                             + NVL[350.2] - NVS/0-0",
      "n1:9:9 [3] NCCL INFO GPU/0-61000 :GPU/0-61000 (0/5000.0/LOC) GPU/0-9d000 (4/350.2/NVL)",
      "n1:9:9 [3] NCCL INFO Channel 00/0 : 3[3] -> 4[4] via P2P/IPC",
      "n1:9:9 [3] NCCL INFO comm 0x5 rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId 61000 commId 0xab - Init COMPLETE"};
  for (const std::string& line : lines) {
    for (size_t n = 0; n <= line.size(); ++n) text += line.substr(0, n) + "\n";
    for (size_t n = 30; n < line.size(); ++n) {
      std::string bent = line;
      bent[n] = static_cast<char>(bent[n] ^ 0x15);
      text += bent + "\n";
    }
  }
  text += "n1:9:9 [3] NCCL INFO GPU/" + std::string(3000, 'f') + " :GPU/0\n";
  text += "n1:9:9 [3] NCCL INFO + NVL[" + std::string(3000, '9') + "] - NVS/0\n";
  Read(text);
}

}  // namespace
}  // namespace ringscope
