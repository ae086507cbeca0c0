#include "analyzer/reasoning/pivot.h"

#include <gtest/gtest.h>

namespace ringscope::reasoning {
namespace {

EdgeEnd Open(trace::StepState state, int driver = -1) {
  return {.phase = EdgeEnd::kOpen, .state = state, .driver = driver};
}
EdgeEnd Counted(trace::StepState state, uint32_t done, uint32_t moved, uint32_t posted,
                uint32_t total = 12) {
  return {.phase = EdgeEnd::kOpen,
          .state = state,
          .counted = true,
          .posted = posted,
          .moved = moved,
          .done = done,
          .total = total};
}
EdgeEnd At(EdgeEnd::Phase phase) { return {.phase = phase}; }
EdgeView View(const EdgeEnd& send, const EdgeEnd& recv, int from = 0, int to = 1, int channel = 0) {
  EdgeView view{.from = from, .to = to, .channel = channel};
  view.send = send;
  view.recv = recv;
  return view;
}

// docs/localisation.md, Edge table, row by row.
TEST(EdgeTable, SendGpuWait) {
  const EdgeEnd send = Open(trace::SEND_GPU_WAIT);
  EXPECT_EQ(Judge(View(send, Open(trace::RECV_WAIT))), EdgeVerdict::kStarved);
  EXPECT_EQ(Judge(View(send, Open(trace::RECV_FLUSH_WAIT))), EdgeVerdict::kFlush);
  EXPECT_EQ(Judge(View(send, Open(trace::RECV_GPU_WAIT))), EdgeVerdict::kBackedUp);
  EXPECT_EQ(Judge(View(send, At(EdgeEnd::kNotBegun))), EdgeVerdict::kStarved);
}
TEST(EdgeTable, SendPeerWait) {
  const EdgeEnd send = Open(trace::SEND_PEER_WAIT);
  EXPECT_EQ(Judge(View(send, Open(trace::RECV_WAIT))), EdgeVerdict::kControl);
  EXPECT_EQ(Judge(View(send, Open(trace::RECV_FLUSH_WAIT))), EdgeVerdict::kFlush);
  EXPECT_EQ(Judge(View(send, Open(trace::RECV_GPU_WAIT))), EdgeVerdict::kBackedUp);
  EXPECT_EQ(Judge(View(send, At(EdgeEnd::kNotBegun))), EdgeVerdict::kBackedUp);
}
TEST(EdgeTable, SendWait) {
  const EdgeEnd send = Open(trace::SEND_WAIT);
  EXPECT_EQ(Judge(View(send, Open(trace::RECV_WAIT))), EdgeVerdict::kWire);
  EXPECT_EQ(Judge(View(send, Open(trace::RECV_FLUSH_WAIT))), EdgeVerdict::kFlush);
  EXPECT_EQ(Judge(View(send, Open(trace::RECV_GPU_WAIT))), EdgeVerdict::kBackedUp)
      << "back-pressure";
  EXPECT_EQ(Judge(View(send, At(EdgeEnd::kNotBegun))), EdgeVerdict::kBackedUp)
      << "the receiver is late, not the network";
}
TEST(EdgeTable, OneEndAloneIsNoVerdictOnTheEdge) {
  for (auto state : {trace::SEND_GPU_WAIT, trace::SEND_PEER_WAIT, trace::SEND_WAIT}) {
    EXPECT_EQ(Judge(View(Open(state), At(EdgeEnd::kUnseen))), EdgeVerdict::kSilent);
  }
  EXPECT_EQ(Judge(View(At(EdgeEnd::kUnseen), Open(trace::RECV_WAIT))), EdgeVerdict::kSilent);
  // What an end says of its own side needs no other.
  EXPECT_EQ(Judge(View(At(EdgeEnd::kUnseen), Open(trace::RECV_FLUSH_WAIT))), EdgeVerdict::kFlush);
  EXPECT_EQ(Judge(View(At(EdgeEnd::kUnseen), Open(trace::RECV_GPU_WAIT))), EdgeVerdict::kBackedUp);
}

// Numbers go before states: a socket send is done when the kernel's buffer took it.
TEST(EdgeTable, HandedOverAndNotArrivedIsTheWire) {
  EXPECT_EQ(
      Judge(View(Counted(trace::SEND_GPU_WAIT, 8, 8, 12), Counted(trace::RECV_WAIT, 0, 0, 4))),
      EdgeVerdict::kWire);
  EXPECT_EQ(Judge(View(Counted(trace::SEND_GPU_WAIT, 4, 4, 8), Counted(trace::RECV_WAIT, 4, 4, 8))),
            EdgeVerdict::kStarved);
}
TEST(EdgeTable, HandedOverToAReceiverThatDoesNotWaitIsNot) {
  EXPECT_EQ(
      Judge(View(Counted(trace::SEND_GPU_WAIT, 6, 6, 10), Counted(trace::RECV_GPU_WAIT, 0, 4, 4))),
      EdgeVerdict::kBackedUp);
  // Nothing more is posted: the receiver is not ready for more.
  EXPECT_EQ(Judge(View(Counted(trace::SEND_WAIT, 4, 8, 8), Counted(trace::RECV_WAIT, 4, 4, 4))),
            EdgeVerdict::kSilent);
}
TEST(EdgeTable, UnequalStepsEndTheComparison) {
  EXPECT_EQ(
      Judge(View(Counted(trace::SEND_WAIT, 4, 8, 8, 60), Counted(trace::RECV_WAIT, 4, 4, 8, 12))),
      EdgeVerdict::kUnequal);
}

TEST(StepThatTells, OldestOpenStepOfCurrentReleases) {
  trace::Edge e;
  e.set_posted(10);
  for (int i = 0; i < 8; ++i) e.add_slots(i == 1 ? trace::RECV_WAIT : trace::RECV_GPU_WAIT);
  e.set_state(trace::RECV_GPU_WAIT);
  EXPECT_EQ(StepThatTells(e, 6), trace::RECV_GPU_WAIT);
  // Before API 4 steps consumed together stay open for ever: the newest (step 9, slot 1) counts.
  EXPECT_EQ(StepThatTells(e, 3), trace::RECV_WAIT);
  e.set_send(true);
  EXPECT_EQ(StepThatTells(e, 3), trace::RECV_GPU_WAIT) << "only receive steps are affected";
  e.set_send(false);
  e.clear_slots();
  EXPECT_EQ(StepThatTells(e, 3), trace::RECV_GPU_WAIT) << "without slots there is only the state";
}

PivotQuery Ring(int ranks, int stuck, int channels = 1) {
  PivotQuery query;
  query.pattern = Pattern::kRing;
  for (int r = 0; r < ranks; ++r) query.ranks.push_back(r);
  query.host = [](int r) { return "h" + std::to_string(r); };
  for (int ch = 0; ch < channels; ++ch) {
    for (int r = 0; r < ranks; ++r) {
      const int next = (r + 1) % ranks;
      query.edges.push_back(View(Open(trace::SEND_GPU_WAIT),
                                 Open(next == stuck ? trace::RECV_GPU_WAIT : trace::RECV_WAIT), r,
                                 next, ch));
    }
  }
  return query;
}

TEST(Pivot, RankThatHasDataAndSendsNone) {
  const auto suspects = FindSuspects(Ring(4, 2, 3));
  ASSERT_EQ(suspects.size(), 1u);
  EXPECT_EQ(suspects[0].kind, Suspect::kGpu);
  EXPECT_EQ(suspects[0].rank, 2);
  EXPECT_EQ(suspects[0].edges.size(), 3u) << "all channels agree";
}
TEST(Pivot, AllStarvedIsNobody) { EXPECT_TRUE(FindSuspects(Ring(4, -1)).empty()); }
TEST(Pivot, OneRanksOwnTwoEndsSuffice) {
  PivotQuery query = Ring(4, 2);
  for (EdgeView& e : query.edges) {
    if (e.to != 2) e.recv = {};
    if (e.from != 2) e.send = {};
  }
  const auto suspects = FindSuspects(query);
  ASSERT_EQ(suspects.size(), 1u);
  EXPECT_EQ(suspects[0].rank, 2);
}
TEST(Pivot, WithoutPeerWaitAnUnseenReceiverLeavesItOpen) {
  PivotQuery query = Ring(4, 2);
  query.edges.erase(query.edges.begin() + 3);
  for (EdgeView& e : query.edges) {
    e.peer_wait_visible = false;
    if (e.from == 2) e.recv = {};  // SendGPUWait may be "no credit" here
  }
  EXPECT_TRUE(FindSuspects(query).empty());
}
TEST(Pivot, ADirectStatementOfAnEdgeGoesFirst) {
  PivotQuery query = Ring(4, 2);
  query.edges[0].send.state = trace::SEND_WAIT;
  const auto suspects = FindSuspects(query);
  ASSERT_EQ(suspects.size(), 1u);
  EXPECT_EQ(suspects[0].kind, Suspect::kWire);
}
TEST(Pivot, NoPatternNoPivot) {
  PivotQuery query = Ring(4, 2);
  query.pattern = Pattern::kOther;
  EXPECT_TRUE(FindSuspects(query).empty());
}
TEST(Pivot, MissingInEdgeIsNoSource) {
  PivotQuery query = Ring(4, 2);
  query.edges.erase(query.edges.begin() + 1);  // 1 -> 2 was not recorded
  EXPECT_TRUE(FindSuspects(query).empty()) << "an all-reduce has no start";
  query.edges.erase(query.edges.begin() + 2);  // 3 -> 0: a chain 2 -> 3, 0 -> 1
  query.chain = true;
  EXPECT_TRUE(FindSuspects(query).empty()) << "two starts";
}
TEST(Pivot, StartOfAChain) {
  PivotQuery query = Ring(4, -1);
  query.edges.pop_back();
  query.chain = true;
  const auto suspects = FindSuspects(query);
  ASSERT_EQ(suspects.size(), 1u);
  EXPECT_EQ(suspects[0].rank, 0);
}

PivotQuery TwoHosts() {
  PivotQuery query;
  query.pattern = Pattern::kRing;
  for (int r = 0; r < 8; ++r) query.ranks.push_back(r);
  query.host = [](int r) { return r < 4 ? "A" : "B"; };
  query.edges = {View(Open(trace::SEND_GPU_WAIT), Open(trace::RECV_GPU_WAIT), 5, 0),
                 View(Open(trace::SEND_GPU_WAIT), Open(trace::RECV_WAIT), 1, 4)};
  return query;
}
TEST(Pivot, RanksWithoutStepsAreOneUnit) {
  const auto suspects = FindSuspects(TwoHosts());
  ASSERT_EQ(suspects.size(), 1u);
  EXPECT_EQ(suspects[0].kind, Suspect::kUnit);
  EXPECT_EQ(suspects[0].unit, "A");
}
TEST(Pivot, UnitIsNotClosedWhileARankIsUnknown) {
  PivotQuery query = TwoHosts();
  query.hosts_complete = false;
  EXPECT_TRUE(FindSuspects(query).empty());
}
TEST(Pivot, BothEdgesOnOneRankNeedNoHost) {
  PivotQuery query = Ring(4, 2);
  query.hosts_complete = false;
  query.host = [](int) { return "same"; };
  const auto suspects = FindSuspects(query);
  ASSERT_EQ(suspects.size(), 1u);
  EXPECT_EQ(suspects[0].rank, 2);
}

// Tree 1 <- {0, 2}, 2 <- 3 (1 is the root): `wants` rank's data everybody waits for on the way up.
TEST(Pivot, TreeNamesARankOnlyWhenBothTreesAgree) {
  PivotQuery query;
  query.pattern = Pattern::kTree;
  query.ranks = {0, 1, 2, 3};
  query.host = [](int r) { return "h" + std::to_string(r); };
  const auto pair = [&](int a, int b, int ch, bool a_delivered, bool b_delivered) {
    const auto recv = [](bool delivered) {
      return Open(delivered ? trace::RECV_GPU_WAIT : trace::RECV_WAIT);
    };
    query.edges.push_back(View(Open(trace::SEND_GPU_WAIT), recv(a_delivered), a, b, ch));
    query.edges.push_back(View(Open(trace::SEND_GPU_WAIT), recv(b_delivered), b, a, ch));
  };
  // Channel 0: leaf 3's GPU hangs below 2. 0 has delivered to the root 1.
  pair(0, 1, 0, true, false);
  pair(2, 1, 0, false, false);
  pair(3, 2, 0, false, false);
  auto suspects = FindSuspects(query);
  // The leaf and the root, which waits for one child only, look alike.
  EXPECT_TRUE(suspects.empty());
  // Channel 1: tree 3 <- {1, 2}, 2 <- 0; 3 is the root now and has data of all.
  pair(1, 3, 1, true, false);
  pair(2, 3, 1, true, false);
  pair(0, 2, 1, true, false);
  suspects = FindSuspects(query);
  ASSERT_EQ(suspects.size(), 1u);
  EXPECT_EQ(suspects[0].rank, 3);
  EXPECT_TRUE(suspects[0].weak);
}

TEST(Pivot, InteriorRankOfAHealthyTreeIsNotAccused) {
  // Rank 2 is missing below the interior rank 1, which has data of its other child 3 (RecvGPUWait):
  // the state of 1 alone means nothing.
  PivotQuery query;
  query.pattern = Pattern::kTree;
  query.ranks = {0, 1, 2, 3};
  query.host = [](int r) { return "h" + std::to_string(r); };
  query.edges = {View(Open(trace::SEND_GPU_WAIT), Open(trace::RECV_GPU_WAIT), 3, 1),
                 View(Open(trace::SEND_GPU_WAIT), Open(trace::RECV_WAIT), 1, 3),
                 View(At(EdgeEnd::kNotBegun), Open(trace::RECV_WAIT), 2, 1),
                 View(Open(trace::SEND_GPU_WAIT), At(EdgeEnd::kNotBegun), 1, 2),
                 View(Open(trace::SEND_GPU_WAIT), Open(trace::RECV_WAIT), 1, 0),
                 View(Open(trace::SEND_GPU_WAIT), Open(trace::RECV_WAIT), 0, 1)};
  for (const Suspect& s : FindSuspects(query)) EXPECT_NE(s.rank, 1);
}

// Two hosts of four; rank 5 has stopped, and what arrived for it lies in the buffers of ranks 4 and 5: both edges are starved.
TEST(Pivot, ARingThatRanDryIsToldByItsCounts) {
  const auto find = [](uint32_t into_a, uint32_t into_b) {
    PivotQuery query;
    query.pattern = Pattern::kRing;
    query.ranks = {0, 1, 2, 3, 4, 5, 6, 7};
    query.host = [](int rank) { return rank < 4 ? "a" : "b"; };
    query.edges = {View(Counted(trace::SEND_GPU_WAIT, into_b, into_b, into_b + 8, 30),
                        Counted(trace::RECV_WAIT, into_b, into_b, into_b + 8, 30), 3, 4),
                   View(Counted(trace::SEND_GPU_WAIT, into_a, into_a, into_a + 8, 30),
                        Counted(trace::RECV_WAIT, into_a, into_a, into_a + 8, 30), 7, 0)};
    return query;
  };
  const auto found = FindSuspects(find(10, 18));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, Suspect::kUnit);
  EXPECT_EQ(found[0].unit, "b");
  EXPECT_TRUE(found[0].weak);
  EXPECT_TRUE(FindSuspects(find(10, 10)).empty());
  PivotQuery chain = find(10, 18);
  chain.chain = true;
  EXPECT_TRUE(FindSuspects(chain).empty());
  PivotQuery unknown = find(10, 18);
  unknown.hosts_complete = false;
  EXPECT_TRUE(FindSuspects(unknown).empty());
}

}  // namespace
}  // namespace ringscope::reasoning
