#include "tests/interface/door.h"

#include <cstring>

#include "plugin/abi_early.h"

extern "C" const ringscope::abi::TableV1 ncclProfiler_v1;
extern "C" const ringscope::abi::TableV2 ncclProfiler_v2;
extern "C" const ringscope::abi::TableV3 ncclProfiler_v3;
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

// What all fill alike: proxy operations and steps.
template <typename Descr>
bool FillProxy(Descr* d, const Event& e) {
  d->parent = e.parent;
  d->rank = e.rank;
  if (e.type == abi::kProxyStep) {
    d->proxy_step.step = e.step;
    return true;
  }
  if (e.type != abi::kProxyOp) return false;
  d->proxy_op.pid = e.pid;
  d->proxy_op.channel = e.channel;
  d->proxy_op.peer = e.peer;
  d->proxy_op.n_steps = e.n_steps;
  d->proxy_op.chunk = e.chunk;
  d->proxy_op.is_send = e.send;
  return true;
}

// v1 has numbers of NCCL where later tables have names; a number that it does not know for what it
// has no name.
constexpr uint8_t kNoNumber = 99;
template <size_t n>
uint8_t NumberOf(const char* const (&names)[n], const char* name) {
  for (size_t i = 0; i < n; ++i) {
    if (name != nullptr && std::strcmp(names[i], name) == 0) return static_cast<uint8_t>(i);
  }
  return kNoNumber;
}
constexpr const char* kFuncs[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                  "AllReduce", "SendRecv", "Send",      "Recv"};
constexpr const char* kTypes[] = {"ncclInt8",    "ncclUint8",   "ncclInt32",   "ncclUint32",
                                  "ncclInt64",   "ncclUint64",  "ncclFloat16", "ncclFloat32",
                                  "ncclFloat64", "ncclBfloat16"};
constexpr const char* kAlgos[] = {"TREE", "RING"};
constexpr const char* kProtos[] = {"LL", "LL128", "SIMPLE"};

void SpellNames(abi::v1::Descr* d, const Event& e) {
  if (e.type == abi::kP2p) {
    d->p2p.func = NumberOf(kFuncs, e.func);
    d->p2p.datatype = NumberOf(kTypes, e.datatype);
    return;
  }
  d->coll.func = NumberOf(kFuncs, e.func);
  d->coll.datatype = NumberOf(kTypes, e.datatype);
  d->coll.algo = NumberOf(kAlgos, e.algo);
  d->coll.proto = NumberOf(kProtos, e.proto);
  d->coll.traffic = e.traffic;
}
template <typename Descr>
void SpellNames(Descr* d, const Event& e) {
  if (e.type == abi::kP2p) {
    d->p2p.func = e.func;
    d->p2p.datatype = e.datatype;
    return;
  }
  d->coll.func = e.func;
  d->coll.datatype = e.datatype;
  d->coll.algo = e.algo;
  d->coll.proto = e.proto;
  if constexpr (requires { d->coll.traffic; }) d->coll.traffic = e.traffic;
}

template <typename Table, typename Descr>
int StartEarly(const Table& table, Descr* d, void* context, void** handle, const Event& e,
               Dice* garbage) {
  Litter(d, garbage);
  d->type = static_cast<uint8_t>(e.type);
  if (!FillProxy(d, e)) {
    if (e.type == abi::kColl) {
      d->coll.name = nullptr;
      d->coll.hash = e.comm_id;
      d->coll.sequence = e.sequence;
      d->coll.count = e.count;
      d->coll.root = e.root;
      d->coll.max_channels = e.channels;
      SpellNames(d, e);
    } else if (e.type == abi::kP2p) {
      d->p2p.name = nullptr;
      d->p2p.hash = e.comm_id;
      d->p2p.count = e.count;
      d->p2p.peer = e.peer;
      SpellNames(d, e);
    }
    if constexpr (requires { d->kernel_ch; }) {
      if (e.type == abi::kKernelCh) d->kernel_ch.channel = e.channel;
    }
  }
  return table.start_event(context, handle, d);
}

// What v4, v5 and v6 fill alike.
template <typename Descr>
bool FillCommon(Descr* d, const Event& e) {
  if (FillProxy(d, e)) return true;
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
  int result = 0;
  if (version_ >= 5) {
    result = TableOf(version_).init(&context, comm.id, &mask, comm.name, comm.nodes, comm.ranks,
                                    comm.rank, nullptr);
  } else if (version_ == 4) {
    result = ncclProfiler_v4.init(&context, &mask, comm.name, comm.id, comm.nodes, comm.ranks,
                                  comm.rank, nullptr);
  } else {
    const auto init = version_ == 3   ? ncclProfiler_v3.init
                      : version_ == 2 ? ncclProfiler_v2.init
                                      : ncclProfiler_v1.init;
    result = init(&context, &mask);
  }
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
  } else if (version_ == 3) {
    abi::v3::Descr d;
    result = StartEarly(ncclProfiler_v3, &d, context, &handle, event, &garbage_);
  } else if (version_ == 2) {
    abi::v2::Descr d;
    result = StartEarly(ncclProfiler_v2, &d, context, &handle, event, &garbage_);
  } else if (version_ == 1) {
    abi::v1::Descr d;
    result = StartEarly(ncclProfiler_v1, &d, context, &handle, event, &garbage_);
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
  int result;
  if (early()) {  // 2.23-2.26 give no arguments with the states of steps, and later releases' shims
                  // zeroes
    abi::EarlyStateArgs none = {};
    result = ncclProfiler_v3.record_event_state(handle, state,
                                                without || callbacks % 2 ? nullptr : &none);
  } else {
    abi::StateArgs args;
    args.proxy_step.trans_size = bytes;
    result = TableOf(6).record_event_state(handle, state, without ? nullptr : &args);
  }
  Require(result == 0, "record_event_state returned an error");
}

void Door::OpState(void* handle, uint32_t state, int steps, uint64_t bytes) {
  ++callbacks;
  abi::EarlyStateArgs args;
  args.proxy_op.trans_size = bytes;
  args.proxy_op.steps = steps;
  Require(ncclProfiler_v3.record_event_state(handle, state, &args) == 0,
          "record_event_state returned an error");
}

}  // namespace ringscope::interface_model
