// NVML's collectors on the stand-in of tests/sim/nvml; the analyzer's reading of what they write is in diagnose_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "supervisor/collect.h"
#include "tests/unit/supervisor/collecting.h"

namespace ringscope::supervisor {
namespace {

using ::testing::HasSubstr;
using testing::Named;
using ::testing::Not;
using ::testing::StartsWith;
using testing::TempDir;
using testing::TextOf;
using testing::Variable;

const char* const kNames[] = {"nvlink-s", "nvlink-e", "topo-p2p", "smi-q"};

class CollectNvml : public ::testing::Test {
 protected:
  // What happens to the machine, in the words of tests/sim/machine/README.md.
  std::vector<Collected> On(const std::string& state, const std::string& machine = "hgx_h100x4") {
    const Variable file("RINGSCOPE_SIM_MACHINE", std::string(RINGSCOPE_SOURCE_DIR "/tests/sim/machines/") + machine + ".machine");
    const Variable since("RINGSCOPE_SIM_MACHINE_STATE", dir_.Write("state", state));
    return CollectEvidence(options_);
  }
  std::string Text(const std::vector<Collected>& all, const std::string& name) { return TextOf(Named(all, name).file); }
  static size_t Count(const std::string& text, const std::string& what) {
    size_t n = 0;
    for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
    return n;
  }

