// nvidia-smi in its forms. Names, addresses and numbers are invented; shapes are those of drivers 390 to 590.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "analyzer/ingest/text_reader.h"

namespace ringscope {
namespace {

using model::GpuReading;
using model::HardwareSnapshot;
using model::LinkReading;

model::Evidence Read(const std::string& text, const std::string& name = "smi.txt") {
  model::Evidence evidence;
  EXPECT_TRUE(ingest::ReadTextBytes(name, text, &evidence).ok());
  return evidence;
}

const std::vector<HardwareSnapshot>& Snapshots(const model::Evidence& evidence) { return evidence.hardware.snapshots; }

TEST(NvidiaSmi, LinkStatesOfEachGpu) {
  const auto e = Read(
      "GPU 0: Tesla V100-SXM2-32GB (UUID: GPU-00000000-aaaa-bbbb-cccc-000000000000)\n"
      "         Link 0: 25.781 GB/s\n"
      "         Link 1: <inactive>\n"
      "GPU 1: Tesla V100-SXM2-32GB (UUID: GPU-00000000-aaaa-bbbb-cccc-000000000001)\n"
      "\t Link 0: 25.781 GB/s\n"
      "\t Link 1: 25.781 GB/s\n");
  ASSERT_EQ(Snapshots(e).size(), 1u);
  ASSERT_EQ(Snapshots(e)[0].gpus.size(), 2u);
  const GpuReading& gpu = Snapshots(e)[0].gpus[0];
  EXPECT_EQ(gpu.product, "Tesla V100-SXM2-32GB");
  ASSERT_EQ(gpu.links.size(), 2u);
  EXPECT_EQ(gpu.links[0].state, LinkReading::State::kActive);
  EXPECT_DOUBLE_EQ(gpu.links[0].gbps, 25.781);
  EXPECT_EQ(gpu.links[1].state, LinkReading::State::kInactive);
  EXPECT_EQ(gpu.links[1].where.line, 3u);
}

TEST(NvidiaSmi, HtmlEscapesAndPrefixesOfPdsh) {
  const auto e = Read(
      "node7: GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\n"
      "node8: GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-2)\n"
      "node7:          Link 0: &lt;inactive&gt;\n"
      "node8:          Link 0: 25 GB/s\n");
  ASSERT_EQ(Snapshots(e).size(), 2u);
  EXPECT_EQ(Snapshots(e)[0].by.host, "node7");
  EXPECT_EQ(Snapshots(e)[0].gpus[0].links[0].state, LinkReading::State::kInactive);
  EXPECT_EQ(Snapshots(e)[1].by.host, "node8");
  EXPECT_EQ(Snapshots(e)[1].gpus[0].links[0].state, LinkReading::State::kActive);
}

TEST(NvidiaSmi, AHeadingNamesHostGpuAndMoment) {
  const auto e = Read(
      "# n204 GPU 5 (other GPUs: all 18 links 26.562 GB/s)\n"
      "         Link 11: 13.281 GB/s\n"
      "# before: nvidia-smi nvlink -e -i 6\n"
      "         Link 11: Recovery Errors: 4\n"
      "# after\n"
      "GPU 6: NVIDIA H100 80GB HBM3 (UUID: GPU-x)\n"
      "         Link 11: Recovery Errors: 9\n");
  ASSERT_EQ(Snapshots(e).size(), 3u);
  EXPECT_EQ(Snapshots(e)[0].by.host, "n204");
  EXPECT_EQ(Snapshots(e)[0].gpus[0].index, 5);
  EXPECT_EQ(Snapshots(e)[1].gpus[0].index, 6);
  EXPECT_EQ(Snapshots(e)[1].label, "before");
  EXPECT_EQ(Snapshots(e)[2].label, "after");
  EXPECT_EQ(Snapshots(e)[2].gpus[0].links[0].counters.at("recovery"), 9);
}

TEST(NvidiaSmi, HostOfWatch) {
  const auto e = Read(
      "Every 2.0s: nvidia-smi nvlink -s      node12: Mon Mar  2 10:11:12 2026\n"
      "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-x)\n");
  ASSERT_EQ(Snapshots(e).size(), 1u);
  EXPECT_EQ(Snapshots(e)[0].by.host, "node12");
}

TEST(NvidiaSmi, ProductsAreNoHosts) {
  const auto e = Read(
      "# H100 GPU 0\n"
      "   Link 0: 26.562 GB/s\n");
  ASSERT_EQ(Snapshots(e).size(), 1u);
  EXPECT_EQ(Snapshots(e)[0].by.host, "");
}

TEST(NvidiaSmi, CountersOfOldAndNewLinks) {
  const auto e = Read(
      "GPU 0: NVIDIA GB200 (UUID: GPU-1)\n"
      "         Link 14: Tx packets: 123456789\n"
      "         Link 14: Link recovery successful events: 505\n"
      "         Link 14: Link recovery failed events: 0\n"
      "         Link 14: Effective BER: 15e-255\n"
      "         Link 14: Symbol Errors: 7\n"
      "GPU 1: Tesla V100-SXM2-16GB (UUID: GPU-2)\n"
      "         Link 0: Replay Errors: 1\n"
      "         Link 0: Recovery Errors: 2\n"
      "         Link 0: CRC Errors: 3\n"
      "         Link 1, Lane 0: CRC Errors: 4\n"
      "         Link 1, Lane 1: CRC Errors: 5\n");
  ASSERT_EQ(Snapshots(e).size(), 1u);
  const auto& blackwell = Snapshots(e)[0].gpus[0].links;
  ASSERT_EQ(blackwell.size(), 1u);
  EXPECT_EQ(blackwell[0].counters.at("recovery_successful"), 505);
  EXPECT_EQ(blackwell[0].counters.at("symbol_errors"), 7);
  EXPECT_EQ(blackwell[0].counters.count("effective_ber"), 0u);
  EXPECT_EQ(blackwell[0].counters.size(), 3u);
  const auto& volta = Snapshots(e)[0].gpus[1].links;
  EXPECT_EQ(volta[0].counters.at("replay"), 1);
  EXPECT_EQ(volta[0].counters.at("recovery"), 2);
  EXPECT_EQ(volta[1].counters.at("crc"), 9);  // lanes of one link together
}

TEST(NvidiaSmi, AllLinksInactive) {
  const auto e = Read(
      "GPU 0: NVIDIA B300 (UUID: GPU-1)\n"
      "NVML: Unable to retrieve NVLink information as all links are inActive\n");
  EXPECT_TRUE(Snapshots(e)[0].gpus[0].all_links_inactive);
}

constexpr char kQuery[] =
    "==============NVSMI LOG==============\n"
    "\n"
    "Timestamp                                 : Mon Mar  2 08:00:00 2026\n"
    "Driver Version                            : 570.10\n"
    "CUDA Version                              : 12.8\n"
    "\n"
    "Attached GPUs                             : 2\n"
    "GPU 00000000:1B:00.0\n"
    "    Product Name                          : NVIDIA H100 80GB HBM3\n"
    "    Product Brand                         : NVIDIA\n"
    "    Display Mode                          : Enabled\n"
    "    Minor Number                          : 3\n"
    "    GPU UUID                              : GPU-00000000-1\n"
    "    GPU Recovery Action                   : None\n"
    "    PCI\n"
    "        Bus                               : 0x1B\n"
    "        GPU Link Info\n"
    "            PCIe Generation\n"
    "                Max                       : 5\n"
    "                Current                   : 1\n"
    "            Link Width\n"
    "                Max                       : 16x\n"
    "                Current                   : 8x\n"
    "        Replays Since Reset               : 12\n"
    "    Performance State                     : P0\n"
    "    Clocks Event Reasons\n"
    "        Idle                              : Not Active\n"
    "        SW Power Cap                      : Not Active\n"
    "        HW Slowdown                       : Active\n"
    "            HW Thermal Slowdown           : Active\n"
    "            HW Power Brake Slowdown       : Not Active\n"
    "        Sync Boost                        : Not Active\n"
    "    FB Memory Usage\n"
    "        Total                             : 81559 MiB\n"
    "        Used                              : 4 MiB\n"
    "    ECC Errors\n"
    "        Volatile\n"
    "            SRAM Correctable              : 0\n"
    "            SRAM Uncorrectable            : 0\n"
    "            DRAM Uncorrectable            : 2\n"
    "        Aggregate\n"
    "            DRAM Uncorrectable            : 9\n"
    "    Remapped Rows\n"
    "        Correctable Error                 : 0\n"
    "        Uncorrectable Error               : 1\n"
    "        Pending                           : Yes\n"
    "        Remapping Failure Occurred        : No\n"
    "    Temperature\n"
    "        GPU Current Temp                  : 88 C\n"
    "    Clocks\n"
    "        Graphics                          : 585 MHz\n"
    "        SM                                : 585 MHz\n"
    "    Max Clocks\n"
    "        SM                                : 1980 MHz\n"
    "    Fabric\n"
    "        State                             : Completed\n"
    "        Status                            : Insufficient Resources\n"
    "        CliqueId                          : 0\n"
    "        ClusterUUID                       : 00000000-0000-0000-0000-000000000000\n"
    "        Health\n"
    "            Bandwidth                     : N/A\n"
    "GPU 00000000:2A:00.0\n"
    "    Performance State                     : P8\n";

TEST(NvidiaSmi, TheLongQuery) {
  const auto e = Read(kQuery);
  ASSERT_EQ(Snapshots(e).size(), 1u);
  EXPECT_EQ(Snapshots(e)[0].driver, "570.10");
  EXPECT_TRUE(Snapshots(e)[0].whole);
  ASSERT_EQ(Snapshots(e)[0].gpus.size(), 2u);
  const GpuReading& gpu = Snapshots(e)[0].gpus[0];
  EXPECT_EQ(gpu.index, 3);
  EXPECT_EQ(gpu.bus_id, model::ParseBusId("0000:1b:00.0"));
  EXPECT_EQ(gpu.product, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(gpu.Value("pcie.link.gen.max"), "5");
  EXPECT_EQ(gpu.Value("pcie.link.gen.current"), "1");
  EXPECT_EQ(gpu.Value("pcie.link.width.current"), "8");
  EXPECT_EQ(gpu.Value("pcie.replay"), "12");
  EXPECT_EQ(gpu.Value("throttle.hw_thermal_slowdown"), "Active");
  EXPECT_EQ(gpu.Value("throttle.sw_power_cap"), "Not Active");
  EXPECT_EQ(gpu.Value("ecc.errors.uncorrected.volatile.dram_uncorrectable"), "2");
  EXPECT_EQ(gpu.Value("ecc.errors.uncorrected.aggregate.dram_uncorrectable"), "9");
  EXPECT_EQ(gpu.Value("remapped_rows.pending"), "Yes");
  EXPECT_EQ(gpu.Value("temperature.gpu"), "88");
  EXPECT_EQ(gpu.Value("clocks.sm"), "585");
  EXPECT_EQ(gpu.Value("clocks.max.sm"), "1980");
  EXPECT_EQ(gpu.Value("fabric.state"), "Completed");
  EXPECT_EQ(gpu.Value("fabric.status"), "Insufficient Resources");
  EXPECT_EQ(gpu.Value("fabric.cliqueId"), "0");
  EXPECT_EQ(gpu.Value("memory.used"), "4");
  EXPECT_EQ(gpu.Find("clocks.sm")->where.line, 52u);
  EXPECT_EQ(Snapshots(e)[0].gpus[1].Value("pstate"), "P8");
}

TEST(NvidiaSmi, AnExcerptWhoseFileNamesTheGpu) {
  const auto e = Read(
      "    Clocks Throttle Reasons\n"
      "        HW Slowdown                       : Active\n"
      "            HW Thermal Slowdown           : Active\n"
      "    GPU Current Temp                      : 88 C\n"
      "    SM                                    : 585 MHz\n",
      "logs/nvidia-smi-node2-gpu3.txt");
  ASSERT_EQ(Snapshots(e).size(), 1u);
  EXPECT_EQ(Snapshots(e)[0].by.host, "node2");
  const GpuReading& gpu = Snapshots(e)[0].gpus[0];
  EXPECT_EQ(gpu.index, 3);
  EXPECT_EQ(gpu.Value("throttle.hw_thermal_slowdown"), "Active");
  EXPECT_EQ(gpu.Value("clocks.sm"), "585");
  EXPECT_EQ(gpu.Value("temperature.gpu"), "88");
}

TEST(NvidiaSmi, GreppedFabricOfSeveralGpus) {
  const auto e = Read(
      "    Fabric\n"
      "        State                             : Completed\n"
      "        Status                            : Success\n"
      "--\n"
      "    Fabric\n"
      "        State                             : In Progress\n"
      "        Status                            : N/A\n");
  ASSERT_EQ(Snapshots(e).size(), 1u);
  ASSERT_EQ(Snapshots(e)[0].gpus.size(), 2u);
  EXPECT_EQ(Snapshots(e)[0].gpus[1].Value("fabric.state"), "In Progress");
  EXPECT_EQ(Snapshots(e)[0].gpus[1].Value("fabric.status"), "");
}

TEST(NvidiaSmi, CsvWithUnitsInTheHeadAndMasks) {
  const auto e = Read(
      "$ nvidia-smi --query-gpu=index,name,clocks.sm,clocks_throttle_reasons.active,pcie.link.width.current --format=csv\n"
      "index, name, clocks.current.sm [MHz], clocks_event_reasons.active, pcie.link.width.current\n"
      "0, NVIDIA A100-SXM4-40GB, 1410 MHz, 0x0000000000000000, 16\n"
      "1, NVIDIA A100-SXM4-40GB, 210 MHz, 0x0000000000000048, [N/A]\n"
      "done, nothing, more\n");
  ASSERT_EQ(Snapshots(e).size(), 1u);
  ASSERT_EQ(Snapshots(e)[0].gpus.size(), 2u);
  EXPECT_EQ(Snapshots(e)[0].gpus[0].Value("clocks.sm"), "1410");
  EXPECT_EQ(Snapshots(e)[0].gpus[1].Value("throttle.hw_slowdown"), "Active");
  EXPECT_EQ(Snapshots(e)[0].gpus[1].Value("throttle.hw_thermal_slowdown"), "Active");
  EXPECT_EQ(Snapshots(e)[0].gpus[0].Value("throttle.hw_thermal_slowdown"), "");
  EXPECT_EQ(Snapshots(e)[0].gpus[1].Value("pcie.link.width.current"), "");
}

TEST(NvidiaSmi, TheTableOldAndNewAndItsErrors) {
  const auto e = Read(
      "+-----------------------------------------------------------------------------+\n"
      "| NVIDIA-SMI 470.57.02    Driver Version: 470.57.02    CUDA Version: 11.4     |\n"
      "|-------------------------------+----------------------+----------------------+\n"
      "| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |\n"
      "| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |\n"
      "|                               |                      |               MIG M. |\n"
      "|===============================+======================+======================|\n"
      "|   0  Tesla V100-SXM2...  On   | 00000000:06:00.0 Off |                    0 |\n"
      "| N/A   45C    P0    62W / 300W |   1234MiB / 16160MiB |     37%      Default |\n"
      "|                               |                      |                  N/A |\n"
      "+-------------------------------+----------------------+----------------------+\n"
      "|   1  ERR!                ERR! | 00000000:07:00.0 ERR! |                 ERR! |\n"
      "| ERR!  ERR! ERR!    ERR! / ERR! |   GPU is lost        |     ERR!        ERR! |\n"
      "+-----------------------------------------------------------------------------+\n"
      "| Processes:                                                                  |\n"
      "|  GPU   GI   CI        PID   Type   Process name                  GPU Memory |\n"
      "|=============================================================================|\n"
      "|    0   N/A  N/A      4711      C   python3                          1230MiB |\n"
      "+-----------------------------------------------------------------------------+\n"
      "+-----------------------------------------------------------------------------------------+\n"
      "| NVIDIA-SMI 580.95.05              Driver Version: 580.95.05      CUDA Version: 13.0     |\n"
      "+-----------------------------------------+------------------------+----------------------+\n"
      "|   0  NVIDIA H100 80GB HBM3          On  |   00000000:1B:00.0 Off |                    0 |\n"
      "| N/A   88C    P0            310W /  700W |    4321MiB /  81559MiB |    100%      Default |\n");
  ASSERT_EQ(Snapshots(e).size(), 2u);
  ASSERT_EQ(Snapshots(e)[0].gpus.size(), 2u);
  const GpuReading& gpu = Snapshots(e)[0].gpus[0];
  EXPECT_EQ(gpu.Value("temperature.gpu"), "45");
  EXPECT_EQ(gpu.Value("power.limit"), "300");
  EXPECT_EQ(gpu.Value("utilization.gpu"), "37");
  EXPECT_FALSE(gpu.lost);
  EXPECT_TRUE(Snapshots(e)[0].gpus[1].lost);
  ASSERT_EQ(Snapshots(e)[0].processes.size(), 1u);
  EXPECT_EQ(Snapshots(e)[0].processes[0].pid, 4711);
  EXPECT_EQ(Snapshots(e)[1].driver, "580.95.05");
  EXPECT_EQ(Snapshots(e)[1].gpus[0].Value("memory.used"), "4321");
}

TEST(NvidiaSmi, Dmon) {
  const auto e = Read(
      "# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec   mclk   pclk\n"
      "# Idx      W      C      C      %      %      %      %    MHz    MHz\n"
      "    0     72     43      -    100      3      0      0   2619   1980\n"
      "    1     70     88      -    100      3      0      0   2619    345\n"
      "    0     72     43      -    100      3      0      0   2619   1965\n");
  ASSERT_EQ(Snapshots(e).size(), 2u);
  EXPECT_EQ(Snapshots(e)[0].gpus[1].Value("clocks.sm"), "345");
  EXPECT_EQ(Snapshots(e)[0].gpus[1].Value("temperature.gpu"), "88");
  EXPECT_EQ(Snapshots(e)[1].gpus[0].Value("clocks.sm"), "1965");
}

TEST(NvidiaSmi, Xml) {
  const std::string xml =
      "<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n<nvidia_smi_log>\n"
      "<driver_version>550.1</driver_version>\n<gpu id=\"00000000:1B:00.0\">\n<product_name>NVIDIA H100</product_name>\n"
      "<uuid>GPU-1</uuid>\n<minor_number>2</minor_number>\n"
      "<clocks_event_reasons>\n<clocks_event_reason_hw_thermal_slowdown>Active</clocks_event_reason_hw_thermal_slowdown>\n"
      "</clocks_event_reasons>\n<fabric>\n<state>In Progress</state>\n</fabric>\n"
      "<pci><pci_gpu_link_info><link_widths><max_link_width>16x</max_link_width><current_link_width>4x</current_link_width>"
      "</link_widths></pci_gpu_link_info></pci>\n</gpu>\n</nvidia_smi_log>\n";
  const auto e = Read(xml, "q.xml");
  ASSERT_EQ(Snapshots(e).size(), 1u);
  ASSERT_EQ(Snapshots(e)[0].gpus.size(), 1u);
  const GpuReading& gpu = Snapshots(e)[0].gpus[0];
  EXPECT_EQ(gpu.index, 2);
  EXPECT_EQ(gpu.Value("throttle.hw_thermal_slowdown"), "Active");
  EXPECT_EQ(gpu.Value("fabric.state"), "In Progress");
  EXPECT_EQ(gpu.Value("pcie.link.width.current"), "4");
  EXPECT_EQ(gpu.Find("fabric.state")->where.line, 13u);
  // Cut off in the middle: what stands before is read, and a note says so.
  for (size_t size = 0; size < xml.size(); size += 7) Read(xml.substr(0, size), "q.xml");
  const auto torn = Read(xml.substr(0, xml.find("</fabric>")), "q.xml");
  EXPECT_FALSE(torn.files[0].notes.empty());
}

TEST(NvidiaSmi, JunkAndFloods) {
  std::string text = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-x)\n";
  for (int i = 0; i < 3000; ++i) text += "   Link " + std::to_string(i) + ": 26.562 GB/s\n";
  for (int i = 0; i < 6000; ++i) text += "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-x)\n";
  text +=
      "|||||||||||||||||||||||||||||\n| NVIDIA-SMI \n    Fabric\n   State\n : : :\n,,,,,\nindex, name\n1, 2\nLink 1:\nLink 1: "
      "\xff\xfe\n";
  const auto e = Read(text);
  EXPECT_LE(Snapshots(e).size(), 4200u);
  EXPECT_LE(Snapshots(e)[0].gpus[0].links.size(), 100u);
}

// Lines of other logs that only look like it.
TEST(NvidiaSmi, LeavesOtherLogsAlone) {
  const auto e = Read(
      "mlx5_0: Link 1: up\n"
      "State: Completed\n"
      "loss, accuracy, step\n"
      "0.1, 0.2, 3\n"
      "# before the first epoch\n"
      "Status   : Success\n");
  for (const HardwareSnapshot& s : Snapshots(e)) {
    for (const GpuReading& gpu : s.gpus) EXPECT_TRUE(gpu.links.empty());
  }
}

}  // namespace
}  // namespace ringscope
