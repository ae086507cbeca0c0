// Edges and calls in flight.
#include "recorder/flight/encoder.h"
#include "recorder/flight/host_calls.h"
#include "recorder/flight/handles.h"
#include "recorder/flight/steps.h"

namespace ringscope::flight {
namespace {

// The operation row that the low bits in a ProxyOp handle mean: the row of the communicator's ring
// with these low bits. It must have proxy operations of its own, and must not have been entered
// after the edge last moved (then the row was reused).
const OpRow* CurrentOp(const Encoder& e, uint32_t comm_index, uint32_t low, uint64_t changed) {
  if (comm_index >= e.image.comms.count) return nullptr;
  const CommRow& comm = e.image.comms[comm_index];
  const uint64_t ring = Load(comm.ring);
  const uint64_t row = (ring & 0xffffffff) + (low & ring >> 32);
  if (row >= e.image.ops.count) return nullptr;
  const OpRow& op = e.image.ops[static_cast<uint32_t>(row)];
  const uint64_t stamp = Load(op.stamp);
  if (stamp == 0 || (stamp >> 32 & 0xffff) != comm_index) return nullptr;
  const uint64_t proxy = Load(op.proxy_ops);
  if (Generation(proxy) != Generation(stamp) || (proxy >> 32 & 0xffff) == 0) return nullptr;
  return Load(op.entered) <= changed ? &op : nullptr;
}

// A ProxyOp handle has the low six bits of its number on the edge; operations of an edge end in
// order.
bool CurrentStopped(uint64_t current, uint64_t ops) {
  const uint32_t started = static_cast<uint32_t>(ops), stopped = static_cast<uint32_t>(ops >> 32);
  const uint32_t behind = (started - ProxyOpOrdinal(current)) & 63;
  return stopped >= started - behind;
}

void EncodeSteps(Encoder* e, const EdgeRow& edge, uint32_t flags, uint32_t comm) {
  WireWriter& w = e->w;
  const uint64_t current = Load(edge.current);
  const StepCounts steps(Load(edge.steps));
  const bool send = flags & kEdgeSend;
  const uint64_t changed = Load(edge.changed);
  const bool has_current = current != 0 && KindOf(current) == HandleKind::kProxyOp;
  const OpRow* op = nullptr;
  if (has_current) {
    w.Uint(14, ProxyOpRowLow(current));
    w.Bool(15, true);
    w.Uint(16, ProxyOpSteps(current));
    w.Uint(17, steps.posted());
    w.Uint(18, steps.transmitted(send));
    w.Uint(19, steps.done());
    w.Bool(20, CurrentStopped(current, Load(edge.ops)));
    // No more than kStepSlots steps are open, the newest of them is posted - 1.
    const uint32_t newest = steps.posted();
    const uint32_t from = newest > kStepSlots ? newest - kStepSlots : 0;
    uint32_t slots[kStepSlots] = {};
    for (uint32_t s = from; s < newest; ++s) {
      slots[s % kStepSlots] = static_cast<uint32_t>(steps.StateOf(s, send));
    }
    const WireWriter::Mark mark = w.Begin(21);
    for (const uint32_t slot : slots) w.Varint(slot);
    w.EndPacked(mark, 21);
    const auto oldest = static_cast<uint32_t>(steps.Oldest(send));
    w.Uint(22, oldest);
    w.Uint(23, oldest ? steps.done() : 0);
    if (!(flags & kEdgeForeign)) op = CurrentOp(*e, comm, ProxyOpRowLow(current), changed | 1);
  }
  w.Int(24, e->Ns(changed & ~uint64_t{1}));
  const uint64_t total = Load(edge.steps_total);
  const uint64_t entered[4] = {Load(edge.entered[0]), Load(edge.entered[1]), Load(edge.entered[2]),
                               Load(edge.entered[3])};
  const uint64_t lifetime = e->written - e->clock.first().ticks;
  uint64_t waits[3], any = 0;
  for (uint32_t i = 0; i < 3; ++i) {
    waits[i] = e->clock.DurationNs(WaitTicks(entered, steps, i, e->written, lifetime, total));
    any |= waits[i];
  }
  if (any) {
    const WireWriter::Mark mark = w.Begin(25);
    for (const uint64_t ns : waits) w.Varint(ns);
    w.End(mark);
  }
  w.Uint(26, Load(edge.bytes));
  w.Uint(27, total + steps.done());
  const uint64_t chunk = Load(edge.chunk);
  w.Uint(28, chunk & 0xffffffff);
  if (op) {
    w.Uint(29, Load(op->position) & 0xffffffffff);
    w.Bool(30, Load(op->stream) >> 48 & kOpP2p);
  }
  w.Uint(31, chunk >> 32);
}

}  // namespace

void EncodeEdge(Encoder* e, uint32_t index) {
  EdgeRow edge;
  if (!CopyRow(e->image.edges[index], &edge)) return;
  const uint64_t stamp = Load(edge.stamp);
  if (stamp >> 63 == 0) return;
  const uint32_t channel = static_cast<uint32_t>(stamp >> 16 & 0xff);
  const uint32_t flags = static_cast<uint32_t>(stamp >> 24 & 0xff);
  const uint32_t comm = static_cast<uint32_t>(stamp >> 32 & 0xffff);
  const uint64_t peer = Load(edge.peer);
  const uint64_t ops = Load(edge.ops);
  WireWriter& w = e->w;
  const WireWriter::Mark mark = w.Begin(13);
  w.Uint(1, index);
  if (!(flags & kEdgeForeign)) w.Uint(2, comm);
  w.Bool(3, flags & kEdgeForeign);
  w.Fixed64(4, Load(edge.context));
  w.Fixed64(5, Load(edge.foreign));
  w.Uint(6, peer >> 32);
  w.Uint(7, peer & 0xffffffff);
  w.Uint(8, channel);
  w.Bool(9, flags & kEdgeSend);
  w.Bool(10, flags & kEdgeP2p);
  if (flags & kEdgePseudo) {
    w.Bool(11, true);
    w.Int(24, e->Ns(Load(edge.changed)));
    w.Uint(26, Load(edge.bytes));
    w.Uint(27, Load(edge.steps) & kGroupBits);
  } else {
    w.Uint(12, ops & 0xffffffff);
    w.Uint(13, ops >> 32);
    EncodeSteps(e, edge, flags, comm);
  }
  w.End(mark);
}

void EncodeCall(Encoder* e, uint32_t index) {
  const ThreadRow& row = e->image.threads[index];
  const uint64_t tid = Load(row.tid), call = Load(row.call), error = Load(row.last_error);
  const HostCallInfo host = HostCallOf(static_cast<uint32_t>(Load(row.host_call) & 0xffff));
  if (tid == 0 || ((call & 0xff) == 0 && host.number == 0 && error == 0)) return;
  WireWriter& w = e->w;
  const WireWriter::Mark mark = w.Begin(14);
  w.Uint(1, index);
  w.Int(2, static_cast<int32_t>(static_cast<uint32_t>(tid)));
  if ((call & 0xff) != 0) {
    w.Uint(3, call & 0xff);
    w.Int(4, e->Ns(Load(row.since)));
    const uint32_t comm = static_cast<uint32_t>(call >> 32 & 0xffff);
    w.Uint(5, comm < kCommRows ? comm + 1 : 0);
    w.Uint(6, Load(row.position));
    w.Fixed64(7, Load(row.stream) & kGroupBits);
    w.Uint(8, Load(row.count));
    w.Uint(9, call >> 8 & 0xff);
  }
  if (host.number != 0) {
    w.String(10, host.name);
    w.Int(11, e->Ns(Load(row.host_since)));
    w.Fixed64(12, Load(row.host_about) & kGroupBits);
    w.Uint(13, Load(row.host_bytes));
  }
  if (error != 0) {
    w.Uint(14, error & 0xffffffff);
    w.String(15, HostCallOf(static_cast<uint32_t>(error >> 32 & 0xffff)).name);
  }
  w.End(mark);
}

}  // namespace ringscope::flight
