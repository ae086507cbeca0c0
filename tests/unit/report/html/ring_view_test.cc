// The order of a ring is told by a plan, or it is not drawn.
#include "analyzer/report/html/ring_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/testing/job_builder.h"

namespace ringscope::report::html {
namespace {

using ringscope::testing::CommRef;
using ringscope::testing::JobBuilder;

constexpr uint64_t kId = 0x1f2e3d4c5b6a7988;

class RingViewTest : public ::testing::Test {
 protected:
  RingViewTest() {
    JobBuilder b(4);
    b.RanksPerHost(2);
    const CommRef w = b.Comm("world", {0, 1, 2, 3}, kId);
    b.Finish(w, 3);
    b.Coll(w, 0, 4).Running();
    b.EdgeOf(w, 1, 2).Send(4, 8, trace::SEND_WAIT, 1).Recv(4, 8, trace::RECV_WAIT, 1);
    job_ = b.Build();
    job_.evidence.files.emplace_back().path = "nccl.log";
  }
  void Plan(int rank, int channel, int previous, int next, const std::string& id = "0x1f2e3d4c5b6a7988") {
    model::RankPlan plan;
    plan.rank = rank;
    plan.n_ranks = 4;
    plan.communicator = id;
    plan.where = {0, static_cast<uint32_t>(10 + rank)};
    plan.rings.push_back({channel, previous, next, {}});
    job_.evidence.plan.plans.push_back(plan);
  }
  void Transport(int plan, int from, int to, const std::string& via, int channels = 1) {
    model::TransportLine line;
    line.plan = plan;
    line.from = from;
    line.to = to;
    line.via = via;
    line.channels = channels;
    job_.evidence.plan.transports.push_back(line);
  }
  RingView View() { return RingOf(Context(d_, job_, lines_)); }
  std::vector<int> Order() {
    std::vector<int> order;
    for (const RingNode& n : View().nodes) order.push_back(n.rank);
    return order;
  }
  static const RingEdge* EdgeOf(const RingView& v, int from, int to) {
    for (const RingEdge& e : v.edges) {
      if (e.from == from && e.to == to) return &e;
    }
    return nullptr;
  }
  model::Job job_;
  Diagnosis d_;
  Lines lines_;
};

TEST_F(RingViewTest, WithoutAPlanThereIsNoOrder) {
  const RingView v = View();
  EXPECT_EQ(v.order, RingView::Order::kUnknown);
  EXPECT_EQ(v.nodes.size(), 4u);
  EXPECT_EQ(v.nodes[2].host, "host1");
  // Only what a record tells of.
  ASSERT_EQ(v.edges.size(), 1u);
  EXPECT_EQ(v.edges[0].tone, RingEdge::Tone::kOpen);
  EXPECT_THAT(v.edges[0].said, ::testing::HasSubstr("sender has given data to the network"));
  EXPECT_EQ(v.operation, "all-reduce #4");
}

TEST_F(RingViewTest, NeighboursOfAllRanksMakeARing) {
  Plan(0, 0, 1, 2), Plan(2, 0, 0, 3), Plan(3, 0, 2, 1), Plan(1, 0, 3, 0);
  Transport(0, 0, 2, "NET/IB/0", 2);
  const RingView v = View();
  EXPECT_EQ(v.order, RingView::Order::kRing);
  EXPECT_EQ(Order(), (std::vector<int>{0, 2, 3, 1}));
  EXPECT_EQ(v.source, "nccl.log:10");
  ASSERT_NE(EdgeOf(v, 0, 2), nullptr);
  EXPECT_EQ(EdgeOf(v, 0, 2)->path, RingEdge::Path::kNet);
  EXPECT_EQ(EdgeOf(v, 0, 2)->channels, 2);
  ASSERT_NE(EdgeOf(v, 1, 0), nullptr);
  EXPECT_EQ(EdgeOf(v, 1, 0)->path, RingEdge::Path::kUnknown);  // no line tells its path
}

TEST_F(RingViewTest, OneNeighbourMissingIsNoRing) {
  Plan(0, 0, 1, 2), Plan(2, 0, 0, 3), Plan(3, 0, 2, 1);
  EXPECT_EQ(View().order, RingView::Order::kUnknown);
}

TEST_F(RingViewTest, TwoCirclesAreNoRing) {
  Plan(0, 0, 1, 1), Plan(1, 0, 0, 0), Plan(2, 0, 3, 3), Plan(3, 0, 2, 2);
  EXPECT_EQ(View().order, RingView::Order::kUnknown);
}

TEST_F(RingViewTest, AWrongRankIsNoRing) {
  Plan(0, 0, 1, 2), Plan(2, 0, 0, 3), Plan(3, 0, 2, 1), Plan(1, 0, 3, 2000000000);
  EXPECT_EQ(View().order, RingView::Order::kUnknown);
}

TEST_F(RingViewTest, ThePlanOfAnotherCommunicatorTellsNothing) {
  for (int r = 0; r < 4; ++r) Plan(r, 0, (r + 3) % 4, (r + 1) % 4, "0x9999");
  EXPECT_EQ(View().order, RingView::Order::kUnknown);
}

TEST_F(RingViewTest, TheChannelThatHoldsTheAccusedEdge) {
  for (int r = 0; r < 4; ++r) Plan(r, 0, (r + 3) % 4, (r + 1) % 4);
  for (int r = 0; r < 4; ++r) job_.evidence.plan.plans[static_cast<size_t>(r)].rings.push_back({1, (r + 1) % 4, (r + 3) % 4, {}});
  Finding& f = *d_.add_findings();
  f.set_kind(Kind::edge_stalled);
  EdgeName& e = *f.mutable_who()->add_edges();
  e.set_from(2);
  e.set_to(1);
  const RingView v = View();
  EXPECT_EQ(v.channel, 1);
  EXPECT_EQ(v.orders, 2);
  ASSERT_NE(EdgeOf(v, 2, 1), nullptr);
  EXPECT_EQ(EdgeOf(v, 2, 1)->tone, RingEdge::Tone::kBroken);
}

TEST_F(RingViewTest, ATreeOnlyForOperationsThatRunOverIt) {
  for (int r = 0; r < 4; ++r) {
    Plan(r, 0, (r + 3) % 4, (r + 1) % 4);
    job_.evidence.plan.plans[static_cast<size_t>(r)].trees.push_back({0, r == 0 ? -1 : (r - 1) / 2, {-1, -1, -1}});
  }
  EXPECT_EQ(View().order, RingView::Order::kRing);
  JobBuilder b(4);
  const CommRef w = b.Comm("world", {0, 1, 2, 3}, kId);
  for (int r = 0; r < 4; ++r) b.Coll(w, r, 1).Running().raw().set_algo(trace::TREE);
  model::Job tree = b.Build();
  tree.evidence = std::move(job_.evidence);
  job_ = std::move(tree);
  const RingView v = View();
  EXPECT_EQ(v.order, RingView::Order::kTree);
  EXPECT_EQ(v.parent, (std::vector<int>{-1, 0, 0, 1}));
  // A rank that is its own ancestor: no tree, the ring again.
  job_.evidence.plan.plans[1].trees[0].up = 3;
  EXPECT_EQ(View().order, RingView::Order::kRing);
}

TEST_F(RingViewTest, LogsAlone) {
  for (int r = 0; r < 4; ++r) Plan(r, 0, (r + 3) % 4, (r + 1) % 4);
  model::Job logs;
  logs.evidence = std::move(job_.evidence);
  job_ = std::move(logs);
  EXPECT_EQ(View().order, RingView::Order::kRing);
  job_.evidence.plan.plans[0].n_ranks = 2000000000;  // of a damaged line
  EXPECT_TRUE(View().nodes.empty());
}

}  // namespace
}  // namespace ringscope::report::html
