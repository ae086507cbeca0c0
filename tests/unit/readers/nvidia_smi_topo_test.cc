#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "analyzer/ingest/text_reader.h"

namespace ringscope {
namespace {

using testing::ElementsAre;
using Kind = model::TopologyMatrix::Kind;

model::Evidence Read(const std::string& text, const std::string& path = "topo.txt") {
  model::Evidence evidence;
  EXPECT_TRUE(ingest::ReadTextBytes(path, text, &evidence).ok());
  return evidence;
}

TEST(NvidiaSmiTopo, TabsNicsAndLegend) {
  const model::Evidence e = Read(
      "\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
      "GPU0\t X \tNV18\tPIX\t0-47,96-143\t0\t\tN/A\n"
      "GPU1\tNV18\t X \tSYS\t48-95\t1\t\tN/A\n"
      "NIC0\tPIX\tSYS\t X \t\t\t\t\n"
      "\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe\n\nNIC Legend:\n\n  NIC0: mlx5_0\n");
  ASSERT_EQ(e.plan.matrices.size(), 1u);
  const model::TopologyMatrix& m = e.plan.matrices[0];
  EXPECT_EQ(m.kind, Kind::kTopology);
  EXPECT_THAT(m.columns, ElementsAre("GPU0", "GPU1", "NIC0"));
  ASSERT_EQ(m.rows.size(), 3u);
  EXPECT_THAT(m.rows[0].cells, ElementsAre("X", "NV18", "PIX"));
  EXPECT_EQ(m.rows[0].cpu_affinity, "0-47,96-143");
  EXPECT_EQ(m.rows[1].numa, "1");
  EXPECT_EQ(m.rows[1].where.line, 3u);
  EXPECT_EQ(m.legend.at("NIC0"), "mlx5_0");
}

TEST(NvidiaSmiTopo, SpacesAndOldNicNames) {
  const model::Evidence e = Read(
      "        GPU0    GPU1    mlx5_0  CPU Affinity\n"
      "GPU0     X      NV2     PHB     0-15\n"
      "GPU1    NV2      X      PHB     0-15\n"
      "mlx5_0  PHB     PHB      X\n");
  ASSERT_EQ(e.plan.matrices.size(), 1u);
  EXPECT_THAT(e.plan.matrices[0].rows[1].cells, ElementsAre("NV2", "X", "PHB"));
}

TEST(NvidiaSmiTopo, P2pAndTwoTablesInOnePaste) {
  const model::Evidence e = Read(
      "$ nvidia-smi topo -m\n\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV4\t0-31\nGPU1\tNV4\t X \t0-31\n\n"
      "$ nvidia-smi topo -p2p n\n \tGPU0\tGPU1\n GPU0\tX\tNS\n GPU1\tNS\tX\n");
  ASSERT_EQ(e.plan.matrices.size(), 2u);
  EXPECT_EQ(e.plan.matrices[0].kind, Kind::kTopology);
  EXPECT_EQ(e.plan.matrices[1].kind, Kind::kP2p);
  EXPECT_EQ(e.plan.matrices[1].capability, 'n');
  EXPECT_THAT(e.plan.matrices[1].rows[0].cells, ElementsAre("X", "NS"));
}

TEST(NvidiaSmiTopo, WrappedRowsAreNoted) {
  const model::Evidence e = Read("\tGPU0\tGPU1\nGPU0\t X \nNV4\nGPU1\tNV4\t X \n");
  ASSERT_EQ(e.plan.matrices.size(), 1u);
  EXPECT_TRUE(e.plan.matrices[0].rows.empty());
  EXPECT_EQ(e.files[0].notes.size(), 1u);
}

TEST(NvidiaSmiTopo, HugeHeadersEnd) {
  std::string wide = "GPU0";
  for (int i = 1; i < 9000; ++i) wide += "\tGPU" + std::to_string(i);
  std::string text;
  for (int i = 0; i < 20; ++i) text += wide + "\n";
  EXPECT_LE(Read(text).plan.matrices.back().columns.size(), 512u);
}

TEST(DriverOptions, ModprobeParamsAndComments) {
  const model::Evidence e = Read(
      "options nvidia NVreg_RegistryDwords=\"RMNvLinkEnable=0x0;RmFoo=1\"\n"
      "# options nvidia NVreg_RegistryDwords=\"RMNvLinkEnable=0x1\"\n"
      "RegistryDwords: \"\"\n"
      "options nvidia NVreg_NvLinkDisable=1\n",
      "modprobe.conf");
  ASSERT_EQ(e.settings.size(), 3u);
  EXPECT_EQ(e.settings[0].name, "RMNvLinkEnable");
  EXPECT_EQ(e.settings[0].value, "0x0");
  EXPECT_EQ(e.settings[2].name, "NVreg_NvLinkDisable");
}

}  // namespace
}  // namespace ringscope
