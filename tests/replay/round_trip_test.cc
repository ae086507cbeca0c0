// A capture played into a plugin that writes captures gives the same capture: every callback of
// every process, with every field, in the same order, from corresponding threads, with
// corresponding handles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "tests/replay/foreign.h"
#include "tests/replay/names.h"
#include "tests/replay/plan.h"
#include "tests/replay/test_support.h"

namespace ringscope::replay {
namespace {

std::string Show(const Event& e) {
  return absl::StrCat("n ", e.n, " ", static_cast<int>(e.callback), " ", TypeName(e.type),
                      " state ", e.state, " tid ", e.tid);
}

bool SameText(const char* a, const char* b) {
  return (a == nullptr) == (b == nullptr) && (a == nullptr || std::strcmp(a, b) == 0);
}

// Numbers of one recording to those of the other, one to one.
class Pairing {
 public:
  bool Match(int64_t a, int64_t b) {
    if ((a == kNone) != (b == kNone)) return false;
    return a == kNone || (forth_.try_emplace(a, b).first->second == b &&
                          back_.try_emplace(b, a).first->second == a);
  }

 private:
  std::map<int64_t, int64_t> forth_, back_;
};

// Empty when both are the same call.
std::string Difference(const Event& a, const Event& b) {
  if (a.callback != b.callback) return "callback";
  if (a.callback == Callback::kInit || a.callback == Callback::kFinalize) return "";
  if (a.type != b.type) return "type";
  if (a.state != b.state || a.args_null != b.args_null) return "state";
  if (a.trans_size != b.trans_size || a.appended != b.appended || a.steps != b.steps)
    return "state's arguments";
  if (a.p_timer != b.p_timer) return "pTimer";
  if (a.callback != Callback::kStart) return "";
  if (a.rank != b.rank || a.root != b.root || a.peer != b.peer) return "rank, root or peer";
  if (!SameText(a.func, b.func) || !SameText(a.datatype, b.datatype)) return "func or datatype";
  if (!SameText(a.algo, b.algo) || !SameText(a.proto, b.proto)) return "algo or proto";
  if (a.seq != b.seq || a.count != b.count) return "seq or count";
  if (a.comm_hash != b.comm_hash || a.traffic != b.traffic || a.reduction != b.reduction)
    return "hash, traffic or reduction";
  if (a.send_buff != b.send_buff || a.recv_buff != b.recv_buff || a.stream != b.stream)
    return "a pointer";
  if (a.n_channels != b.n_channels || a.n_warps != b.n_warps || a.channel != b.channel)
    return "channels";
  if (a.group_depth != b.group_depth || a.graph_captured != b.graph_captured) return "group";
  if (a.own_pid != b.own_pid) return "own pid";
  if (a.n_steps != b.n_steps || a.chunk_size != b.chunk_size || a.is_send != b.is_send ||
      a.step != b.step)
    return "steps";
  if (a.net_id != b.net_id || a.sock_type != b.sock_type || a.sock_fd != b.sock_fd ||
      a.sock_len != b.sock_len)
    return "net";
  if (a.hin != b.hin) return "what was in *eHandle";
  if ((a.foreign_context != 0) != (b.foreign_context != 0)) return "foreign context";
  if ((a.foreign_parent != 0) != (b.foreign_parent != 0)) return "foreign parent";
  return "";
}

void ExpectSame(const Process& a, const Process& b) {
  ASSERT_EQ(a.events.size(), b.events.size());
  ASSERT_EQ(a.contexts.size(), b.contexts.size());
  for (size_t i = 0; i < a.contexts.size(); ++i) {
    EXPECT_EQ(a.contexts[i].comm_id, b.contexts[i].comm_id);
    EXPECT_EQ(a.contexts[i].rank, b.contexts[i].rank);
    EXPECT_EQ(a.contexts[i].n_ranks, b.contexts[i].n_ranks);
    EXPECT_EQ(a.contexts[i].n_nodes, b.contexts[i].n_nodes);
    EXPECT_TRUE(SameText(a.contexts[i].name, b.contexts[i].name));
  }
  Pairing slots, threads, contexts;
  for (size_t i = 0; i < a.events.size(); ++i) {
    const Event &x = a.events[i], &y = b.events[i];
    ASSERT_EQ("", Difference(x, y)) << Show(x) << " / " << Show(y);
    ASSERT_EQ(x.load, y.load) << Show(x);
    ASSERT_TRUE(slots.Match(x.slot, y.slot)) << "handle: " << Show(x);
    ASSERT_TRUE(slots.Match(x.parent, y.parent)) << "parent: " << Show(x);
    ASSERT_TRUE(slots.Match(x.parent_group, y.parent_group)) << "group: " << Show(x);
    ASSERT_TRUE(contexts.Match(x.context, y.context)) << "context: " << Show(x);
    ASSERT_TRUE(threads.Match(x.tid, y.tid)) << "thread: " << Show(x);
  }
}

class RoundTrip : public testing::TestWithParam<const char*> {};

TEST_P(RoundTrip, GivesTheSameCapture) {
  const std::string folder = CaptureFolder(GetParam());
  ScratchFolder out, echo;
  const RunResult run =
      RunReplay({folder, "--out", out / "job", "--speed", "40", "--plugin", EchoPlugin()},
                {{"ECHO_OUT", echo.path()}, {"RINGSCOPE_STALL_SECONDS", "0.1"}});
  ASSERT_EQ(run.exit_code, 0) << run.output;
  auto original = ReadCapture(folder);
  ASSERT_TRUE(original.ok()) << original.status();
  auto played = ReadEcho(folder, echo);
  ASSERT_TRUE(played.ok()) << played.status();
  ASSERT_EQ((*original)->processes.size(), (*played)->processes.size());
  for (size_t p = 0; p < (*original)->processes.size(); ++p) {
    SCOPED_TRACE(absl::StrCat("process ", p));
    ExpectSame((*original)->processes[p], (*played)->processes[p]);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Captures, RoundTrip,
    testing::Values("b1_rank2_skips_op10", "n1_2x4_healthy", "n4_2x4_edge_0_4_stalled_pxn",
                    "m3_split_share_parent_destroyed_first", "m4_threads_4_in_one_process",
                    "m5_one_thread_4_comms_grouped", "m6_nonblocking", "p1_pxn_2hosts_x_2gpus",
                    "2.27.7_rank3_gpu_hang", "a4_healthy_netprofiler_build",
                    "e1_create_destroy_10x_healthy", "e3_2procs_x_2gpus_rank3_skips",
                    "r3_ras_rank1_sigstop", "e1_rank1_sigkill_before_op10_abort",
                    "2.24.3_rank2_skips_op10", "2.26.6_healthy_mixed_noproxyctrl", "a3_healthy_v1",
                    "a3_healthy_v2", "a3_healthy_v3"),
    [](const auto& tested) {
      std::string name = tested.param;
      for (char& c : name) c = isalnum(static_cast<unsigned char>(c)) ? c : '_';
      return name;
    });

// What a plugin that answers properly gets where the recording's one refused: the grammar of the
// calling thread.
class Mended : public testing::TestWithParam<const char*> {};

TEST_P(Mended, EveryRefusedEventGetsItsStatesAndStop) {
  const std::string folder = CaptureFolder(GetParam());
  ScratchFolder out, echo;
  const RunResult run =
      RunReplay({folder, "--out", out / "job", "--speed", "40", "--plugin", EchoPlugin()},
                {{"ECHO_OUT", echo.path()}, {"RINGSCOPE_STALL_SECONDS", "0.1"}});
  ASSERT_EQ(run.exit_code, 0) << run.output;
  auto played = ReadEcho(folder, echo);
  ASSERT_TRUE(played.ok()) << played.status();
  for (const Process& process : (*played)->processes) {
    std::map<int32_t, std::vector<const Event*>> of_slot;
    std::map<uint32_t, int>
        order;  // last call of each type on a thread: nothing may overlap wrongly
    for (const Event& event : process.events) {
      EXPECT_FALSE(event.garbage_handle) << Show(event);
      if (event.slot != kNone) of_slot[event.slot].push_back(&event);
      if (event.callback != Callback::kStart) continue;
      if (event.type == kCollApi || event.type == kKernelLaunch) {
        ASSERT_NE(event.parent, kNone) << Show(event);
        EXPECT_EQ(process.slots[static_cast<size_t>(event.parent)].type, kGroupApi);
        EXPECT_EQ(of_slot[event.parent].back()->callback, Callback::kState)
            << "GroupApi is open: " << Show(event);
      }
      if (event.type == kColl) {
        ASSERT_NE(event.parent, kNone) << Show(event);
        EXPECT_EQ(process.slots[static_cast<size_t>(event.parent)].type, kCollApi);
        EXPECT_EQ(of_slot[event.parent].back()->callback, Callback::kStop)
            << "the call has returned";
        ASSERT_NE(event.parent_group, kNone) << Show(event);
        EXPECT_EQ(of_slot[event.parent_group].back()->callback, Callback::kStart)
            << "the plan is open";
      }
    }
    for (const auto& [slot, events] : of_slot) {
      const Event& start = *events.front();
      if (start.type == kGroupApi) {
        ASSERT_EQ(events.size(), 4u) << Show(start);
        EXPECT_EQ(events[1]->state, kGroupStartApiStop);
        EXPECT_EQ(events[2]->state, kGroupEndApiStart);
        EXPECT_TRUE(events[1]->args_null && events[2]->args_null);
      }
      const uint32_t always_stopped = kGroupApi | kCollApi | kGroup | kColl | kKernelLaunch;
      if ((start.type & always_stopped) != 0) {
        EXPECT_EQ(events.back()->callback, Callback::kStop) << Show(start);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Captures, Mended,
                         testing::Values("a8_null_group_handles",
                                         "s1_plugin_leaves_handle_untouched_ProxyCtrl",
                                         "s4_alternating_leave_collapi", "b1_rank2_skips_op10"),
                         [](const auto& tested) { return std::string(tested.param).substr(0, 2); });

// Foreign operations are handed over with the pid, context and parent that their owner really has.
TEST(Pxn, ForeignPointersAreTheOwnersOwn) {
  const std::string folder = CaptureFolder("p1_pxn_2hosts_x_2gpus");
  ScratchFolder out, echo;
  const RunResult run =
      RunReplay({folder, "--out", out / "job", "--speed", "40", "--plugin", EchoPlugin()},
                {{"ECHO_OUT", echo.path()}});
  ASSERT_EQ(run.exit_code, 0) << run.output;
  auto original = ReadCapture(folder);
  ASSERT_TRUE(original.ok());
  MapForeign(**original);
  auto played = ReadEcho(folder, echo);
  ASSERT_TRUE(played.ok());
  std::map<size_t, std::map<int32_t, int32_t>> echo_slots;  // process, captured slot to the echo's
  for (size_t p = 0; p < (*played)->processes.size(); ++p) {
    for (size_t i = 0; i < (*played)->processes[p].events.size(); ++i) {
      const Event& event = (*played)->processes[p].events[i];
      if (event.callback == Callback::kStart) {
        echo_slots[p][(*original)->processes[p].events[i].slot] = event.slot;
      }
    }
  }
  int seen = 0;
  for (size_t p = 0; p < (*played)->processes.size(); ++p) {
    const std::vector<Event>& events = (*played)->processes[p].events;
    for (size_t i = 0; i < events.size(); ++i) {
      const Event& event = events[i];
      if (event.callback != Callback::kStart || event.foreign_context == 0) continue;
      const Event& captured = (*original)->processes[p].events[i];
      ASSERT_NE(captured.owner_process, kNone) << Show(captured);
      const Process& owner = (*played)->processes[static_cast<size_t>(captured.owner_process)];
      // The echo's contexts and handles carry the pid that made them and a number that starts at 1,
      // shared by both.
      EXPECT_EQ(event.foreign_context >> 32, owner.pid);
      if (event.type != kProxyOp) continue;
      ++seen;
      EXPECT_EQ(static_cast<uint32_t>(event.pid), owner.pid);
      EXPECT_EQ(event.foreign_parent >> 32, owner.pid);
      ASSERT_NE(captured.owner_slot, kNone) << Show(captured);
      const Slot& parent = (*original)
                               ->processes[static_cast<size_t>(captured.owner_process)]
                               .slots[static_cast<size_t>(captured.owner_slot)];
      EXPECT_TRUE(parent.type == kColl || parent.type == kP2p);
      // One communicator: number 1 is the context, the echo's first slot is number 2.
      const int32_t slot =
          echo_slots[static_cast<size_t>(captured.owner_process)][captured.owner_slot];
      EXPECT_EQ(event.foreign_parent & 0xffffffff, static_cast<uint64_t>(slot) + 2)
          << Show(captured);
    }
  }
  EXPECT_EQ(seen, 22);
}

}  // namespace
}  // namespace ringscope::replay
