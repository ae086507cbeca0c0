// Renaming ranks: consistent in all that is delivered and in the logs.
#include "tests/replay/permute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "tests/replay/foreign.h"
#include "tests/replay/nccl_log.h"
#include "tests/replay/test_support.h"

namespace ringscope::replay {
namespace {

using testing::HasSubstr;

TEST(MakePermutation, IsOneAndTheSameForEqualSeeds) {
  auto capture = ReadCapture(CaptureFolder("n1_2x4_healthy"));
  ASSERT_TRUE(capture.ok());
  std::set<std::vector<int>> seen;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Permutation a = MakePermutation(**capture, seed), b = MakePermutation(**capture, seed);
    EXPECT_EQ(a.job, b.job);
    std::vector<int> sorted = a.job;
    std::sort(sorted.begin(), sorted.end());
    for (int i = 0; i < 8; ++i) EXPECT_EQ(sorted[static_cast<size_t>(i)], i);
    seen.insert(a.job);
  }
  EXPECT_GT(seen.size(), 15u);
}

TEST(Permute, RanksPeersAndRootsMoveTogether) {
  auto before = ReadCapture(CaptureFolder("p1_pxn_2hosts_x_2gpus"));
  auto after = ReadCapture(CaptureFolder("p1_pxn_2hosts_x_2gpus"));
  ASSERT_TRUE(before.ok() && after.ok());
  for (Capture* capture : {before->get(), after->get()}) {
    // No operation of this capture has a root of its own.
    for (Event& event : capture->processes[0].events) {
      if (event.type != kColl || event.callback != Callback::kStart) continue;
      event.func = "Broadcast";
      event.root = 1;
    }
  }
  MapForeign(**before);
  MapForeign(**after);
  const Permutation permutation = MakePermutation(**before, 5);
  ASSERT_FALSE(std::is_sorted(permutation.job.begin(), permutation.job.end()));
  Permute(**after, permutation);
  int rooted = 0;
  for (size_t p = 0; p < (*before)->processes.size(); ++p) {
    const Process &a = (*before)->processes[p], &b = (*after)->processes[p];
    EXPECT_EQ(b.ranks.front(), permutation.job[p]);
    EXPECT_EQ(b.contexts[0].rank, permutation.job[static_cast<size_t>(a.contexts[0].rank)]);
    for (size_t i = 0; i < a.events.size(); ++i) {
      const Event &x = a.events[i], &y = b.events[i];
      if (x.callback != Callback::kStart) continue;
      if ((x.type & (kColl | kP2p | kProxyOp | kProxyStep)) != 0) {
        EXPECT_EQ(y.rank, permutation.Job(x.rank));
      }
      if ((x.type & (kP2p | kProxyOp)) != 0) {
        EXPECT_EQ(y.peer, permutation.Job(x.peer));
      }
      if ((x.type & (kGroup | kKernelCh | kGroupApi)) != 0) {
        EXPECT_EQ(y.rank, x.rank) << "not filled by NCCL";
      }
      if ((x.type & (kColl | kCollApi)) != 0) {
        const std::string func = x.func;
        const bool root = func == "Broadcast" || func == "Reduce";
        rooted += root;
        EXPECT_EQ(y.root, root ? permutation.Job(x.root) : x.root);
      }
    }
  }
  EXPECT_GT(rooted, 0);
}

TEST(RewriteLog, EveryPlaceOfARank) {
  Process process;
  process.pid = 11;
  process.host = "alpha.cluster";
  Permutation permutation;
  permutation.job = {2, 0, 3, 1};
  permutation.comm[0xab] = permutation.job;
  LogRewrite rewrite{&process, 99, &permutation, true, 9, 0, 0};
  const std::string prefix = "node-a:11:11 [1] NCCL INFO ";
  const std::string start = prefix +
                            "[Rank 1] ncclCommInitRank comm 0x7f rank 1 nranks 4 cudaDev 1 nvmlDev "
                            "1 busId 10 commId 0xab - Init START\n";
  struct Case {
    const char *said, *want;
  };
  for (const Case& c : std::vector<Case>{
           {"comm 0x7f rank 1 nRanks 4 nNodes 2 localRanks 2 localRank 1 MNNVL 0",
            "comm 0x7f rank 0 nRanks 4 nNodes 2 localRanks 2 localRank 1 MNNVL 0"},
           {"Channel 00/02 :    0   1   2   3", "Channel 00/02 :    2   0   3   1"},
           {"Channel 00/0 : 1[3] -> 2[0] [send] via NET/IB/2(3)/GDRDMA",
            "Channel 00/0 : 0[3] -> 3[0] [send] via NET/IB/2(1)/GDRDMA"},
           {"Channel 01/0 : 0[2] -> 1[3] [send] via NET/IB/1(PCI)",
            "Channel 01/0 : 2[2] -> 0[3] [send] via NET/IB/1(PCI)"},
           {"Ring 00 : 3 -> 0 -> 1", "Ring 00 : 1 -> 2 -> 0"},
           {"Tree 0 : -1 -> 0 -> 2/-1/-1", "Tree 0 : -1 -> 2 -> 3/-1/-1"},
           {"Trees [0] 2/-1/-1->0->-1 [1] -1/-1/-1->0->1",
            "Trees [0] 3/-1/-1->2->-1 [1] -1/-1/-1->2->0"},
           {"Rank 1: 2 Net devices", "Rank 0: 2 Net devices"},
           {"New proxy send connection 1 from local rank 1, transport 2",
            "New proxy send connection 1 from local rank 1, transport 2"},
           {"Connected to proxy tpRank 3 -> connection 0x7",
            "Connected to proxy tpRank 1 -> connection 0x7"},
           {"AllReduce: opCount 3 count 3 root 3 comm 0x7f [nranks=4] stream 0x3",
            "AllReduce: opCount 3 count 3 root 3 comm 0x7f [nranks=4] stream 0x3"},
       }) {
    const std::string out = RewriteLog(start + prefix + c.said + "\n", rewrite);
    EXPECT_THAT(out, HasSubstr(absl::StrCat("alpha:99:99 [1] NCCL INFO ", c.want, "\n")));
    EXPECT_THAT(out, HasSubstr("[Rank 0] ncclCommInitRank comm 0x7f rank 0 nranks 4"));
  }
  EXPECT_EQ(RewriteLog("", rewrite), "");
  EXPECT_EQ(RewriteLog("no prefix\n:1:2 [\n", rewrite), "no prefix\n:1:2 [\n");
}

TEST(RewriteLog, LeavesOutWhatTheJobDoesNotReach) {
  Process process;
  process.pid = 11;
  process.host = "h";
  process.has_events = true;
  Permutation none;
  LogRewrite rewrite{&process, 99, &none, false, 0, 0, 0};
  const std::string text =
      "a:11:11 [0] NCCL INFO one\n"
      "[1970-01-01 00:00:09] a:11:12 [0] x.cc:1 NCCL WARN late\n"
      "a:11:11 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1 - Destroy COMPLETE\n"
      "a:11:11 [0] NCCL INFO after\n";
  EXPECT_EQ(RewriteLog(text, rewrite),
            "h:99:99 [0] NCCL INFO one\n[1970-01-01 00:00:09] h:99:12 [0] x.cc:1 NCCL WARN late\n");
  rewrite.finalizes = 1;
  EXPECT_THAT(RewriteLog(text, rewrite), HasSubstr("INFO after"));
  rewrite.until_t = 2'000'000'000;
  rewrite.wall_offset_ns = 5'000'000'000;
  EXPECT_EQ(RewriteLog(text, rewrite), "h:99:99 [0] NCCL INFO one\n");
}

TEST(Permute, ReplayDeliversItAndSaysSo) {
  const std::string folder = CaptureFolder("p4_nvlink_only_rank2_skips");
  ScratchFolder out, echo;
  const RunResult run = RunReplay(
      {folder, "--out", out / "job", "--speed", "40", "--permute", "3", "--plugin", EchoPlugin()},
      {{"ECHO_OUT", echo.path()}, {"RINGSCOPE_STALL_SECONDS", "0.1"}});
  ASSERT_EQ(run.exit_code, 0) << run.output;
  std::ifstream file(out / "job/permutation.json");
  const auto json = nlohmann::json::parse(file, nullptr, false);
  ASSERT_TRUE(json.is_object());
  auto original = ReadCapture(folder), played = ReadEcho(folder, echo);
  ASSERT_TRUE(original.ok() && played.ok());
  for (int old = 0; old < 4; ++old) {
    const int renamed = json[std::to_string(old)];
    const Process& process = (*played)->processes[static_cast<size_t>(renamed)];
    EXPECT_EQ(process.contexts[0].rank, renamed);
    EXPECT_EQ(process.events.size(),
              (*original)->processes[static_cast<size_t>(old)].events.size());
    std::ifstream log(out / absl::StrCat("job/logs/nccl-debug.rank", renamed, ".log"));
    std::stringstream text;
    text << log.rdbuf();
    EXPECT_THAT(text.str(), HasSubstr(absl::StrCat(" rank ", renamed, " nranks 4 ")));
    EXPECT_THAT(text.str(), HasSubstr(absl::StrCat(":", process.pid, ":")));
  }
}

}  // namespace
}  // namespace ringscope::replay
