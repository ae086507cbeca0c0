// From text to verdict: plans that lost NVLink, and those that only look so.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analyzer/ingest/text_reader.h"
#include "analyzer/model/model.h"
#include "analyzer/reasoning/finder.h"

namespace ringscope::reasoning {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct File {
  std::string path, text;
};

Diagnosis DiagnoseText(const std::vector<File>& files) {
  model::Job job;
  for (const File& file : files) EXPECT_TRUE(ingest::ReadTextBytes(file.path, file.text, &job.evidence).ok());
  model::ResolveSpeakers(&job.evidence);
  return Diagnose(job);
}

// Findings of this area's finders only: other finders may have something to say about the same lines.
std::vector<Finding> Plans(const Diagnosis& d) {
  std::vector<Finding> found;
  for (const Finding& f : d.findings()) {
    if (f.kind() == Kind::fallback_path || f.kind() == Kind::degraded_plan) found.push_back(f);
  }
  return found;
}

// The log of rank `me` of `n` GPUs on one switch, `lanes[i]` of them each; `via(a, b)` of the ring's next edge.
std::string Log(int me, const std::vector<int>& lanes, const std::string& via, const std::string& extra = "",
                const std::string& host = "n1") {
  const int n = static_cast<int>(lanes.size());
  const std::string p = absl::StrFormat("%s:%d:%d [%d] NCCL INFO ", host, 100 + me, 100 + me, me);
  std::string text = extra.empty() ? "" : p + extra + "\n";
  const std::string init =
      absl::StrFormat("ncclCommInitRank comm 0x5%d rank %d nranks %d cudaDev %d nvmlDev %d busId %x000 commId 0xab - Init ", me,
                      me, n, me, me, 0x10 + me);
  text += p + init + "START\n" + p + "=== System : maxBw 370.8 totalBw 370.8 ===\n" + p + "CPU/0-0 (1/1/3)\n";
  for (int g = 0; g < n; ++g) {
    text += p + absl::StrFormat("+ PCI[48.0] - GPU/0-%x000 (%d)\n", 0x10 + g, g);
    if (lanes[g] > 0) text += p + absl::StrFormat("              + NVL[%.1f] - NVS/0-0\n", lanes[g] * 20.6);
  }
  const int next = (me + 1) % n;
  text += p + absl::StrFormat("Channel 00/0 : %d[%d] -> %d[%d] via %s\n", me, me, next, next, via);
  return text + p + init + "COMPLETE\n";
}

TEST(Plan, HealthySwitchIsHealthy) {
  std::vector<File> files;
  for (int r = 0; r < 4; ++r) files.push_back({absl::StrCat("r", r), Log(r, {18, 18, 18, 18}, "P2P/IPC")});
  EXPECT_THAT(Plans(DiagnoseText(files)), IsEmpty());
  // All alike with fewer lanes: a product with fewer, not a fault.
  files.clear();
  for (int r = 0; r < 4; ++r) files.push_back({absl::StrCat("r", r), Log(r, {8, 8, 8, 8}, "P2P/IPC")});
  EXPECT_THAT(Plans(DiagnoseText(files)), IsEmpty());
}

TEST(Plan, OneLaneLess) {
  const auto found =
      Plans(DiagnoseText({{"r0", Log(0, {18, 18, 17, 18}, "P2P/IPC")}, {"r2", Log(2, {18, 18, 17, 18}, "P2P/IPC")}}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind(), Kind::degraded_plan);
  EXPECT_THAT(found[0].title(), HasSubstr("GPU 2 (0000:12:00.0, rank 2) on n1 has 17 of 18 NVLink lanes"));
  EXPECT_THAT(found[0].who().ranks(), ElementsAre(2));
  EXPECT_THAT(found[0].who().hosts(), ElementsAre("n1"));
  EXPECT_GT(found[0].evidence_size(), 1);
  EXPECT_EQ(found[0].cause().id(), "HW-02");
}

TEST(Plan, DeadGpuOverSharedMemory) {
  std::vector<File> files;
  for (int r = 0; r < 4; ++r)
    files.push_back({absl::StrCat("r", r), Log(r, {18, 18, 0, 18}, r == 1 || r == 2 ? "SHM/direct/direct" : "P2P/IPC")});
  const auto found = Plans(DiagnoseText(files));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind(), Kind::fallback_path);
  EXPECT_THAT(found[0].who().ranks(), ElementsAre(2));
  ASSERT_EQ(found[0].who().edges_size(), 2);
  EXPECT_EQ(found[0].who().edges(0).from(), 1);
  EXPECT_EQ(found[0].who().edges(1).to(), 3);
  // The same text as over NVLink: P2P to a GPU without lanes is PCIe.
  files[1].text = Log(1, {18, 18, 0, 18}, "P2P/IPC");
  const auto pcie = Plans(DiagnoseText(files));
  ASSERT_EQ(pcie.size(), 1u);
  EXPECT_THAT(pcie[0].title(), HasSubstr("PCIe P2P and SHM"));
}

TEST(Plan, ASettingIsNamedInsteadOfHardware) {
  std::vector<File> files;
  for (int r = 0; r < 4; ++r)
    files.push_back({absl::StrCat("r", r), Log(r, {18, 18, 18, 18}, "SHM/direct", "NCCL_P2P_DISABLE set by environment to 1")});
  const auto found = Plans(DiagnoseText(files));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].title(), HasSubstr("NCCL_P2P_DISABLE=1 is set"));
  EXPECT_THAT(found[0].who().ranks(), IsEmpty());
  EXPECT_THAT(found[0].who().gpus(), IsEmpty());
  EXPECT_THAT(found[0].next().command(), HasSubstr("unset NCCL_P2P_DISABLE"));
  EXPECT_EQ(found[0].who().edges_size(), 4);
}

