// Stragglers and slow edges; and the jobs that only look uneven.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "tests/unit/reasoning/expect.h"
#include "tests/unit/testing/job_builder.h"

namespace ringscope::reasoning {
namespace {

using testing::CommRef;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JobBuilder;
using testing::OpBuilder;

// A job that synchronises after every collective: each rank computes (`host` seconds before its
// call, `gpu` seconds between the enqueued call and its kernel), then all are in the kernel until
// `transfer` after the last has come. Each host has a clock of its own, seconds apart: nothing may
// depend on comparing them.
struct Program {
  int ranks = 4;
  int steps = 12;
  double transfer = 0.003;
  std::vector<double> host = {}, gpu = {};  // by rank; empty = nobody
  double jitter = 0.0003;
  unsigned seed = 1;
  int only_step = -1;  // the delay happens in this step alone
  bool timer = true;   // GPU timers were recorded
};

JobBuilder Play(const Program& p) {
  std::mt19937 random(p.seed);
  std::uniform_real_distribution<double> noise(0, p.jitter);
  JobBuilder b(p.ranks);
  std::vector<int> all(static_cast<size_t>(p.ranks));
  std::iota(all.begin(), all.end(), 0);
  const CommRef w = b.Comm("world", all);
  double now = 1;
  for (int k = 1; k <= p.steps; ++k) {
    std::vector<double> entered, started;
    for (int r = 0; r < p.ranks; ++r) {
      const size_t i = static_cast<size_t>(r);
      const bool delayed = p.only_step < 0 || p.only_step == k;
      entered.push_back(now + 0.001 + noise(random) +
                        (delayed && i < p.host.size() ? p.host[i] : 0));
      started.push_back(entered.back() + 0.0002 + noise(random) +
                        (delayed && i < p.gpu.size() ? p.gpu[i] : 0));
    }
    // The first operation connects: everything about it is odd.
    const double last = *std::max_element(started.begin(), started.end()) + (k == 1 ? 0.5 : 0);
    for (int r = 0; r < p.ranks; ++r) {
      const size_t i = static_cast<size_t>(r);
      const double skew = 3.0 * r;
      OpBuilder op = b.Coll(w, r, static_cast<uint64_t>(k), entered[i] + skew);
      op.Kernel(started[i] + skew, last + p.transfer + noise(random) + skew);
      op.raw().set_returned_ns(OpBuilder::Ns(entered[i] + skew + 0.0001));
      op.raw().set_enqueued_ns(OpBuilder::Ns(entered[i] + skew + 0.0001));
      if (!p.timer) op.raw().set_gpu_started_ns(0), op.raw().set_gpu_finished_ns(0);
    }
    now = last + p.transfer + p.jitter;
  }
  return b;
}

TEST(Straggler, LateOnItsHost) {
  for (int late = 0; late < 4; ++late) {
    Program p;
    p.host.assign(4, 0);
    p.host[static_cast<size_t>(late)] = 0.2;
    const auto found = FindStragglers(Play(p).Build());
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].finding.kind(), Kind::rank_slow);
    EXPECT_EQ(found[0].finding.confidence(), Confidence::established);
    EXPECT_THAT(RanksOf(found[0]), ElementsAre(late));
    EXPECT_EQ(CollateralOf(found[0]).size(), 3u);
    EXPECT_TRUE(IsWhole(found[0]));
    EXPECT_FALSE(found[0].stops_job);
    EXPECT_THAT(found[0].finding.title(), HasSubstr("200 ms"));
  }
}

TEST(Straggler, LateOnItsGpu) {
  Program p;
  p.gpu = {0, 0, 0.05, 0};
  const auto found = FindStragglers(Play(p).Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].finding.kind(), Kind::gpu_slow);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(2));
  EXPECT_TRUE(IsWhole(found[0]));
}

TEST(Straggler, KernelsAloneNameARankThatIsInNoOtherCommunicator) {
  // The host's view is useless (its thread saw everything late), the GPU's timer is not.
  Program p;
  p.host = {0, 0, 0.2, 0};
  JobBuilder b = Play(p);
  for (trace::Operation& op : *b.Raw(0, 2).mutable_operations())
    op.set_entered_ns(op.entered_ns() - 199000000), op.set_enqueued_ns(op.started_ns());
  auto found = FindStragglers(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(2));
  EXPECT_EQ(found[0].finding.confidence(), Confidence::probable);
  EXPECT_TRUE(IsWhole(found[0]));
  const CommRef other = b.Comm("pair", {2, 3});
  b.Finish(other, 2);
  EXPECT_THAT(FindStragglers(b.Build()), IsEmpty()) << "it may have waited there";
}

