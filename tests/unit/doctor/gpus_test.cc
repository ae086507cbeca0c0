// Checks of GPUs, each on what a probe would have seen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/doctor/seen.h"

namespace ringscope::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

void Down(node::Node* node, int gpu, int links) {
  for (int i = 0; i < links; ++i) node->mutable_gpus(gpu)->mutable_links(i)->set_active(false);
}
void PutOnBus(node::Node* node, int gpus) {
  for (int i = 0; i < gpus; ++i) {
    node::PciDevice* device = node->add_pci();
    device->set_kind(node::PciDevice::gpu);
    device->set_driver("nvidia");
  }
}

TEST(GpusCheck, TheDriversListAndTheBus) {
  node::Node node = Gpus(4, 0);
  PutOnBus(&node, 8);  // a container that was given half of them
  node.mutable_driver()->set_listed_gpus(4);
  EXPECT_THAT(Said("gpus", node), IsEmpty());
  node.mutable_pci(5)->set_driver("vfio-pci");  // a virtual machine has it
  EXPECT_THAT(Said("gpus", node), IsEmpty());
  node.mutable_pci(5)->clear_driver();
  node.mutable_pci(5)->set_address("0000:61:00.0");
  EXPECT_THAT(Said("gpus", node), ElementsAre("warning gpus: no driver is bound to the GPU at 0000:61:00.0"));
  node.mutable_pci(5)->set_driver("nvidia");
  node.mutable_driver()->set_listed_gpus(5);
  EXPECT_THAT(Said("gpus", node), ElementsAre("failed gpus: 5 GPUs in the module's list, NVML gives 4"));
}

TEST(GpusCheck, OfTheBaseline) {
  const node::Node before = Gpus(4, 0);
  node::Node now = Gpus(3, 0);
  EXPECT_THAT(Said("gpus", now, &before), ElementsAre("failed gpus: 3 GPUs; missing: GPU 3 (0000:41:00.0) [4 GPUs]"));
  now = Gpus(4, 0);
  now.mutable_gpus(2)->set_uuid("GPU-new");
  EXPECT_THAT(Said("gpus", now, &before), ElementsAre("warning gpus: GPU 2 (0000:31:00.0) is another one: GPU-new [GPU-2]"));
  // More than before is no fault.
  EXPECT_THAT(Said("gpus", Gpus(5, 0), &before), IsEmpty());
}

TEST(GpusCheck, TheDriversLibrariesOnANodeWithoutAGpu) {
  node::Node node;
  node::Asked* asked = node.add_asked();
  asked->set_name("nvml");
  asked->set_why_not("Driver Not Loaded");
  node.mutable_driver()->set_nvml_error("Driver Not Loaded");
  EXPECT_EQ(node::Report::not_present, StatusOf("gpus", node));
  PutOnBus(&node, 1);
  EXPECT_THAT(Said("gpus", node), ElementsAre("failed gpus: NVML does not start: Driver Not Loaded"));
}

TEST(GpusCheck, AModuleWithoutTheLibraries) {
  node::Node node;
  node::Asked* asked = node.add_asked();
  asked->set_name("nvml");
  asked->set_absent(true);
  node.mutable_driver()->set_kernel_version("570.86.10");
  EXPECT_THAT(Said("gpus", node),
              ElementsAre("failed gpus: the driver's module 570.86.10 is loaded, and libnvidia-ml.so.1 is not there"));
}

TEST(NvlinkCheck, AgainstTheProduct) {
  node::Node node = Gpus(8, 18, 0x2330);
  EXPECT_THAT(Said("nvlink", node), IsEmpty());
  for (int i = 0; i < 8; ++i) Down(&node, i, 1);  // all alike: the others tell nothing
  EXPECT_THAT(Said("nvlink", node), SizeIs(8));
  EXPECT_EQ("failed nvlink: GPU 0 (0000:11:00.0): 17 of 18 NVLinks active (down: 0)", Said("nvlink", node)[0]);
}