TEST(Plan, LinksUpButNotUsedWithoutASetting) {
  const auto found = Plans(DiagnoseText({{"r0", Log(0, {18, 18, 18, 18}, "SHM/direct")}}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].cause().id(), "FB-02");
  EXPECT_THAT(found[0].title(), HasSubstr("peer access is not granted"));
}

TEST(Plan, PcieMachinesAndBridgesAreByDesign) {
  const std::string topo =
      "\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\nGPU0\t X \tNV4\tNODE\tSYS\t0-7\nGPU1\tNV4\t X \tSYS\tSYS\t0-7\n"
      "GPU2\tNODE\tSYS\t X \tPHB\t8-15\nGPU3\tSYS\tSYS\tPHB\t X \t8-15\n";
  const std::string log =
      "n1:1:1 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via P2P/IPC\nn1:2:2 [1] NCCL INFO Channel 00 : 1[1] -> 2[2] via "
      "SHM/direct/direct\n"
      "n1:3:3 [2] NCCL INFO Channel 00 : 2[2] -> 3[3] via SHM/direct/direct\nn1:4:4 [3] NCCL INFO Channel 00 : 3[3] -> 0[0] via "
      "SHM/direct/direct\n";
  EXPECT_THAT(Plans(DiagnoseText({{"topo.txt", topo}, {"nccl.log", log}})), IsEmpty());
  EXPECT_THAT(Plans(DiagnoseText({{"nccl.log", log}})), IsEmpty());
}

TEST(Plan, ADriverOptionThatSwitchesNvlinkOff) {
  const std::string log =
      "n1:1:1 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct\nn1:2:2 [1] NCCL INFO Channel 00 : 1[1] -> 0[0] via "
      "SHM/direct/direct\n";
  const auto found =
      Plans(DiagnoseText({{"nccl.log", log}, {"nvidia.conf", "options nvidia NVreg_RegistryDwords=\"RMNvLinkEnable=0x0\"\n"}}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].title(), HasSubstr("RMNvLinkEnable=0x0"));
  // Switched on, it explains nothing.
  EXPECT_THAT(
      Plans(DiagnoseText({{"nccl.log", log}, {"nvidia.conf", "options nvidia NVreg_RegistryDwords=\"RMNvLinkEnable=0x1\"\n"}})),
      IsEmpty());
}

TEST(Plan, OddOneOutNeedsAllItsEdgesAndEnoughGpus) {
  const auto logs = [](int n, const std::vector<std::string>& via) {
    std::string text;
    for (int r = 0; r < n; ++r)
      text += absl::StrFormat("n1:%d:%d [%d] NCCL INFO Channel 00/0 : %d[%d] -> %d[%d] via %s\n", 10 + r, 10 + r, r, r, r,
                              (r + 1) % n, (r + 1) % n, via[r]);
    return text;
  };
  const std::string p = "P2P/IPC", s = "SHM/direct";
  const auto found = Plans(DiagnoseText({{"nccl.log", logs(8, {p, p, s, s, p, p, p, p})}}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].confidence(), Confidence::possible);
  EXPECT_THAT(found[0].who().ranks(), ElementsAre(3));
  // Two sockets: the ring crosses twice.
  EXPECT_THAT(Plans(DiagnoseText({{"nccl.log", logs(8, {p, p, p, s, p, p, p, s})}})), IsEmpty());
  EXPECT_THAT(Plans(DiagnoseText({{"nccl.log", logs(4, {p, s, s, p})}})), IsEmpty());
}

