#include "analyzer/reasoning/wait_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/reasoning/wait_graph_example.h"

namespace ringscope::reasoning::graph {
namespace {

using ::testing::ElementsAre;
using testing::Example;
using ::testing::IsEmpty;
using testing::Summarise;
using testing::ToInput;
using ::testing::UnorderedElementsAre;

class WorkedExample : public ::testing::TestWithParam<std::string> {};

TEST_P(WorkedExample, EndsWhereTheKnowledgeBaseSays) {
  const nlohmann::json x = Example(GetParam());
  ASSERT_FALSE(x.is_null());
  const Input in = ToInput(x);
  const testing::Verdict got = Summarise(in, Analyse(in));
  EXPECT_EQ(got.cls, x["expect"]["class"].get<std::string>()) << x["title"];
  std::vector<std::string> want = x["expect"]["roots"];
  std::sort(want.begin(), want.end());
  EXPECT_EQ(got.roots, want) << x["title"];
}

std::vector<std::string> Ids() {
  std::vector<std::string> ids;
  for (const auto& x : testing::ReadExamples()) ids.push_back(x["id"]);
  return ids;
}
INSTANTIATE_TEST_SUITE_P(Documented, WorkedExample, ::testing::ValuesIn(Ids()),
                         [](const auto& example) { return example.param; });

TEST(WorkedExamples, AreAllThere) { EXPECT_EQ(Ids().size(), 25u); }

// ---- Variants that must not give the full answer
TEST(WaitGraph, SilentRankIsAMissingRecordNotAMissingRank) {
  nlohmann::json x = Example("E01");
  x["ranks"]["2"]["host"] = "silent";
  x["ranks"]["2"]["cur"] = nlohmann::json::object();
  const Input in = ToInput(x);
  const auto got = Summarise(in, Analyse(in));
  EXPECT_EQ(got.cls, "no-record");
  EXPECT_THAT(got.roots, ElementsAre("R2"));
}

TEST(WaitGraph, WithoutPeerWaitTheBackedUpEdgeIsUnreadableAndTheStalledOneStillFound) {
  Input in = ToInput(Example("E03"));
  for (EdgeView& e : in.edges) {
    e.peer_wait_visible = false;
    if (e.send.state == trace::SEND_PEER_WAIT) e.send.state = trace::SEND_GPU_WAIT;
  }
  const auto got = Summarise(in, Analyse(in));
  EXPECT_EQ(got.cls, "net-edge");
  EXPECT_THAT(got.roots, ElementsAre("E1->2"));
}

TEST(WaitGraph, OppositeOrderIsNoDeadlockWhenBothKernelsRun) {
  nlohmann::json x = Example("E06");
  x["ranks"]["0"]["cur"]["B"] = {1, 1, 1, 0};
  x["ranks"]["1"]["cur"]["A"] = {1, 1, 1, 0};
  const Input in = ToInput(x);
  const auto got = Summarise(in, Analyse(in));
  EXPECT_EQ(got.cls, "ambiguous-inside-comm");
  EXPECT_THAT(got.roots, ElementsAre("C:A1", "C:B1"));
}

TEST(WaitGraph, WithTheDataParallelGroupOnlyTheNestedCauseIsNotSeen) {
  nlohmann::json x = Example("E05");
  for (const char* hidden : {"T0", "T1", "D1"}) {
    x["comms"].erase(hidden);
    for (auto& [id, rank] : x["ranks"].items()) rank["cur"].erase(hidden);
  }
  const Input in = ToInput(x);
  const Result result = Analyse(in);
  ASSERT_EQ(result.roots.size(), 1u);
  // Rank 2 waits for its GPU and has enqueued nothing that is visible: it is named as such, not as
  // a rank outside NCCL.
  EXPECT_EQ(result.roots[0].cls, End::kGpuStalled);
  EXPECT_EQ(Name(in, result.nodes[result.roots[0].nodes[0]]), "G2");
}

// ---- What docs/localisation.md states in words
TEST(WaitGraph, PeerThatHasNotComeYetIsMissingNotUnmatched) {
  // Rank 0 receives from rank 1, which sits in user code.
  Input in;
  in.ranks = {{Host::kSync, {}}, {Host::kUser, {}}};
  in.comms = {{"P", {0, 1}, true, {1, 0}}};
  Participation recv{
      .comm = 0, .rank = 0, .position = 1, .progress = {Stage::kStarted, Stage::kStarted}};
  recv.messages = {{false, 1, 1}};
  in.ops = {recv};
  const auto got = Summarise(in, Analyse(in));
  EXPECT_EQ(got.cls, "not-entered");
  EXPECT_THAT(got.roots, ElementsAre("H1"));
}

TEST(WaitGraph, PeerThatWaitsForAThirdIsCollateral) {
  // 0 receives from 1; 1 receives from 2; 2 sleeps.
  Input in;
  in.ranks = {{Host::kSync, {}}, {Host::kSync, {}}, {Host::kUser, {}}};
  in.comms = {{"P", {0, 1, 2}, true, {1, 1, 0}}};
  for (int r : {0, 1}) {
    Participation recv{
        .comm = 0, .rank = r, .position = 1, .progress = {Stage::kStarted, Stage::kStarted}};
    recv.messages = {{false, r + 1, 1}};
    in.ops.push_back(recv);
  }
  const auto got = Summarise(in, Analyse(in));
  EXPECT_EQ(got.cls, "not-entered");
  EXPECT_THAT(got.roots, ElementsAre("H2"));
}

TEST(WaitGraph, OtherRanksOfAGroupDoNotHideTheMessageThatIsMissing) {
  // Rank 0 exchanges with 1 and 2 in one kernel; 2 sleeps; rank 1's send to 0 is held up by rank
  // 0's kernel.
  Input in;
  in.ranks = {{Host::kSync, {}}, {Host::kSync, {}}, {Host::kUser, {}}};
  in.comms = {{"P", {0, 1, 2}, true, {2, 1, 0}}};
  Participation from1{
      .comm = 0, .rank = 0, .position = 1, .progress = {Stage::kStarted, Stage::kStarted}};
  from1.messages = {{false, 1, 1}};
  from1.group = 7;
  Participation from2 = from1;
  from2.position = 2;
  from2.messages = {{false, 2, 1}};
  Participation to0{
      .comm = 0, .rank = 1, .position = 1, .progress = {Stage::kStarted, Stage::kStarted}};
  to0.messages = {{true, 0, 1}};
  in.ops = {from1, from2, to0};
  in.totals = {{0, 0, 1, false, 1}, {0, 0, 2, false, 1}, {0, 1, 0, true, 1}};
  EdgeView edge{.comm = 0, .send_position = 1, .recv_position = 1, .from = 1, .to = 0};
  edge.send = {.phase = EdgeEnd::kOpen, .state = trace::SEND_PEER_WAIT, .driver = 1};
  edge.recv = {.phase = EdgeEnd::kOpen, .state = trace::RECV_GPU_WAIT, .driver = 0};
  in.edges = {edge};
  const auto got = Summarise(in, Analyse(in));
  EXPECT_EQ(got.cls, "not-entered");
  EXPECT_THAT(got.roots, ElementsAre("H2"));
}

TEST(WaitGraph, DeadMemberOfARunningOperationIsTheEnd) {
  Input in = ToInput(Example("E03"));
  in.ranks[2].host = Host::kDead;  // its edges stand still too; they are its own
  const auto got = Summarise(in, Analyse(in));
  EXPECT_EQ(got.cls, "rank-dead");
  EXPECT_THAT(got.roots, ElementsAre("H2"));
}

TEST(WaitGraph, EdgeDrivenByAFrozenRelayIsTheRelays) {
  // The data is rank 1's, the proxy that sends it rank 0's (PXN): rank 0 is frozen and not a member
  // that is unfinished.
  Input in = ToInput(Example("E03"));
  std::erase_if(in.ops, [](const Participation& op) { return op.rank == 0; });
  in.ranks[0].host = Host::kFrozen;
  in.edges = {in.edges[1]};
  in.edges[0].send.driver = 0;
  const auto got = Summarise(in, Analyse(in));
  EXPECT_EQ(got.cls, "rank-frozen");
  EXPECT_THAT(got.roots, ElementsAre("H0"));
}

TEST(WaitGraph, UnknownCompletionIsNeverNotStarted) {
  // Completion hidden on all; rank 2 has not entered: still found. Nobody is called a stalled GPU.
  Input in = ToInput(Example("E01"));
  for (Participation& op : in.ops) op.progress = {Stage::kEnqueued, Stage::kFinished};
  const auto got = Summarise(in, Analyse(in));
  EXPECT_EQ(got.cls, "not-entered");
  EXPECT_THAT(got.roots, ElementsAre("H2"));
  // All have entered and nothing is visible: no end of waiting is claimed.
  in = ToInput(Example("E17"));
  for (Participation& op : in.ops) op.progress = {Stage::kEnqueued, Stage::kFinished};
  EXPECT_THAT(Analyse(in).roots, IsEmpty());
}

TEST(WaitGraph, PathLeadsFromTheWaitingRankToTheEnd) {
  const Input in = ToInput(Example("E05"));
  const Result result = Analyse(in);
  ASSERT_EQ(result.roots.size(), 1u);
  std::vector<std::string> longest;
  for (int start : result.starts) {
    std::vector<std::string> names;
    for (int n : result.Path(start, result.roots[0])) names.push_back(Name(in, result.nodes[n]));
    if (names.size() > longest.size()) longest = names;
  }
  EXPECT_THAT(longest, ElementsAre("KD03@0", "KD03@2", "H2", "KT15@2", "KT15@3", "H3"));
}

TEST(WaitGraph, TieOfSignaturesNamesAll) {
  nlohmann::json x = Example("E07");
  x["sig"]["W"]["12"]["0"] = x["sig"]["W"]["12"]["1"];
  const Input in = ToInput(x);
  EXPECT_THAT(Summarise(in, Analyse(in)).roots, UnorderedElementsAre("H0", "H1", "H2", "H3"));
}

// ---- Size and robustness
TEST(WaitGraph, SixteenThousandRanksTakeLinearWork) {
  constexpr int kRanks = 16384;
  constexpr uint64_t kAhead = 8;
  Input in;
  in.ranks.resize(kRanks);
  Comm comm{.name = "W"};
  for (int r = 0; r < kRanks; ++r) {
    comm.ranks.push_back(r);
    comm.entered.push_back(r == 77 ? 10 : 10 + kAhead);
    if (r == 77) {
      in.ranks[r].host = Host::kUser;
      continue;
    }
    for (uint64_t k = 0; k < kAhead; ++k) {
      const Stage stage = k == 0 ? Stage::kStarted : Stage::kEnqueued;
      Participation op{.comm = 0, .rank = r, .position = 11 + k, .progress = {stage, stage}};
      if (k > 0) op.after = {static_cast<int>(in.ops.size()) - 1};
      in.ops.push_back(op);
    }
  }
  in.comms = {comm};
  const Result result = Analyse(in);
  EXPECT_THAT(Summarise(in, result).roots, ElementsAre("H77"));
  size_t links = 0;
  for (const auto& list : result.next) links += list.size();
  EXPECT_LT(links, 4u * kRanks);
}

TEST(WaitGraph, HalfOfSixteenThousandLateIsLinearToo) {
  constexpr int kRanks = 16384;
  Input in;
  in.ranks.resize(kRanks);
  Comm comm{.name = "W"};
  for (int r = 0; r < kRanks; ++r) {
    comm.ranks.push_back(r);
    comm.entered.push_back(r % 2 ? 10 : 11);
    in.ranks[r].host = r % 2 ? Host::kUser : Host::kSync;
    if (r % 2 == 0)
      in.ops.push_back(
          {.comm = 0, .rank = r, .position = 11, .progress = {Stage::kStarted, Stage::kStarted}});
  }
  in.comms = {comm};
  const Result result = Analyse(in);
  EXPECT_EQ(result.roots.size(), kRanks / 2u);
  size_t links = 0;
  for (const auto& list : result.next) links += list.size();
  EXPECT_LT(links, 4u * kRanks);
}

TEST(WaitGraph, LongChainNeedsNoStack) {
  constexpr int kRanks = 50000;  // r waits for r + 1 over communicators of two
  Input in;
  in.ranks.resize(kRanks);
  in.ranks[kRanks - 1].host = Host::kUser;
  for (int r = 0; r + 1 < kRanks; ++r) {
    in.comms.push_back({"c", {r, r + 1}, false, {1, 0}});
    in.ops.push_back(
        {.comm = r, .rank = r, .position = 1, .progress = {Stage::kStarted, Stage::kStarted}});
  }
  EXPECT_THAT(Summarise(in, Analyse(in)).roots, ElementsAre("H" + std::to_string(kRanks - 1)));
}

TEST(WaitGraph, RandomInputNeverCrashesAndIsDeterministic) {
  std::mt19937 random(7);
  for (int round = 0; round < 1000; ++round) {
    const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    Input in;
    const int ranks = 1 + pick(6);
    for (int r = 0; r < ranks; ++r) {
      in.ranks.push_back({static_cast<Host>(pick(8)), {}});
      if (pick(8) == 0) in.ranks.back().waits_for = {pick(ranks)};
      in.hosts.push_back(pick(3) ? "h" + std::to_string(pick(3)) : "");
    }
    const int comms = 1 + pick(3);
    for (int c = 0; c < comms; ++c) {
      Comm comm{.name = std::string(1, static_cast<char>('A' + c)), .p2p = pick(2) == 0};
      for (int r = 0; r < ranks; ++r) {
        if (pick(5) == 0) continue;
        comm.ranks.push_back(r);
        comm.entered.push_back(static_cast<uint64_t>(pick(4)));
      }
      in.comms.push_back(comm);
      for (size_t i = 0; i < comm.ranks.size(); ++i) {
        for (uint64_t k = 1; k <= comm.entered[i]; ++k) {
          auto a = static_cast<Stage>(pick(5)), b = static_cast<Stage>(pick(5));
          Participation op{.comm = c,
                           .rank = comm.ranks[i],
                           .position = k,
                           .progress = {std::min(a, b), std::max(a, b)}};
          for (int n = pick(3); n > 0; --n)
            op.messages.push_back({pick(2) == 0, pick(ranks), static_cast<uint64_t>(pick(3))});
          if (!in.ops.empty() && in.ops.back().rank == op.rank)
            op.after = {static_cast<int>(in.ops.size()) - 1};
          op.group = static_cast<uint32_t>(pick(3));
          op.pattern = static_cast<Pattern>(pick(3));
          op.chain = pick(2) == 0;
          in.ops.push_back(op);
        }
      }
      for (int n = pick(6); n > 0; --n) {
        EdgeView e{.comm = c,
                   .send_position = static_cast<uint64_t>(pick(4)),
                   .from = pick(ranks),
                   .to = pick(ranks),
                   .channel = pick(2)};
        e.recv_position = comm.p2p ? static_cast<uint64_t>(pick(4)) : e.send_position;
        for (EdgeEnd* end : {&e.send, &e.recv}) {
          end->phase = static_cast<EdgeEnd::Phase>(pick(4));
          end->state = static_cast<trace::StepState>(pick(8));
          end->counted = pick(2) == 0;
          end->posted = static_cast<uint32_t>(pick(9));
          end->moved = static_cast<uint32_t>(pick(9));
          end->total = static_cast<uint32_t>(pick(9));
          end->driver = pick(ranks + 1) - 1;
        }
        in.edges.push_back(e);
      }
    }
    const auto a = Summarise(in, Analyse(in)), b = Summarise(in, Analyse(in));
    EXPECT_EQ(a.cls, b.cls);
    EXPECT_EQ(a.roots, b.roots);
  }
}

}  // namespace
}  // namespace ringscope::reasoning::graph
