// What probes read from directories, and from hostile ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "analyzer/report/json.h"
#include "doctor/probe.h"
#include "doctor/utf8.h"
#include "tests/unit/doctor/stand_in.h"

namespace ringscope::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const node::Asked& Asked(const node::Node& node, const std::string& name) {
  static const node::Asked none;
  const node::Asked* asked = doctor::AskedOf(node, name);
  return asked == nullptr ? none : *asked;
}

TEST(Probes, PortsAndGids) {
  StandIn node;
  node.Nic("mlx5_0", "0000:1c:00.0", "Ethernet", "eth3");
  const node::Node seen = node.Look();
  ASSERT_EQ(1, seen.ports_size());
  EXPECT_EQ("mlx5_0", seen.ports(0).device());
  EXPECT_EQ("400 Gb/sec (4X NDR)", seen.ports(0).rate());
  EXPECT_EQ("MT_0000000838", seen.ports(0).board());
  EXPECT_EQ("eth3", seen.ports(0).interface());
  ASSERT_EQ(4, seen.ports(0).gids_size());  // empty ones are left out
  EXPECT_EQ(3, seen.ports(0).gids(3).index());
  EXPECT_EQ("RoCE v2", seen.ports(0).gids(3).type());
  EXPECT_EQ("eth3", seen.ports(0).gids(3).interface());
}

TEST(Probes, InterfacesInTheOrderOfTheirIndex) {
  StandIn node;
  node.Interface("aaa", 7, "down", false);
  node.Interface("bond0", 5, "up", false);
  node.Write("sys/class/net/bond0/lower_eno1/x", "");
  node.Interface("br0", 6, "up", false);
  node.Write("sys/class/net/br0/lower_eno1/x", "");
  node.Write("sys/class/net/br0/bridge/x", "");
  node.Write("sys/class/net/bonding_masters", "bond0\n");
  std::vector<std::string> names;
  const node::Node seen = node.Look();
  for (const node::Interface& one : seen.interfaces()) names.push_back(one.name() + (one.physical() ? "!" : ""));
  EXPECT_THAT(names, ::testing::ElementsAre("lo", "eno1!", "bond0!", "br0", "aaa"));
}

TEST(Probes, BannersOfNccl) {
  StandIn node;
  node.place().environment["VIRTUAL_ENV"] = "/venv";
  node.Nccl("/venv/lib/python3.12/site-packages/nvidia/nccl/lib", "2.28.9", "13.0");
  node.Write("root/usr/lib64/libnccl.so.2", "no banner here");
  node.Write("root/usr/local/lib/libnccl.so.2", "");
  const node::Node seen = node.Look();
  ASSERT_EQ(3, seen.libraries_size());
  EXPECT_EQ("/venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2", seen.libraries(0).file());
  EXPECT_EQ("2.28.9", seen.libraries(0).nccl());
  EXPECT_EQ(13000, seen.libraries(0).cuda());
  EXPECT_EQ("", seen.libraries(1).nccl());
}

TEST(Probes, TheBannerAtTheVeryEnd) {
  StandIn node;
  node.Write("root/usr/lib64/libnccl.so.2", std::string(4096 - 19, 'x') + "NCCL version 2.27.7");
  node.Write("root/usr/lib/libnccl.so.2", std::string(4096 - 13, 'x') + "NCCL version ");
  const node::Node seen = node.Look();
  EXPECT_EQ("2.27.7", seen.libraries(0).nccl());
  EXPECT_EQ(0, seen.libraries(0).cuda());
  EXPECT_EQ("", seen.libraries(1).nccl());
}

TEST(Probes, LimitsOfTheRealProcess) {
  StandIn node;
  node.place().procfs = "/proc";
  const node::Node seen = node.Look();
  EXPECT_NE("", seen.limits().memlock());
  EXPECT_NE("", seen.limits().open_files());
}

TEST(Probes, TheModule) {
  StandIn node;
  node.Write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n");
  EXPECT_EQ("580.65.06", node.Look().driver().kernel_version());
  EXPECT_TRUE(node.Look().driver().open_modules());
}

TEST(Probes, ADirectoryThatIsNotThereYetIsNotMade) {
  StandIn node;
  node.place().directory = node.place().root + "/a/b";
  const node::Node seen = node.Look();
  EXPECT_EQ("", seen.record().directory_trouble());
  EXPECT_GT(seen.record().directory_free(), 0u);
  EXPECT_FALSE(std::filesystem::exists(node.place().root + "/a"));
}

TEST(Probes, ADirectoryThatIsAFile) {
  StandIn node;
  node.place().directory = node.Write("file", "");
  EXPECT_THAT(node.Look().record().directory_trouble(), HasSubstr("cannot be written: Not a directory"));
}

TEST(Probes, ALibraryThatIsNone) {
  StandIn node;
  node.place().library = node.Write("libringscope.so",
                                    "\x7f"
                                    "ELF and nothing more");
  EXPECT_THAT(node.Look().record().library_trouble(), HasSubstr("libringscope.so: file too short"));
}