TEST(Straggler, WithoutGpuTimerTheHostsViewServes) {
  Program p;
  p.host = {0, 0.1, 0, 0};
  p.timer = false;
  const auto found = FindStragglers(Play(p).Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(1));
  EXPECT_THAT(TextOf(found[0]), HasSubstr("no GPU timer"));
}

TEST(Straggler, TwoAreNamedWhenTwoAreLate) {
  Program p;
  p.ranks = 6;
  p.host = {0, 0.2, 0, 0, 0.15, 0};
  const auto found = FindStragglers(Play(p).Build());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(1)) << "the later one first";
  EXPECT_THAT(RanksOf(found[1]), ElementsAre(4));
}

TEST(Straggler, OnePauseIsNoStraggler) {
  Program p;
  p.host = {6, 0, 0, 0};
  p.only_step = 7;
  EXPECT_THAT(FindStragglers(Play(p).Build()), IsEmpty());
}

TEST(Straggler, TooFewOperationsSayNothing) {
  Program p;
  p.host = {0, 0.2, 0, 0};
  p.steps = 6;  // five without the first
  EXPECT_THAT(FindStragglers(Play(p).Build()), IsEmpty());
  p.steps = 7;
  EXPECT_EQ(FindStragglers(Play(p).Build()).size(), 1u);
}

TEST(Straggler, LatenessBelowTheFloorIsNoise) {
  Program p;
  p.host = {0, 0.0008, 0, 0};
  p.transfer = 0.0005;
  p.jitter = 0.00005;
  EXPECT_THAT(FindStragglers(Play(p).Build()), IsEmpty());
}

TEST(Straggler, HealthyJitterIsNeverAStraggler) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    Program p;
    p.seed = seed;
    p.ranks = 2 + static_cast<int>(seed % 7);
    p.steps = 7 + static_cast<int>(seed % 60);
    p.jitter = 0.002 * (1 + seed % 4);  // as large as the transfer itself
    p.transfer = 0.002;
    EXPECT_THAT(FindStragglers(Play(p).Build()), IsEmpty()) << seed;
  }
}

TEST(Straggler, SlowNetworkMakesNoStraggler) {
  Program p;
  p.transfer = 0.5;
  EXPECT_THAT(FindStragglers(Play(p).Build()), IsEmpty());
}

TEST(Straggler, CallsMadeAheadAreNotLate) {
  // All calls enqueued at once; kernels run one after the other. Rank 0 made its calls seconds
  // before the others.
  JobBuilder b(3);
  const CommRef w = b.Comm("world", {0, 1, 2});
  for (int r = 0; r < 3; ++r) {
    for (uint64_t k = 1; k <= 40; ++k) {
      OpBuilder op = b.Coll(w, r, k, r + 0.0001 * static_cast<double>(k));
      op.Kernel(10 + 0.01 * static_cast<double>(k), 10.009 + 0.01 * static_cast<double>(k));
      op.raw().set_enqueued_ns(op.raw().entered_ns() + 20000);
    }
  }
  EXPECT_THAT(FindStragglers(b.Build()), IsEmpty());
}

TEST(Straggler, LateBecauseItWaitedElsewhereIsNotNamed) {
  // Ranks 0,1 and 2,3 are tensor-parallel pairs, 0,2 and 1,3 data-parallel ones. Rank 3 is late in
  // "tp"; so rank 2 comes late to "dp" too, but was waiting in "tp" all the time.
  JobBuilder b(4);
  const CommRef tp0 = b.Comm("tp", {0, 1}), tp1 = b.Comm("tp", {2, 3}), dp0 = b.Comm("dp", {0, 2}),
                dp1 = b.Comm("dp", {1, 3});
  for (uint64_t k = 1; k <= 12; ++k) {
    const double t = static_cast<double>(k);
    const auto op = [&](CommRef c, int rank, double entered, double end) {
      OpBuilder o = b.Coll(c, rank, k, entered);
      o.Kernel(entered + 0.001, end);
      o.raw().set_enqueued_ns(OpBuilder::Ns(entered + 0.0005));
    };
    op(tp0, 0, t, t + 0.01);
    op(tp0, 1, t, t + 0.01);
    op(tp1, 0, t, t + 0.21);        // rank 2
    op(tp1, 1, t + 0.2, t + 0.21);  // rank 3, late on its host
    op(dp0, 0, t + 0.011, t + 0.22);
    op(dp0, 1, t + 0.211, t + 0.22);  // rank 2
    op(dp1, 0, t + 0.011, t + 0.22);
    op(dp1, 1, t + 0.211, t + 0.22);  // rank 3
  }
  const auto found = FindStragglers(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(3));
  EXPECT_EQ(found[0].finding.kind(), Kind::rank_slow);
}

