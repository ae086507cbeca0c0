// What the tables of NCCL 2.23-2.26 have in common (docs/nccl.md, "Older tables"), through each.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "recorder/flight/steps.h"
#include "tests/unit/plugin/early_nccl.h"

namespace ringscope::testing {
namespace {

using flight::Counter;
using flight::StepState;

uint64_t GroupOf(void* op) { return Load(OpRow(op).group) & 0xffffffffffff; }
flight::StepCounts Steps(void* op) { return flight::StepCounts(Load(EdgeRow(op).steps)); }

template <typename V>
class Early : public ::testing::Test {};
using Tables = ::testing::Types<V1, V2, V3>;
class TableNames {
 public:
  template <typename V>
  static std::string GetName(int) {
    return "v" + std::to_string(V::kApi);
  }
};
TYPED_TEST_SUITE(Early, Tables, TableNames);

TYPED_TEST(Early, IdentityIsLearntFromTheFirstOperation) {
  EarlyComm<TypeParam> comm(0xabcd, 3);
  EXPECT_EQ(comm.mask, TypeParam::kMask) << "only what the table knows";
  EXPECT_NE(comm.context, nullptr);
  const uint64_t before = Load(comm.Row().stamp);
  EXPECT_NE(before >> 63, 0u) << "the row can be read at any moment";
  EXPECT_EQ(before & flight::kCommIdentified, 0u);
  EXPECT_EQ(Load(comm.Row().ranks), flight::kNoRank) << "rank not told, size not told";
  EXPECT_EQ(before >> 32 & 0xff, TypeParam::kApi);
  void* group = comm.Group();
  EXPECT_EQ(Load(comm.Row().stamp), before) << "a Group has no rank";
  comm.Coll(group);
  EXPECT_EQ(Load(comm.Row().comm_id), 0xabcdu);
  EXPECT_EQ(Load(comm.Row().ranks), 3u);
  EXPECT_EQ(Load(comm.Row().stamp), before | flight::kCommIdentified);
  comm.Finalize();
}

TYPED_TEST(Early, PointToPointTellsTheIdentityToo) {
  EarlyComm<TypeParam> comm(0xef, 2);
  void* send = comm.P2p(comm.Group(), true, 5);
  EXPECT_EQ(Load(comm.Row().comm_id), 0xefu);
  EXPECT_EQ(Load(comm.Row().ranks), 2u);
  EXPECT_EQ(Load(OpRow(send).sequence) >> 32, 5u);
  EXPECT_EQ(Load(comm.Row().p2ps), 1u);
  comm.Finalize();
}

TYPED_TEST(Early, ShimsOfLaterReleasesGiveNoHash) {
  EarlyComm<TypeParam> comm(0, 1);
  comm.Enqueue();
  EXPECT_EQ(Load(comm.Row().comm_id), 0u);
  EXPECT_EQ(Load(comm.Row().ranks), 1u);
  EXPECT_NE(Load(comm.Row().stamp) & flight::kCommIdentified, 0u);
  comm.Finalize();
}

TYPED_TEST(Early, NamesAndArguments) {
  EarlyComm<TypeParam> comm(1);
  void* coll = comm.Enqueue(4711);
  const flight::OpRow& row = OpRow(coll);
  EXPECT_EQ(Load(row.stamp) >> 48 & 0xff, static_cast<uint64_t>(flight::Func::kAllReduce));
  EXPECT_EQ(Load(row.stamp) >> 56, static_cast<uint64_t>(flight::DataType::kFloat32));
  EXPECT_EQ(Load(row.count), 4711u);
  EXPECT_EQ(Load(row.launch) >> 32 & 0xff, static_cast<uint64_t>(flight::Algo::kRing));
  EXPECT_EQ(Load(row.launch) >> 40 & 0xff, static_cast<uint64_t>(flight::Proto::kSimple));
  EXPECT_EQ(Load(row.launch) >> 48 & 0xff, 0u) << "16 channels are an upper bound, not a number";
  EXPECT_EQ(Load(row.sequence) & 0xffffffff, 7u);
  EXPECT_NE(Load(row.enqueued), 0u);
  comm.Finalize();
}

TYPED_TEST(Early, APlanIsAGroup) {
  EarlyComm<TypeParam> comm(2);
  void* first = comm.Group();
  ASSERT_NE(first, nullptr) << "NULL would suppress the plan's operations";
  void *a = comm.Coll(first), *b = comm.Coll(first), *c = comm.P2p(first, true, 1);
  comm.Stop(first);
  void* second = comm.Group();
  void* d = comm.Coll(second);
  EXPECT_EQ(GroupOf(a), GroupOf(b));
  EXPECT_EQ(GroupOf(a), GroupOf(c));
  EXPECT_NE(GroupOf(a), GroupOf(d));
  EXPECT_NE(GroupOf(a) & 0xffffffff, 0u) << "0 is no group";
  comm.Finalize();
}

TYPED_TEST(Early, AParentThatIsNotTheOpenPlanGroupsNothing) {
  EarlyComm<TypeParam> comm(3);
  void* old = comm.Group();
  void* member = comm.Coll(old);
  comm.Group();
  std::set<uint64_t> groups = {GroupOf(member)};
  const auto foreign = reinterpret_cast<void*>(reinterpret_cast<uint64_t>(old) ^ uint64_t{1} << 51);
  for (void* parent : {old, foreign, kGarbage, static_cast<void*>(nullptr), member, comm.context}) {
    void* coll = comm.Coll(parent);
    EXPECT_TRUE(groups.insert(GroupOf(coll)).second) << parent;
  }
  comm.Finalize();
}

TYPED_TEST(Early, UnknownEventsAndStatesAreCountedAndAnsweredWithNull) {
  EarlyComm<TypeParam> comm(4);
  const uint64_t unknown = CounterValue(Counter::kUnknownEvent),
                 unasked = CounterValue(Counter::kUnaskedEvent),
                 states = CounterValue(Counter::kUnknownState);
  for (uint8_t type : {0, 3, 0xff}) EXPECT_EQ(comm.Start(comm.Make(type, nullptr)), nullptr);
  EXPECT_EQ(comm.Start(comm.Make(abi::kProxyCtrl, nullptr)), nullptr);
  EXPECT_EQ(comm.Start(comm.Make(abi::kNetPlugin, nullptr)), nullptr);
  EXPECT_EQ(CounterValue(Counter::kUnknownEvent), unknown + 3);
  EXPECT_EQ(CounterValue(Counter::kUnaskedEvent), unasked + 2);
  void* op = comm.ProxyOp(comm.Enqueue(), 1, true);
  comm.State(op, 31);
  comm.State(op, 0x7fffffff);
  EXPECT_EQ(CounterValue(Counter::kUnknownState), states + 2);
  comm.Finalize();
}

TYPED_TEST(Early, NullAndGarbageAreHarmless) {
  EarlyComm<TypeParam> comm(5);
  const auto& table = TypeParam::Table();
  EXPECT_EQ(table.stop_event(nullptr), 0) << "NCCL 2.23-2.25 do not look";
  for (uint32_t state = 0; state < 40; ++state) {
    for (void* handle : {static_cast<void*>(nullptr), kGarbage, comm.context, comm.Enqueue()}) {
      comm.State(handle, state);
      comm.OpState(handle, state, 3);
    }
  }
  EXPECT_EQ(table.start_event(comm.context, nullptr, nullptr), 0);
  void* handle = kGarbage;
  EXPECT_EQ(table.start_event(comm.context, &handle, nullptr), 0);
  EXPECT_EQ(handle, nullptr);
  EXPECT_EQ(table.init(nullptr, nullptr), 0);
  auto d = comm.Make(abi::kColl, nullptr);
  d.coll.count = 1;
  TypeParam::Name(&d);
  comm.SetTraffic(&d, 0);
  for (void* context : {static_cast<void*>(nullptr), kGarbage}) {
    handle = kGarbage;
    EXPECT_EQ(table.start_event(context, &handle, &d), 0);
    EXPECT_EQ(handle, nullptr);
  }
  comm.Finalize();
}

// NCCL 2.24 and 2.26, seen in recordings: four receive steps consumed in one go, the stop reaches
// the first, and the ProxyOp's states count on.
TYPED_TEST(Early, StepsWhoseStopsAreLostAreDoneByTheOperationsCount) {
  EarlyComm<TypeParam> comm(6);
  void* op = comm.ProxyOp(comm.Enqueue(), 3, false);
  std::vector<void*> steps;
  for (int i = 0; i < 4; ++i) {
    steps.push_back(comm.Step(op, i));
    comm.OpState(op, abi::kOpRecvPosted, i + 1);
    comm.State(steps.back(), abi::kStepRecvWait);
  }
  for (int i = 0; i < 4; ++i) {
    comm.OpState(op, abi::kOpRecvReceived, i + 1, 16384 * (i + 1));
    comm.State(steps[i], abi::kStepRecvFlushWait);
    comm.OpState(op, abi::kOpRecvTransmitted, i + 1);
    comm.State(steps[i], abi::kStepRecvGpuWait);
  }
  EXPECT_EQ(Steps(op).Oldest(false), StepState::kRecvGpuWait);
  comm.Stop(steps[0]);
  for (int i = 0; i < 4; ++i) comm.OpState(op, abi::kOpRecvDone, i + 1, 65536);
  EXPECT_EQ(Steps(op).done(), 4u);
  EXPECT_EQ(Steps(op).Oldest(false), StepState::kFree);
  EXPECT_EQ(Load(EdgeRow(op).bytes), 0u) << "sizes count when the operation's last step has its";
  comm.Finalize();
}

// The same without ProxyOp states (a mask of ProxyStep alone): a stop of a later step says that the
// earlier ones are done.
TYPED_TEST(Early, OnlyTheNewestStepIsTrusted) {
  EarlyComm<TypeParam> comm(7);
  void* op = comm.ProxyOp(comm.Enqueue(), 3, false, 12);
  std::vector<void*> steps;
  for (int i = 0; i < 6; ++i) {
    steps.push_back(comm.Step(op, i));
    for (uint32_t s : {abi::kStepRecvWait, abi::kStepRecvFlushWait, abi::kStepRecvGpuWait})
      comm.State(steps.back(), s);
  }
  comm.Stop(steps[0]);
  EXPECT_EQ(Steps(op).done(), 1u);
  comm.Stop(steps[4]);
  EXPECT_EQ(Steps(op).done(), 5u) << "1 to 3 were consumed with 0";
  comm.Finalize();
}

TYPED_TEST(Early, SendStepsComeThroughRemFifoWait) {
  EarlyComm<TypeParam> comm(8);
  void* op = comm.ProxyOp(comm.Enqueue(), 1, true, 2);
  for (int i = 0; i < 2; ++i) {
    void* step = comm.Step(op, i);
    comm.OpState(op, abi::kOpSendPosted, i + 1);
    comm.State(step, abi::kStepSendGpuWait);
    EXPECT_EQ(Steps(op).StateOf(i, true), StepState::kSendGpuWait);
    comm.OpState(op, abi::kOpSendRemFifoWait, i + 1);
    comm.OpState(op, abi::kOpSendRemFifoWait, i + 1);
    EXPECT_EQ(Steps(op).StateOf(i, true), StepState::kSendPeerWait);
    comm.OpState(op, abi::kOpSendTransmitted, i + 1, 100 * (i + 1));
    comm.State(step, abi::kStepSendWait);
    EXPECT_EQ(Steps(op).StateOf(i, true), StepState::kSendWait);
    comm.Stop(step);
    comm.OpState(op, abi::kOpSendDone, i + 1);
    EXPECT_EQ(Steps(op).done(), static_cast<uint32_t>(i + 1));
  }
  EXPECT_EQ(Load(EdgeRow(op).bytes), 200u) << "the operation's whole size, once";
  comm.Stop(op);
  comm.Finalize();
}

// NCCL 2.23 counts in raw steps: two step events a transfer, and the operation's count goes by two.
TYPED_TEST(Early, RawStepsGoByTwo) {
  EarlyComm<TypeParam> comm(9);
  const uint64_t gaps = CounterValue(Counter::kStepGap);
  void* op = comm.ProxyOp(comm.Enqueue(), 1, true, 4);
  for (int i = 0; i < 4; i += 2) {
    void* steps[] = {comm.Step(op, i), comm.Step(op, i + 1)};
    comm.OpState(op, abi::kOpSendPosted, i + 2);
    for (void* s : steps) comm.State(s, abi::kStepSendGpuWait);
    comm.OpState(op, abi::kOpSendRemFifoWait, i + 2);
    comm.OpState(op, abi::kOpSendTransmitted, i + 2, 64);
    for (void* s : steps) comm.State(s, abi::kStepSendWait);
    for (void* s : steps) comm.Stop(s);
    comm.OpState(op, abi::kOpSendDone, i + 2);
  }
  EXPECT_EQ(Steps(op).done(), 4u);
  EXPECT_EQ(CounterValue(Counter::kStepGap), gaps) << "normal, not odd";
  comm.Finalize();
}

TYPED_TEST(Early, CountsThatCannotBeAreIgnored) {
  EarlyComm<TypeParam> comm(10);
  void* op = comm.ProxyOp(comm.Enqueue(), 1, true, 4);
  comm.Step(op, 0);
  for (int steps : {0, -1, 5, 1 << 30}) comm.OpState(op, abi::kOpSendDone, steps);
  EXPECT_EQ(Load(EdgeRow(op).steps), 0u);
  void* next = comm.ProxyOp(comm.Enqueue(), 1, true, 4);
  comm.Step(next, 0);
  comm.OpState(op, abi::kOpSendDone, 3);  // of the operation before
  EXPECT_EQ(Load(EdgeRow(next).steps), 0u);
  comm.Finalize();
}

// A completion that cannot be seen is "unknown": an enqueued operation alone is never open.
TYPED_TEST(Early, CompletionIsVisibleOnlyWithKernelCh) {
  EarlyComm<TypeParam> comm(11);
  void* coll = comm.Enqueue();
  const bool visible = Load(comm.Row().flags) & flight::kCommCompletionVisible;
  EXPECT_EQ(visible, TypeParam::kApi == 3);
  EXPECT_EQ(flight::OpOpen(OpRow(coll), visible, 0), TypeParam::kApi == 3);
  EXPECT_EQ(Load(comm.Row().flags) & flight::kCommApiEvents, 0u);
  comm.Finalize();
}

}  // namespace
}  // namespace ringscope::testing
