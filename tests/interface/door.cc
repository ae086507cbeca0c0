#include "tests/interface/door.h"

#include <cstring>

extern "C" const ringscope::abi::TableV4 ncclProfiler_v4;
extern "C" const ringscope::abi::TableV5 ncclProfiler_v5;
extern "C" const ringscope::abi::TableV5 ncclProfiler_v6;

namespace ringscope::interface_model {
namespace {

const abi::TableV5& TableOf(int version) {
  return version == 5 ? ncclProfiler_v5 : ncclProfiler_v6;
}

// A value that a recorder never writes as handle: one bit of its kind is impossible.
void* const kUnwritten = reinterpret_cast<void*>(0x5a5ffff5a5a5a5a7);

template <typename Descr>
void Litter(Descr* d, Dice* garbage) {
  uint64_t words[sizeof(Descr) / 8];
  for (uint64_t& word : words) word = garbage->Next();
  std::memcpy(static_cast<void*>(d), words, sizeof(words));
}

// What v4, v5 and v6 fill alike.
template <typename Descr>
bool FillCommon(Descr* d, const Event& e) {
  d->parent = e.parent;
  d->rank = e.rank;
  switch (e.type) {
    case abi::kColl:
      d->coll.sequence = e.sequence;
      d->coll.func = e.func;
      d->coll.count = e.count;
      d->coll.root = e.root;
      d->coll.datatype = e.datatype;
      d->coll.channels = e.channels;
      d->coll.algo = e.algo;
      d->coll.proto = e.proto;
      return true;
    case abi::kP2p:
      d->p2p.func = e.func;
      d->p2p.datatype = e.datatype;
      d->p2p.count = e.count;
      d->p2p.peer = e.peer;
      return true;
    case abi::kProxyOp:
      d->proxy_op.pid = e.pid;
      d->proxy_op.channel = e.channel;
      d->proxy_op.peer = e.peer;
      d->proxy_op.n_steps = e.n_steps;
      d->proxy_op.chunk = e.chunk;
      d->proxy_op.is_send = e.send;
      return true;
    case abi::kProxyStep:
      d->proxy_step.step = e.step;
      return true;
    case abi::kKernelCh:
      d->kernel_ch.channel = e.channel;
      d->kernel_ch.gpu_ns = e.gpu_ns;
      return true;
    default:
      return false;
  }
}

void FillApi(abi::v5::Descr* d, const Event& e) {
  switch (e.type) {
    case abi::kGroupApi:
      d->group_api.captured = e.captured;
      d->group_api.depth = e.depth;
      break;
    case abi::kCollApi:
      d->coll_api.func = e.func;
      d->coll_api.count = e.count;
      d->coll_api.datatype = e.datatype;
      d->coll_api.root = e.root;
      d->coll_api.stream = e.stream;
      d->coll_api.captured = e.captured;
      break;
    case abi::kP2pApi:
      d->p2p_api.func = e.func;
      d->p2p_api.count = e.count;
      d->p2p_api.datatype = e.datatype;
      d->p2p_api.stream = e.stream;
      d->p2p_api.captured = e.captured;
      break;
    case abi::kKernelLaunch:
      d->kernel_launch.stream = e.stream;
      break;
    case abi::kCeColl:
      d->ce_coll.sequence = e.sequence;
      d->ce_coll.func = e.func;
      d->ce_coll.count = e.count;
      d->ce_coll.root = e.root;
      d->ce_coll.datatype = e.datatype;
      d->ce_coll.stream = e.stream;
      break;
    default:
      break;
  }
}

}  // namespace

void* Door::Init(const CommArgs& comm) {
  void* context = kUnwritten;
  int mask = 0x5a5a5a5a;
  const int result = version_ >= 5
                         ? TableOf(version_).init(&context, comm.id, &mask, comm.name, comm.nodes,
                                                  comm.ranks, comm.rank, nullptr)
                         : ncclProfiler_v4.init(&context, &mask, comm.name, comm.id, comm.nodes,
                                                comm.ranks, comm.rank, nullptr);
  ++callbacks;
  Require(result == 0, "init returned an error");
  Require(context != kUnwritten && context != nullptr, "init wrote no context");
  Require(mask != 0x5a5a5a5a && mask != 0, "init wrote no mask");
  return context;
}

void Door::Finalize(void* context) {
  ++callbacks;
  Require(TableOf(6).finalize(context) == 0, "finalize returned an error");
}

void* Door::Start(void* context, const Event& event) {
  void* handle = kUnwritten;
  int result;
  if (version_ >= 5) {
    abi::v5::Descr d;
    Litter(&d, &garbage_);
    d.type = event.type;
    if (FillCommon(&d, event)) {
      d.coll.parent_group = event.type == abi::kColl ? event.parent_group : d.coll.parent_group;
      if (event.type == abi::kP2p) d.p2p.channels = event.channels;
    } else {
      FillApi(&d, event);
    }
    result = TableOf(version_).start_event(context, &handle, &d);
  } else {
    abi::v4::Descr d;
    Litter(&d, &garbage_);
    d.type = static_cast<uint8_t>(event.type);
    FillCommon(&d, event);
    result = ncclProfiler_v4.start_event(context, &handle, &d);
  }
  ++callbacks;
  Require(result == 0, "start_event returned an error");
  Require(handle != kUnwritten, "start_event did not write *eHandle");
  return handle;
}

void Door::Stop(void* handle) {
  ++callbacks;
  Require(TableOf(6).stop_event(handle) == 0, "stop_event returned an error");
}

void Door::State(void* handle, uint32_t state, uint64_t bytes, bool without) {
  ++callbacks;
  abi::StateArgs args;
  args.proxy_step.trans_size = bytes;
  Require(TableOf(6).record_event_state(handle, state, without ? nullptr : &args) == 0,
          "record_event_state returned an error");
}

}  // namespace ringscope::interface_model