TEST(Plan, TwoHostsOfOneNameAreNotMixed) {
  const std::string a = Log(0, {18, 18}, "P2P/IPC"), b = Log(1, {18, 18}, "P2P/IPC");
  // The same bus id as rank 0's in the same communicator: another machine that carries the same name.
  std::string c = Log(1, {18, 0}, "SHM/direct");
  const size_t at = c.find("busId 11000");
  ASSERT_NE(at, c.npos);
  for (size_t i = c.find("busId 11000"); i != c.npos; i = c.find("busId 11000")) c.replace(i, 11, "busId 10000");
  const auto found = Plans(DiagnoseText({{"nccl.hostA.log", a}, {"nccl.hostB.log", c}}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].who().hosts(), ElementsAre("hostB"));
}

TEST(Plan, ARackThatIsOneDomainAccusesNoHost) {
  std::string log = Log(0, {18, 18, 18, 17}, "P2P/MNNVL");
  for (size_t at = log.find("GPU/0-13000"); at != log.npos; at = log.find("GPU/0-13000")) log.replace(at, 11, "GPU/1-10000");
  EXPECT_THAT(Plans(DiagnoseText({{"r0", log}})), IsEmpty());
}

TEST(Plan, NvlinkRefusedByTheDriver) {
  const Diagnosis d = DiagnoseText(
      {{"nccl.log",
        "n1:1:2 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1a000 commId 0xab - Init "
        "START\n"
        "[2026-01-02 03:04:05] n1:1:2 [0] graph/paths.cc:396 NCCL WARN P2P is disabled between NVLINK connected GPUs 1 and 0. "
        "This "
        "should not be the "
        "case given their connectivity, and is probably due to a hardware issue. If you still want to proceed, you can set "
        "NCCL_IGNORE_DISABLED_P2P=1.\n"}});
  ASSERT_GE(d.findings_size(), 1);
  const Finding& f = d.findings(0);
  EXPECT_EQ(f.kind(), Kind::error_reported);
  EXPECT_EQ(f.confidence(), Confidence::possible);  // NCCL's guess names hardware; no witness does
  EXPECT_EQ(d.state(), State::init_failure);
  EXPECT_THAT(f.next().text(), HasSubstr("NCCL_IGNORE_DISABLED_P2P"));
  EXPECT_THAT(f.who().ranks(), IsEmpty());
  // Between PCIe GPUs it is no fault.
  EXPECT_THAT(Plans(DiagnoseText(
                  {{"l",
                    "n1:1:2 [0] NCCL INFO P2P is disabled between connected GPUs 2 and 1. You can repress this message with "
                    "NCCL_IGNORE_DISABLED_P2P=1.\n"}})),
              IsEmpty());
}

TEST(Plan, GraphDumpOfANetRing) {
  const std::string warn =
      "[2026-01-02 03:04:05] n1:1:1 [0] graph/xml.h:448 NCCL WARN KV Convert to str : could not find value 10 in dictionary\n";
  const Diagnosis d =
      DiagnoseText({{"l", "n1:1:1 [0] NCCL INFO NCCL_GRAPH_DUMP_FILE set by environment to /tmp/g.xml\n" + warn}});
  ASSERT_GE(d.findings_size(), 1);
  EXPECT_EQ(d.findings(0).kind(), Kind::misconfigured);
  EXPECT_THAT(d.findings(0).title(), HasSubstr("NCCL_GRAPH_DUMP_FILE"));
  const Diagnosis warned = DiagnoseText({{"l", warn}});
  for (const Finding& f : warned.findings()) EXPECT_NE(f.kind(), Kind::misconfigured);
}

// Two hosts of two ranks each; `gdr` and adapters as given.
std::string NetLog(const std::string& host, int base, bool gdr, int adapters) {
  std::string text;
  for (int l = 0; l < 2; ++l) {
    const int me = base + l;
    const std::string p = absl::StrFormat("%s:%d:%d [%d] NCCL INFO ", host, 10 + me, 10 + me, l);
    const std::string init = absl::StrFormat(
        "ncclCommInitRank comm 0x5 rank %d nranks 4 cudaDev %d nvmlDev %d busId 1%d000 commId 0xab - Init ", me, l, l, l);
    text += p + init + "START\n" + p + absl::StrFormat("Rank %d: %d Net devices\n", me, adapters) + p +
            absl::StrFormat("comm 0x5 rank %d nRanks 4 nNodes 2 localRanks 2 localRank %d MNNVL 0\n", me, l);
    if (l == 1)
      text +=
          p + absl::StrFormat("Channel 00/0 : %d[1] -> %d[0] [send] via NET/IB/0%s\n", me, (me + 1) % 4, gdr ? "/GDRDMA" : "");
    text += p + init + "COMPLETE\n";
  }
  return text;
}