TEST(NvlinkCheck, AProductThatHasFewer) {
  EXPECT_THAT(Said("nvlink", Gpus(8, 8, 0x2324)), IsEmpty());   // H800
  EXPECT_THAT(Said("nvlink", Gpus(2, 12, 0x2321)), IsEmpty());  // H100 NVL: a card with bridges, not in the table
}

TEST(NvlinkCheck, NoneAtAll) {
  // A virtual machine with two GPUs of a board may have been given no links with them; a whole board without any is broken.
  EXPECT_THAT(Said("nvlink", Gpus(2, 0, 0x2330)), IsEmpty());
  EXPECT_EQ(node::Report::not_present, StatusOf("nvlink", Gpus(2, 0, 0x2330)));
  EXPECT_THAT(Said("nvlink", Gpus(8, 0, 0x2330)), SizeIs(8));
  EXPECT_EQ(node::Report::not_present, StatusOf("nvlink", Gpus(8, 0, 0x20b5)));
}

TEST(NvlinkCheck, AgainstTheOtherGpus) {
  node::Node node = Gpus(4, 6);
  Down(&node, 2, 2);
  EXPECT_THAT(Said("nvlink", node),
              ElementsAre("failed nvlink: GPU 2 (0000:31:00.0): 4 NVLinks active (down: 0, 1), others have 6"));
  node.mutable_gpus(2)->set_trouble("GPU is lost");  // said by another check
  EXPECT_THAT(Said("nvlink", node), IsEmpty());
}

TEST(NvlinkCheck, Recoveries) {
  node::Node before = Gpus(2, 4), now = Gpus(2, 4);
  now.mutable_gpus(1)->mutable_links(3)->set_recoveries(505);
  EXPECT_THAT(Said("nvlink", now), ElementsAre("warning nvlink: GPU 1 (0000:21:00.0) link 3: 505 recoveries, 0 replays"));
  before.mutable_gpus(1)->mutable_links(3)->set_recoveries(505);
  EXPECT_THAT(Said("nvlink", now, &before), IsEmpty());
  before.mutable_gpus(1)->mutable_links(3)->set_recoveries(7);
  EXPECT_THAT(Said("nvlink", now, &before),
              ElementsAre("warning nvlink: GPU 1 (0000:21:00.0) link 3: 505 recoveries, 0 replays [7 recoveries]"));
}

void Register(node::Node* node, uint32_t state, int status = 0) {
  for (node::Gpu& gpu : *node->mutable_gpus()) {
    gpu.mutable_fabric()->set_state(state);
    gpu.mutable_fabric()->set_status(status);
    gpu.mutable_fabric()->set_status_words(status == 0 ? "Success" : "Insufficient Resources");
    gpu.mutable_fabric()->set_cluster("0123");
  }
}

TEST(FabricCheck, States) {
  node::Node node = Gpus(2, 18);
  EXPECT_EQ(node::Report::not_present, StatusOf("fabric", node));
  Register(&node, 3);
  EXPECT_THAT(Said("fabric", node), IsEmpty());
  Register(&node, 1);
  EXPECT_THAT(Said("fabric", node), ElementsAre("failed fabric: GPU 0 (0000:11:00.0): fabric registration not started",
                                                "failed fabric: GPU 1 (0000:21:00.0): fabric registration not started"));
  Register(&node, 2);
  EXPECT_EQ("failed fabric: GPU 0 (0000:11:00.0): fabric registration in progress", Said("fabric", node)[0]);
  Register(&node, 3, 5);
  EXPECT_EQ("failed fabric: GPU 0 (0000:11:00.0): fabric registration ended with: Insufficient Resources",
            Said("fabric", node)[0]);
}

