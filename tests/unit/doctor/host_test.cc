// Checks of limits, versions, settings and of what Ringscope itself needs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <re2/re2.h>

#include "catalog/catalog.h"
#include "catalog/nccl_release.h"
#include "tests/unit/doctor/seen.h"

namespace ringscope::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kMiB = uint64_t{1} << 20, kGiB = uint64_t{1} << 30;

TEST(ShmCheck, SizeAndRoom) {
  node::Node node = Gpus(1, 0);
  const auto with = [&](uint64_t bytes, uint64_t free) {
    node.mutable_limits()->set_shm_bytes(bytes);
    node.mutable_limits()->set_shm_free(free);
    return Said("shm", node);
  };
  EXPECT_THAT(Said("shm", node), ElementsAre("failed shm: there is no /dev/shm"));
  EXPECT_THAT(with(64 * kGiB, 60 * kGiB), IsEmpty());
  EXPECT_THAT(with(64 * kMiB, 64 * kMiB), ElementsAre("failed shm: /dev/shm has 64 MiB, 64 MiB free"));
  EXPECT_THAT(with(512 * kMiB, 512 * kMiB), ElementsAre("warning shm: /dev/shm has 512 MiB, 512 MiB free"));
  EXPECT_THAT(with(64 * kGiB, 0), ElementsAre("failed shm: /dev/shm has 64 GiB, 0 KiB free"));
  EXPECT_THAT(with(64 * kGiB, 600 * kMiB), ElementsAre("warning shm: /dev/shm has 64 GiB, 600 MiB free"));
  const node::Node before = node;
  with(8 * kGiB, 8 * kGiB);
  EXPECT_THAT(Said("shm", node, &before), ElementsAre("warning shm: /dev/shm has 8 GiB, 8 GiB free [64 GiB]"));
}

TEST(MemlockCheck, WhereThereIsRdma) {
  node::Node node = Gpus(1, 0);
  node.mutable_limits()->set_memlock("65536");
  EXPECT_THAT(Said("memlock", node), IsEmpty());
  AddPort(&node, "mlx5_0");
  EXPECT_THAT(Said("memlock", node), ElementsAre("failed memlock: locked memory is limited to 64 KiB"));
  node.mutable_limits()->set_memlock("68719476736");
  EXPECT_THAT(Said("memlock", node), ElementsAre("warning memlock: locked memory is limited to 64 GiB"));
  node::Node before = node;
  before.mutable_limits()->set_memlock("unlimited");
  EXPECT_THAT(Said("memlock", node, &before), ElementsAre("warning memlock: locked memory is limited to 64 GiB [unlimited]"));
  node.mutable_limits()->set_memlock("unlimited");
  EXPECT_THAT(Said("memlock", node), IsEmpty());
  node.mutable_limits()->set_memlock("much");
  EXPECT_EQ(node::Report::could_not_tell, StatusOf("memlock", node));
}

TEST(OpenFilesCheck, Few) {
  node::Node node = Gpus(1, 0);
  node.mutable_limits()->set_open_files("1024");
  EXPECT_THAT(Said("open-files", node), ElementsAre("warning open-files: up to 1024 open files"));
  node.mutable_limits()->set_open_files("unlimited");
  EXPECT_THAT(Said("open-files", node), IsEmpty());
}

TEST(ClockCheck, States) {
  node::Node node = Gpus(1, 0);
  EXPECT_EQ(node::Report::could_not_tell, StatusOf("clock", node));
  node.mutable_limits()->set_clock_known(true);
  EXPECT_THAT(Said("clock", node), ElementsAre("warning clock: the clock is not synchronised"));
  node.mutable_limits()->set_clock_synchronised(true);
  EXPECT_THAT(Said("clock", node), IsEmpty());
}

TEST(RecordCheck, TheLibraryAndTheDirectory) {
  node::Node node = Gpus(1, 0);
  EXPECT_EQ(node::Report::not_present, StatusOf("record", node));
  node::Record* record = node.mutable_record();
  record->set_library("/opt/libringscope.so");
  record->set_directory("/shared");
  record->set_directory_free(9 * kGiB);
  EXPECT_EQ("/opt/libringscope.so loads; /shared takes traces", SeenBy("record", node));
  EXPECT_THAT(Said("record", node), IsEmpty());
  record->set_directory_free(9 * kMiB);
  EXPECT_THAT(Said("record", node), ElementsAre("warning record: /shared has 9 MiB free"));
  record->set_directory_trouble("cannot be written: Permission denied");
  record->set_library_trouble("/opt/libringscope.so: wrong ELF class: ELFCLASS32");
  EXPECT_THAT(Said("record", node), ElementsAre("warning record: /opt/libringscope.so: wrong ELF class: ELFCLASS32",
                                                "warning record: /shared cannot be written: Permission denied"));
  node::Asked* asked = node.add_asked();
  asked->set_name("directory");
  asked->set_why_not("it took longer than its 10 seconds and was killed");
  EXPECT_EQ("warning record: the trace directory: it took longer than its 10 seconds and was killed", Said("record", node)[1]);
}