// Nothing of this may be more than an unknown.
TEST(Probes, AHostileSysfs) {
  StandIn node;
  node.Hgx();
  const std::string garbage = std::string("\xff\x00\x1b[2J", 6) + std::string(100000, '9');
  const std::string port = "sys/class/infiniband/mlx5_0/ports/";
  for (const char* file : {"state", "rate", "link_layer", "gids/0", "gid_attrs/types/0"}) node.Write(port + "1/" + file, garbage);
  node.Write(port + "not_a_number/state", "4: ACTIVE\n");
  node.Write(port + "99999999999999999999/gids/-1", "fe80::1\n");
  node.Write("sys/class/net/eno1/ifindex", "-99999999999999\n");
  node.Write("proc/self/limits", garbage + "\nMax locked memory\nMax open files     \n");
  node.Write("proc/driver/nvidia/version", garbage);
  node.Write("dev/kmsg",
             garbage + "\n4,1,1,-;NVRM: Xid (PCI:0000:43:00): 99999999999999999999, x\n4,1,1,-;NVRM: Xid (PCI:): 79\n");
  // Capability lists that lead to themselves and beyond the end.
  std::string loop(4096, '\x40');
  loop[6] = 0x10;
  node.Write("sys/devices/pci0000:1b/001b:00:01.0/config", loop);
  node.Write("sys/devices/pci0000:1b/001b:00:01.0/001b:01:00.0/config", std::string(300, '\xff'));
  std::filesystem::create_symlink("loop", node.place().sysfs + "/loop");
  std::filesystem::create_symlink(node.place().sysfs + "/loop", node.place().sysfs + "/class/infiniband/mlx5_9");
  const node::Node seen = node.Look();
  for (const char* name : {"ports", "interfaces", "pci", "nvml", "kernel-log"}) EXPECT_TRUE(Asked(seen, name).answered()) << name;
  EXPECT_EQ("", seen.limits().memlock());
  EXPECT_GE(seen.ports_size(), 8);
  EXPECT_TRUE(report::ToJson(seen).ok());
  const node::Report report = doctor::Judge(seen, &seen, {}, {});
  EXPECT_EQ(doctor::Checks().size(), static_cast<size_t>(report.checks_size()));
}

TEST(Probes, ThatDieOrNeverComeBack) {
  const std::vector<doctor::Probe> probes = {{"dies",
                                              [](const doctor::Place&, node::Node*) -> absl::Status {
                                                raise(SIGSEGV);
                                                return absl::OkStatus();
                                              }},
                                             {"hangs",
                                              [](const doctor::Place&, node::Node*) -> absl::Status {
                                                while (true) pause();
                                              }},
                                             {"refuses",
                                              [](const doctor::Place&, node::Node* node) -> absl::Status {
                                                node->add_gpus();
                                                return absl::PermissionDeniedError("for root only");
                                              }},
                                             {"tells", [](const doctor::Place&, node::Node* node) -> absl::Status {
                                                node->add_ports()->set_device(std::string(1 << 20, 'x'));
                                                return absl::OkStatus();
                                              }}};
  const node::Node seen = doctor::Ask({}, probes, 1);
  EXPECT_THAT(Asked(seen, "dies").why_not(), StartsWith("it died of signal 11"));
  EXPECT_FALSE(Asked(seen, "dies").late());
  EXPECT_TRUE(Asked(seen, "hangs").late());
  EXPECT_EQ("for root only", Asked(seen, "refuses").why_not());
  EXPECT_FALSE(Asked(seen, "refuses").answered());
  EXPECT_EQ(1, seen.gpus_size());
  EXPECT_TRUE(Asked(seen, "tells").answered());
  EXPECT_EQ(1u << 20, seen.ports(0).device().size());
}

TEST(Probes, BytesThatAreNoText) {
  EXPECT_EQ("a\u00e9\u20ac\U0001f600", doctor::ValidUtf8("a\u00e9\u20ac\U0001f600"));
  EXPECT_EQ("?a??", doctor::ValidUtf8("\xff"
                                      "a\xc3\x28")
                        .replace(3, 1, "?"));
  EXPECT_EQ("??", doctor::ValidUtf8("\xc0\xaf"));
  EXPECT_EQ("???", doctor::ValidUtf8("\xed\xa0\x80"));
  EXPECT_EQ("????", doctor::ValidUtf8("\xf4\x90\x80\x80"));
  EXPECT_EQ("??", doctor::ValidUtf8("\xe2\x82"));
  StandIn node;
  node.place().environment["NCCL_DEBUG_FILE"] = "\xff%h";
  EXPECT_EQ("?%h", node.Look().settings().at("NCCL_DEBUG_FILE"));
}

TEST(Probes, Addresses) {
  EXPECT_EQ("0000:1b:00.0", doctor::PciAddress("00000000:1B:00.0"));
  EXPECT_EQ("00010000:1b:00.0", doctor::PciAddress("00010000:1B:00.0"));
  EXPECT_EQ("0000:1b:00.0", doctor::PciAddress("0000:1b:00.0"));
  EXPECT_EQ("", doctor::PciAddress(""));
}

}  // namespace
}  // namespace ringscope::testing
