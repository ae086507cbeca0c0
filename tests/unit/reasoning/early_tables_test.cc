// What profiler tables below v5 leave open: order inside a kernel plan, streams, the ends of
// operations, sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/reasoning/finder.h"
#include "tests/unit/reasoning/expect.h"
#include "tests/unit/testing/job_builder.h"

namespace ringscope::reasoning {
namespace {

using testing::CommRef;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JobBuilder;

// Calls are known from their launch; `plan` is the kernel plan, the only group such tables show.
void Launched(testing::OpBuilder op, uint32_t plan) {
  op.raw().set_from_api(false);
  op.raw().set_grouped(false);
  op.raw().set_stream(0);
  op.raw().set_group(plan);
}

// Every communicator is one of table v2.
void MakeEarly(JobBuilder* b, int ranks) {
  for (int r = 0; r < ranks; ++r) {
    for (auto& c : *b->Record(r).mutable_communicators()) {
      c.set_profiler_api(2);
      c.set_n_ranks(0);
      c.set_api_events(false);
      c.set_completion_visible(false);
    }
  }
}

// Two ranks launch the same three calls in plans `plans`, of which NCCL changed the order on
// rank 1.
std::vector<Candidate> TwoOrders(const std::vector<uint32_t>& plans) {
  JobBuilder b(3);
  const CommRef w = b.Comm("", {0, 1, 2});
  const uint64_t counts[] = {100, 200, 300};
  for (int r = 0; r < 3; ++r) {
    for (uint64_t i = 0; i < 3; ++i) {
      const uint64_t count = counts[r == 1 && i > 0 ? 3 - i : i];
      Launched(b.Coll(w, r, i + 1).Count(count).Enqueued(), plans[i]);
    }
    Launched(b.Coll(w, r, 4).Enqueued(), 9);
  }
  MakeEarly(&b, 3);
  return FindMismatches(b.Build());
}

TEST(EarlyTables, OrderInsideAPlanSaysNothing) { EXPECT_THAT(TwoOrders({7, 8, 8}), IsEmpty()); }

TEST(EarlyTables, OrderOfPlansDoes) {
  const auto found = TwoOrders({6, 7, 8});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].finding.kind(), Kind::order_mismatch);
  EXPECT_THAT(RanksOf(found[0]), ElementsAre(1));
  EXPECT_LT(found[0].finding.confidence(), Confidence::established) << "the size is not known";
  EXPECT_THAT(TextOf(found[0]), HasSubstr("3 of at least 3 ranks"));
}

TEST(EarlyTables, AMismatchExplainsTheStepsThatStandOpen) {
  JobBuilder b(4);
  const CommRef w = b.Comm("", {0, 1, 2, 3});
  for (int r = 0; r < 4; ++r) {
    for (uint64_t i = 1; i <= 3; ++i)
      Launched(b.Coll(w, r, i).Enqueued(), static_cast<uint32_t>(i));
    auto op = b.Coll(w, r, 4).Count(r == 1 ? 20480000 : 1024).Enqueued();
    op.raw().set_proxy_ops_started(2);
    op.raw().set_proxy_ops_stopped(r == 1 ? 0 : 2);
    op.raw().set_unfinished(r == 1);
    Launched(op, 4);
  }
  b.EdgeOf(w, 0, 1).Send(4, 12, trace::STEP_FREE, 12).Recv(4, 60, trace::RECV_WAIT, 12);
  b.Stalled(w, 1, 4, 5, 70);
  MakeEarly(&b, 4);
  const Diagnosis d = Diagnose(b.Build());
  ASSERT_GT(d.findings_size(), 0);
  EXPECT_EQ(d.findings(0).kind(), Kind::size_mismatch);
  EXPECT_THAT(d.findings(0).who().ranks(), ElementsAre(1));
  EXPECT_EQ(d.state(), State::hang);
}