void AddNccl(node::Node* node, const std::string& file, const std::string& release, int cuda = 12090) {
  node::Library* library = node->add_libraries();
  library->set_file(file);
  library->set_nccl(release);
  library->set_cuda(cuda);
}

TEST(VersionsCheck, DriverAndModule) {
  node::Node node = Gpus(1, 0);
  EXPECT_EQ(node::Report::not_present, StatusOf("versions", node));
  node.mutable_driver()->set_version("570.86.10");
  node.mutable_driver()->set_kernel_version("570.86.10");
  const node::Node before = node;
  EXPECT_THAT(Said("versions", node), IsEmpty());
  node.mutable_driver()->set_kernel_version("550.54.15");
  EXPECT_THAT(Said("versions", node), ElementsAre("failed versions: driver libraries 570.86.10, loaded module 550.54.15"));
  node.mutable_driver()->set_version("550.54.15");
  EXPECT_THAT(Said("versions", node, &before), ElementsAre("warning versions: driver 550.54.15 [570.86.10]"));
}

TEST(VersionsCheck, Nccl) {
  node::Node node = Gpus(1, 0);
  AddNccl(&node, "/a/libnccl.so.2", "2.27.7");
  AddNccl(&node, "/b/libnccl.so.2", "2.27.7");
  const node::Node before = node;
  EXPECT_THAT(Said("versions", node), IsEmpty());
  node.mutable_libraries(1)->set_nccl("2.28.3");
  EXPECT_THAT(Said("versions", node, &before),
              ElementsAre("warning versions: 2 releases of NCCL: 2.27.7 (/a/libnccl.so.2), 2.28.3 (/b/libnccl.so.2)",
                          "warning versions: NCCL 2.27.7 (/a/libnccl.so.2), 2.28.3 (/b/libnccl.so.2) [2.27.7]"));
  node.mutable_libraries()->RemoveLast();
  node.mutable_driver()->set_cuda(12080);
  EXPECT_THAT(Said("versions", node), IsEmpty());  // minor versions are compatible
  node.mutable_libraries(0)->set_cuda(13000);
  EXPECT_THAT(Said("versions", node),
              ElementsAre("failed versions: /a/libnccl.so.2: NCCL 2.27.7 for CUDA 13, the driver supports CUDA 12.8"));
}

TEST(VersionsCheck, ADefectAndItsTrigger) {
  node::Node node = Gpus(1, 0);
  AddNccl(&node, "/a/libnccl.so.2", "2.15.5");
  EXPECT_THAT(Said("versions", node), IsEmpty());
  (*node.mutable_settings())["CUDA_LAUNCH_BLOCKING"] = "1";
  EXPECT_THAT(Said("versions", node), ElementsAre("warning versions: NCCL 2.15.5: with CUDA_LAUNCH_BLOCKING=1 it can hang"));
  node.mutable_libraries(0)->set_nccl("2.16.2");  // the first without it
  EXPECT_THAT(Said("versions", node), IsEmpty());
  node.set_architecture("aarch64");
  EXPECT_THAT(Said("versions", node), ElementsAre("warning versions: NCCL 2.16.2: on ARM it loses proxy slots and can hang"));
}

TEST(SettingsCheck, Risks) {
  node::Node node = Gpus(1, 0);
  EXPECT_EQ("no NCCL_ variable is set here", SeenBy("settings", node));
  const auto with = [&](const char* name, const char* value) {
    node.mutable_settings()->clear();
    (*node.mutable_settings())[name] = value;
    const node::Report report = doctor::Judge(node, nullptr, {"settings"}, {});
    return report.checks(0).problems_size() == 0 ? "" : report.checks(0).problems(0).entry();
  };
  EXPECT_EQ("FB-02", with("NCCL_P2P_DISABLE", "1"));
  EXPECT_EQ("", with("NCCL_P2P_DISABLE", "0"));
  EXPECT_EQ("NC-08", with("NCCL_SHM_DISABLE", "1"));
  EXPECT_EQ("NET-07", with("NCCL_IB_DISABLE", "1"));
  EXPECT_EQ("NC-04", with("NCCL_ALGO", "Ring"));
  EXPECT_EQ("NC-04", with("NCCL_PROTO", "^LL128"));
  EXPECT_EQ("NC-05", with("NCCL_TOPO_DUMP_FILE", "/tmp/topo.xml"));
  EXPECT_EQ("NET-04", with("NCCL_IB_TIMEOUT", "12"));
  EXPECT_EQ("", with("NCCL_IB_TIMEOUT", "20"));
  EXPECT_EQ("NET-02", with("NCCL_IB_TIMEOUT", "28"));
  EXPECT_EQ("", with("NCCL_DEBUG", "INFO"));
  EXPECT_EQ("NC-02", with("NCCL_DEBUG", "trace"));
  EXPECT_EQ("FW-01", with("NCCL_DEBUG_FILE", "/tmp/nccl.log"));
  EXPECT_EQ("", with("NCCL_DEBUG_FILE", "/tmp/nccl.%h.%p.log"));
  EXPECT_EQ("FW-04", with("CUDA_LAUNCH_BLOCKING", "1"));
  EXPECT_EQ("", with("CUDA_VISIBLE_DEVICES", "0,1"));
}

