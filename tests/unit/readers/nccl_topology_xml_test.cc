#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "analyzer/ingest/text_reader.h"

namespace ringscope {
namespace {

model::Evidence Read(const std::string& text, const std::string& path = "topo-dump.hostB.xml") {
  model::Evidence evidence;
  EXPECT_TRUE(ingest::ReadTextBytes(path, text, &evidence).ok());
  return evidence;
}

const char kSystem[] = R"(<system version="1">
  <cpu numaid="1" arch="x86_64">
    <pci busid="0000:1a:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0000:1b:00.0" class="0x030200" vendor="0x10de" device="0x2330" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="90" gdr="1" rank="4" mlopart="-1">
          <nvlink target="0000:06:00.0" count="17" tclass="0x068000"/>
        </gpu>
      </pci>
      <pci busid="0000:1c:00.0" class="0x020700">
        <nic>
          <net name="mlx5_0" dev="0" speed="400000" port="1" gdr="1"/>
        </nic>
      </pci>
    </pci>
    <nic><net name="eth0" dev="1" speed="10000"/></nic>
  </cpu>
</system>
)";

TEST(NcclTopologyXml, System) {
  const model::Evidence e = Read(kSystem);
  ASSERT_EQ(e.plan.systems.size(), 1u);
  const model::TopologySystem& system = e.plan.systems[0];
  EXPECT_TRUE(system.from_file);
  EXPECT_TRUE(system.nvswitch);
  EXPECT_EQ(system.by.host, "hostB");
  ASSERT_EQ(system.gpus.size(), 1u);
  const model::TopologyGpu& gpu = system.gpus[0];
  EXPECT_EQ(gpu.bus_id, 0x1b000u);
  EXPECT_EQ(gpu.parent, 0x1a000u);
  EXPECT_EQ(gpu.numa, 1);
  EXPECT_EQ(gpu.rank, 4);
  EXPECT_EQ(gpu.sm, 90);
  EXPECT_EQ(gpu.product, 0x10de2330u);
  EXPECT_EQ(gpu.where.line, 5u);
  ASSERT_EQ(gpu.links.size(), 1u);
  EXPECT_EQ(gpu.links[0].lanes, 17);
  EXPECT_EQ(gpu.links[0].where.line, 6u);
  ASSERT_EQ(system.nics.size(), 2u);
  EXPECT_EQ(system.nics[0].parent, 0x1a000u);
  EXPECT_DOUBLE_EQ(system.nics[0].bw, 50);
}

TEST(NcclTopologyXml, Graphs) {
  const model::Evidence e = Read(R"(<?xml version="1.0"?><!-- a comment -->
<graphs version="1">
  <graph id="0" pattern="4" crossnic="0" nchannels="1" speedintra="12" speedinter="12" typeintra="SYS" typeinter="PIX" samechannels="1">
    <channel><gpu dev="0" rank="8"/><gpu dev="0x3" rank="11"/></channel>
  </graph>
  <graph id="1"><channel><gpu dev="0x1"/></channel></graph>
</graphs>)");
  ASSERT_EQ(e.plan.graphs.size(), 2u);
  EXPECT_EQ(e.plan.graphs[0].pattern.intra, model::PathType::kSys);
  EXPECT_THAT(e.plan.graphs[0].channels[0], testing::ElementsAre(8, 11));
  EXPECT_TRUE(e.plan.graphs[1].by_device);
}

TEST(NcclTopologyXml, ALogThatQuotesOneIsALog) {
  EXPECT_TRUE(Read("NCCL version 2.30\n<system version=\"1\">\n").plan.systems.empty());
  EXPECT_TRUE(Read("<systemd>\n").plan.systems.empty());
}

TEST(NcclTopologyXml, BombsAndDamage) {
  const std::string whole = kSystem;
  for (size_t n = 0; n < whole.size(); n += 7) Read(whole.substr(0, n));
  for (size_t n = 0; n < whole.size(); n += 3) {
    std::string bent = whole;
    bent[n] = static_cast<char>(bent[n] ^ 0x13);
    Read(bent);
  }
  // Entities of its own are not expanded.
  const model::Evidence lol = Read(
      "<!DOCTYPE s [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;\">]><system version=\"1\"><cpu "
      "numaid=\"&b;\"/></system>");
  EXPECT_TRUE(lol.plan.systems.empty() || lol.plan.systems[0].gpus.empty());
  std::string deep = "<system version=\"1\"><cpu numaid=\"0\">";
  for (int i = 0; i < 100000; ++i) deep += "<pci busid=\"0000:01:00.0\">";
  const model::Evidence e = Read(deep);
  EXPECT_FALSE(e.files[0].notes.empty());
  std::string wide = "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:01:00.0\"><gpu dev=\"0\" sm=\"" +
                     std::string(1 << 20, '9') + "\">";
  for (int i = 0; i < 1000; ++i) wide += "<nvlink target=\"0000:06:00.0\" count=\"99999999999\" tclass=\"0x068000\"/>";
  EXPECT_TRUE(Read(wide + "</gpu></pci></cpu></system>").plan.systems[0].gpus[0].links.empty());
}

}  // namespace
}  // namespace ringscope
