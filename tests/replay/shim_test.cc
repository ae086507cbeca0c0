// What shims leave out and change: as read in NCCL's sources, and as real shims did it (captures
// a3_healthy_v1 to v3, NCCL 2.30.7).
#include "tests/replay/shim.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/replay/test_support.h"

namespace ringscope::replay {
namespace {

TEST(Shim, NativeTables) {
  EXPECT_EQ(NativeApi(223), 1);
  EXPECT_EQ(NativeApi(224), 2);
  EXPECT_EQ(NativeApi(225), 2);
  EXPECT_EQ(NativeApi(226), 3);
  EXPECT_EQ(NativeApi(227), 4);
  EXPECT_EQ(NativeApi(228), 5);
  EXPECT_EQ(NativeApi(229), 6);
  EXPECT_EQ(NativeApi(230), 6);
}

TEST(Shim, Names) {
  EXPECT_EQ(FuncNumber("AllReduce"), 4);
  EXPECT_EQ(FuncNumber("AlltoAll"), 6) << "what v1 does not know is a Send";
  EXPECT_EQ(DatatypeNumber("Unknown"), 8) << "... and float64";
  EXPECT_EQ(AlgoNumber("NVLS"), 4);
  EXPECT_EQ(ProtoNumber("LL128"), 1);
  EXPECT_STREQ(FuncName(7), "Recv");
  EXPECT_EQ(FuncName(8), nullptr);
  EXPECT_EQ(DatatypeName(-1), nullptr);
  for (int i = 0; i < 12; ++i) EXPECT_EQ(DatatypeNumber(DatatypeName(i)), i);
}

TEST(Shim, StatesThatReachOlderTables) {
  for (uint32_t state = 0; state <= 30; ++state) {
    EXPECT_TRUE(TableGets(230, 6, state));
    EXPECT_TRUE(TableGets(224, 2, state));
    EXPECT_TRUE(TableGets(226, 1, state)) << "up to 2.26 all pass";
    EXPECT_EQ(TableGets(230, 3, state), state >= 8 && state <= 18) << state;
    EXPECT_EQ(TableGets(228, 4, state), state < 23) << state;
  }
  EXPECT_TRUE(ArgumentsLost(230, 3, kProxyStepSendGPUWait));
  EXPECT_FALSE(ArgumentsLost(230, 4, kProxyStepSendGPUWait));
  EXPECT_FALSE(ArgumentsLost(226, 3, kProxyStepSendGPUWait));
}

// One process's callbacks, by what of them a shim may change.
struct Seen {
  std::set<uint32_t> types, states;
  bool named_parents = true;  // Coll and P2p hang below Group
  bool hash = false, timer = false, sizes = false, channels = false;
};

Seen Look(const Capture& capture) {
  Seen seen;
  for (const Event& e : capture.processes[0].events) {
    if (e.callback == Callback::kStart) {
      seen.types.insert(e.type);
      seen.hash |= e.comm_hash != 0;
      seen.timer |= e.p_timer != 0;
      seen.channels |= e.type == kP2p && e.n_channels != 0;
      if (e.type == kColl || e.type == kP2p) {
        seen.named_parents &=
            e.parent != kNone &&
            capture.processes[0].slots[static_cast<size_t>(e.parent)].type == kGroup;
      }
    } else if (e.callback == Callback::kState) {
      seen.states.insert(e.state);
      seen.sizes |= e.type == kProxyStep && e.trans_size != 0;
      EXPECT_FALSE(e.args_null);
    }
  }
  return seen;
}

class Conformance : public testing::TestWithParam<int> {};

// The same job shape, once recorded behind NCCL's own shim, once recorded natively and played
// through ours.
TEST_P(Conformance, LooksLikeTheRealShim) {
  const int api = GetParam();
  auto real = ReadCapture(CaptureFolder("a3_healthy_v" + std::to_string(api)));
  ASSERT_TRUE(real.ok()) << real.status();
  const std::string folder = CaptureFolder("n1_2x4_healthy");
  ScratchFolder out, echo;
  const RunResult run = RunReplay({folder, "--out", out / "job", "--speed", "max", "--plugin",
                                   EchoPlugin(), "--as-api", std::to_string(api)},
                                  {{"ECHO_OUT", echo.path()}, {"RINGSCOPE_STALL_SECONDS", "0.05"}});
  ASSERT_EQ(run.exit_code, 0) << run.output;
  auto played = ReadEcho(folder, echo);
  ASSERT_TRUE(played.ok()) << played.status();
  EXPECT_EQ((*played)->processes[0].contexts[0].n_ranks, api >= 4 ? 8 : -1);
  const Seen want = Look(**real), got = Look(**played);
  // (Point-to-point is not in this job, what a proxy does while idle is its own.)
  std::set<uint32_t> types = want.types, states = want.states;
  types.erase(kP2p);
  for (uint32_t s = 13; s <= 18; ++s) states.erase(s);
  for (uint32_t t : types) EXPECT_TRUE(got.types.count(t)) << t;
  for (uint32_t t : got.types) EXPECT_TRUE(want.types.count(t)) << t;
  for (uint32_t s : states) EXPECT_TRUE(got.states.count(s)) << s;
  for (uint32_t s : got.states) EXPECT_TRUE(want.states.count(s) || (s >= 13 && s <= 18)) << s;
  EXPECT_EQ(got.hash, want.hash);
  EXPECT_EQ(got.timer, want.timer);
  EXPECT_EQ(got.sizes, want.sizes);
  EXPECT_TRUE(got.named_parents && want.named_parents);
}
INSTANTIATE_TEST_SUITE_P(Tables, Conformance, testing::Values(1, 2, 3),
                         [](const auto& tested) { return "v" + std::to_string(tested.param); });

TEST(Shim, ANewerTableThanTheRecordingsIsRefused) {
  ScratchFolder out;
  const RunResult run =
      RunReplay({CaptureFolder("2.27.7_rank3_gpu_hang"), "--out", out / "job", "--as-api", "5"});
  EXPECT_EQ(run.exit_code, 64);
  EXPECT_NE(run.output.find("went through version 4"), std::string::npos) << run.output;
  EXPECT_EQ(RunReplay({"x", "--out", "y", "--as-api", "7"}).exit_code, 64);
}

}  // namespace
}  // namespace ringscope::replay