TEST(SettingsCheck, NamesThatNobodyReads) {
  node::Node node = Gpus(1, 0);
  (*node.mutable_settings())["NCCL_P2P_DISABEL"] = "1";
  EXPECT_THAT(Said("settings", node), ElementsAre("warning settings: NCCL_P2P_DISABEL is not read by NCCL; NCCL_P2P_DISABLE?"));
  // Plugins read variables of their own.
  node.mutable_settings()->clear();
  (*node.mutable_settings())["NCCL_FASTRAK_ENABLE_CONTROL_CHANNEL"] = "0";
  (*node.mutable_settings())["NCCL_ASYNC_ERROR_HANDLING"] = "1";
  EXPECT_THAT(Said("settings", node), IsEmpty());
  EXPECT_EQ("2 NCCL_ variables, none of them a risk; not NCCL's own: NCCL_FASTRAK_ENABLE_CONTROL_CHANNEL",
            SeenBy("settings", node));
}

TEST(SettingsCheck, NotOfThisRelease) {
  node::Node node = Gpus(1, 0);
  (*node.mutable_settings())["NCCL_IB_ADDR_FAMILY"] = "AF_INET6";
  EXPECT_THAT(Said("settings", node), IsEmpty());
  AddNccl(&node, "/a/libnccl.so.2", "2.18.3");
  EXPECT_THAT(Said("settings", node),
              ElementsAre("warning settings: NCCL_IB_ADDR_FAMILY=AF_INET6: NCCL 2.18.3 does not read it (since 2.21.5)"));
  node.mutable_settings()->clear();
  (*node.mutable_settings())["NCCL_RINGS"] = "0 1 2 3";
  EXPECT_THAT(Said("settings", node),
              ElementsAre("warning settings: NCCL_RINGS=0 1 2 3: NCCL 2.18.3 does not read it (until 2.5.6)"));
}

TEST(SettingsCheck, OfTheBaseline) {
  node::Node before = Gpus(1, 0), now = Gpus(1, 0);
  (*before.mutable_settings())["NCCL_IB_TC"] = "106";
  (*before.mutable_settings())["NCCL_CROSS_NIC"] = "1";
  (*now.mutable_settings())["NCCL_IB_TC"] = "0";
  (*now.mutable_settings())["NCCL_IB_DISABLE"] = "1";
  EXPECT_THAT(Said("settings", now, &before),
              ElementsAre("warning settings: NCCL_IB_DISABLE=1 [unset]", "warning settings: NCCL_IB_TC=0 [106]",
                          "warning settings: NCCL_CROSS_NIC is not set [1]"));
}

// The table: names once, patterns that compile, pages that exist, releases that are some.
TEST(SettingsTable, IsInOrder) {
  std::set<std::string> names;
  for (const catalog::Variable& variable : catalog::Faults().variable()) {
    EXPECT_TRUE(names.insert(variable.name()).second) << variable.name();
    for (const std::string& release : {variable.since(), variable.until()})
      EXPECT_TRUE(release.empty() || catalog::NcclRelease(release) > 0) << variable.name();
    for (const auto& risk : variable.risk()) {
      EXPECT_TRUE(RE2(risk.values()).ok()) << variable.name();
      EXPECT_NE(nullptr, catalog::FindEntry(risk.entry())) << variable.name();
      EXPECT_NE("", risk.text()) << variable.name();
      EXPECT_NE("", risk.fix()) << variable.name();
    }
  }
  EXPECT_GT(names.size(), 200u);
  for (const catalog::NcclDefect& defect : catalog::Faults().nccl_defect()) {
    EXPECT_GT(catalog::NcclRelease(defect.from()), 0);
    EXPECT_GT(catalog::NcclRelease(defect.fixed()), catalog::NcclRelease(defect.from()));
    EXPECT_NE(nullptr, catalog::FindEntry(defect.cause()));
  }
}

}  // namespace
}  // namespace ringscope::testing
