// Only what NCCL delivers under a mask and after NULL handles.
#include "tests/replay/release.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/replay/test_support.h"

namespace ringscope::replay {
namespace {

TEST(Mask, BitsAreImpliedUpwards) {
  for (Release release : {227, 228, 230}) {
    for (uint32_t type : {kGroup, kColl, kP2p, kProxyOp, kProxyStep})
      EXPECT_TRUE(Starts(release, kProxyStep, type)) << type;
    EXPECT_FALSE(Starts(release, kProxyStep, kKernelCh));
    EXPECT_FALSE(Starts(release, kProxyStep, kProxyCtrl));
    EXPECT_FALSE(Starts(release, kColl, kProxyOp)) << "never downwards";
    EXPECT_FALSE(Starts(release, kColl, kP2p));
    EXPECT_TRUE(Starts(release, kNetPlugin, kProxyStep));
    EXPECT_FALSE(Starts(release, 0, kGroup));
  }
  EXPECT_TRUE(Starts(230, kColl, kGroupApi));
  EXPECT_TRUE(Starts(230, kColl, kCollApi));
  EXPECT_FALSE(Starts(230, kColl, kP2pApi));
  EXPECT_FALSE(Starts(230, kProxyCtrl, kGroupApi));
  EXPECT_FALSE(Starts(227, kNetPlugin, kP2p));
  EXPECT_TRUE(Starts(228, kNetPlugin, kP2p));
}

TEST(Mask, Before226) {
  for (Release release : {223, 224, 225}) {
    EXPECT_FALSE(Starts(release, kGroup, kGroup)) << "not by its own bit";
    EXPECT_TRUE(Starts(release, kP2p, kGroup));
    EXPECT_FALSE(Starts(release, kP2p, kP2p)) << "P2p alone gives none";
    EXPECT_TRUE(Starts(release, kColl, kP2p));
    EXPECT_TRUE(Starts(release, kProxyStep, kColl));
    EXPECT_FALSE(Starts(release, kKernelCh, kColl));
    EXPECT_TRUE(Starts(release, kProxyCtrl, kProxyCtrl));
  }
  EXPECT_TRUE(Starts(226, kKernelCh, kColl));
}

std::map<uint32_t, int> StartsByType(const Process& process) {
  std::map<uint32_t, int> counts;
  for (const Event& event : process.events)
    counts[event.type] += event.callback == Callback::kStart;
  return counts;
}

std::unique_ptr<Capture> Play(const std::string& capture,
                              std::map<std::string, std::string> variables) {
  const std::string folder = CaptureFolder(capture);
  ScratchFolder out, echo;
  variables["ECHO_OUT"] = echo.path();
  variables["RINGSCOPE_STALL_SECONDS"] = "0.05";
  const RunResult run = RunReplay(
      {folder, "--out", out / "job", "--speed", "max", "--plugin", EchoPlugin()}, variables);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  auto played = ReadEcho(folder, echo);
  EXPECT_TRUE(played.ok()) << played.status();
  return played.ok() ? *std::move(played) : nullptr;
}

TEST(Mask, OnlyWantedEventsAndTheirAncestorsAreDelivered) {
  auto played = Play("b1_rank2_skips_op10", {{"ECHO_MASK", "0x10"}});  // ProxyStep
  ASSERT_NE(played, nullptr);
  auto counts = StartsByType(played->processes[0]);
  EXPECT_GT(counts[kProxyStep], 0);
  EXPECT_GT(counts[kCollApi], 0);
  EXPECT_EQ(counts[kKernelCh] + counts[kProxyCtrl] + counts[kKernelLaunch], 0);
  for (const Event& event : played->processes[0].events) {
    EXPECT_FALSE(event.garbage_handle);
    if (event.callback != Callback::kStart || event.type != kProxyStep) continue;
    EXPECT_NE(event.parent, kNone);
  }
}

TEST(NullHandles, ChildrenGetNullParentsAndNoStateOrStopComes) {
  auto played = Play("b1_rank2_skips_op10", {{"ECHO_NULL", "0x302"}});  // Coll, GroupApi, CollApi
  ASSERT_NE(played, nullptr);
  for (const Process& process : played->processes) {
    for (const Event& event : process.events) {
      if (event.callback == Callback::kStart) {
        const bool orphan =
            (event.type & (kColl | kCollApi | kKernelLaunch | kProxyOp | kKernelCh)) != 0;
        if (orphan) {
          EXPECT_EQ(event.parent, kNone);
        }
      } else if (event.callback == Callback::kStop || event.callback == Callback::kState) {
        EXPECT_NE(event.slot, kNone);
        EXPECT_EQ(event.type & (kColl | kCollApi | kGroupApi), 0u);
      }
    }
  }
}

TEST(NullHandles, From228StepsOfARefusedOperationStartAndStopWithoutStates) {
  auto played = Play("b1_rank2_skips_op10", {{"ECHO_NULL", "0x8"}});  // ProxyOp
  ASSERT_NE(played, nullptr);
  int starts = 0, stops = 0;
  for (const Event& event : played->processes[0].events) {
    if (event.type != kProxyStep) continue;
    starts += event.callback == Callback::kStart;
    stops += event.callback == Callback::kStop;
    EXPECT_NE(event.callback, Callback::kState);
  }
  EXPECT_GT(starts, 0);
  EXPECT_GT(stops, 0);
}

TEST(NullHandles, In227TheySilenceWhatIsBelow) {
  auto played = Play("2.27.7_rank3_gpu_hang", {{"ECHO_NULL", "0x8"}});
  ASSERT_NE(played, nullptr);
  EXPECT_EQ(StartsByType(played->processes[0])[kProxyStep], 0);
  EXPECT_GT(StartsByType(played->processes[0])[kProxyOp], 0);
  played = Play("2.27.7_rank3_gpu_hang", {{"ECHO_NULL", "0x1"}});
  ASSERT_NE(played, nullptr);
  EXPECT_EQ(StartsByType(played->processes[0])[kColl], 0);
  EXPECT_GT(StartsByType(played->processes[0])[kProxyOp], 0) << "these come with NULL parents";
}

TEST(UntouchedHandles, WhatWasInTheVariableComesBack) {
  // Kernel handles are left alone: NCCL goes on with what was there, NULL here, so nothing more
  // comes for them.
  auto played = Play("b1_rank2_skips_op10", {{"ECHO_LEAVE", "0x40"}});
  ASSERT_NE(played, nullptr);
  for (const Event& event : played->processes[0].events) {
    if (event.callback == Callback::kStop) {
      EXPECT_NE(event.type, kKernelCh);
    }
  }
  // ProxyCtrl's variable holds garbage, which then arrives as a handle.
  played = Play("b1_rank2_skips_op10", {{"ECHO_LEAVE", "0x20"}});
  ASSERT_NE(played, nullptr);
  int garbage = 0;
  for (const Event& event : played->processes[0].events) garbage += event.garbage_handle;
  EXPECT_GT(garbage, 0);
}

}  // namespace
}  // namespace ringscope::replay
