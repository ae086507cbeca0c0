#include "tests/replay/descriptor.h"

#include <cstring>

#include "tests/replay/shim.h"

namespace ringscope::replay {
namespace {

class Writer {
 public:
  explicit Writer(unsigned char* bytes) : bytes_(bytes) {}
  void U64(size_t at, uint64_t value) { std::memcpy(bytes_ + at, &value, 8); }
  void I32(size_t at, int32_t value) { std::memcpy(bytes_ + at, &value, 4); }
  void U8(size_t at, int value) { bytes_[at] = static_cast<unsigned char>(value); }
  void Text(size_t at, const char* value) { U64(at, reinterpret_cast<uint64_t>(value)); }

 private:
  unsigned char* bytes_;
};

void NetPayload(const Event& event, Descriptor& out) {
  std::memset(out.net, kGarbage, sizeof out.net);
  Writer net(out.net);
  if (event.sock_type >= 0) {  // socket, 24 bytes
    net.U8(0, event.sock_type);
    net.I32(8, event.sock_fd);
    net.I32(12, event.sock_op);
    net.U64(16, event.sock_len);
  }
}

// Up to v3: every operation names its communicator, and v1 has numbers for names.
void Early(int api, const Event& event, Writer& w) {
  if (event.type == kP2p) {
    w.U64(24, 0);
    w.U64(32, event.comm_hash);
    w.U64(48, event.recv_buff);
    w.U64(64, event.count);
    w.I32(72, event.peer);
    if (api == 1) {
      w.U8(40, FuncNumber(event.func));
      w.U8(56, DatatypeNumber(event.datatype));
    } else {
      w.Text(40, event.func);
      w.Text(56, event.datatype);
    }
    return;
  }
  w.U64(24, 0);  // the communicator's name: never set
  w.U64(32, event.comm_hash);
  w.U64(40, event.seq);
  w.U64(56, event.send_buff);
  w.U64(64, event.recv_buff);
  w.U64(72, event.count);
  w.I32(80, event.root);
  if (api == 1) {
    w.U8(48, FuncNumber(event.func));
    w.U8(84, DatatypeNumber(event.datatype));
    w.I32(88, event.reduction);
    w.U64(96, event.traffic);
    w.U8(104, event.n_channels);
    w.U8(105, event.n_warps);
    w.U8(106, AlgoNumber(event.algo));
    w.U8(107, ProtoNumber(event.proto));
    w.I32(108, 0);  // collnet, nvls
    w.I32(112, 0);
    return;
  }
  w.Text(48, event.func);
  w.Text(88, event.datatype);
  const size_t rest = api == 2 ? 104 : 96;
  if (api == 2) w.U64(96, event.traffic);
  w.U8(rest, event.n_channels);
  w.U8(rest + 1, event.n_warps);
  w.Text(rest + 8, event.algo);
  w.Text(rest + 16, event.proto);
}

}  // namespace

size_t DescriptorSize(int api) {
  if (api == 2) return 128;
  return api <= 3 ? 120 : api == 4 ? 104 : 112;
}

void BuildDescriptor(int api, const Event& event, const DescriptorPointers& pointers,
                     Descriptor& out) {
  std::memset(out.bytes, kGarbage, sizeof out.bytes);
  Writer w(out.bytes);
  if (api <= 4) {
    w.U8(0, static_cast<int>(event.type));  // one byte; the seven after it stay garbage
  } else {
    w.U64(0, event.type);
  }
  w.U64(8, pointers.parent);
  w.I32(16, event.rank);
  if (api <= 3 && (event.type == kColl || event.type == kP2p)) return Early(api, event, w);
  switch (event.type) {
    case kColl:
      w.U64(24, event.seq);
      w.Text(32, event.func);
      w.U64(40, event.send_buff);
      w.U64(48, event.recv_buff);
      w.U64(56, event.count);
      w.I32(64, event.root);
      w.Text(72, event.datatype);
      w.U8(80, event.n_channels);
      w.U8(81, event.n_warps);
      w.Text(88, event.algo);
      w.Text(96, event.proto);
      if (api >= 5) w.U64(104, pointers.parent_group);
      break;
    case kP2p:
      w.Text(24, event.func);
      w.U64(32, event.recv_buff);
      w.Text(40, event.datatype);
      w.U64(48, event.count);
      w.I32(56, event.peer);
      if (!pointers.channels_unset) w.U8(60, event.n_channels);
      if (api >= 5) w.U64(64, pointers.parent_group);
      break;
    case kProxyOp:
      w.I32(24, pointers.pid);
      w.U8(28, event.channel);
      w.I32(32, event.peer);
      w.I32(36, event.n_steps);
      w.I32(40, event.chunk_size);
      w.I32(44, event.is_send);
      break;
    case kProxyStep:
      w.I32(24, event.step);
      break;
    case kKernelCh:
      w.U8(24, event.channel);
      if (api >= 4) w.U64(32, event.p_timer);
      break;
    case kNetPlugin:
      NetPayload(event, out);
      w.U64(24, event.net_id);
      w.U64(32, reinterpret_cast<uint64_t>(out.net));
      break;
    case kGroupApi:
      w.U8(24, event.graph_captured);
      w.I32(28, event.group_depth);
      break;
    case kCollApi:
      w.Text(24, event.func);
      w.U64(32, event.count);
      w.Text(40, event.datatype);
      w.I32(48, event.root);
      w.U64(56, event.stream);
      w.U8(64, event.graph_captured);
      break;
    case kP2pApi:
      w.Text(24, event.func);
      w.U64(32, event.count);
      w.Text(40, event.datatype);
      w.U64(48, event.stream);
      w.U8(56, event.graph_captured);
      break;
    case kKernelLaunch:
      w.U64(24, event.stream);
      break;
    default:  // Group and ProxyCtrl have no fields; copy-engine events are in no capture
      break;
  }
}

void BuildStateArgs(int api, const Event& event, bool zero, StateArgs& out) {
  // NCCL zeroes this small union; bytes after it are somebody else's.
  std::memset(out.bytes, kGarbage, sizeof out.bytes);
  std::memset(out.bytes, 0, api <= 3 ? 16 : 8);
  if (zero) return;
  Writer w(out.bytes);
  switch (event.type) {
    case kProxyOp:
      if (api > 3) break;
      w.U64(0, event.trans_size);
      w.I32(8, event.steps);
      break;
    case kProxyStep:
      w.U64(0, event.trans_size);
      break;
    case kProxyCtrl:
      w.I32(0, event.appended);
      break;
    case kKernelCh:
      w.U64(0, event.p_timer);
      break;
    default:
      break;
  }
}

}  // namespace ringscope::replay