// Two communicators in opposite order, streams not known: a kernel that does not start while an
// earlier one runs on the same GPU is queued behind it. Nothing says that a GPU stands still.
TEST(EarlyTables, KernelBehindARunningOneIsNoStalledGpu) {
  JobBuilder b(2);
  const CommRef a = b.Comm("a", {0, 1}), c = b.Comm("b", {0, 1});
  for (int r = 0; r < 2; ++r) {
    const CommRef runs = r == 0 ? a : c, waits = r == 0 ? c : a;
    for (const CommRef comm : {a, c}) b.Coll(comm, r, 1, 1).Finished();
    auto running = b.Coll(runs, r, 2, 2).Running();
    auto waiting = b.Coll(waits, r, 2, 3).Enqueued();
    for (auto* op : {&running, &waiting}) Launched(*op, 3);
    b.Stalled(runs, r, 2, 5, 70);
    b.Stalled(waits, r, 2, 5, 70);
  }
  for (int r = 0; r < 2; ++r) {
    for (auto& raw : *b.Record(r).mutable_communicators()) {
      raw.set_profiler_api(4);
      raw.set_api_events(false);
      uint32_t plan = 0;
      for (auto& op : *raw.mutable_operations()) {
        op.set_from_api(false);
        op.set_stream(0);
        op.set_group(++plan + raw.row() * 10);
      }
    }
  }
  const Diagnosis d = Diagnose(b.Build());
  ASSERT_GT(d.findings_size(), 0);
  EXPECT_EQ(d.findings(0).kind(), Kind::communicator_cycle) << d.DebugString();
}

// The same without kernel events: the rank whose order is odd has data waiting in the one it has
// not begun, and has sent in the other.
TEST(EarlyTables, UntouchedConnectionsBehindARunningOneAreNoStalledGpu) {
  JobBuilder b(2);
  const CommRef a = b.Comm("a", {0, 1}), c = b.Comm("b", {0, 1});
  for (int r = 0; r < 2; ++r) {
    const CommRef first = r == 0 ? a : c, second = r == 0 ? c : a;
    for (const CommRef comm : {first, second}) {
      Launched(b.Coll(comm, r, 1, 1).Enqueued(), comm == first ? 1 : 2);
      auto op = b.Coll(comm, r, 2, comm == first ? 2 : 3).Enqueued();
      op.raw().set_proxy_ops_started(2);
      op.raw().set_unfinished(true);
      Launched(op, comm == first ? 3 : 4);
      b.Stalled(comm, r, 2, 5, 70);
    }
    const int peer = 1 - r;
    b.EdgeOf(first, r, peer)
        .Send(2, 12, trace::SEND_GPU_WAIT, 2, 6, 2)
        .Recv(2, 12, trace::RECV_GPU_WAIT, 0, 4, 2);
    b.EdgeOf(second, r, peer)
        .Send(2, 12, trace::SEND_GPU_WAIT, 0, 4, 0)
        .Recv(2, 12, trace::RECV_WAIT, 0, 4, 0);
  }
  MakeEarly(&b, 2);
  const Diagnosis d = Diagnose(b.Build());
  ASSERT_GT(d.findings_size(), 0);
  EXPECT_EQ(d.findings(0).kind(), Kind::communicator_cycle) << d.DebugString();
  for (const Finding& f : d.findings()) EXPECT_NE(f.kind(), Kind::gpu_stalled);
}

// Without KernelCh a sent step tells that the kernel runs: only it fills the buffer.
TEST(EarlyTables, ASentStepSaysThatTheKernelRuns) {
  JobBuilder b(2);
  const CommRef w = b.Comm("", {0, 1});
  for (int r = 0; r < 2; ++r) {
    Launched(b.Coll(w, r, 1).Enqueued(), 1);
    auto op = b.Coll(w, r, 2).Enqueued();
    op.raw().set_proxy_ops_started(2);
    op.raw().set_unfinished(true);
    Launched(op, 2);
    b.Stalled(w, r, 2, 5, 70);
  }
  b.EdgeOf(w, 0, 1).Send(2, 12, trace::SEND_WAIT, 4, 8, 5).Recv(2, 12, trace::RECV_WAIT, 4);
  b.EdgeOf(w, 1, 0).Send(2, 12, trace::SEND_GPU_WAIT, 4, 8, 4).Recv(2, 12, trace::RECV_WAIT, 4);
  MakeEarly(&b, 2);
  const Diagnosis d = Diagnose(b.Build());
  ASSERT_GT(d.findings_size(), 0);
  EXPECT_EQ(d.findings(0).kind(), Kind::edge_stalled) << d.DebugString();
}

}  // namespace
}  // namespace ringscope::reasoning
