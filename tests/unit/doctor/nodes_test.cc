// Whole stand-in nodes: what is in order raises no alarm, what is not is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "catalog/catalog.h"
#include "tests/unit/doctor/stand_in.h"

namespace ringscope::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

node::Report Judged(const node::Node& node, const node::Node* before = nullptr) { return doctor::Judge(node, before, {}, {}); }

// Every failure leads to a page of the catalogue, and says why and what to do.
void ExpectAdvice(const node::Report& report) {
  for (const node::Check& check : report.checks()) {
    for (const node::Problem& problem : check.problems()) {
      if (problem.status() < node::Report::warning) continue;
      EXPECT_NE("", problem.why()) << problem.seen();
      EXPECT_NE("", problem.fix()) << problem.seen();
      const bool needs_page = problem.status() == node::Report::failed || !problem.entry().empty();
      EXPECT_TRUE(!needs_page || catalog::FindEntry(problem.entry()) != nullptr) << problem.seen() << ": " << problem.entry();
    }
  }
}

TEST(Nodes, AnNvSwitchMachineWithInfiniBand) {
  StandIn node;
  node.Hgx();
  const node::Report report = Judged(node.Look());
  EXPECT_THAT(Problems(report), IsEmpty());
  EXPECT_EQ(node::Report::ok, report.status());
  EXPECT_EQ("8 GPUs, NVIDIA H100 80GB HBM3; all answer", Named(report, "gpus").seen());
  EXPECT_EQ("18 NVLinks active on each GPU", Named(report, "nvlink").seen());
  EXPECT_EQ("completed on 8 GPUs", Named(report, "fabric").seen());
  EXPECT_EQ("28 of 28 pairs reach each other directly, 28 over NVLink", Named(report, "peers").seen());
  EXPECT_EQ("full width on 8 GPUs and 8 RDMA adapters", Named(report, "pcie").seen());
  EXPECT_EQ("8x 400 Gb/s InfiniBand", Named(report, "ports").seen());
  EXPECT_EQ("nvidia-peermem is loaded", Named(report, "gpudirect").seen());
  EXPECT_EQ("driver 570.86.10, NCCL 2.27.7", Named(report, "versions").seen());
  EXPECT_EQ("no IOMMU; ACS redirects nothing on 48 ports", Named(report, "platform").seen());
  EXPECT_EQ(node::Report::not_present, Named(report, "roce-gid").status());
}

TEST(Nodes, AMachineWithCardsOnly) {
  StandIn node;
  node.Cards();
  const node::Report report = Judged(node.Look());
  EXPECT_THAT(Problems(report), IsEmpty());
  for (const char* name : {"nvlink", "fabric", "ports", "roce-gid", "gpudirect"})
    EXPECT_EQ(node::Report::not_present, Named(report, name).status()) << name;
  EXPECT_EQ("6 of 6 pairs reach each other directly, 0 over NVLink", Named(report, "peers").seen());
}

TEST(Nodes, AMachineWithRoce) {
  StandIn node;
  node.Hgx("Ethernet");
  EXPECT_THAT(Problems(Judged(node.Look())), IsEmpty());
  node.place().environment["NCCL_IB_GID_INDEX"] = "3";
  const node::Report report = Judged(node.Look());
  EXPECT_THAT(Problems(report), IsEmpty());
  EXPECT_EQ("RoCE v2 at index 3 on 8 ports", Named(report, "roce-gid").seen());
}

TEST(Nodes, AMachineWithoutAGpu) {
  StandIn node;
  node.Limits("65536", "1024");
  g_space = {uint64_t{64} << 20, uint64_t{64} << 20};
  g_clock = 0;
  const node::Report report = Judged(node.Look());
  EXPECT_THAT(Problems(report), IsEmpty());
  EXPECT_EQ(node::Report::not_present, Named(report, "gpus").status());
}

TEST(Nodes, OneLaneDown) {
  StandIn node;
  node.Hgx();
  const node::Report report = Judged(node.Look("lanes 3 17\n"));
  EXPECT_THAT(Problems(report), ElementsAre("failed nvlink: GPU 3 (0000:61:00.0): 17 of 18 NVLinks active (down: 17)"));
  EXPECT_EQ("HW-02", Named(report, "nvlink").problems(0).entry());
  EXPECT_EQ(node::Report::failed, report.status());
  ExpectAdvice(report);
}

