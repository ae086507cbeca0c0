#include "tests/protocol/scenarios.h"

#include <string.h>

#include "recorder/clock.h"
#include "recorder/flight/chain.h"
#include "recorder/flight/op_view.h"
#include "recorder/hot_comm.h"
#include "recorder/hot_edge.h"
#include "recorder/hot_op.h"
#include "recorder/hot_thread.h"
#include "recorder/runtime.h"

namespace ringscope::recorder {

// What the hot files need of the rest of the recorder.
flight::ClockKind g_clock = flight::ClockKind::kMonotonicNs;
OwnerPage g_owner;
void AskSnapshot(flight::Reason) {}

}  // namespace ringscope::recorder

namespace ringscope::protocol {
namespace {

using flight::CommRow;
using flight::EdgeRow;
using flight::OpRow;
using recorder::Image;

// A small image. Only the words given to Watch() are modelled.
constexpr uint32_t kComms = 2, kOps = 32, kEdges = 8;
flight::FileHeader g_header;
flight::Word g_counters[flight::kCounterWords];
flight::ThreadRow g_threads[flight::kThreadRows];
CommRow g_comms[kComms];
OpRow g_ops[kOps];
EdgeRow g_edges[kEdges];
Image g_image;

constexpr uint32_t kNonce = 77;
constexpr int32_t kPid = 4711;

template <typename T>
void Clear(T& rows) {
  memset(static_cast<void*>(&rows), 0, sizeof(rows));
}

void ResetAll(uint32_t comm_rows, uint32_t op_rows) {
  Clear(g_header);
  Clear(g_counters);
  Clear(g_threads);
  Clear(g_comms);
  Clear(g_ops);
  Clear(g_edges);
  g_header.pid = kPid;
  g_image = {&g_header, g_counters, nullptr, g_threads,   g_comms, g_ops,
             g_edges,   nullptr, kNonce,     comm_rows, op_rows, kEdges - 1, nullptr, nullptr};
  recorder::t_slot = {nullptr, nullptr};
}

// A communicator of two ranks, completion visible, with a ring of one row: every operation takes that row.
uint64_t PlainComm(uint32_t index) {
  g_comms[index].stamp.store(1 | uint64_t{5} << 32 | uint64_t{1} << 63, std::memory_order_relaxed);
  g_comms[index].ranks.store(uint64_t{2} << 32, std::memory_order_relaxed);
  g_comms[index].flags.store(flight::kCommApiEvents | flight::kCommCompletionVisible,
                             std::memory_order_relaxed);
  return flight::MakeHandle(kNonce, flight::HandleKind::kContext, index | uint64_t{1} << 16);
}

uint32_t Use(uint32_t tag) { return tag / 10; }

// ---- operations: one row, used again and again; late and double callbacks of its earlier use

enum OpPhase : uint32_t { kOpen = 1, kLaunch = 2, kEnqueued = 3, kKernel = 4, kKernelStop = 5, kProxy = 6 };
constexpr int kUses = 2;
uint64_t g_context, g_launched[kUses + 1];
flight::OpView g_op;

recorder::OpCall CallOf(uint32_t use) {
  return {flight::Func::kAllReduce, flight::DataType::kFloat32, 100 * use, 0, use, 0};
}

void ResetOps() {
  ResetAll(1, 1);
  g_context = PlainComm(0);
  Watch(&g_ops[0], sizeof(OpRow) / 8);
}

// The thread that calls NCCL. Whether the row is free is for OpenOp to find out: no hand-over comes back.
void OpApiThread() {
  for (uint32_t use = 1; use <= kUses; ++use) {
    const recorder::OpCall call = CallOf(use);
    Tag(10 * use + kOpen);
    const uint64_t api = recorder::ApiStart(&g_image, g_context, call);
    recorder::ApiStop(&g_image, api);
    Tag(10 * use + kLaunch);
    g_launched[use] = recorder::LaunchStart(&g_image, g_context, api, call,
                                            {flight::Algo::kRing, flight::Proto::kSimple, 1, 8, use, -1});
    Tag(10 * use + kEnqueued);
    recorder::LaunchStop(&g_image, g_launched[use]);
    Signal(static_cast<int>(use));
  }
}

// The proxy progress thread. The second stop of a kernel (NCCL <= 2.30) may come when the row serves another operation.
void OpProxyThread() {
  for (uint32_t use = 1; use <= kUses; ++use) {
    Await(static_cast<int>(use));
    Tag(10 * use + kKernel);
    const uint64_t kernel = recorder::KernelStart(&g_image, g_launched[use], 0, 1000 + use);
    Tag(10 * use + kKernelStop);
    recorder::KernelGpuStop(&g_image, kernel, 2000 + use);
    recorder::KernelStop(&g_image, kernel);
    recorder::KernelStop(&g_image, kernel);
  }
}

bool ReadOpRow() {
  CommRow& comm = g_comms[0];
  const flight::CommFacts facts = flight::FactsOf(comm, 0, 1);
  return flight::ReadOp(g_ops[0], 0, facts, &g_op);
}

const char* JudgeOp() {
  const OpRow& row = g_ops[0];
  const uint32_t use = Use(TagRead(&row.stamp));
  if (use == 0) return "a row that was never published is accepted";
  const flight::Word* const identity[] = {&row.position, &row.count,  &row.entered,
                                          &row.returned, &row.stream, &row.group};
  for (const flight::Word* w : identity) {
    if (TagRead(w) != 10 * use + kOpen) return "identity of two operations";
  }
  if (g_op.launched) {
    if (TagRead(&row.launch) != 10 * use + kLaunch) return "launch lane of another operation";
    if (TagRead(&row.sequence) != 10 * use + kLaunch) return "launch lane half written";
    if (Use(TagRead(&row.enqueued)) != use) return "enqueued belongs to another operation";
  }
  if (g_op.kernels_started > 0) {
    if (Use(TagRead(&row.kernel)) != use) return "kernel lane of another operation";
    if (TagRead(&row.started) != 10 * use + kKernel || TagRead(&row.gpu_started) != 10 * use + kKernel)
      return "kernel lane half written: start";
    if (g_op.kernels_stopped > 0 && (TagRead(&row.finished) != 10 * use + kKernelStop ||
                                     TagRead(&row.gpu_finished) != 10 * use + kKernelStop))
      return "kernel lane half written: end";
  } else if (g_op.started != 0 || g_op.finished != 0) {
    return "times of an operation that has not begun";
  }
  return nullptr;
}

void FocusOp(size_t which) {
  const OpRow& row = g_ops[0];
  Focus(&row.stamp);
  Focus(&row.launch);
  Focus(&row.kernel);
  Focus(reinterpret_cast<const flight::Word*>(&row) + which);
}

// The same where NCCL launches from a thread of its own (nonblocking communicators): API, launch and proxy lane have a writer
// each.
uint64_t g_api[kUses + 1];

void OpEnterThread() {
  for (uint32_t use = 1; use <= kUses; ++use) {
    Tag(10 * use + kOpen);
    g_api[use] = recorder::ApiStart(&g_image, g_context, CallOf(use));
    recorder::ApiStop(&g_image, g_api[use]);
    Signal(static_cast<int>(use + kUses));
  }
}

void OpLaunchThread() {
  for (uint32_t use = 1; use <= kUses; ++use) {
    Await(static_cast<int>(use + kUses));
    Tag(10 * use + kLaunch);
    g_launched[use] = recorder::LaunchStart(&g_image, g_context, g_api[use], CallOf(use),
                                            {flight::Algo::kRing, flight::Proto::kSimple, 1, 8, use, -1});
    Tag(10 * use + kEnqueued);
    recorder::LaunchStop(&g_image, g_launched[use]);
    Signal(static_cast<int>(use));
  }
}

// ---- proxy operations of operations: the one lane word that ProxyOpStart publishes

void OpProxyOps() {
  for (uint32_t use = 1; use <= kUses; ++use) {
    Await(static_cast<int>(use));
    Tag(10 * use + kProxy);
    const uint64_t op = recorder::ProxyOpStart(&g_image, {g_context, g_launched[use], kPid, 0, 1, 0, 4, 64, true});
    recorder::ProxyOpStop(&g_image, op);
    Tag(10 * use + kKernel);
    const uint64_t kernel = recorder::KernelStart(&g_image, g_launched[use], 0, 1000 + use);
    Tag(10 * use + kKernelStop);
    recorder::KernelStop(&g_image, kernel);
  }
}

const char* JudgeProxyLane() {
  const OpRow& row = g_ops[0];
  const uint32_t use = Use(TagRead(&row.stamp));
  if (use == 0) return "a row that was never published is accepted";
  if (g_op.proxy_started > 0 && Use(TagRead(&row.proxy_ops)) != use)
    return "proxy lane of another operation";
  return TagRead(&row.count) == 10 * use + kOpen ? nullptr : "identity of two operations";
}

void FocusProxyLane(size_t which) {
  const OpRow& row = g_ops[0];
  Focus(&row.stamp);
  Focus(which == 0 ? &row.proxy_ops : &row.count);
}

// ---- communicators: a destroyed one's row serves the next one

void ResetComms() {
  ResetAll(1, 16);
  Watch(&g_comms[0], sizeof(CommRow) / 8);
}

void CommThread() {
  static const char* const kNames[] = {"", "world", "tensor", "pipeline"};
  for (uint32_t use = 1; use <= 3; ++use) {
    Tag(10 * use);
    const uint64_t context = recorder::OpenCommunicator(
        &g_image, {100 * use, kNames[use], 1, static_cast<int>(10 * use), static_cast<int>(use), 5, true, true});
    recorder::CloseCommunicator(&g_image, context);
  }
}

CommRow g_comm_copy;
bool ReadComm() { return flight::CopyRow(g_comms[0], &g_comm_copy); }

const char* JudgeComm() {
  const auto* words = reinterpret_cast<const flight::Word*>(&g_comms[0]);
  const uint32_t use = Use(TagRead(&words[0]));
  if (use == 0) return "a row that was never published is accepted";
  for (size_t i = 1; i < sizeof(CommRow) / 8; ++i) {
    if (Use(TagRead(&words[i])) != use) return "two communicators in one";
  }
  return nullptr;
}

void FocusComm(size_t which) {
  Focus(&g_comms[0].stamp);
  Focus(reinterpret_cast<const flight::Word*>(&g_comms[0]) + which);
}

// ---- signature chain: position and hash of one moment

flight::ChainView g_chain;

void ResetChain() {
  ResetAll(1, 1);
  g_context = PlainComm(0);
  CommRow& comm = g_comms[0];
  Watch(&comm.chain, 2);
  Watch(&comm.chain_closed, 1);
}

// Each call is a group of its own; a group is closed when the next begins.
void ChainThread() {
  for (uint32_t use = 1; use <= 4; ++use) {
    Tag(10 * (use - 1));
    const uint64_t group = recorder::GroupStart(&g_image, g_context, 1, false);
    const uint64_t api = recorder::ApiStart(
        &g_image, g_context, {flight::Func::kAllReduce, flight::DataType::kFloat32, 100 * use, 0, use, 0});
    recorder::ApiStop(&g_image, api);
    recorder::GroupStop(&g_image, group);
  }
}

bool ReadTheChain() {
  g_chain = flight::ReadChain(g_comms[0]);
  return g_chain.position != 0 && g_chain.hash != 0;
}

const char* JudgeChain() {
  const CommRow& comm = g_comms[0];
  const uint32_t closed = TagRead(&comm.chain_closed);
  if (closed != 10 * g_chain.position) return "the position of another moment";
  for (const flight::Word& slot : comm.chain) {
    // (The other place may be as it likes.)
    if (TagRead(&slot) != kNoTag && TagRead(&slot) != closed) return "a hash of another position";
  }
  return nullptr;
}

void FocusChain(size_t) {
  Focus(&g_comms[0].chain[0]);
  Focus(&g_comms[0].chain[1]);
  Focus(&g_comms[0].chain_closed);
}

// ---- edges: the last free row of a set, wanted by the progress threads of two communicators

uint64_t g_contexts[2];

void ResetEdges() {
  ResetAll(2, 16);
  g_contexts[0] = PlainComm(0);
  g_contexts[1] = PlainComm(1);
  // All but one are taken by message counts, which stay.
  for (uint32_t i = 1; i < kEdges; ++i) {
    g_edges[i].stamp.store(uint64_t{flight::kEdgePseudo} << 24 | uint64_t{1} << 63, std::memory_order_relaxed);
  }
  Watch(&g_edges[0], sizeof(EdgeRow) / 8);
}

void EdgeOnce(uint32_t comm, uint32_t tag, uint32_t peer) {
  Tag(tag);
  const uint64_t op =
      recorder::ProxyOpStart(&g_image, {g_contexts[comm], 0, kPid, comm, peer, 0, 4, 1000 * tag, true});
  if (op != 0) recorder::ProxyOpStop(&g_image, op);
}
// Two edges in turn, so that the row changes hands within one thread, too.
void EdgeThread0() {
  EdgeOnce(0, 10, 1);
  EdgeOnce(0, 20, 2);
}
void EdgeThread1() { EdgeOnce(1, 30, 3); }

EdgeRow g_edge_copy;
bool ReadEdge() {
  return flight::CopyRow(g_edges[0], &g_edge_copy) && flight::Load(g_edge_copy.stamp) >> 63 != 0;
}

const char* JudgeEdge() {
  const auto* words = reinterpret_cast<const flight::Word*>(&g_edges[0]);
  const uint32_t use = Use(TagRead(&words[0]));
  if (use == 0) return "a row that was never published is accepted";
  for (size_t i = 1; i < sizeof(EdgeRow) / 8; ++i) {
    if (Use(TagRead(&words[i])) != use) return "two edges in one";
  }
  return nullptr;
}

void FocusEdge(size_t which) {
  Focus(&g_edges[0].stamp);
  Focus(reinterpret_cast<const flight::Word*>(&g_edges[0]) + which);
}

}  // namespace

const Scenario kScenarios[] = {
    {"operation row, reused", ResetOps, 2, {OpApiThread, OpProxyThread}, ReadOpRow, JudgeOp, 16, FocusOp},
    {"operation row, a thread a lane", ResetOps, 3, {OpEnterThread, OpLaunchThread, OpProxyThread}, ReadOpRow, JudgeOp, 16,
     FocusOp},
    {"operation row, proxy operations", ResetOps, 2, {OpApiThread, OpProxyOps}, ReadOpRow, JudgeProxyLane, 2, FocusProxyLane},
    {"communicator row, reused", ResetComms, 1, {CommThread}, ReadComm, JudgeComm, sizeof(CommRow) / 8, FocusComm},
    {"signature chain", ResetChain, 1, {ChainThread}, ReadTheChain, JudgeChain, 1, FocusChain},
    {"edge row, claimed by two", ResetEdges, 2, {EdgeThread0, EdgeThread1}, ReadEdge, JudgeEdge, 16, FocusEdge},
};
const size_t kScenarioCount = sizeof(kScenarios) / sizeof(kScenarios[0]);

}  // namespace ringscope::protocol