TEST(Straggler, BroadcastsAndMessagesAreNotAllToAll) {
  JobBuilder b = Play({.ranks = 4, .steps = 20, .host = {0.2, 0, 0, 0}});
  for (int r = 0; r < 4; ++r) {
    for (trace::Operation& op : *b.Raw(0, r).mutable_operations())
      op.set_func(trace::BROADCAST), op.set_root(0);
  }
  EXPECT_THAT(FindStragglers(b.Build()), IsEmpty());
}

TEST(Straggler, PipelineTrafficMakesItLessCertain) {
  JobBuilder b = Play({.ranks = 4, .steps = 20, .host = {0, 0, 0, 0.2}});
  b.Messages(0, 0, 1, true, 20);
  b.Messages(0, 1, 0, false, 20);
  const auto found = FindStragglers(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].finding.confidence(), Confidence::probable);
}

TEST(Straggler, StagesOfAPipelineComputeLastByDesign) {
  Program p;
  p.gpu = {0, 0, 0.05, 0};
  p.steps = 20;
  JobBuilder b = Play(p);
  const CommRef stages = b.Comm("stages", {3, 2});
  b.Messages(stages, 0, 1, true, 20);
  EXPECT_THAT(FindStragglers(b.Build()), IsEmpty()) << "rank 3 sends to the late one";
  JobBuilder apart = Play(p);
  const CommRef others = apart.Comm("stages", {0, 1});
  apart.Messages(others, 0, 1, true, 20);
  const auto found = FindStragglers(apart.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].finding.kind(), Kind::gpu_slow);
}

TEST(Straggler, WhatItWaitedForElsewhereIsForgotten) {
  Program p;
  p.gpu = {0, 0, 0.05, 0};
  JobBuilder b = Play(p);
  const CommRef pair = b.Comm("pair", {2, 3});
  const double late = 3 + 3.0 * 2 + 0.5;  // on rank 2's clock, after most of the collectives
  for (int r : {0, 1}) b.Coll(pair, r, 100, late).Finished();
  EXPECT_THAT(FindStragglers(b.Build()), IsEmpty()) << "99 operations of the pair are not in its record any more";
  JobBuilder whole = Play(p);
  const CommRef kept = whole.Comm("pair", {2, 3});
  for (int r : {0, 1}) whole.Coll(kept, r, 1, late).Finished();
  EXPECT_EQ(FindStragglers(whole.Build()).size(), 1u);
}

TEST(Straggler, RecordsThatAreMissingOrTooShort) {
  Program p;
  p.host = {0, 0, 0.2, 0};
  JobBuilder b = Play(p);
  b.Drop(0);
  auto found = FindStragglers(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(2));
  EXPECT_EQ(found[0].finding.confidence(), Confidence::probable);
  b.Drop(2);  // the late one's record is gone: the rest wait alike
  EXPECT_THAT(FindStragglers(b.Build()), IsEmpty());
  JobBuilder empty(2);
  empty.Comm("world", {0, 1});
  EXPECT_THAT(FindStragglers(empty.Build()), IsEmpty());
}

TEST(Straggler, OpenOperationsAtTheEndDoNotCount) {
  Program p;
  p.host = {0, 0.2, 0, 0};
  JobBuilder b = Play(p);
  for (int r = 0; r < 4; ++r) b.Coll(0, r, 13, 90).Running();
  EXPECT_EQ(FindStragglers(b.Build()).size(), 1u);
}

// ---- Edges

struct Wire {
  int from, to;
  uint64_t steps;
  int64_t gpu, wire;  // ns a step
};
JobBuilder Ring(const std::vector<Wire>& wires) {
  JobBuilder b(8);
  const CommRef w = b.Comm("world", {0, 1, 2, 3, 4, 5, 6, 7});
  b.Finish(w, 8);
  for (const Wire& wire : wires) {
    auto edge = b.EdgeOf(w, wire.from, wire.to);
    const int64_t n = static_cast<int64_t>(wire.steps);
    edge.Send(8, 28, trace::STEP_FREE, 28).Waited(wire.gpu * n, 3000 * n, wire.wire * n);
    edge.last().set_steps_total(wire.steps);
    edge.last().set_bytes(wire.steps * 4000);
  }
  return b;
}