TEST(Nodes, OneLaneDownSinceTheBaseline) {
  StandIn node;
  node.Hgx();
  const node::Node before = node.Look();
  EXPECT_THAT(Problems(Judged(node.Look(), &before)), IsEmpty());
  EXPECT_THAT(Problems(Judged(node.Look("lanes 3 17\n"), &before)),
              ElementsAre("failed nvlink: GPU 3 (0000:61:00.0): 17 NVLinks active (down: 17) [18]"));
}

TEST(Nodes, TheBaselineOfAnotherNodeOfItsKind) {
  StandIn node;
  node.Hgx();
  node::Node other = node.Look();
  other.set_host("node8");
  for (node::Gpu& gpu : *other.mutable_gpus()) {
    gpu.set_uuid(gpu.uuid() + "8");
    gpu.mutable_fabric()->set_clique(8);
  }
  EXPECT_THAT(Problems(Judged(node.Look(), &other)), IsEmpty());
}

TEST(Nodes, TheFabricManagerWasNotStarted) {
  StandIn node;
  node.Hgx();
  const node::Report report = Judged(node.Look("fabric 0 1\nfabric 5 2\n"));
  EXPECT_THAT(Problems(report), ElementsAre("failed fabric: GPU 0 (0000:1b:00.0): fabric registration not started",
                                            "failed fabric: GPU 5 (0000:c3:00.0): fabric registration in progress"));
  EXPECT_EQ("FB-01", Named(report, "fabric").problems(0).entry());
  ExpectAdvice(report);
}

TEST(Nodes, WhatElseNvmlTells) {
  StandIn node;
  node.Hgx();
  const node::Report report = Judged(node.Look("pcie 1 8\nclocks 2 128\nuncorrected 3 1\nprocesses 4 2\n"));
  EXPECT_THAT(Problems(report),
              ElementsAre("failed memory: GPU 3 (0000:61:00.0): 1 uncorrectable memory error since the driver was loaded",
                          "failed pcie: GPU 1 (0000:43:00.0): x8 of x16", "warning processes: 2 programs on GPU 4 already",
                          "failed throttle: GPU 2 (0000:52:00.0): power brake (slowdown from outside)"));
  ExpectAdvice(report);
}

TEST(Nodes, ALostGpu) {
  StandIn node;
  node.Hgx();
  const node::Node before = node.Look();
  const node::Report report = Judged(node.Look("lost 1\n"), &before);
  EXPECT_THAT(Problems(report), ElementsAre("failed gpus: GPU 1: GPU is lost"));
  ExpectAdvice(report);
}

TEST(Nodes, ADriverThatDoesNotAnswer) {
  StandIn node;
  node.Hgx();
  const Variable hangs("RINGSCOPE_SIM_NVML_HANGS", "1");
  const Variable machine("RINGSCOPE_SIM_MACHINE", RINGSCOPE_SOURCE_DIR "/tests/sim/machines/hgx_h100.machine");
  const node::Report report = Judged(doctor::LookAtNode(node.place(), 2));
  EXPECT_THAT(Problems(report),
              ElementsAre(StartsWith("failed gpus: the driver does not answer: NVML, it took longer than its 2 seconds")));
  EXPECT_EQ(node::Report::could_not_tell, Named(report, "nvlink").status());
  EXPECT_EQ("8x 400 Gb/s InfiniBand", Named(report, "ports").seen());
  ExpectAdvice(report);
}

TEST(Nodes, ADriverThatWasUpgradedUnderTheModule) {
  StandIn node;
  node.Hgx();
  const Variable mismatch("RINGSCOPE_SIM_NVML_MISMATCH", "1");
  EXPECT_THAT(Problems(Judged(node.Look())), ElementsAre("failed gpus: NVML does not start: Driver/library version mismatch"));
}

TEST(Nodes, AGpuWithoutADriver) {
  StandIn node;
  node.Gpu("0000:1b:00.0", "0x2330");
  EXPECT_THAT(Problems(Judged(node.Look())), ElementsAre("failed gpus: 1 NVIDIA GPU on the bus, and no driver"));
}

