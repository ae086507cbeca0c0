// Xid and SXid lines in the shapes that drivers of ten years print; addresses invented.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/ingest/text_reader.h"

namespace ringscope {
namespace {

using model::XidFact;

std::vector<XidFact> Read(std::string_view text, const char* name = "dmesg.txt") {
  model::Evidence evidence;
  EXPECT_TRUE(ingest::ReadTextBytes(name, text, &evidence).ok());
  return evidence.kernel.xids;
}

TEST(Xid, EveryShapeGivesNumberAddressAndProcess) {
  struct Shape {
    const char* line;
    int number;
    const char* pci;
    int64_t pid;
    const char* process;
  };
  for (const Shape& s : {
           Shape{"NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.", 79, "0000:3b:00", 1234, ""},
           Shape{"NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", 79, "0000:3b:00",
                 -1, ""},
           Shape{"NVRM: Xid (PCI:0000:b9:00): 74, pid=<unknown>, name=<unknown>, NVLink: x", 74, "0000:b9:00", -1, ""},
           Shape{"NVRM: Xid (PCI:0000:65:00): 74, pid=<n/a>, name=<unknown>, NVLink: x", 74, "0000:65:00", -1, ""},
           Shape{"NVRM: Xid (PCI:0000:65:00): 43, pid=N/A, name=pt_main_thread, Ch 00000008", 43, "0000:65:00", -1,
                 "pt_main_thread"},
           Shape{"NVRM: Xid (0000:07:00): 31, Ch 00000003, engmask 00000101", 31, "0000:07:00", -1, ""},
           Shape{"NVRM: Xid (PCI:0000:31:00 GPU-I:05): 94, pid=77, name=python3, Contained: SM (0x1).", 94, "0000:31:00", 77,
                 "python3"},
           Shape{"NVRM: Xid 154, GPU recovery action changed from None to Node Reboot Required", 154, "", -1, ""},
           Shape{"NVRM: GPU1 Xid (PCI:0000:5e:00): 120, GSP task exception", 120, "0000:5e:00", -1, ""},
       }) {
    SCOPED_TRACE(s.line);
    const auto facts = Read(std::string("[ 12.5] ") + s.line + "\n");
    ASSERT_EQ(facts.size(), 1u);
    EXPECT_EQ(facts[0].number, s.number);
    EXPECT_EQ(facts[0].pci, s.pci);
    EXPECT_EQ(facts[0].pid, s.pid);
    EXPECT_EQ(facts[0].process, s.process);
    EXPECT_EQ(facts[0].bus_id.has_value(), *s.pci != 0);
    EXPECT_EQ(facts[0].time.ns, 12'500'000'000);
  }
}

TEST(Xid, TextTellsLinkSeverityCauseAndAction) {
  const auto facts = Read(
      "NVRM: Xid (PCI:0000:66:00): 145, RLW_RXPIPE Fatal XC0 i0 Link 05 (0x0409a0c2 0x00000008)\n"
      "NVRM: Xid (PCI:0019:01:00): 149, NETIR Nonfatal XC0 i0 Link -1 (0x000fe406 0x0)\n"
      "NVRM: Xid (PCI:0000:66:00): 45, pid=2, name=VLLM::Worker_TP, Ch 00000003 caused by previous Xid 145\n"
      "NVRM: Xid (PCI:0000:97:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)\n"
      "NVRM: Xid (PCI:0003:00:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 14(0x0, 0x0)\n");
  ASSERT_EQ(facts.size(), 5u);
  EXPECT_EQ(facts[0].link, 5);
  EXPECT_EQ(facts[0].unit, "RLW_RXPIPE");
  EXPECT_EQ(facts[0].severity, XidFact::Severity::kFatal);
  EXPECT_EQ(facts[1].link, -1);
  EXPECT_EQ(facts[1].severity, XidFact::Severity::kNonfatal);
  EXPECT_EQ(facts[2].caused_by, 145);
  EXPECT_EQ(facts[2].process, "VLLM::Worker_TP");
  EXPECT_EQ(facts[3].action, "GPU Reset Required");
  EXPECT_EQ(facts[4].link, 14);
  EXPECT_EQ(*facts[4].bus_id, *model::ParseBusId("0003:00:00.0"));
}

TEST(Xid, SwitchErrorsWithoutTheirRegisters) {
  const auto facts = Read(
      "[ 1.0] nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 31 LTSSM Fault Up\n"
      "[ 1.0] nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 20034, Severity 1 Engine instance 31 Sub-engine instance 00\n"
      "[ 1.0] nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 20034, Data {0x00000001, 0x0}\n"
      "[ 1.1] nvidia-nvswitch0: SXid (PCI:0000:06:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)\n"
      "[ 1.2] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): garbled, Fatal\n");
  ASSERT_EQ(facts.size(), 2u);
  EXPECT_TRUE(facts[0].nvswitch);
  EXPECT_EQ(facts[0].number, 20034);
  EXPECT_EQ(facts[0].link, 31);
  EXPECT_EQ(facts[1].severity, XidFact::Severity::kNonfatal);
}

TEST(Xid, FallenOffTheBusInWords) {
  for (const char* text : {
           "[ 1843.308145] NVRM: The NVIDIA GPU 0000:b3:00.0\n"
           "               NVRM: (PCI ID: 10de:26b5) installed in this system has\n"
           "               NVRM: fallen off the bus and is not responding to commands.\n",
           "[ 1843.3] NVRM: The NVIDIA GPU 0000:b3:00.0 (PCI ID: 10de:26b5)\n"
           "[ 1843.3] NVRM: installed in this system has fallen off the bus and is not responding to commands.\n",
           "Aug  5 03:12:01 gpu07 kernel: NVRM: The NVIDIA GPU 0000:b3:00.0\n"
           "Aug  5 03:12:01 gpu07 kernel: NVRM: (PCI ID: 10de:26b5) installed in this system has\n"
           "Aug  5 03:12:01 gpu07 kernel: NVRM: fallen off the bus and is not responding to commands.\n",
           "[ 1843.3] NVRM: The NVIDIA GPU 0000:b3:00.0 (PCI ID: 10de:26b5) installed in this system has fallen off the bus and "
           "is not responding to commands.\n",
           "[ 1843.3] NVRM: GPU 0000:b3:00.0: GPU has fallen off the bus.\n",
       }) {
    SCOPED_TRACE(text);
    const auto facts = Read(text);
    ASSERT_EQ(facts.size(), 1u);
    EXPECT_EQ(facts[0].number, 79);
    EXPECT_TRUE(facts[0].unnumbered);
    EXPECT_EQ(model::BusIdText(*facts[0].bus_id), "0000:b3:00.0");
    EXPECT_EQ(facts[0].where.line, 1u);
    EXPECT_THAT(facts[0].quote, ::testing::HasSubstr("fallen off the bus"));
  }
  // The same first line of another message.
  EXPECT_TRUE(Read("NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:1b80)\n"
                   "NVRM: installed in this system is not supported by the 590 driver\n"
                   "a\nb\nc\nd\nNVRM: fallen off the bus and is not responding to commands.\n")
                  .empty());
}

TEST(Xid, FloodsAreJoinedAndDoNotHideWhatFollows) {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += "[ 5.0] NVRM: Xid (PCI:0000:3b:00): 13, pid=4, name=a, Graphics Exception\n";
  text += "[ 6.0] NVRM: Xid (PCI:0000:3b:00): 79, pid=4, name=a, GPU has fallen off the bus.\n";
  const auto facts = Read(text);
  ASSERT_EQ(facts.size(), 2u);
  EXPECT_EQ(facts[0].repeats, 19999u);
  EXPECT_EQ(facts[1].number, 79);
  // Distinct lines without end are bounded.
  text.clear();
  for (int i = 0; i < 20000; ++i) text += "NVRM: Xid (PCI:0000:3b:00): 31, pid=" + std::to_string(i) + ", name=a, MMU Fault\n";
  EXPECT_LE(Read(text).size(), 4096u);
}

TEST(Xid, AFilesRankIsNotTheGpusRank) {
  const auto facts = Read("NVRM: Xid (PCI:0000:3b:00): 79, pid=4, name=a, x\n", "dmesg-rank3.txt");
  ASSERT_EQ(facts.size(), 1u);
  EXPECT_EQ(facts[0].by.rank, -1);
}

TEST(Xid, NoXidWhereNoneIs) {
  for (const char* line : {"dmesg: no Xid", "NVRM: Xid", "NVRM: Xid (PCI:): x", "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): ",
                           "Xid 79 would look like this", "NVRM: Xid (PCI:0000:3b:00): 99999999999999999999, x",
                           "NVRM: Xid (PCI:0000:3b:00): ", "NVRM: The NVIDIA GPU "}) {
    EXPECT_TRUE(Read(std::string(line) + "\n").empty()) << line;
  }
  const auto odd = Read("NVRM: Xid (PCI:zz): 3, pid=999999999999999999999999, name=\x01\xff, \xff\xfe\n");
  EXPECT_LE(odd.size(), 1u);
  const auto huge = Read(
      "NVRM: Xid (PCI:0000:3b:00): 45, pid=99999999999999999999999999, name=a, Link 99999999999 caused by previous Xid "
      "99999999999\n");
  ASSERT_EQ(huge.size(), 1u);
  EXPECT_EQ(huge[0].link, -1);
  EXPECT_EQ(huge[0].caused_by, 0);
}

}  // namespace
}  // namespace ringscope