  TempDir dir_;
  CollectOptions options_ = testing::OptionsOf(dir_);
};

TEST_F(CollectNvml, AHealthyMachine) {
  const auto all = On("");
  for (const char* name : kNames) {
    EXPECT_EQ("", Named(all, name).why_not) << name;
    EXPECT_EQ(dir_ / "evidence/node1.stall." + name + ".txt", Named(all, name).file);
  }
  const std::string states = Text(all, "nvlink-s");
  EXPECT_THAT(states, HasSubstr(" ringscope@node1:/$ nvidia-smi nvlink -s\nGPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-"));
  EXPECT_EQ(4u * 18, Count(states, ": 26.562 GB/s\n"));
  EXPECT_THAT(states, Not(HasSubstr("inactive")));
  EXPECT_EQ(4u * 18 * 3, Count(Text(all, "nvlink-e"), " Errors: 0\n"));
  EXPECT_THAT(Text(all, "topo-p2p"), HasSubstr("nvidia-smi topo -p2p r\n\tGPU0\tGPU1\tGPU2\tGPU3\n GPU0\tX\tOK\tOK\tOK\n"));
  const std::string query = Text(all, "smi-q");
  EXPECT_THAT(query, HasSubstr("\nGPU 00000000:1B:00.0\n    Product Name                          : NVIDIA H100 80GB HBM3\n"));
  EXPECT_THAT(query, HasSubstr("            Link Width\n                Max                       : 16x\n                Current "
                               "                  : 16x\n"));
  EXPECT_THAT(query, HasSubstr("    Clocks Event Reasons\n        Idle                              : Active\n"));
  EXPECT_THAT(query, HasSubstr("    Fabric\n        State                             : Completed\n        Status                "
                               "            : Success\n"));
  // The stand-in lacks the function; the rest is there nevertheless.
  EXPECT_THAT(query, Not(HasSubstr("Remapped Rows")));
}

TEST_F(CollectNvml, LanesThatAreDown) {
  const auto all = On("lanes 1 12\nerrors 1 5 4200\n");
  const std::string states = Text(all, "nvlink-s");
  EXPECT_EQ(6u, Count(states, ": <inactive>\n"));
  EXPECT_EQ(66u, Count(states, ": 26.562 GB/s\n"));
  EXPECT_THAT(Text(all, "nvlink-e"), HasSubstr("\t Link 5: Replay Errors: 4200\n\t Link 5: Recovery Errors: 42\n"));
}

TEST_F(CollectNvml, PairsWithoutPeerAccess) {
  const std::string peers = Text(On("refuse 0-1\n"), "topo-p2p");
  EXPECT_EQ(2u, Count(peers, " GPU0\tX\tNS\tOK\tOK\n"));
  EXPECT_EQ(2u, Count(peers, " GPU1\tNS\tX\tOK\tOK\n"));
}

TEST_F(CollectNvml, PairsWithoutANvLink) {
  const std::string peers = Text(On("", "dgx1v"), "topo-p2p");
  EXPECT_EQ(1u, Count(peers, " GPU0\tX\tOK\tOK\tOK\tOK\tOK\tOK\tOK\n"));  // they may read over PCIe
  EXPECT_EQ(1u, Count(peers, " GPU0\tX\tOK\tOK\tOK\tOK\tNS\tNS\tNS\n"));
}

TEST_F(CollectNvml, AGpuThatIsLost) {
  // As the driver lists its GPUs; NVML has no handle to ask for the address.
  for (const char* bus : {"0000:1b:00.0", "0000:43:00.0", "0000:9d:00.0", "0000:c3:00.0"})
    dir_.Write(std::string("proc/driver/nvidia/gpus/") + bus + "/information", "");
  const auto all = On("lost 1\n");
  for (const char* name : kNames) EXPECT_EQ("GPU 1: GPU is lost", Named(all, name).why_not) << name;
  const std::string line = "Unable to determine the device handle for GPU1: 0000:43:00.0: GPU is lost\n";
  for (const char* name : {"nvlink-s", "nvlink-e", "smi-q"}) EXPECT_THAT(Text(all, name), HasSubstr(line));
  EXPECT_EQ(3u * 18, Count(Text(all, "nvlink-s"), "GB/s"));
  EXPECT_THAT(Text(all, "topo-p2p"), HasSubstr(" GPU1\tU\tX\tU\tU\n"));
}

TEST_F(CollectNvml, ADriverThatDoesNotComeBack) {
  const Variable hangs("RINGSCOPE_SIM_NVML_HANGS", "1");
  dir_.Write("kmsg", "6,1,1000000,-;NVRM: Xid (PCI:0000:43:00): 119, pid=1, Timeout\n");
  options_.on_stall = "echo heard";
  options_.seconds = 2;
  const double before = testing::Seconds();
  const auto all = On("");
  EXPECT_LT(testing::Seconds() - before, 3.5);
  for (const char* name : kNames) EXPECT_THAT(Named(all, name).why_not, StartsWith("it took longer than its 2 seconds")) << name;
  for (const char* name : kNames) EXPECT_EQ("", Named(all, name).file) << name;
  EXPECT_THAT(Text(all, "kernel"), HasSubstr("Xid (PCI:0000:43:00): 119"));
  EXPECT_THAT(Text(all, "command"), HasSubstr("heard\n"));
  EXPECT_LT(Named(all, "kernel").seconds, 2);
}

TEST_F(CollectNvml, NoDriver) {
  options_.nvml = "libringscope-no-such-library.so.1";
  const auto all = On("");
  for (const char* name : kNames) {
    EXPECT_THAT(Named(all, name).why_not, StartsWith("no NVIDIA driver here (libringscope-no-such-library.so.1")) << name;
    EXPECT_EQ("", Named(all, name).file);
  }
}

TEST_F(CollectNvml, ADriverThatWasUpgradedUnderIt) {
  const Variable mismatch("RINGSCOPE_SIM_NVML_MISMATCH", "1");
  const auto all = On("");
  for (const char* name : kNames) EXPECT_EQ("Driver/library version mismatch", Named(all, name).why_not) << name;
  EXPECT_EQ("Failed to initialize NVML: Driver/library version mismatch\n", Text(all, "smi-q"));
}

TEST_F(CollectNvml, OnlyOneSupervisorOfAHostAsks) {
  options_.of_host = false;
  for (const Collected& c : On("")) ADD_FAILURE() << c.name;
}

}  // namespace
}  // namespace ringscope::supervisor
