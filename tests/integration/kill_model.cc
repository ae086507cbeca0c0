#include "tests/integration/kill_model.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "recorder/flight/format.h"

namespace ringscope::integration {
namespace {

using replay::Callback;
using replay::Event;
using replay::kNone;

// Names by their numbers in recorder/flight/format.h.
template <size_t N>
uint64_t NumberOf(const char* name, const std::string_view (&names)[N]) {
  if (name == nullptr) return 0;
  const auto* at = std::find(std::begin(names), std::end(names), std::string_view(name));
  return at == std::end(names) ? 0 : static_cast<uint64_t>(at - std::begin(names));
}
constexpr std::string_view kFuncs[] = {
    "",           "Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce",
    "SendRecv",   "Send",      "Recv",   "AlltoAll",  "Scatter",       "Gather",
    "AllGatherV", "PutSignal", "Signal", "WaitSignal"};
constexpr std::string_view kTypes[] = {"",
                                       "ncclInt8",
                                       "ncclUint8",
                                       "ncclInt32",
                                       "ncclUint32",
                                       "ncclInt64",
                                       "ncclUint64",
                                       "ncclFloat16",
                                       "ncclFloat32",
                                       "ncclFloat64",
                                       "ncclBfloat16",
                                       "ncclFloat8e4m3",
                                       "ncclFloat8e5m2"};
constexpr uint64_t kTypeBytes[] = {1, 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
constexpr std::string_view kAlgos[] = {
    "", "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
constexpr std::string_view kProtos[] = {"", "LL", "LL128", "SIMPLE"};
constexpr uint64_t kNobody = 0xffffffff;

// The wait states that a step passes, in order, and its stop. -1: none of them.
constexpr int kStopped = 3;
int WaitState(uint32_t state) {
  switch (state) {
    case 8:
    case 10:
      return 0;  // SendGPUWait; RecvWait
    case 20:
    case 11:
      return 1;  // SendPeerWait; RecvFlushWait
    case 9:
    case 12:
      return 2;  // SendWait; RecvGPUWait
    default:
      return -1;
  }
}

uint64_t Call(flight::Call call) { return static_cast<uint64_t>(call); }

}  // namespace

void Model::Apply(const Event& event) {
  switch (event.callback) {
    case Callback::kInit: {
      const replay::Context& context = process_.contexts[static_cast<size_t>(event.context)];
      Facts& comm = comms_[CommName(static_cast<uint64_t>(event.context))];
      comm["id"] = context.comm_id;
      comm["rank"] = static_cast<uint64_t>(context.rank);
      comm["n_ranks"] = static_cast<uint64_t>(context.n_ranks);
      break;
    }
    case Callback::kStart:
      Start(event);
      break;
    case Callback::kState:
      State(event);
      break;
    case Callback::kStop:
      Stop(event);
      break;
    case Callback::kFinalize:
      comms_[CommName(static_cast<uint64_t>(event.context))]["finalized"] = 1;
      break;
  }
}

void Model::Start(const Event& event) {
  switch (event.type) {
    case replay::kGroupApi:
      ThreadOf(event).call = Call(flight::Call::kGroup);
      break;
    case replay::kCollApi:
    case replay::kP2pApi: {
      const bool p2p = event.type == replay::kP2pApi;
      Op& op = Open(event, p2p);
      Thread& thread = ThreadOf(event);
      thread.call = Call(p2p ? flight::Call::kP2pApi : flight::Call::kCollApi);
      thread.position = op.position;
      break;
    }
    case replay::kKernelLaunch: {
      Thread& thread = ThreadOf(event);
      thread.before_launch = thread.call;
      thread.call = Call(flight::Call::kKernelLaunch);
      break;
    }
    case replay::kColl:
    case replay::kP2p:
      Launch(event);
      break;
    case replay::kKernelCh:
      KernelStart(event);
      break;
    case replay::kProxyOp:
      ProxyOpStart(event);
      break;
    case replay::kProxyStep: {
      const auto parent = edge_of_slot_.find(event.parent);
      if (parent == edge_of_slot_.end()) break;
      Edge& edge = edges_[parent->second];
      Begin(edge, event.parent);
      step_of_slot_[event.slot] = {event.parent, event.step};
      break;
    }
    default:
      break;  // Group: acknowledged, nothing kept
  }
}

Model::Op& Model::Open(const Event& event, bool p2p) {
  Op op;
  op.comm = static_cast<uint64_t>(event.context);
  op.p2p = p2p;
  op.position = ++comms_[CommName(op.comm)][p2p ? "p2ps" : "collectives"];
  op["func"] = NumberOf(event.func, kFuncs);
  op["datatype"] = NumberOf(event.datatype, kTypes);
  op["root"] = p2p ? 0xffffff : static_cast<uint64_t>(event.root);
  op["count"] = event.count;
  op["entered"] = 1;
  op_of_slot_[event.slot] = ops_.size();
  ops_.push_back(std::move(op));
  return ops_.back();
}

void Model::Launch(const Event& event) {
  const bool p2p = event.type == replay::kP2p;
  if (api_ >= 5) {
    const auto parent = op_of_slot_.find(event.parent);
    if (parent == op_of_slot_.end()) return;
    op_of_slot_[event.slot] = parent->second;
  } else {
    ThreadOf(event);
    Open(event, p2p);
  }
  Op& op = ops_[op_of_slot_[event.slot]];
  op["launched"] = 1;
  op["algo"] = p2p ? 0 : NumberOf(event.algo, kAlgos);
  op["proto"] = p2p ? 0 : NumberOf(event.proto, kProtos);
  op["channels"] = p2p && api_ < 5 ? 0 : static_cast<uint64_t>(event.n_channels);
  op["sequence"] = p2p ? 0 : event.seq;
  op["peer"] = p2p ? static_cast<uint64_t>(event.peer) : kNobody;
  if (p2p) {
    Facts& messages = messages_[MessagesName(op.comm, static_cast<uint64_t>(event.peer),
                                             std::strcmp(event.func, "Send") == 0)];
    messages["count"] += 1;
    messages["bytes"] += event.count * kTypeBytes[NumberOf(event.datatype, kTypes)];
  }
}

void Model::KernelStart(const Event& event) {
  const auto parent = op_of_slot_.find(event.parent);
  if (parent == op_of_slot_.end()) return;
  op_of_slot_[event.slot] = parent->second;
  Op& op = ops_[parent->second];
  const bool first = op["kernels_started"]++ == 0;
  if (first || event.p_timer < op["gpu_started"]) op["gpu_started"] = event.p_timer;
}

void Model::KernelStop(const Event& event) {
  Op& op = ops_[op_of_slot_[event.slot]];
  if (op["kernels_stopped"] >= op["kernels_started"]) return;
  ++op["kernels_stopped"];
  if (op["kernels_stopped"] == op["kernels_started"] && op["kernels_started"] >= op["channels"]) {
    ++comms_[CommName(op.comm)]["completed"];
  }
}

void Model::ProxyOpStart(const Event& event) {
  const auto parent = op_of_slot_.find(event.parent);
  const bool p2p = parent != op_of_slot_.end() && ops_[parent->second].p2p;
  const std::string name = EdgeName(
      static_cast<uint64_t>(event.context), static_cast<uint64_t>(event.rank),
      static_cast<uint64_t>(event.peer), static_cast<uint64_t>(event.channel), event.is_send, p2p);
  Edge& edge = edges_[name];
  const bool idle = edge["ops_started"] == edge["ops_stopped"];
  edge.ordinals[event.slot] = ++edge["ops_started"];
  edge["chunk"] = static_cast<uint64_t>(event.chunk_size);
  edge["n_steps"] = static_cast<uint64_t>(event.n_steps);
  edge_of_slot_[event.slot] = name;
  if (parent != op_of_slot_.end()) {
    ++ops_[parent->second]["proxy_started"];
    op_of_slot_[event.slot] = parent->second;
  }
  if (idle) Begin(edge, event.slot);
}

void Model::ProxyOpStop(const Event& event) {
  const auto name = edge_of_slot_.find(event.slot);
  if (name == edge_of_slot_.end()) return;
  Edge& edge = edges_[name->second];
  ++edge["ops_stopped"];
  if (const auto op = op_of_slot_.find(event.slot); op != op_of_slot_.end())
    ++ops_[op->second]["proxy_stopped"];
}

void Model::Begin(Edge& edge, int proxy_op) {
  if (edge.current == proxy_op) return;
  edge.current = proxy_op;
  edge["steps_total"] += edge.reached[kStopped];
  for (uint64_t& count : edge.reached) count = 0;
}

// A step that is seen in a later state has passed those before, seen or not.
void Model::Reach(const Event& event, int state) {
  const auto step = step_of_slot_.find(event.slot);
  if (step == step_of_slot_.end()) return;
  const auto [proxy_op, number] = step->second;
  Edge& edge = edges_[edge_of_slot_[proxy_op]];
  const uint64_t count = static_cast<uint64_t>(number) + 1;
  if (edge.current != proxy_op || count <= edge.reached[state]) return;
  for (int s = 0; s <= state; ++s) edge.reached[s] = std::max(edge.reached[s], count);
  // The transfer's size is known when it is handed over (send) or has arrived (recv).
  if ((event.state == 9 || event.state == 11) && state != kStopped && !event.args_null)
    edge["bytes"] += event.trans_size;
}

void Model::State(const Event& event) {
  if (event.type == replay::kGroupApi && event.state == replay::kGroupEndApiStart) {
    ThreadOf(event).call = Call(flight::Call::kGroupEnd);
  } else if (event.type == replay::kKernelCh && event.state == replay::kKernelChStop) {
    if (const auto op = op_of_slot_.find(event.slot); op != op_of_slot_.end()) {
      uint64_t& finished = ops_[op->second]["gpu_finished"];
      finished = std::max(finished, event.p_timer);
    }
  } else if (event.type == replay::kProxyOp && event.state == replay::kProxyOpInProgress) {
    if (const auto name = edge_of_slot_.find(event.slot); name != edge_of_slot_.end())
      Begin(edges_[name->second], event.slot);
  } else if (event.type == replay::kProxyStep) {
    const int state = WaitState(event.state);
    if (state >= 0) Reach(event, state);
  }
}

void Model::Stop(const Event& event) {
  switch (event.type) {
    case replay::kGroupApi:
      ThreadOf(event).call = 0;
      break;
    case replay::kCollApi:
    case replay::kP2pApi:
      ops_[op_of_slot_[event.slot]]["returned"] = 1;
      ThreadOf(event).call = Call(flight::Call::kGroup);
      break;
    case replay::kKernelLaunch: {
      Thread& thread = ThreadOf(event);
      thread.call = thread.before_launch;
      break;
    }
    case replay::kColl:
    case replay::kP2p: {
      const auto at = op_of_slot_.find(event.slot);
      if (at == op_of_slot_.end()) break;
      Op& op = ops_[at->second];
      op["enqueued"] = 1;
      if (api_ < 5) op["returned"] = 1;
      ++comms_[CommName(op.comm)]["launched"];
      break;
    }
    case replay::kKernelCh:
      if (op_of_slot_.count(event.slot)) KernelStop(event);
      break;
    case replay::kProxyOp:
      ProxyOpStop(event);
      break;
    case replay::kProxyStep:
      Reach(event, kStopped);
      break;
    default:
      break;
  }
}

// Threads get their row with their first call that says something about the calling thread.
Model::Thread& Model::ThreadOf(const Event& event) {
  const auto [at, fresh] = thread_of_tid_.try_emplace(event.tid, threads_.size());
  if (fresh) threads_.emplace_back();
  return threads_[at->second];
}

Facts Model::ToFacts() const {
  Facts facts;
  const auto add = [&facts](const std::string& name, const Facts& fields) {
    for (const auto& [field, value] : fields) facts[name + "." + field] = value;
  };
  for (const auto& [name, fields] : comms_) add(name, fields);
  for (const Op& op : ops_) add(OpName(op.comm, op.p2p, op.position), op.fields);
  for (const auto& [name, fields] : messages_) add(name, fields);
  for (const auto& [name, edge] : edges_) {
    add(name, edge.fields);
    const auto ordinal = edge.ordinals.find(edge.current);
    facts[name + ".current"] = ordinal == edge.ordinals.end() ? 0 : ordinal->second & 0x3f;
    for (int state = 0; state < 4; ++state)
      facts[absl::StrCat(name, ".reached", state)] = edge.reached[state];
  }
  for (size_t i = 0; i < threads_.size(); ++i) {
    facts[absl::StrCat("thread", i, ".call")] = threads_[i].call;
    facts[absl::StrCat("thread", i, ".position")] = threads_[i].position;
  }
  return facts;
}

}  // namespace ringscope::integration