TEST(FabricCheck, NotAllOfTheNode) {
  node::Node node = Gpus(3, 18);
  Register(&node, 3);
  node.mutable_gpus(1)->clear_fabric();
  EXPECT_THAT(Said("fabric", node), ElementsAre("failed fabric: only 2 of 3 GPUs report a fabric"));
  Register(&node, 3);
  node.mutable_gpus(1)->mutable_fabric()->set_clique(7);
  EXPECT_THAT(Said("fabric", node), ElementsAre("failed fabric: the GPUs of this node are in 2 different cliques"));
}

TEST(FabricCheck, OfTheBaseline) {
  node::Node before = Gpus(1, 18), now = Gpus(1, 18);
  Register(&before, 3);
  EXPECT_THAT(Said("fabric", now, &before),
              ElementsAre("failed fabric: GPU 0 (0000:11:00.0): the driver reports no fabric [completed]"));
  Register(&now, 1);
  EXPECT_THAT(Said("fabric", now, &before),
              ElementsAre("failed fabric: GPU 0 (0000:11:00.0): fabric registration not started [completed]"));
  Register(&now, 3);
  now.mutable_gpus(0)->mutable_fabric()->set_clique(2);
  EXPECT_THAT(Said("fabric", now, &before),
              ElementsAre("warning fabric: GPU 0 (0000:11:00.0): clique 2 of 0123 [clique 0 of 0123]"));
}

TEST(PeersCheck, NvlinkWithoutPeerAccess) {
  node::Node node = Gpus(3, 4);
  node.mutable_peers(0)->set_read("GNS");
  EXPECT_THAT(Said("peers", node),
              ElementsAre("failed peers: NVLinks are active, and the driver refuses peer access (GNS): GPU 0-1"));
  // Cards: it is the platform's choice, unless it was otherwise.
  node::Node cards = Gpus(3, 0);
  const node::Node before = cards;
  cards.mutable_peers(0)->set_read("CNS");
  EXPECT_THAT(Said("peers", cards), IsEmpty());
  EXPECT_THAT(Said("peers", cards, &before), ElementsAre("failed peers: no longer reach each other directly: GPU 0-1 CNS [OK]"));
  EXPECT_EQ(node::Report::not_present, StatusOf("peers", Gpus(1, 4)));
}

TEST(PcieCheck, WidthAndGeneration) {
  node::Node node = Gpus(1, 0);
  node::Gpu* gpu = node.mutable_gpus(0);
  gpu->set_pcie_width(16);
  gpu->set_pcie_width_max(16);
  gpu->set_pcie_generation(1);
  gpu->set_pcie_generation_max(5);
  gpu->set_performance_state(8);  // at rest, its link saves power
  EXPECT_THAT(Said("pcie", node), IsEmpty());
  gpu->set_performance_state(0);
  EXPECT_THAT(Said("pcie", node), ElementsAre("warning pcie: GPU 0 (0000:11:00.0): generation 1 of 5 in P0"));
  gpu->set_pcie_generation(5);
  const node::Node before = node;
  gpu->set_pcie_width(8);
  EXPECT_THAT(Said("pcie", node), ElementsAre("failed pcie: GPU 0 (0000:11:00.0): x8 of x16"));
  EXPECT_THAT(Said("pcie", node, &before), ElementsAre("failed pcie: GPU 0 (0000:11:00.0): x8 of x16 [x16]"));
  gpu->set_pcie_width_max(8);  // another slot: nothing more is possible there
  EXPECT_THAT(Said("pcie", node), IsEmpty());
  EXPECT_THAT(Said("pcie", node, &before),
              ElementsAre("failed pcie: GPU 0 (0000:11:00.0): x8, and no more is possible here [x16]"));
}

node::PciDevice* Adapter(node::Node* node, const std::string& address, uint32_t width) {
  node::PciDevice* device = node->add_pci();
  device->set_kind(node::PciDevice::rdma);
  device->set_address(address);
  device->set_name("mlx5_" + address.substr(5, 1));
  device->set_vendor(0x15b3);
  device->set_width(width);
  device->set_width_max(16);
  device->set_speed("32.0 GT/s PCIe");
  return device;
}