TEST(Nodes, AContainerWithLittleOfEverything) {
  StandIn node;
  node.Hgx();
  g_space = {uint64_t{64} << 20, uint64_t{64} << 20};
  node.Limits("65536", "1024");
  node.Remove("sys/module/nvidia_peermem");
  g_clock = 0;
  const node::Report report = Judged(node.Look());
  EXPECT_THAT(
      Problems(report),
      ElementsAre(
          "warning clock: the clock is not synchronised",
          "warning gpudirect: nvidia-peermem is not loaded, and the driver's modules are not the open ones that DMA-BUF needs",
          "failed memlock: locked memory is limited to 64 KiB", "warning open-files: up to 1024 open files",
          "failed shm: /dev/shm has 64 MiB, 64 MiB free"));
  EXPECT_EQ("NC-08", Named(report, "shm").problems(0).entry());
  ExpectAdvice(report);
}

TEST(Nodes, MixedVersions) {
  StandIn node;
  node.Hgx();
  node.Nccl("/opt/conda/lib/python3.11/site-packages/nvidia/nccl/lib", "2.28.3", "13.0");
  node.place().environment["LD_LIBRARY_PATH"] = "/opt/other:/opt/none";
  node.Nccl("/opt/other", "2.27.7", "12.9");
  const node::Report report = Judged(node.Look());
  EXPECT_THAT(Problems(report), ElementsAre("warning versions: 2 releases of NCCL: 2.27.7 (/opt/other/libnccl.so.2), 2.28.3 "
                                            "(/opt/conda/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2)"));
  ExpectAdvice(report);
}

TEST(Nodes, AcsAndAnIommuThatTranslates) {
  StandIn node;
  node.Hgx();
  node.Acs("0000:1b:00.0", 0x1d);
  node.Acs("0000:43:00.0", 0x11);  // source validation, upstream forwarding: redirects nothing between peers
  const std::string gpu = std::filesystem::canonical(node.place().sysfs + "/bus/pci/devices/0000:52:00.0").string();
  std::filesystem::create_directories(gpu + "/iommu_group");
  std::ofstream(gpu + "/iommu_group/type") << "DMA-FQ\n";
  node.Write("proc/cmdline", "quiet intel_iommu=on\n");
  node::Node seen = node.Look();
  seen.set_architecture("x86_64");
  const node::Report report = Judged(seen);
  EXPECT_THAT(Problems(report), ElementsAre("warning platform: ACS redirects peer traffic on 1 PCIe switch port: 001b:02:00.0",
                                            "warning platform: an IOMMU translates what 1 device reads and writes: 0000:52:00.0 "
                                            "(intel_iommu=on)"));
  ExpectAdvice(report);
}

TEST(Nodes, TheKernelsLog) {
  StandIn node;
  node.Hgx();
  node.Write("dev/kmsg",
             "4,1,1000000,-;NVRM: Xid (PCI:0000:43:00): 79, pid=12, GPU has fallen off the bus.\n"
             "4,2,2000000,-;NVRM: Xid (PCI:0000:43:00): 79, pid=13, GPU has fallen off the bus.\n"
             "4,3,2000000,-;NVRM: Xid (PCI:0000:43:00): 45, pid=13, Ch 00000001\n"
             "3,4,3000000,-;INFO: task python:4711 blocked for more than 120 seconds.\n"
             "3,5,4000000,-;Out of memory: Killed process 99 (trainer) total-vm:1kB\n"
             "30,6,4000000,-;NVRM: Xid (PCI:0000:44:00): 48, written by a program\n");
  const node::Report report = Judged(node.Look());
  EXPECT_THAT(Problems(report), ElementsAre(StartsWith("warning kernel-log: Xid 79 on 0000:43:00: "),
                                            StartsWith("warning kernel-log: python hung in the kernel ("),
                                            StartsWith("warning kernel-log: trainer was killed for lack of memory (")));
  EXPECT_THAT(Problems(report)[0], HasSubstr("(2 times, last "));
  EXPECT_EQ("HW-05", Named(report, "kernel-log").problems(0).entry());
  ExpectAdvice(report);
}

TEST(Nodes, ChosenChecks) {
  StandIn node;
  node.Hgx();
  const node::Node seen = node.Look("lanes 3 17\n");
  EXPECT_EQ(1, doctor::Judge(seen, nullptr, {"shm"}, {}).checks_size());
  EXPECT_EQ(node::Report::ok, doctor::Judge(seen, nullptr, {}, {"nvlink"}).status());
  EXPECT_EQ(node::Report::not_present, doctor::Judge(seen, nullptr, {"roce-gid"}, {}).status());
  EXPECT_THAT(doctor::UnknownNames({"shm", "nvlinks"}), ElementsAre("nvlinks"));
}

}  // namespace
}  // namespace ringscope::testing
