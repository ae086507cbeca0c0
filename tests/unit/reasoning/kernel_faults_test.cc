// From kernel logs and programs' logs to who began it. Lines have the shapes of drivers and kernels; names are invented.
#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/unit/reasoning/text_job.h"

namespace ringscope::reasoning {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int kBus[8] = {0x1b, 0x43, 0x52, 0x61, 0x9d, 0xc3, 0xd1, 0xdf};

// What NCCL tells of eight ranks on one host at init.
std::string InitLines(const std::string& host, int first = 0, int total = 8) {
  std::string text;
  for (int i = 0; i < 8; ++i) {
    text += absl::StrFormat(
        "%s:%d:%d [%d] NCCL INFO ncclCommInitRank comm 0x7f%02d00 rank %d nranks %d cudaDev %d nvmlDev %d busId %x000 commId "
        "0xabc123 - Init COMPLETE\n",
        host, 4100 + i, 4200 + i, i, i, first + i, total, i, i, kBus[i]);
  }
  return text;
}

std::string Watchdog(int rank, const std::string& stamp = "[E805 03:22:01.000000000 ProcessGroupNCCL.cpp:616]") {
  return absl::StrFormat(
      "[rank%d]:%s [Rank %d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=991, OpType=ALLREDUCE, "
      "NumelIn=25557032, "
      "NumelOut=25557032, Timeout(ms)=600000) ran for 600021 milliseconds before timing out.\n",
      rank, stamp, rank);
}
std::string Watchdogs(int n = 8) {
  std::string text;
  for (int r = 0; r < n; ++r) text += Watchdog(r);
  return text;
}

std::string Xid74(const std::string& prefix, int gpu, int link) {
  return absl::StrFormat(
      "%sNVRM: Xid (PCI:0000:%02x:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link %d(0x10000, "
      "0x0, 0x0, 0x0, 0x0, 0x0, 0x0)\n",
      prefix, kBus[gpu], link);
}

// ---- An NVLink lane dies in the middle of a run.
TEST(NvlinkFault, NamesGpuLinkAndRankWhateverTheClock) {
  for (const char* prefix : {"[612011.880125] ", "[Wed Aug  5 03:12:01 2026] ",
                             "Aug  5 03:12:01 hgx07 kernel: ", "Aug  5 03:12:01 hgx07 kernel: [612011.8] ",
                             "2026-08-05T03:12:01.123456+0000 hgx07 kernel: ", "kern  :warn  : [612011.880125] ", ""}) {
    for (const int gpu : {0, 3, 7}) {
      SCOPED_TRACE(absl::StrCat(prefix, gpu));
      const Diagnosis d = DiagnoseTexts({{"nccl.log", InitLines("hgx07") + Watchdogs()}, {"dmesg.txt", Xid74(prefix, gpu, 2)}});
      ASSERT_FALSE(d.findings().empty());
      const Finding& f = d.findings(0);
      EXPECT_EQ(f.kind(), Kind::error_reported);
      EXPECT_EQ(f.cause().id(), "HW-01");
      EXPECT_GE(f.confidence(), Confidence::probable);
      EXPECT_THAT(f.who().ranks(), ElementsAre(gpu));
      EXPECT_THAT(f.who().gpus(), ElementsAre(absl::StrFormat("0000:%02x:00.0", kBus[gpu])));
      ASSERT_EQ(f.who().links_size(), 1);
      EXPECT_THAT(f.who().links(0), HasSubstr("link 2"));
      EXPECT_EQ(f.collateral().ranks_size(), 7);
      EXPECT_THAT(AllText(f), HasSubstr("Xid 74"));
    }
  }
}

// Ending a job can itself log the error: then it is not the reason.
TEST(NvlinkFault, TimeDecidesWhereTheClocksCompare) {
  const auto at = [](const char* prefix) {
    return DiagnoseTexts({{"nccl.log", InitLines("hgx07") + Watchdogs()}, {"dmesg.txt", Xid74(prefix, 3, 2)}});
  };
  const Diagnosis before = at("[Wed Aug  5 03:12:01 2026] ");
  EXPECT_EQ(before.findings(0).confidence(), Confidence::established);
  const Diagnosis after = at("[Wed Aug  5 03:22:40 2026] ");
  for (const Finding& f : after.findings()) {
    EXPECT_NE(f.kind(), Kind::error_reported);
    EXPECT_THAT(f.who().ranks(), Not(ElementsAre(3)));
  }
  // Hours before: the job went on, so this is at most a hint.
  const Diagnosis early = at("[Tue Aug  4 21:12:01 2026] ");
  for (const Finding& f : early.findings()) {
    EXPECT_TRUE(f.cause().id() != "HW-01" || f.confidence() <= Confidence::possible);
  }
  // Hours after: the clocks' zones differ, which neither proves nor refutes.
  const Diagnosis zone = at("[Wed Aug  5 10:12:01 2026] ");
  EXPECT_EQ(zone.findings(0).cause().id(), "HW-01");
  EXPECT_EQ(zone.findings(0).confidence(), Confidence::probable);
}

TEST(NvlinkFault, OnTheRightHostOfSeveral) {
  const std::string nccl = InitLines("hgx07", 0, 16) + InitLines("hgx08", 8, 16);
  const Diagnosis d = DiagnoseTexts({{"nccl.log", nccl}, {"messages", Xid74("Aug  5 03:12:01 hgx08 kernel: ", 4, 11)}});
  ASSERT_FALSE(d.findings().empty());
  EXPECT_THAT(d.findings(0).who().ranks(), ElementsAre(12));
  EXPECT_THAT(d.findings(0).who().hosts(), ElementsAre("hgx08"));
  // The host's name is not told: the bus id fits two ranks, so none is named.
  const Diagnosis unknown = DiagnoseTexts({{"nccl.log", nccl}, {"dmesg.txt", Xid74("[1.0] ", 4, 11)}});
  EXPECT_THAT(unknown.findings(0).who().ranks(), IsEmpty());
  EXPECT_THAT(unknown.findings(0).who().gpus(), ElementsAre("0000:9d:00.0"));
}

TEST(NvlinkFault, AnotherHostsGpuIsNoRankOfThisLog) {
  // Only hgx07's half of the job is in the log; the kernel log is hgx08's.
  const Diagnosis d =
      DiagnoseTexts({{"nccl.log", InitLines("hgx07", 0, 16)}, {"messages", Xid74("Aug  5 03:12:01 hgx08 kernel: ", 4, 11)}});
  ASSERT_FALSE(d.findings().empty());
  EXPECT_THAT(d.findings(0).who().ranks(), IsEmpty());
}

TEST(NvlinkFault, WithoutInitLinesTheBusIdIsSaid) {
  const Diagnosis d = DiagnoseTexts({{"dmesg.txt", Xid74("[612011.8] ", 5, 0)}, {"rank-0.log", Watchdog(0)}});
  ASSERT_FALSE(d.findings().empty());
  EXPECT_THAT(d.findings(0).who().ranks(), IsEmpty());
  EXPECT_THAT(d.findings(0).who().gpus(), ElementsAre("0000:c3:00.0"));
  EXPECT_EQ(d.findings(0).confidence(), Confidence::probable);
}

TEST(NvlinkFault, OldReleasesTellBusIdsInChannelLines) {
  std::string nccl;
  for (int i = 0; i < 4; ++i)
    nccl += absl::StrFormat("n1:%d:%d [%d] NCCL INFO Channel 00 : %d[%x000] -> %d[%x000] via P2P/IPC/read\n", 70 + i, 90 + i, i,
                            i, kBus[i], (i + 1) % 4, kBus[(i + 1) % 4]);
  const Diagnosis d = DiagnoseTexts({{"nccl.log", nccl}, {"dmesg.txt", Xid74("[612011.8] ", 2, 0)}});
  ASSERT_FALSE(d.findings().empty());
  EXPECT_THAT(d.findings(0).who().ranks(), AnyOf(ElementsAre(2), IsEmpty()));
}

TEST(NvlinkFault, EarlierRemovalOfChannelsElsewhereIsNotTheRoot) {
  const std::string dmesg =
      "[100.0] NVRM: Xid (PCI:0000:df:00): 45, pid=77, name=python, Ch 00000010\n" + Xid74("[612011.8] ", 1, 4) +
      "[612012.0] NVRM: Xid (PCI:0000:1b:00): 45, pid=4100, name=python, Ch 00000003\n"
      "[612012.0] NVRM: Xid (PCI:0000:43:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)\n";
  const Diagnosis d = DiagnoseTexts({{"nccl.log", InitLines("hgx07")}, {"dmesg.txt", dmesg}});
  ASSERT_FALSE(d.findings().empty());
  EXPECT_THAT(d.findings(0).who().ranks(), ElementsAre(1));
  EXPECT_THAT(d.findings(0).next().text(), HasSubstr("GPU Reset Required"));
}

TEST(NvlinkFault, AFaultOfLastWeekIsAnotherStory) {
  const std::string dmesg = Xid74("[1000.0] ", 6, 4) +
                            "[612011.8] NVRM: Xid (PCI:0000:52:00): 79, pid=4102, name=python, GPU has fallen off the bus.\n";
  const Diagnosis d = DiagnoseTexts({{"nccl.log", InitLines("hgx07")}, {"dmesg.txt", dmesg}});
  ASSERT_FALSE(d.findings().empty());
  EXPECT_EQ(d.findings(0).cause().id(), "HW-05");
  EXPECT_THAT(d.findings(0).who().ranks(), ElementsAre(2));
}

TEST(NvlinkFault, ALostGpuTakesItsLinksWithIt) {
  const std::string dmesg = Xid74("[612011.8] ", 6, 4) + Xid74("[612011.8] ", 1, 4) +
                            "[612011.9] NVRM: Xid (PCI:0000:52:00): 79, pid=4102, name=python, GPU has fallen off the bus.\n";
  const Diagnosis d = DiagnoseTexts({{"nccl.log", InitLines("hgx07")}, {"dmesg.txt", dmesg}});
  EXPECT_EQ(d.findings(0).cause().id(), "HW-05");
  EXPECT_THAT(d.findings(0).who().ranks(), ElementsAre(2));
}

TEST(NvlinkFault, BlackwellFirstLinkDownInitiatesTheOthersReceive) {
  std::string dmesg =
      "[50.1] NVRM: Xid (PCI:0000:1b:00): 145, RLW_RXPIPE Fatal XC0 i0 Link 05 (0x0409a0c2 0x00000008)\n"
      "[50.2] NVRM: Xid (PCI:0000:61:00): 149, NETIR_LINK_DOWN Fatal XC0 i0 Link 14 (0x004505c6 0x0)\n"
      "[50.3] NVRM: Xid (PCI:0000:d1:00): 145, RLW_RXPIPE Fatal XC0 i0 Link 07 (0x0409a0c2 0x00000008)\n"
      "[50.4] NVRM: Xid (PCI:0000:61:00): 45, pid=4103, name=python, Ch 00000001 caused by previous Xid 149\n";
  const Diagnosis d = DiagnoseTexts({{"nccl.log", InitLines("hgx07")}, {"dmesg.txt", dmesg}});
  ASSERT_FALSE(d.findings().empty());
  EXPECT_EQ(d.findings(0).cause().id(), "HW-01");
  EXPECT_THAT(d.findings(0).who().ranks(), ElementsAre(3));
  EXPECT_THAT(d.findings(0).who().links(0), HasSubstr("link 14"));
}

TEST(NvlinkFault, OnlyTheRemovalsAreLeftInTheLog) {
  const std::string dmesg =
      "kernel: NVRM: Xid (PCI:0000:1b:00): 45, pid=4100, name=python3, Ch 0000000c caused by previous Xid 145\n"
      "kernel: NVRM: Xid (PCI:0000:52:00): 45, pid=4102, name=python3, Ch 00000001 caused by previous Xid 149\n"
      "kernel: NVRM: Xid (PCI:0000:61:00): 45, pid=4103, name=python3, Ch 00000002 caused by previous Xid 145\n";
  const Diagnosis d = DiagnoseTexts({{"nccl.log", InitLines("hgx07")}, {"dmesg.txt", dmesg}});
  ASSERT_FALSE(d.findings().empty());
  EXPECT_EQ(d.findings(0).cause().id(), "HW-01");
  EXPECT_THAT(d.findings(0).who().ranks(), ElementsAre(2));
}

TEST(NvlinkFault, ReceiveErrorsEverywhereAreTheDomain) {
  const std::string dmesg =
      "[612011.880125] NVRM: Xid (PCI:0000:1b:00): 145, RLW_RXPIPE Fatal XC0 i0 Link 05 (0x0409a0c2 0x00000008)\n"
      "[612011.880411] NVRM: Xid (PCI:0000:43:00): 145, RLW_RXPIPE Fatal XC0 i0 Link 11 (0x0409a0c2 0x00000008)\n";
  const Diagnosis d = DiagnoseTexts({{"nccl.log", InitLines("hgx07")}, {"dmesg.txt", dmesg}});
  ASSERT_FALSE(d.findings().empty());
  EXPECT_EQ(d.findings(0).cause().id(), "HW-04");
  EXPECT_THAT(d.findings(0).who().ranks(), IsEmpty());
  EXPECT_EQ(d.findings(0).who().gpus_size(), 2);
}

TEST(NvlinkFault, ManyGpusAtOneMomentAreTheSwitch) {
  const Diagnosis d =
      DiagnoseTexts({{"nccl.log", InitLines("hgx07")},
                     {"dmesg.txt", "[9.0] nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 31 LTSSM Fault Up\n" +
                                       Xid74("[9.1] ", 0, 4) + Xid74("[9.2] ", 3, 4) + Xid74("[9.3] ", 5, 4)}});
  ASSERT_FALSE(d.findings().empty());
  EXPECT_EQ(d.findings(0).cause().id(), "HW-04");
  EXPECT_THAT(d.findings(0).who().ranks(), IsEmpty());
  EXPECT_THAT(AllText(d.findings(0)), HasSubstr("SXid"));
  // One port and one GPU: the link between them.
  const Diagnosis one =
      DiagnoseTexts({{"nccl.log", InitLines("hgx07")},
                     {"dmesg.txt", "[9.0] nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 31 LTSSM Fault Up\n" +
                                       Xid74("[9.1] ", 3, 4)}});
  EXPECT_THAT(one.findings(0).who().ranks(), ElementsAre(3));
}

TEST(NvlinkFault, NonfatalReportsAndTrainingAtBootAccuseNobody) {
  const Diagnosis warn =
      DiagnoseTexts({{"dmesg.txt", "[1.0] NVRM: Xid (PCI:0000:1b:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 11 (0x0)\n"}});
  ASSERT_FALSE(warn.findings().empty());
  EXPECT_EQ(warn.findings(0).kind(), Kind::none);
  const Diagnosis boot = DiagnoseTexts({{"dmesg.txt",
                                         "[1.0] NVRM: Xid (PCI:0000:1b:00): 74, pid='<unknown>', name=<unknown>, NVLink: failed "
                                         "to train link 3 to remote PCI:0000:43:00\n"}});
  EXPECT_EQ(boot.findings(0).cause().id(), "HW-02");
  EXPECT_EQ(boot.findings(0).kind(), Kind::degraded_plan);
}

// ---- A GPU that is lost, its memory, its firmware.
TEST(GpuFault, FallenOffTheBusWithoutANumber) {
  const Diagnosis d = DiagnoseTexts({{"dmesg.txt",
                                      "[ 1843.308145] NVRM: The NVIDIA GPU 0000:c3:00.0\n"
                                      "               NVRM: (PCI ID: 10de:26b5) installed in this system has\n"
                                      "               NVRM: fallen off the bus and is not responding to commands.\n"
                                      "[ 1843.439662] NVRM: The NVIDIA probe routine failed for 1 device(s).\n"},
                                     {"nccl.log", InitLines("n1")}});
  ASSERT_FALSE(d.findings().empty());
  const Finding& f = d.findings(0);
  EXPECT_EQ(f.kind(), Kind::error_reported);
  EXPECT_EQ(f.cause().id(), "HW-05");
  EXPECT_THAT(f.who().ranks(), ElementsAre(5));
  EXPECT_THAT(AllText(f), HasSubstr("Xid 79"));
  EXPECT_THAT(AllText(f), HasSubstr("c3:00.0"));
}

TEST(GpuFault, FirmwareTimeoutNamesTheDriver) {
  const auto gsp = [](const char* driver) {
    return DiagnoseTexts(
        {{"dmesg.txt",
          absl::StrCat(
              "[903118.2] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  ", driver,
              "\n[911402.7] NVRM: Xid (PCI:0000:52:00): 119, pid=41220, name=python, Timeout after 45s of waiting for RPC "
              "response from GPU2 GSP! Expected function 76 (GSP_RM_CONTROL) sequence 1321 (0x20801702 0x4).\n")},
         {"nccl.log", InitLines("n1")}});
  };
  const Diagnosis affected = gsp("525.60.13");
  ASSERT_FALSE(affected.findings().empty());
  EXPECT_EQ(affected.findings(0).cause().id(), "HW-07");
  EXPECT_THAT(affected.findings(0).who().ranks(), ElementsAre(2));
  EXPECT_THAT(affected.findings(0).title(), HasSubstr("525.60.13"));
  EXPECT_THAT(affected.findings(0).next().text(), HasSubstr("525.105.17"));
  EXPECT_THAT(gsp("525.105.17").findings(0).next().text(), Not(HasSubstr("525.105.17")));
  EXPECT_THAT(gsp("570.86.15").findings(0).next().text(), Not(HasSubstr("525.105.17")));
}

TEST(GpuFault, MemoryErrorOfOneProcess) {
  const Diagnosis d = DiagnoseTexts(
      {{"dmesg.txt",
        "[5.0] NVRM: Xid (PCI:0000:d1:00): 94, pid=4106, name=python, Contained: SM (0x1). RST: No, D-RST: No\n"
        "[5.1] NVRM: Xid (PCI:0000:d1:00): 63, Row Remapper: New row marked for remapping, reset gpu to activate.\n"},
       {"nccl.log", InitLines("n1")}});
  ASSERT_FALSE(d.findings().empty());
  EXPECT_EQ(d.findings(0).cause().id(), "HW-06");
  EXPECT_THAT(d.findings(0).who().ranks(), ElementsAre(6));
}

TEST(GpuFault, IllegalAccessIsTheProgramUnlessHardwareFailedBefore) {
  const std::string mmu =
      "[5.5] NVRM: Xid (PCI:0000:61:00): 31, pid=4103, name=python, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS "
      "faulted @ 0x7f_0\n";
  const Diagnosis program = DiagnoseTexts({{"dmesg.txt", mmu}, {"nccl.log", InitLines("n1")}});
  ASSERT_FALSE(program.findings().empty());
  EXPECT_EQ(program.findings(0).cause().id(), "UC-10");
  EXPECT_THAT(program.findings(0).who().ranks(), ElementsAre(3));
  const Diagnosis link = DiagnoseTexts({{"dmesg.txt", Xid74("[5.0] ", 1, 4) + mmu}, {"nccl.log", InitLines("n1")}});
  EXPECT_EQ(link.findings(0).cause().id(), "HW-01");
  EXPECT_THAT(link.findings(0).who().ranks(), ElementsAre(1));
}

TEST(GpuFault, TheOneRankThatReportsTheAccessIsTheGpus) {
  const std::string mmu =
      "[5.5] NVRM: Xid (PCI:0000:61:00): 31, pid=991, name=python, Ch 00000008, intr 00000000. MMU Fault\n";
  const std::string error = "RuntimeError: CUDA error: an illegal memory access was encountered\n";
  const Diagnosis one = DiagnoseTexts({{"dmesg.txt", mmu}, {"log", "[rank1]: " + error}});
  ASSERT_FALSE(one.findings().empty());
  EXPECT_EQ(one.findings(0).cause().id(), "UC-10");
  EXPECT_THAT(one.findings(0).who().ranks(), ElementsAre(1));
  EXPECT_THAT(AllText(one.findings(0)), HasSubstr("Xid"));
}

TEST(GpuFault, OneGpuToldTwiceIsOne) {
  const Diagnosis d =
      DiagnoseTexts({{"dmesg.txt",
                      "[5.0] NVRM: Xid (PCI:0000:97:00): 79, pid=7, name=python, GPU has fallen off the bus.\n"
                      "[5.0] NVRM: GPU 0000:97:00.0: GPU has fallen off the bus.\n"
                      "[5.1] NVRM: Xid (PCI:0000:1b:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node "
                      "Reboot Required)\n"
                      "[5.1] NVRM: Xid (PCI:0000:97:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node "
                      "Reboot Required)\n"}});
  ASSERT_FALSE(d.findings().empty());
  EXPECT_THAT(d.findings(0).who().gpus(), ElementsAre("0000:97:00.0"));
  EXPECT_THAT(d.findings(0).title(), Not(HasSubstr("also")));
  EXPECT_THAT(d.findings(0).next().text(), HasSubstr("Node Reboot Required"));
}

TEST(GpuFault, ProcessesThatEndedAreNoFault) {
  const Diagnosis d = DiagnoseTexts({{"dmesg.txt", "[5.0] NVRM: Xid (PCI:0000:d1:00): 45, pid=4106, name=python, Ch 00000010\n"},
                                     {"nccl.log", InitLines("n1")}});
  ASSERT_FALSE(d.findings().empty());
  for (const Finding& f : d.findings()) EXPECT_THAT(f.kind(), AnyOf(Kind::none, Kind::undetermined));
}

TEST(GpuFault, ByProcessWhereTheBusIdIsUnknown) {
  const Diagnosis d = DiagnoseTexts(
      {{"dmesg.txt", "[5.0] NVRM: Xid (PCI:0000:0a:00): 79, pid=233, name=VLLM::Worker_TP, GPU has fallen off the bus.\n"},
       {"engine.log",
        "(Worker_TP1 pid=233) ERROR 08-16 09:09:02 [x.py:69] RuntimeError: CUDA error: unspecified launch failure\n"}});
  ASSERT_FALSE(d.findings().empty());
  EXPECT_EQ(d.findings(0).cause().id(), "HW-05");
  EXPECT_THAT(d.findings(0).who().ranks(), ElementsAre(1));
}

// ---- PCIe.
std::string Aer(int n) {
  std::string text;
  for (int i = 0; i < n; ++i)
    text +=
        "[  +0.000316] pcieport 0000:00:03.0: AER: Corrected error received: 0000:00:03.0\n"
        "[  +0.000005] pcieport 0000:00:03.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Transmitter ID)\n"
        "[  +0.000003] pcieport 0000:00:03.0:    [12] Timeout               \n";
  return text;
}

TEST(PcieFault, FloodAndALostGpu) {
  const Diagnosis d = DiagnoseTexts(
      {{"dmesg.txt", Aer(5)}, {"nvidia-smi.txt", "Unable to determine the device handle for GPU0000:03:00.0: Unknown Error\n"}});
  ASSERT_FALSE(d.findings().empty());
  const Finding& f = d.findings(0);
  EXPECT_EQ(f.kind(), Kind::error_reported);
  EXPECT_THAT(f.cause().id(), AnyOf("HW-05", "HW-09"));
  for (const char* token : {"AER", "03:00.0", "PCIe"}) EXPECT_THAT(AllText(f), HasSubstr(token));
}

TEST(PcieFault, AFewCorrectedErrorsAreNothing) {
  EXPECT_THAT(DiagnoseTexts({{"dmesg.txt", Aer(4)}}).findings(), IsEmpty());
  const Diagnosis flood = DiagnoseTexts({{"dmesg.txt", Aer(400)}});
  ASSERT_FALSE(flood.findings().empty());
  EXPECT_EQ(flood.findings(0).confidence(), Confidence::possible);
}

// ---- CUDA errors without a kernel log.
TEST(CudaError, UncorrectableNvlinkErrorNamesNobody) {
  const Diagnosis d = DiagnoseTexts({{"log",
                                      "RuntimeError: CUDA error: uncorrectable NVLink error detected during the "
                                      "execution\nexiting process with exit code: 10\n"}});
  ASSERT_FALSE(d.findings().empty());
  const Finding& f = d.findings(0);
  EXPECT_LE(f.confidence(), Confidence::possible);
  EXPECT_THAT(f.who().ranks(), IsEmpty());
  for (const char* token : {"Xid 74", "nvidia-smi nvlink", "NVLink"}) EXPECT_THAT(AllText(f), HasSubstr(token));
}

TEST(CudaError, ContainedOnManyAtOnceIsADomain) {
  std::string log;
  for (const int task : {162, 163, 160, 166})
    log += absl::StrFormat(
        "17:34:3%d.549 task=%d E0905 17:34:36.549101 x.cc:414] CUDA_ERROR_CONTAINED: Invalid access of peer GPU memory over "
        "nvlink or a hardware error\n",
        6 + task % 2, task);
  const Diagnosis d = DiagnoseTexts({{"all.log", log}, {"notes.txt", "tasks 160-167 share one NVLink domain (rack 10)\n"}});
  ASSERT_FALSE(d.findings().empty());
  EXPECT_EQ(d.findings(0).cause().id(), "HW-04");
  EXPECT_THAT(d.findings(0).who().ranks(), IsEmpty());
  EXPECT_THAT(AllText(d.findings(0)), HasSubstr("domain"));
  // One alone may be the program's own doing.
  const Diagnosis one = DiagnoseTexts({{"all.log", log.substr(0, log.find('\n') + 1)}});
  EXPECT_EQ(one.findings(0).kind(), Kind::undetermined);
}

TEST(CudaError, NotReadyIsTheFabricManager) {
  const Diagnosis d = DiagnoseTexts(
      {{"log", "[rank2]: RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized\n"}});
  ASSERT_FALSE(d.findings().empty());
  EXPECT_EQ(d.findings(0).cause().id(), "FB-01");
}

// ---- The host.
TEST(OomKiller, NamesTheRankOfTheProcess) {
  const Diagnosis d = DiagnoseTexts({{"nccl.log", InitLines("n1")},
                                     {"dmesg.txt",
                                      "[8123.4] Memory cgroup out of memory: Killed process 4106 (python) total-vm:91244100kB, "
                                      "anon-rss:33554000kB, file-rss:0kB\n"}});
  ASSERT_FALSE(d.findings().empty());
  EXPECT_EQ(d.findings(0).kind(), Kind::process_exited);
  EXPECT_EQ(d.findings(0).cause().id(), "UC-08");
  EXPECT_THAT(d.findings(0).who().ranks(), ElementsAre(6));
  EXPECT_EQ(d.findings(0).collateral().ranks_size(), 7);
  // A process that is none of the job's.
  const Diagnosis other = DiagnoseTexts(
      {{"dmesg.txt", "[8123.4] Out of memory: Killed process 9 (mysqld) total-vm:91244100kB, anon-rss:33554000kB\n"}});
  ASSERT_FALSE(other.findings().empty());
  EXPECT_LE(other.findings(0).confidence(), Confidence::possible);
}

TEST(HungTask, StorageOrDriver) {
  const auto hung = [](const char* frame) {
    return DiagnoseTexts(
        {{"nccl.log", InitLines("n1")},
         {"dmesg.txt",
          absl::StrCat("[7300.1] INFO: task python:4102 blocked for more than 120 seconds.\n[7300.1] Call Trace:\n[7300.1]  ",
                       frame, "+0x11/0x70\n")}});
  };
  const Diagnosis storage = hung("nfs_wait_bit_killable");
  ASSERT_FALSE(storage.findings().empty());
  EXPECT_EQ(storage.findings(0).kind(), Kind::host_blocked);
  EXPECT_EQ(storage.findings(0).cause().id(), "UC-06");
  EXPECT_THAT(storage.findings(0).who().ranks(), ElementsAre(2));
  EXPECT_EQ(hung("os_acquire_rwlock_write").findings(0).cause().id(), "HW-07");
  EXPECT_EQ(hung("__schedule").findings(0).cause().id(), "not established");
}

TEST(Segfault, NamesLibraryAndRank) {
  const Diagnosis d = DiagnoseTexts({{"nccl.log", InitLines("n1")},
                                     {"dmesg.txt",
                                      "[ 501.1] pt_main_thread[4101]: segfault at 7f797fe00000 ip 00007f7c7ac01234 sp "
                                      "00007f7a6f7fd0a8 error 4 in libnccl.so.2[7f7c7aa00000+55d7000]\n"}});
  ASSERT_FALSE(d.findings().empty());
  EXPECT_EQ(d.findings(0).kind(), Kind::process_exited);
  EXPECT_THAT(d.findings(0).who().ranks(), ElementsAre(1));
  EXPECT_THAT(d.findings(0).title(), HasSubstr("libnccl.so.2"));
}

TEST(Iommu, FaultsOfAGpu) {
  const Diagnosis d = DiagnoseTexts({{"nccl.log", InitLines("n1")},
                                     {"dmesg.txt",
                                      "[77.1] DMAR: [DMA Write NO_PASID] Request device [43:00.0] fault addr 0xd8000000 [fault "
                                      "reason 0x05] PTE Write access is not set\n"}});
  ASSERT_FALSE(d.findings().empty());
  EXPECT_EQ(d.findings(0).cause().id(), "FB-05");
}

TEST(Nic, ALinkThatWentDownIsPossibleUntilTheJobComplains) {
  const Diagnosis d = DiagnoseTexts({{"dmesg.txt", "[903.1] mlx5_core 0000:5e:00.0 enp94s0f0np0: Link down\n"}});
  ASSERT_FALSE(d.findings().empty());
  EXPECT_EQ(d.findings(0).kind(), Kind::edge_failed);
  EXPECT_EQ(d.findings(0).confidence(), Confidence::possible);
}

}  // namespace
}  // namespace ringscope::reasoning