TEST(Plan, GdrOffOnOneHost) {
  EXPECT_THAT(Plans(DiagnoseText({{"a", NetLog("a", 0, true, 2)}, {"b", NetLog("b", 2, true, 2)}})), IsEmpty());
  EXPECT_THAT(Plans(DiagnoseText({{"a", NetLog("a", 0, false, 2)}, {"b", NetLog("b", 2, false, 2)}})),
              IsEmpty());  // nothing says it could
  const auto found = Plans(DiagnoseText({{"a", NetLog("a", 0, true, 2)}, {"b", NetLog("b", 2, false, 2)}}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].who().hosts(), ElementsAre("b"));
  EXPECT_EQ(found[0].cause().id(), "NET-06");
}

TEST(Plan, AnAdapterMissingOnOneHost) {
  const auto found = Plans(DiagnoseText({{"a", NetLog("a", 0, true, 8)}, {"b", NetLog("b", 2, true, 7)}}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind(), Kind::degraded_plan);
  EXPECT_THAT(found[0].who().hosts(), ElementsAre("b"));
  EXPECT_EQ(found[0].cause().id(), "NET-08");
}

TEST(Plan, OddNumbersEndNowhere) {
  std::string text;
  for (int i = 0; i < 300; ++i)
    text +=
        absl::StrFormat("n1:%d:1 [0] NCCL INFO Channel 00/0 : %d[%d] -> 0[999] via %s\n", i, i, i, i % 2 ? "SHM" : "NET/IB/0");
  text += "n1:1:1 [0] NCCL INFO Channel 00/0 : 16777215[ffffffffffffffff] -> 16777214[fffffffffffffff] via P2P/IPC\n";
  text +=
      "n1:1:1 [0] NCCL INFO + NVL[0.0] - NVS/0\nn1:1:1 [0] NCCL INFO === System\nn1:1:1 [0] NCCL INFO + PCI[1] - "
      "GPU/ffffffffffffffff (9999999)\n";
  DiagnoseText({{"l", text},
                {"topo.xml",
                 "<system version=\"1\"><cpu><pci busid=\"ff:ff.f\"><gpu rank=\"-5\" dev=\"-1\"><nvlink target=\"x\" count=\"3\" "
                 "tclass=\"\"/></gpu></pci></cpu></system>"}});
}

// What a process planned before its machine lost a link says nothing of now, and its P2P/IPC lines ran over NVLink then.
TEST(Plan, ALaterCommunicatorSeesTheMachineAsItIs) {
  const std::vector<int> whole = {18, 18, 18, 18}, short_of = {18, 18, 0, 18};
  std::vector<File> files;
  for (int me = 0; me < 4; ++me) {
    const bool lost = me == 1 || me == 2;
    std::string later = Log(me, short_of, lost ? "SHM/direct/direct" : "P2P/IPC");
    for (size_t at = 0; (at = later.find("0xab", at)) != later.npos; at += 4) later.replace(at, 4, "0xcd");
    files.push_back({absl::StrCat("rank", me, ".log"), Log(me, whole, "P2P/IPC") + later});
  }
  const auto found = Plans(DiagnoseText(files));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind(), Kind::fallback_path);
  EXPECT_THAT(found[0].title(), HasSubstr("0 of 18 NVLink lanes"));
  EXPECT_THAT(found[0].title(), testing::Not(HasSubstr("PCIe P2P")));
  EXPECT_EQ(found[0].who().edges_size(), 2) << found[0].ShortDebugString();
  // The other way round: repaired.
  for (File& file : files) {
    const size_t middle = file.text.find("=== System", file.text.find("=== System") + 1);
    const size_t start = file.text.rfind('\n', file.text.find("Init START", file.text.find("Init COMPLETE"))) + 1;
    ASSERT_LT(start, middle);
    file.text = file.text.substr(start) + file.text.substr(0, start);
  }
  for (const Finding& f : Plans(DiagnoseText(files))) EXPECT_THAT(f.title(), testing::Not(HasSubstr("0 of 18")));
}

// The line that begins a split's plan is lost.
TEST(Plan, ASecondMachineIsANewPlanWithoutItsStart) {
  std::string text = Log(0, {18, 18, 18}, "P2P/IPC");
  std::string later = Log(0, {18, 18, 0}, "P2P/IPC");
  later.erase(0, later.find('\n') + 1);
  for (size_t at = 0; (at = later.find("0xab", at)) != later.npos; at += 4) later.replace(at, 4, "0xcd");
  model::Job job;
  ASSERT_TRUE(ingest::ReadTextBytes("rank0.log", text + later, &job.evidence).ok());
  ASSERT_EQ(job.evidence.plan.plans.size(), 2u);
  EXPECT_NE(job.evidence.plan.plans[0].system, job.evidence.plan.plans[1].system);
  EXPECT_EQ(job.evidence.plan.plans[1].communicator, "0xcd");
}

}  // namespace
}  // namespace ringscope::reasoning
