// Edges: the callbacks of ProxyOp and ProxyStep. The densest path there is: up to half a million callbacks a second on the
// proxy progress thread. A step callback reads one clock and stores into two cache lines; it never searches.
//
// A handle leads straight to its edge row (handles.h); only ProxyOp start looks a row up, in a set of 8.
#ifndef RINGSCOPE_RECORDER_HOT_EDGE_H_
#define RINGSCOPE_RECORDER_HOT_EDGE_H_

#include "recorder/flight/format.h"
#include "recorder/flight/handles.h"
#include "recorder/hot_comm.h"
#include "recorder/hot_op.h"
#include "recorder/hot_thread.h"

namespace ringscope::recorder {

struct ProxyOpCall {
  uint64_t context;
  uint64_t parent;
  int32_t pid;
  uint32_t rank;     // owner of the data
  uint32_t peer;
  uint32_t channel;
  uint32_t n_steps;
  uint32_t chunk;
  bool send;
};

// ProxyOp start: finds or makes the edge's row. Returns its handle, 0 when there is no room (counted).
uint64_t ProxyOpStart(Image* image, const ProxyOpCall& call);
void ProxyOpStop(Image* image, uint64_t handle);

// Makes `proxy_op` the operation whose steps run: on its InProgress state, and on its first step.
void BeginOp(Image* image, flight::EdgeRow* edge, uint64_t proxy_op);

// One more point-to-point message launched to (send) or from `peer`: a pseudo-edge, counted apart from connections.
void CountMessage(Image* image, flight::CommRow* comm, uint32_t peer, bool send, uint64_t bytes);

inline constexpr uint64_t kStepSlotMask = 15;

// Index of a wait state in EdgeRow::wait, and how much a slot in it adds to the counts kept in the high nibbles.
inline constexpr uint64_t kStateWeight[8] = {0, 0, 1u << 4, 1u << 12, 1u << 20, 1u << 4, 1u << 12, 1u << 20};

// Row of a ProxyOp or Step handle; nullptr (counted) when it is NULL, foreign, garbage, or its row serves another edge now.
flight::EdgeRow* RejectEdge(Image* image, uint64_t handle);
inline flight::EdgeRow* EdgeOf(Image* image, uint64_t handle) {
  if (__builtin_expect(flight::HandleNonce(handle) != image->nonce, 0)) return RejectEdge(image, handle);
  flight::EdgeRow* edge = &image->edges[flight::ProxyOpEdge(handle)];
  const uint64_t stamp = Load(edge->stamp);
  if (__builtin_expect(stamp == 0 || (stamp & 0x3f) != flight::ProxyOpGeneration(handle), 0)) {
    Count(image, flight::Counter::kStaleHandle);
    return nullptr;
  }
  return edge;
}

// Adds the time since the last change to each wait state, weighted by how many steps are in it.
inline void Accumulate(flight::EdgeRow* edge, uint64_t slots, uint64_t now) {
  const uint64_t dt = now - Load(edge->changed);
  Store(edge->changed, now);
  Store(edge->wait[0], Load(edge->wait[0]) + (slots >> 4 & 15) * dt);
  Store(edge->wait[1], Load(edge->wait[1]) + (slots >> 12 & 15) * dt);
  Store(edge->wait[2], Load(edge->wait[2]) + (slots >> 20 & 15) * dt);
}

inline uint64_t WithState(uint64_t slots, uint32_t slot, flight::StepState state) {
  const uint32_t shift = 8 * slot;
  const uint64_t old = slots >> shift & kStepSlotMask;
  const auto next = static_cast<uint64_t>(state);
  slots += kStateWeight[next] - kStateWeight[old & 7];
  return (slots & ~(kStepSlotMask << shift)) | next << shift;
}

// ProxyStep start. NCCL repeats it for one step while a receive cannot be posted: the last start wins.
inline uint64_t StepStart(Image* image, uint64_t parent, uint32_t step) {
  if (flight::KindOf(parent) != flight::HandleKind::kProxyOp) {
    RejectEdge(image, parent);
    return 0;
  }
  flight::EdgeRow* edge = EdgeOf(image, parent);
  if (edge == nullptr) return 0;
  if (__builtin_expect(Load(edge->current) != parent, 0)) BeginOp(image, edge, parent);
  const uint64_t slots = Load(edge->slots);
  const uint64_t steps = Load(edge->steps);
  Accumulate(edge, slots, Ticks());
  Store(edge->slots, WithState(slots, step % flight::kStepSlots, flight::StepState::kStarted));
  if (step >= (steps & 0xffff)) {
    Store(edge->steps, (steps & ~uint64_t{0xffff}) | ((step + 1) & 0xffff));
  } else {
    Count(image, flight::Counter::kStepRestart);
  }
  return flight::MakeHandle(image->nonce, flight::HandleKind::kStep,
                            (parent & 0x3ffff) | static_cast<uint64_t>(step & 0x3fff) << 18 |
                                static_cast<uint64_t>(flight::ProxyOpOrdinal(parent)) << 32);
}

// True when the step's operation is the one that runs on the edge; a late callback of an earlier one is ignored.
inline bool IsCurrent(const flight::EdgeRow* edge, uint64_t step_handle) {
  return flight::ProxyOpOrdinal(Load(edge->current)) == flight::StepOrdinal(step_handle);
}

inline void StepState(Image* image, uint64_t handle, flight::StepState state, uint64_t bytes) {
  flight::EdgeRow* edge = EdgeOf(image, handle);
  if (edge == nullptr) return;
  if (__builtin_expect(!IsCurrent(edge, handle), 0)) {
    Count(image, flight::Counter::kStaleHandle);
    return;
  }
  const uint32_t step = flight::StepOf(handle);
  const uint32_t slot = step % flight::kStepSlots;
  const uint64_t slots = Load(edge->slots);
  // SendPeerWait repeats with each attempt to send: no progress, so no new time.
  if ((slots >> 8 * slot & kStepSlotMask) == static_cast<uint64_t>(state)) return;
  Accumulate(edge, slots, Ticks());
  Store(edge->slots, WithState(slots, slot, state));
  if (state == flight::StepState::kSendWait || state == flight::StepState::kRecvFlushWait) {
    const uint64_t steps = Load(edge->steps);
    if (step >= (steps >> 16 & 0xffff)) {
      Store(edge->steps, (steps & ~(uint64_t{0xffff} << 16)) | static_cast<uint64_t>((step + 1) & 0xffff) << 16);
    }
    Store(edge->bytes, Load(edge->bytes) + bytes);
  }
}

inline void StepStop(Image* image, uint64_t handle) {
  flight::EdgeRow* edge = EdgeOf(image, handle);
  if (edge == nullptr) return;
  if (__builtin_expect(!IsCurrent(edge, handle), 0)) {
    Count(image, flight::Counter::kStaleHandle);
    return;
  }
  const uint32_t step = flight::StepOf(handle);
  const uint64_t slots = Load(edge->slots);
  const uint64_t steps = Load(edge->steps);
  Accumulate(edge, slots, Ticks());
  Store(edge->slots, WithState(slots, step % flight::kStepSlots, flight::StepState::kFree));
  if (step >= (steps >> 32 & 0xffff)) {
    Store(edge->steps, (steps & ~(uint64_t{0xffff} << 32)) | static_cast<uint64_t>((step + 1) & 0xffff) << 32);
  }
  Store(edge->steps_total, Load(edge->steps_total) + 1);
}

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_HOT_EDGE_H_
