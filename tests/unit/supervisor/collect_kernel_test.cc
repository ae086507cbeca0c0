#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <time.h>

#include "supervisor/collect.h"
#include "supervisor/collector.h"
#include "tests/unit/supervisor/collecting.h"

namespace ringscope::supervisor {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using testing::Named;
using ::testing::Not;
using testing::TempDir;
using testing::TextOf;
using testing::Variable;

int64_t Clock(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
}

void Program(const TempDir& dir, const std::string& name, const std::string& text) {
  chmod(dir.Write("bin/" + name, "#!/bin/sh\n" + text).c_str(), 0755);
}

TEST(CollectKernel, RecordsWithTimeAndHost) {
  TempDir dir;
  const int64_t us = Clock(CLOCK_MONOTONIC) / 1000;
  dir.Write("kmsg",
            absl::StrCat("4,9921,", us - 5000000, ",-;NVRM: Xid (PCI:0000:43:00): 79, pid=12, GPU has fallen off the bus.\n",
                         " SUBSYSTEM=pci\n DEVICE=+pci:0000:43:00.0\n", "30,9922,", us, ",-;systemd[1]: not the kernel's\n"));
  const Collected got = Named(CollectEvidence(testing::OptionsOf(dir)), "kernel");
  EXPECT_EQ("", got.why_not);
  const std::string text = TextOf(got.file);
  EXPECT_EQ("+0000 node1 kernel: NVRM: Xid (PCI:0000:43:00): 79, pid=12, GPU has fallen off the bus.\n", text.substr(26));
  // To the second: five seconds ago.
  const int64_t then = Clock(CLOCK_REALTIME) - 5000000000;
  EXPECT_TRUE(text.substr(0, 19) == IsoTime(then).substr(0, 19) ||
              text.substr(0, 19) == IsoTime(then - 1000000000).substr(0, 19) ||
              text.substr(0, 19) == IsoTime(then + 1000000000).substr(0, 19))
      << text;
}

TEST(CollectKernel, TheLastLinesAndNothingOfAnEarlierJob) {
  TempDir dir;
  std::string log = "6,1,1,-;long ago\n";
  const int64_t us = Clock(CLOCK_MONOTONIC) / 1000;
  for (int i = 0; i < 3000; ++i) absl::StrAppend(&log, "6,", i, ",", us, ",-;line ", i, "\n");
  dir.Write("kmsg", log);
  CollectOptions options = testing::OptionsOf(dir);
  std::string text = TextOf(Named(CollectEvidence(options), "kernel").file);
  EXPECT_EQ(2000, std::count(text.begin(), text.end(), '\n'));
  EXPECT_THAT(text, HasSubstr("line 2999\n"));
  EXPECT_THAT(text, Not(HasSubstr("line 999\n")));

  dir.Write("kmsg", "6,1,1,-;long ago\n" + absl::StrCat("6,2,", us, ",-;now\n"));
  options.since_ns = Clock(CLOCK_REALTIME) - 60000000000;
  text = TextOf(Named(CollectEvidence(options), "kernel").file);
  EXPECT_THAT(text, HasSubstr(": now\n"));
  EXPECT_THAT(text, Not(HasSubstr("long ago")));

  dir.Write("kmsg", "6,1,1,-;long ago\n");
  const Collected quiet = Named(CollectEvidence(options), "kernel");
  EXPECT_EQ("", quiet.file + quiet.why_not);
}

TEST(CollectKernel, DmesgAndTheJournalWhereTheDeviceIsClosed) {
  TempDir dir;
  const Variable path("PATH", dir / "bin");
  CollectOptions options = testing::OptionsOf(dir);
  options.kernel_log = dir / "none";
  Program(dir, "dmesg", "echo 'dmesg: read kernel buffer failed: Operation not permitted' >&2\nexit 1\n");
  EXPECT_THAT(Named(CollectEvidence(options), "kernel").why_not,
              MatchesRegex("the kernel's log cannot be read here .*none: No such file or directory; dmesg: exit code 1; "
                           "journalctl: not there.; root on the host can"));

  Program(dir, "journalctl", "echo '2026-08-05T03:12:01.123456+0000 other kernel: NVRM: from the journal'\n");
  EXPECT_EQ("2026-08-05T03:12:01.123456+0000 other kernel: NVRM: from the journal\n",
            TextOf(Named(CollectEvidence(options), "kernel").file));

  Program(dir, "dmesg",
          "echo '2026-08-05T03:12:01,123456+02:00 NVRM: from dmesg'\necho '2026-08-05T09:12:01,123456+02:00 NVRM: later'\n");
  options.since_ns = int64_t{1785899521} * 1000000000;  // 2026-08-05T03:12:01Z
  EXPECT_EQ("2026-08-05T09:12:01,123456+02:00 node1 kernel: NVRM: later\n",
            TextOf(Named(CollectEvidence(options), "kernel").file));
}

}  // namespace
}  // namespace ringscope::supervisor
