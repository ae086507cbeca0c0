// Each trap of NCCL's profiler interface that concerns a plugin (docs/nccl.md), one test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "recorder/clock.h"
#include "recorder/flight/steps.h"
#include "tests/unit/plugin/fake_nccl.h"

namespace ringscope::testing {
namespace {

using flight::Counter;
using flight::StepState;

constexpr uint64_t kAllTypes[] = {0x1,    0x2,    0x4,        0x8,   0x10,  0x20,   0x40,
                                  0x80,   0x100,  0x200,      0x400, 0x800, 0x1000, 0x2000,
                                  0x4000, 0x8000, 1ull << 40, 0,     3,     ~0ull};

TEST(Traps, HandleIsAlwaysWritten) {
  Comm comm(1);
  for (uint64_t type : kAllTypes) {
    // Fields that are read must be plausible; everything else stays garbage.
    Descr d = Make(type, nullptr);
    if (type == abi::kColl)
      d.coll = {0, nullptr, nullptr, nullptr, 1, 0, nullptr, 1, 1, nullptr, nullptr, nullptr};
    if (type == abi::kP2p) d.p2p = {nullptr, nullptr, nullptr, 1, 1, 1, nullptr};
    if (type == abi::kCollApi) d.coll_api = {nullptr, 1, nullptr, 0, nullptr, false};
    if (type == abi::kP2pApi) d.p2p_api = {nullptr, 1, nullptr, nullptr, false};
    if (type == abi::kCeColl) d.ce_coll = {};
    for (void* context : {comm.context, static_cast<void*>(nullptr), kGarbage}) {
      void* handle = kGarbage;
      EXPECT_EQ(ncclProfiler_v6.start_event(context, &handle, &d), 0);
      EXPECT_NE(handle, kGarbage) << "type " << type;
      EXPECT_EQ(ncclProfiler_v6.stop_event(handle), 0);
    }
  }
  comm.Finalize();
}

TEST(Traps, NullStaleAndGarbageHandlesAreCountedAndIgnored) {
  Comm comm(2);
  const uint64_t null_before = CounterValue(Counter::kNullHandle),
                 garbage_before = CounterValue(Counter::kGarbageHandle);
  EXPECT_EQ(ncclProfiler_v6.stop_event(nullptr), 0);
  EXPECT_EQ(ncclProfiler_v6.record_event_state(nullptr, 8, nullptr), 0);
  EXPECT_EQ(ncclProfiler_v6.stop_event(kGarbage), 0);
  EXPECT_EQ(ncclProfiler_v6.record_event_state(kGarbage, 8, nullptr), 0);
  EXPECT_EQ(CounterValue(Counter::kNullHandle), null_before + 2);
  EXPECT_EQ(CounterValue(Counter::kGarbageHandle), garbage_before + 2);
  EXPECT_EQ(comm.Kernel(nullptr), nullptr);
  EXPECT_EQ(comm.Kernel(kGarbage), nullptr);
  EXPECT_EQ(comm.Step(nullptr, 0), nullptr);
  EXPECT_EQ(comm.Step(kGarbage, 0), nullptr);
  comm.Finalize();
}

TEST(Traps, StateArgumentsMayBeNull) {
  Comm comm(3);
  void* coll = comm.Enqueue();
  void* op = comm.ProxyOp(coll, 1, true);
  void* step = comm.Step(op, 0);
  void* kernel = comm.Kernel(coll);
  void* group = comm.Group();
  for (void* handle : {op, step, kernel, group, coll}) {
    for (uint32_t state = 0; state < 64; ++state)
      EXPECT_EQ(ncclProfiler_v6.record_event_state(handle, state, nullptr), 0);
  }
  comm.Finalize();
}

TEST(Traps, InitNeverFailsAndWritesTheOneMask) {
  Comm first(4), second(5);
  EXPECT_EQ(first.mask, 0xF5F);
  EXPECT_EQ(second.mask, 0xF5F)
      << "the mask is process-wide: every communicator writes the same value";
  EXPECT_NE(first.context, nullptr);
  EXPECT_NE(first.context, second.context);
  void* context = nullptr;
  EXPECT_EQ(ncclProfiler_v5.init(&context, 6, nullptr, nullptr, -1, 1, 0, nullptr), 0);
  EXPECT_NE(context, nullptr);
  EXPECT_EQ(ncclProfiler_v5.finalize(context), 0);
  first.Finalize();
  second.Finalize();
}

TEST(Traps, ErrnoIsPreserved) {
  errno = 77;
  Comm comm(7);
  comm.Run(comm.Enqueue());
  std::thread([&] {
    errno = 78;
    comm.Enqueue();  // first callback of a thread
    EXPECT_EQ(errno, 78);
  }).join();
  comm.Finalize();
  EXPECT_EQ(errno, 77);
}

TEST(Traps, CallbacksAfterFinalizeAndAfterReuse) {
  Comm comm(8);
  void* coll = comm.Enqueue();
  void* op = comm.ProxyOp(coll, 1, true);
  void* step = comm.Step(op, 0);
  comm.Finalize();
  comm.State(step, abi::kStepSendWait, 10);  // a shared proxy goes on after its owner's finalize
  comm.Stop(step);
  comm.Stop(op);
  comm.Run(coll);
  comm.Finalize();  // twice
  // Many communicators later the rows serve others: old handles must not touch them.
  std::vector<void*> old = {coll, op, step, comm.context};
  for (uint32_t i = 0; i < 2 * flight::kCommRows; ++i) {
    Comm next(1000 + i);
    void* c = next.Enqueue();
    next.Run(c);
    next.Finalize();
  }
  Comm alive(9);
  void* mine = alive.Enqueue();
  const uint64_t kernel = Load(OpRow(mine).kernel);
  for (void* handle : old) {
    alive.Stop(handle);
    alive.State(handle, abi::kStepSendWait, 1);
    alive.Kernel(handle);
    alive.Step(handle, 3);
  }
  EXPECT_EQ(Load(OpRow(mine).kernel), kernel);
  EXPECT_EQ(Load(alive.Row().collectives), 1u);
  alive.Finalize();
}

TEST(Traps, InitAgainAfterTheLastFinalize) {
  for (int i = 0; i < 3; ++i) {
    Comm comm(10);
    EXPECT_EQ(comm.mask, 0xF5F);
    void* coll = comm.Enqueue();
    ASSERT_NE(coll, nullptr);
    comm.Run(coll);
    EXPECT_FALSE(Open(OpRow(coll)));
    comm.Finalize();
  }
}

TEST(Traps, InitsInParallel) {
  std::vector<std::thread> threads;
  std::vector<void*> contexts(8);
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      Comm comm(100 + i);
      contexts[i] = comm.context;
      comm.Run(comm.Enqueue());
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(std::set<void*>(contexts.begin(), contexts.end()).size(), 8u);
  std::set<uint64_t> rings;
  for (void* context : contexts) {
    rings.insert(Load(recorder::Current()->comms[Bits(context) & 0xffff].ring) & 0xffffffff);
    ncclProfiler_v6.finalize(context);
  }
  EXPECT_EQ(rings.size(), 8u) << "two communicators share operation rows";
}

TEST(Traps, KernelStopWithoutStartAndTwice) {
  Comm comm(11);
  void* coll = comm.Enqueue(2);
  void* first = comm.Kernel(coll, 0);
  comm.Stop(first);
  comm.Stop(first);  // again, through the handle that NCCL forgot to clear
  EXPECT_EQ(KernelsStopped(OpRow(coll)), 1u);
  EXPECT_TRUE(Open(OpRow(coll))) << "channel 1 has not run";
  void* second = comm.Kernel(coll, 1);
  EXPECT_TRUE(Open(OpRow(coll)));
  comm.Stop(second);
  EXPECT_FALSE(Open(OpRow(coll)));
  EXPECT_EQ(Load(comm.Row().completed), 1u);
  comm.Finalize();
}

TEST(Traps, LostKernelStopDoesNotFillTheRing) {
  Comm comm(12);
  const uint64_t lost_before = CounterValue(Counter::kOpNoRow);
  for (int i = 0; i < 2000; ++i) {
    void* coll = comm.Enqueue();
    if (i % 7 == 0) {
      comm.Kernel(coll);  // its stop never comes
    } else {
      comm.Run(coll);
    }
  }
  EXPECT_EQ(CounterValue(Counter::kOpNoRow), lost_before);
  comm.Finalize();
}

TEST(Traps, UnfinishedOperationKeepsItsRow) {
  Comm comm(13);
  void* hung = comm.Enqueue(1, "AllReduce", 4711);
  for (int i = 0; i < 3000; ++i) comm.Enqueue();
  EXPECT_EQ(Load(OpRow(hung).count), 4711u);
  EXPECT_EQ(Load(OpRow(hung).position) & 0xffffffffff, 1u);
  EXPECT_EQ(Load(comm.Row().collectives), 3001u);
  const uint64_t rows = (Load(comm.Row().ring) >> 32) + 1;
  EXPECT_EQ(Load(comm.Row().no_row), 3001 - rows);
  comm.Finalize();
}

flight::StepCounts Steps(void* op) { return flight::StepCounts(Load(EdgeRow(op).steps)); }

TEST(Traps, StepsRestartAndLateStepsAreIgnored) {
  Comm comm(14);
  void* coll = comm.Enqueue();
  void* op = comm.ProxyOp(coll, 3, false);
  void* step = nullptr;
  for (int i = 0; i < 5; ++i) step = comm.Step(op, 0);  // a receive that could not be posted
  EXPECT_EQ(Steps(op).posted(), 0u) << "started again and again is not posted";
  comm.State(step, abi::kStepRecvWait);
  EXPECT_EQ(Steps(op).posted(), 1u);
  EXPECT_EQ(Steps(op).Oldest(false), StepState::kRecvWait);
  void* next = comm.ProxyOp(comm.Enqueue(), 3, false);
  void* other = comm.Step(next, 0);
  comm.State(other, abi::kStepRecvWait);
  comm.State(step, abi::kStepRecvFlushWait, 99);  // of the operation before
  comm.Stop(step);
  EXPECT_EQ(Load(EdgeRow(op).steps), 1u);
  comm.State(other, abi::kStepRecvFlushWait, 64);
  EXPECT_EQ(Steps(op).Oldest(false), StepState::kRecvFlushWait);
  comm.State(other, abi::kStepRecvGpuWait);
  EXPECT_EQ(Steps(op).Oldest(false), StepState::kRecvGpuWait);
  EXPECT_EQ(Steps(op).transmitted(false), 1u);
  comm.Stop(other);
  comm.Stop(other);
  EXPECT_EQ(Steps(op).done(), 1u);
  EXPECT_EQ(Steps(op).Oldest(false), StepState::kFree);
  EXPECT_EQ(Load(EdgeRow(op).bytes), 64u);
  comm.Finalize();
}

TEST(Traps, StepsWithoutPeerWaitAndLostStops) {
  Comm comm(24);
  void* op = comm.ProxyOp(comm.Enqueue(), 1, true);
  void* a = comm.Step(op, 0);
  void* b = comm.Step(op, 1);
  void* c = comm.Step(op, 2);
  for (void* s : {a, b, c}) comm.State(s, abi::kStepSendGpuWait);
  comm.State(a, abi::kStepSendWait, 10);  // before NCCL 2.27 there is no SendPeerWait
  EXPECT_EQ(Steps(op).StateOf(0, true), StepState::kSendWait);
  EXPECT_EQ(Steps(op).StateOf(1, true), StepState::kSendGpuWait);
  comm.State(b, abi::kStepSendWait, 10);
  comm.Stop(b);  // the stop of step 0 was lost: only the newest one counts
  EXPECT_EQ(Steps(op).done(), 2u);
  EXPECT_EQ(Steps(op).Oldest(true), StepState::kSendGpuWait);
  comm.Finalize();
}

// Measured between two readings of the clock on each side of every callback, so that a busy machine
// changes nothing.
TEST(Traps, WaitTimesAddUp) {
  Comm comm(25);
  void* op = comm.ProxyOp(comm.Enqueue(), 1, true);
  void* step = nullptr;
  uint64_t posted_early = 0, posted_late = 0;  // sums over the three steps
  const uint64_t begin = recorder::Ticks();
  for (int i = 0; i < 3; ++i) {
    step = comm.Step(op, i);
    posted_early += recorder::Ticks() & ~uint64_t{1};
    comm.State(step, abi::kStepSendGpuWait);
    posted_late += recorder::Ticks();
  }
  usleep(2000);
  const uint64_t data_early = recorder::Ticks() & ~uint64_t{1};
  comm.State(step, abi::kStepSendPeerWait);  // step 2 first: its two elders pass with it
  const uint64_t data_late = recorder::Ticks();
  comm.State(step, abi::kStepSendPeerWait);
  usleep(500);
  const uint64_t sent_early = recorder::Ticks() & ~uint64_t{1};
  comm.State(step, abi::kStepSendWait);
  const uint64_t sent_late = recorder::Ticks();
  const flight::EdgeRow& edge = EdgeRow(op);
  uint64_t entered[4];
  for (int i = 0; i < 4; ++i) entered[i] = Load(edge.entered[i]);
  const flight::StepCounts counts(Load(edge.steps));
  const uint64_t lifetime = sent_late - begin;
  const uint64_t gpu = flight::WaitTicks(entered, counts, 0, sent_late, lifetime, 0);
  const uint64_t peer = flight::WaitTicks(entered, counts, 1, sent_late, lifetime, 0);
  EXPECT_GE(gpu, 3 * data_early - posted_late);
  EXPECT_LE(gpu, 3 * data_late - posted_early);
  EXPECT_GE(peer, 3 * (sent_early - data_late));
  EXPECT_LE(peer, 3 * (sent_late - data_early));
  entered[1] = 0;  // a writer killed between two stores
  EXPECT_EQ(flight::WaitTicks(entered, counts, 0, sent_late, lifetime, 0), 0u);
  comm.Finalize();
}

TEST(Traps, RepeatedPeerWaitIsNoProgress) {
  Comm comm(15);
  void* op = comm.ProxyOp(comm.Enqueue(), 1, true);
  void* step = comm.Step(op, 0);
  comm.State(step, abi::kStepSendGpuWait);
  comm.State(step, abi::kStepSendPeerWait);
  const uint64_t changed = Load(EdgeRow(op).changed);
  for (int i = 0; i < 1000; ++i) comm.State(step, abi::kStepSendPeerWait);
  EXPECT_EQ(Load(EdgeRow(op).changed), changed | 1);
  comm.Finalize();
}

TEST(Traps, ForeignProxyOperationIsKeptApart) {
  Comm comm(16);
  const uint64_t op_rows = Load(comm.Row().head);
  const uint64_t foreign_nonce = recorder::Current()->nonce == 9 ? 10 : 9;
  void* foreign_parent = reinterpret_cast<void*>(flight::MakeHandle(
      foreign_nonce, flight::HandleKind::kOp, 5 | 1ull << 16 | flight::kOpLaunched));
  void* foreign_context = reinterpret_cast<void*>(
      flight::MakeHandle(foreign_nonce, flight::HandleKind::kContext, 3 | 1 << 16));
  Descr d = Make(abi::kProxyOp, foreign_parent);
  d.rank = 2;
  d.proxy_op = {getpid() + 1, 1, 6, 28, 1 << 20, 1};
  void* op = kGarbage;
  ncclProfiler_v6.start_event(foreign_context, &op, &d);
  ASSERT_NE(op, nullptr);
  flight::EdgeRow& edge = EdgeRow(op);
  EXPECT_EQ(Load(edge.foreign), Bits(foreign_parent));
  EXPECT_EQ(Load(edge.context), Bits(foreign_context));
  EXPECT_EQ(Load(edge.stamp) >> 32 & 0xffff, 0xffffu);
  EXPECT_EQ(Load(edge.peer), 6u | 2ull << 32);
  Descr s = Make(abi::kProxyStep, op);  // its steps carry the foreign context too
  s.proxy_step = {0};
  void* step = kGarbage;
  ncclProfiler_v6.start_event(foreign_context, &step, &s);
  comm.State(step, abi::kStepSendGpuWait);
  comm.Stop(step);
  comm.Stop(op);
  EXPECT_EQ(Load(edge.ops), 1u | 1ull << 32);
  EXPECT_EQ(Load(comm.Row().head), op_rows);
  // A pointer of a process without Ringscope, equal pid (another pid namespace): still not ours.
  void* plain = reinterpret_cast<void*>(0x7f1234567890);
  Descr p = Make(abi::kProxyOp, plain);
  p.rank = 2;
  p.proxy_op = {getpid(), 1, 6, 28, 1 << 20, 1};
  void* handle = kGarbage;
  ncclProfiler_v6.start_event(plain, &handle, &p);
  EXPECT_EQ(Load(EdgeRow(handle).foreign), Bits(plain));
  comm.Finalize();
}

TEST(Traps, LargeGroupSharesATailRow) {
  Comm comm(17, 0, 64);
  void* group = comm.Group(2);
  std::vector<void*> api, launched;
  for (int i = 0; i < 40; ++i) {
    api.push_back(comm.P2pApi(group, i % 2 ? "Recv" : "Send"));
    comm.Stop(api.back());
  }
  for (int i = 0; i < 40; ++i) {
    launched.push_back(comm.P2p(api[i], i % 2 ? "Recv" : "Send", 1 + i / 2));
    comm.Stop(launched.back());
  }
  comm.Stop(group);
  EXPECT_EQ(Load(comm.Row().head), 9u);
  EXPECT_EQ(Load(comm.Row().p2ps), 40u);
  flight::OpRow& tail = OpRow(api[39]);
  EXPECT_EQ(Load(tail.group) >> 48, 32u);
  EXPECT_EQ(Load(tail.count), 32u * 16 * 4);
  for (void* l : launched) comm.Run(l);
  EXPECT_FALSE(Open(tail));
  EXPECT_EQ(KernelsStopped(tail), 32u);
  comm.Finalize();
}

TEST(Traps, LargeGroupOverTwoCommunicators) {
  Comm one(32), two(33);
  void* group = one.Group(2);
  for (int i = 0; i < 8; ++i) one.Stop(one.P2pApi(group, "Send"));
  void* tail = one.P2pApi(group, "Send");
  one.Stop(tail);
  void* other = two.P2pApi(group, "Send");
  two.Stop(other);
  void* again = two.P2pApi(group, "Recv");
  two.Stop(again);
  EXPECT_NE(other, tail) << "a row serves one communicator";
  EXPECT_EQ(again, other);
  one.Stop(two.P2p(other, "Send", 1));
  one.Stop(group);
  EXPECT_EQ(Load(one.Row().p2ps), 9u);
  EXPECT_EQ(Load(two.Row().p2ps), 2u);
  EXPECT_EQ(Load(OpRow(other).group) >> 48, 2u);
  one.Finalize();
  two.Finalize();
}

TEST(Traps, CopyEngineOperationIsOverOnceEnqueued) {
  Comm comm(34);
  void* group = comm.Group();
  void* api = comm.CollApi(group);
  comm.Stop(api);
  Descr d = Make(abi::kCeColl, api);
  d.ce_coll = {};
  d.ce_coll.func = "AllGather";
  void* launch = comm.Start(d);
  EXPECT_EQ(Bits(launch) & ~flight::kOpLaunched, Bits(api));
  EXPECT_TRUE(Open(OpRow(launch)));
  comm.Stop(launch);
  comm.Stop(group);
  EXPECT_FALSE(Open(OpRow(launch))) << "no child ever says that it ended: it must not look stalled";
  comm.Finalize();
}

TEST(Traps, ProxyOperationStoppedTwice) {
  Comm comm(35);
  void* op = comm.ProxyOp(comm.Enqueue(), 1, true);
  const uint64_t before = CounterValue(Counter::kStaleHandle);
  comm.Stop(op);
  comm.Stop(op);
  EXPECT_EQ(Load(EdgeRow(op).ops), 1 | uint64_t{1} << 32) << "or it would look busy for ever";
  EXPECT_EQ(CounterValue(Counter::kStaleHandle), before + 1);
  comm.Finalize();
}

TEST(Traps, GraphReplayIsAnOperationOfItsOwn) {
  Comm comm(18);
  void* group = comm.Group();
  void* api = comm.CollApi(group);
  comm.Stop(api);
  comm.Stop(group);
  void* first = comm.Coll(api);
  comm.Stop(first);
  comm.Run(first);
  void* second = comm.Coll(api);  // replay: the same, long stopped, API handle
  comm.Stop(second);
  EXPECT_NE(flight::OpRowOf(Bits(first)), flight::OpRowOf(Bits(second)));
  EXPECT_EQ(Load(comm.Row().collectives), 2u);
  comm.Finalize();
}

TEST(Traps, V4ReadsOneByteOfTheType) {
  void* context = nullptr;
  int mask = -1;
  ncclProfiler_v4.init(&context, &mask, nullptr, 19, 1, 2, 1, nullptr);
  abi::v4::Descr d;
  std::memset(static_cast<void*>(&d), 0xa5, sizeof(d));
  d.type = 2;
  d.parent = nullptr;
  d.coll = {3, "AllGather", nullptr, nullptr, 4096, 0, "ncclInt8", 2, 8, "RING", "LL128"};
  void* coll = kGarbage;
  ncclProfiler_v4.start_event(context, &coll, &d);
  ASSERT_NE(coll, kGarbage);
  ASSERT_NE(coll, nullptr);
  ncclProfiler_v4.stop_event(coll);
  const flight::OpRow& row = OpRow(coll);
  EXPECT_EQ(Load(row.position) & 0xffffffffff, 1u);
  EXPECT_EQ(Load(row.stamp) >> 48 & 0xff, static_cast<uint64_t>(flight::Func::kAllGather));
  EXPECT_EQ(Load(row.launch) >> 48 & 0xff, 2u);
  EXPECT_NE(Load(row.enqueued), 0u);
  EXPECT_NE(Load(row.returned), 0u);
  ncclProfiler_v4.finalize(context);
}

TEST(Traps, FallbackIsNotedOnlyOnOneNode) {
  Comm one(20, 0, 4, 1), two(21, 0, 4, 2);
  for (Comm* comm : {&one, &two}) {
    void* op = comm->ProxyOp(comm->Enqueue(), 1, true);
    void* step = comm->Step(op, 0);
    EXPECT_FALSE(Load(comm->Row().flags) & flight::kCommHasSteps)
        << "a proxy operation alone is no network step";
    comm->State(step, abi::kStepSendGpuWait);
    EXPECT_TRUE(Load(comm->Row().flags) & flight::kCommHasSteps);
  }
  EXPECT_TRUE(Load(one.Row().flags) & flight::kCommFallbackNoted);
  EXPECT_FALSE(Load(two.Row().flags) & flight::kCommFallbackNoted);
  one.Finalize();
  two.Finalize();
}

TEST(Traps, DestroyedCommunicatorsDoNotKeepTheRows) {
  for (int i = 0; i < 300; ++i) {
    Comm comm(7000 + i);
    comm.Run(comm.Enqueue());
    EXPECT_EQ(Load(comm.Row().ring) >> 32, 255u) << "communicator " << i;
    comm.Finalize();
  }
}

TEST(Traps, CountsDoNotRunOver) {
  Comm comm(26);
  void* coll = comm.Enqueue(0);
  for (int i = 0; i < 70000; ++i) comm.Kernel(coll);
  EXPECT_EQ(KernelsStarted(OpRow(coll)), 0xffffu);
  EXPECT_EQ(KernelsStopped(OpRow(coll)), 0u);
  comm.Finalize();
}

TEST(Traps, EveryRowOfTheTablesCanBeUsed) {
  std::vector<Comm> comms;
  uint32_t live = 0;
  for (uint32_t i = 0; i < flight::kCommRows; ++i) {
    comms.emplace_back(5000 + i);
    live += (Bits(comms.back().context) & 0xffff) < flight::kCommRows;
  }
  EXPECT_EQ(live, flight::kCommRows);
  for (Comm& comm : comms) comm.Finalize();
  // Edges that differ in the peer only, or in the channel only, must spread over all sets.
  Comm wide(6000, 0, 100000);
  void* coll = wide.Enqueue();
  uint32_t kept = 0;
  for (int i = 0; i < 1024; ++i) kept += wide.ProxyOp(coll, 1 + i, i % 2, 4, i % 3) != nullptr;
  EXPECT_GE(kept, 1000u);
  wide.Finalize();
}

// Random callbacks through random handles, from several threads: nothing crashes, rows stay inside
// their tables, and an innocent communicator's counts are exact.
TEST(Traps, RandomCallbacksFromManyThreads) {
  Comm innocent(22);
  auto storm = [](unsigned seed) {
    std::mt19937_64 random(seed);
    std::vector<void*> known = {nullptr, kGarbage};
    for (int i = 0; i < 60000; ++i) {
      auto any = [&] {
        return random() % 8 ? known[random() % known.size()] : reinterpret_cast<void*>(random());
      };
      Descr d = Make(random() % 3 ? 1ull << random() % 12 : kAllTypes[random() % 20], any());
      switch (d.type) {
        case abi::kColl:
          d.coll = {random(), "AllReduce", nullptr, nullptr, random(), static_cast<int>(random()),
                    "x",      3,           1,       nullptr, "LL",     nullptr};
          break;
        case abi::kP2p:
          d.p2p = {"Send", nullptr, nullptr, random(), static_cast<int>(random()), 7, nullptr};
          break;
        case abi::kCollApi:
          d.coll_api = {nullptr, 1, "ncclInt8", -5, any(), true};
          break;
        case abi::kP2pApi:
          d.p2p_api = {"Recv", 9, "ncclInt8", any(), false};
          break;
        case abi::kCeColl:
          d.ce_coll = {};
          break;
        case abi::kGroupApi:
          d.group_api = {false, static_cast<int>(random() % 5)};
          break;
        default:
          break;
      }
      void* handle = kGarbage;
      void* context = any();
      if (random() % 500 == 0) {
        int mask;
        ncclProfiler_v6.init(&context, random() % 5, &mask, "n", 1, 8, 3, nullptr);
        known.push_back(context);
      }
      ncclProfiler_v6.start_event(context, &handle, &d);
      ASSERT_NE(handle, kGarbage);
      known.push_back(handle);
      if (known.size() > 200) known.erase(known.begin() + 2 + static_cast<long>(random() % 100));
      abi::StateArgs args{};
      ncclProfiler_v6.record_event_state(any(), static_cast<uint32_t>(random() % 40),
                                         random() % 2 ? &args : nullptr);
      ncclProfiler_v6.stop_event(any());
      if (random() % 700 == 0) ncclProfiler_v6.finalize(any());
    }
    for (void* handle : known) ncclProfiler_v6.finalize(handle);
  };
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 3; ++seed) threads.emplace_back(storm, seed);
  for (int i = 0; i < 2000; ++i) innocent.Run(innocent.Enqueue());
  for (auto& t : threads) t.join();
  EXPECT_EQ(Load(innocent.Row().collectives), 2000u);
  EXPECT_EQ(Load(innocent.Row().completed), 2000u);
  innocent.Finalize();
}

}  // namespace
}  // namespace ringscope::testing