TEST(PcieCheck, Adapters) {
  node::Node node;
  Adapter(&node, "0000:11:00.0", 16);
  Adapter(&node, "0000:21:00.0", 16);
  const node::Node before = node;
  EXPECT_THAT(Said("pcie", node), IsEmpty());
  node.mutable_pci(1)->set_width(8);
  EXPECT_THAT(Said("pcie", node), ElementsAre("failed pcie: mlx5_2 (0000:21:00.0): x8 of x16, its like have more"));
  EXPECT_THAT(Said("pcie", node, &before), ElementsAre("failed pcie: mlx5_2 (0000:21:00.0): x8 [x16]"));
  node.mutable_pci(0)->set_width(8);  // all alike: narrow slots
  EXPECT_THAT(Said("pcie", node), IsEmpty());
  node.mutable_pci()->RemoveLast();
  EXPECT_THAT(Said("pcie", node), ElementsAre("warning pcie: mlx5_1 (0000:11:00.0): x8 of x16"));
}

TEST(MemoryCheck, ErrorsAndRows) {
  node::Node node = Gpus(1, 0);
  EXPECT_EQ(node::Report::not_present, StatusOf("memory", node));
  node::Gpu* gpu = node.mutable_gpus(0);
  gpu->set_uncorrected_now(0);
  gpu->set_uncorrected_ever(2);
  gpu->set_remap_pending(false);
  EXPECT_THAT(Said("memory", node), IsEmpty());
  const node::Node before = node;
  gpu->set_uncorrected_ever(3);
  EXPECT_THAT(Said("memory", node, &before),
              ElementsAre("warning memory: GPU 0 (0000:11:00.0): 3 uncorrectable memory errors in its life [2]"));
  gpu->set_remap_pending(true);
  EXPECT_THAT(Said("memory", node),
              ElementsAre("warning memory: GPU 0 (0000:11:00.0): memory waits to be remapped at the next reset"));
  gpu->set_uncorrected_now(1);
  gpu->set_remap_failed(true);
  EXPECT_THAT(Said("memory", node),
              ElementsAre("failed memory: GPU 0 (0000:11:00.0): a memory row could not be remapped",
                          "failed memory: GPU 0 (0000:11:00.0): 1 uncorrectable memory error since the driver was loaded"));
}

TEST(ThrottleCheck, Reasons) {
  node::Node node = Gpus(1, 0);
  EXPECT_EQ(node::Report::could_not_tell, StatusOf("throttle", node));
  const auto with = [&](uint64_t reasons) {
    node.mutable_gpus(0)->set_clock_reasons(reasons);
    return Said("throttle", node);
  };
  for (const uint64_t harmless : {0x0, 0x1, 0x2, 0x4, 0x10, 0x100}) EXPECT_THAT(with(harmless), IsEmpty()) << harmless;
  EXPECT_THAT(with(0x88), ElementsAre("failed throttle: GPU 0 (0000:11:00.0): power brake (slowdown from outside)"));
  EXPECT_THAT(with(0x48), ElementsAre("failed throttle: GPU 0 (0000:11:00.0): thermal slowdown by hardware"));
  EXPECT_THAT(with(0x8), ElementsAre("failed throttle: GPU 0 (0000:11:00.0): slowdown by hardware"));
  EXPECT_THAT(with(0x20), ElementsAre("warning throttle: GPU 0 (0000:11:00.0): thermal slowdown by the driver"));
}

TEST(ProcessesCheck, Remains) {
  node::Node node = Gpus(2, 0);
  EXPECT_EQ(node::Report::could_not_tell, StatusOf("processes", node));
  for (node::Gpu& gpu : *node.mutable_gpus()) gpu.set_processes(0);
  EXPECT_THAT(Said("processes", node), IsEmpty());
  node.mutable_gpus(1)->set_processes(2);
  EXPECT_THAT(Said("processes", node), ElementsAre("warning processes: 2 programs on GPU 1 already"));
}

}  // namespace
}  // namespace ringscope::testing