TEST(SlowEdge, TheOnlyEdgeThatWaitsOnTheWire) {
  // Figures of a recorded slow edge 1 -> 5.
  const auto found = FindSlowEdges(Ring({{0, 4, 224, 9718000, 159000},
                                         {1, 5, 224, 8782000, 15680000},
                                         {4, 0, 224, 13495000, 63000},
                                         {5, 1, 224, 1626000, 125000}})
                                       .Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].finding.kind(), Kind::edge_slow);
  EXPECT_EQ(EdgesOf(found[0]), std::set<std::string>{"1->5"});
  EXPECT_EQ(found[0].finding.confidence(), Confidence::probable);
  EXPECT_THAT(RanksOf(found[0]), IsEmpty()) << "an edge, not a rank";
  EXPECT_TRUE(IsWhole(found[0]));
}

TEST(SlowEdge, SeenInTheMidstOfItsWork) {
  JobBuilder b = Ring({{0, 4, 224, 9718000, 159000}, {4, 0, 224, 13495000, 63000}, {5, 1, 224, 1626000, 125000}});
  auto edge = b.EdgeOf(0, 1, 5);
  edge.Send(9, 28, trace::SEND_WAIT, 10).Waited(8782000ll * 224, 0, 15680000ll * 224).ChangedAt(99.95);
  edge.last().set_steps_total(224);
  edge.last().set_bytes(224 * 4000);
  const auto found = FindSlowEdges(b.Build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(EdgesOf(found[0]), std::set<std::string>{"1->5"});
}

TEST(SlowEdge, OneHiccupIsNoSlowEdge) {
  // Healthy edges, but the process of rank 5 was off its CPU for 25 ms with four steps on the wire:
  // one long kernel.
  const std::vector<Wire> wires{{1, 4, 448, 190000, 12000},
                                {2, 5, 448, 170000, 10000},
                                {5, 0, 448, 280000, 230000},
                                {6, 1, 448, 270000, 9000}};
  JobBuilder hiccup = Ring(wires);
  trace::Operation& op = *hiccup.Raw(0, 5).mutable_operations(4);
  op.set_finished_ns(op.finished_ns() + 25000000);
  EXPECT_THAT(FindSlowEdges(hiccup.Build()), IsEmpty());
  EXPECT_EQ(FindSlowEdges(Ring(wires).Build()).size(), 1u)
      << "the same waits with steady kernels are the edge's";
}

TEST(SlowEdge, WithoutKernelTimesNothingIsSaid) {
  JobBuilder b = Ring(
      {{0, 4, 224, 9718000, 159000}, {1, 5, 224, 8782000, 15680000}, {4, 0, 224, 13495000, 63000}});
  for (int r = 0; r < 8; ++r) b.Raw(0, r).clear_operations();
  EXPECT_THAT(FindSlowEdges(b.Build()), IsEmpty());
}

TEST(SlowEdge, HealthySpreadIsNone) {
  EXPECT_THAT(FindSlowEdges(Ring({{1, 4, 448, 3829000, 241000},
                                  {2, 5, 448, 3491000, 196000},
                                  {5, 0, 448, 5642000, 1128000},
                                  {6, 1, 448, 5568000, 1261000}})
                                .Build()),
              IsEmpty());
}

TEST(SlowEdge, AllSlowOrWaitingForTheGpuNamesNoEdge) {
  EXPECT_THAT(FindSlowEdges(Ring({{0, 4, 224, 1000, 9000000},
                                  {1, 5, 224, 1000, 15000000},
                                  {4, 0, 224, 1000, 8000000}})
                                .Build()),
              IsEmpty());
  EXPECT_THAT(FindSlowEdges(Ring({{0, 4, 224, 50000000, 100000},
                                  {1, 5, 224, 90000000, 3000000},
                                  {4, 0, 224, 1000, 100000}})
                                .Build()),
              IsEmpty());
}

TEST(SlowEdge, FewStepsOtherTrafficAndOpenOperationsAreNotCompared) {
  EXPECT_THAT(
      FindSlowEdges(
          Ring({{0, 4, 110, 1000, 100000}, {1, 5, 90, 1000, 15000000}, {4, 0, 110, 1000, 100000}})
              .Build()),
      IsEmpty());
  EXPECT_THAT(FindSlowEdges(Ring({{0, 4, 2240, 1000, 100000},
                                  {1, 5, 224, 1000, 15000000},
                                  {4, 0, 2240, 1000, 100000}})
                                .Build()),
              IsEmpty());
  JobBuilder open = Ring({{0, 4, 224, 1000, 100000}, {4, 0, 224, 1000, 100000}});
  auto edge = open.EdgeOf(0, 1, 5);
  edge.Send(9, 28, trace::SEND_WAIT, 10).Waited(1000 * 224, 0, 15000000ll * 224);
  edge.last().set_steps_total(224);
  edge.last().set_bytes(224 * 4000);
  EXPECT_THAT(FindSlowEdges(open.Build()), IsEmpty()) << "a stalled edge is not a slow one";
}

}  // namespace
}  // namespace ringscope::reasoning
