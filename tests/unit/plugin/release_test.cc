// Which NCCL calls, and what is asked of it (docs/recorder.md, "What is asked of NCCL").
#include "plugin/release.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "recorder/settings.h"
#include "tests/unit/plugin/early_nccl.h"

namespace {
int g_version = 0;  // what this program's ncclGetVersion says; 0: it fails
}  // namespace

extern "C" __attribute__((visibility("default"))) int ncclGetVersion(int* version) {
  *version = g_version;
  return g_version == 0 ? 4 : 0;
}

namespace ringscope::testing {
namespace {

using plugin::EventsFor;
using plugin::NcclVersionAt;

constexpr uint64_t kDefault = recorder::kEventsByRelease;

TEST(Release, KernelChFrom2262To230) {
  EXPECT_EQ(EventsFor(kDefault, 3, 22602), 0x5Fu);
  EXPECT_EQ(EventsFor(kDefault, 3, 22606), 0x5Fu);
  EXPECT_EQ(EventsFor(kDefault, 4, 22707), 0x5Fu);
  EXPECT_EQ(EventsFor(kDefault, 5, 22809), 0xF5Fu);
  EXPECT_EQ(EventsFor(kDefault, 6, 22902), 0xF5Fu);
  EXPECT_EQ(EventsFor(kDefault, 6, 23007), 0xF5Fu);
  EXPECT_EQ(EventsFor(kDefault, 6, 23099), 0xF5Fu);
  EXPECT_EQ(EventsFor(kDefault, 6, 23100), 0xF1Fu);
  EXPECT_EQ(EventsFor(kDefault, 6, 23102), 0xF1Fu);
  EXPECT_EQ(EventsFor(kDefault, 6, 30000), 0xF1Fu);
  EXPECT_EQ(EventsFor(kDefault, 3, 22601), 0x1Fu);
}

TEST(Release, OnlyWhatTheTableKnows) {
  for (uint32_t api : {1u, 2u}) {
    for (uint32_t version : {0u, 22304u, 22403u, 22606u, 23007u})
      EXPECT_EQ(EventsFor(kDefault, api, version), 0x1Fu) << api << " " << version;
    EXPECT_EQ(EventsFor(0xffffffff, api, 23007), 0x3Fu);
  }
  EXPECT_EQ(EventsFor(0xffffffff, 3, 0), 0xFFu);
  EXPECT_EQ(EventsFor(0xffffffff, 4, 0), 0xFFu);
  EXPECT_EQ(EventsFor(0xffffffff, 5, 0), 0xFFFu);
  EXPECT_EQ(EventsFor(0xffffffff, 6, 0), 0x7FFFu);
}

TEST(Release, UnknownReleaseIsJudgedByItsTable) {
  EXPECT_EQ(EventsFor(kDefault, 1, 0), 0x1Fu);
  EXPECT_EQ(EventsFor(kDefault, 2, 0), 0x1Fu);
  EXPECT_EQ(EventsFor(kDefault, 3, 0), 0x5Fu);
  EXPECT_EQ(EventsFor(kDefault, 4, 0), 0x5Fu);
  EXPECT_EQ(EventsFor(kDefault, 6, 0), 0xF5Fu);
}

TEST(Release, TheSettingOverrides) {
  EXPECT_EQ(EventsFor(0x42, 6, 23102), 0x42u) << "KernelCh although 2.31";
  EXPECT_EQ(EventsFor(0, 6, 23007), 0u);
}

TEST(Release, VersionOfTheObjectThatCalls) {
  const void* here = reinterpret_cast<const void*>(&ncclGetVersion);
  g_version = 23007;
  EXPECT_EQ(NcclVersionAt(here), 23007u) << "NCCL inside the main program";
  EXPECT_EQ(NcclVersionAt(nullptr), 0u);
  EXPECT_EQ(NcclVersionAt(reinterpret_cast<const void*>(0x10)), 0u) << "in no object";
  void* elsewhere = dlsym(RTLD_DEFAULT, "getpid");
  ASSERT_NE(elsewhere, nullptr);
  EXPECT_EQ(NcclVersionAt(elsewhere), 0u) << "libc has no NCCL, this program's is not its";
  g_version = 0;
  EXPECT_EQ(NcclVersionAt(here), 0u) << "an NCCL that does not tell";
}

// In one process: the communicator of a later NCCL is asked for what that one may be asked.
TEST(Release, EachInitAsksByItsOwnNccl) {
  g_version = 23101;
  Comm late(1);
  EXPECT_EQ(late.mask, 0xF1F);
  EXPECT_EQ(Load(late.Row().flags) & flight::kCommCompletionVisible, 0u);
  EXPECT_EQ(Comm::image()->header->nccl_version.load(), 23101u);
  EXPECT_EQ(Comm::image()->header->event_mask, 0xF1Fu);
  g_version = 22606;
  EarlyComm<V3> early(2);
  EXPECT_EQ(early.mask, 0x5F);
  EXPECT_NE(Load(early.Row().flags) & flight::kCommCompletionVisible, 0u);
  EXPECT_EQ(Comm::image()->header->nccl_version.load(), 22606u);
  g_version = 0;
  Comm unknown(3);
  EXPECT_EQ(unknown.mask, 0xF5F);
  EXPECT_NE(Load(unknown.Row().flags) & flight::kCommCompletionVisible, 0u);
  late.Finalize();
  early.Finalize();
  unknown.Finalize();
}

}  // namespace
}  // namespace ringscope::testing
