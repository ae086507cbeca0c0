// Edges: the callbacks of ProxyOp and ProxyStep. The densest path there is: up to half a million
// callbacks a second on the proxy progress thread. A step callback reads one clock and stores into
// two cache lines; it never searches.
//
// A handle leads straight to its edge row (handles.h); only ProxyOp start looks a row up, in a set
// of 8.
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
  uint32_t rank;  // owner of the data
  uint32_t peer;
  uint32_t channel;
  uint32_t n_steps;
  uint32_t chunk;
  bool send;
};

// ProxyOp start: finds or makes the edge's row. Returns its handle, 0 when there is no room
// (counted).
uint64_t ProxyOpStart(Image* image, const ProxyOpCall& call);
void ProxyOpStop(Image* image, uint64_t handle);

// Makes `proxy_op` the operation whose steps run: on its InProgress state, and on its first step.
void BeginOp(flight::EdgeRow* edge, uint64_t proxy_op);

// The first step of an operation on `edge`: the communicator has network steps. (A ProxyOp alone
// does not say so: proxies of CollNet and of copy engines have none.)
void FirstStep(Image* image, const flight::EdgeRow* edge);

// One more point-to-point message launched to (send) or from `peer`: a pseudo-edge, counted apart
// from connections.
void CountMessage(Image* image, flight::CommRow* comm, uint32_t peer, bool send, uint64_t bytes);

// Row of a ProxyOp or Step handle; nullptr (counted) when it is NULL, foreign, garbage, or its row
// serves another edge now.
flight::EdgeRow* RejectEdge(Image* image, uint64_t handle);
flight::EdgeRow* StaleEdge(Image* image);
inline flight::EdgeRow* EdgeOf(Image* image, uint64_t handle) {
  if (__builtin_expect(flight::HandleNonce(handle) != image->nonce, 0))
    return RejectEdge(image, handle);
  flight::EdgeRow* edge = &image->edges[flight::ProxyOpEdge(handle) & image->edge_mask];
  const uint64_t stamp = Load(edge->stamp);
  if (__builtin_expect(stamp == 0 || ((stamp ^ handle >> 12) & 0x3f) != 0, 0))
    return StaleEdge(image);
  return edge;
}

// The tag that all handles of one kind of this process carry: one comparison tells nonce and kind.
inline bool IsOurs(const Image* image, uint64_t handle, flight::HandleKind kind) {
  return handle >> 46 == (image->nonce << 4 | static_cast<uint32_t>(kind));
}

// ProxyStep start. NCCL repeats it for one step while a receive cannot be posted, so it stores
// nothing: the first state says that the step was posted.
inline uint64_t StepStart(Image* image, uint64_t parent, uint32_t step) {
  if (__builtin_expect(!IsOurs(image, parent, flight::HandleKind::kProxyOp), 0)) {
    RejectEdge(image, parent);
    return 0;
  }
  flight::EdgeRow* edge = &image->edges[flight::ProxyOpEdge(parent) & image->edge_mask];
  if (__builtin_expect(Load(edge->current) != parent, 0)) {
    if (EdgeOf(image, parent) == nullptr) return 0;
    BeginOp(edge, parent);
  }
  return (parent & 0xfffc000000ffffff) +
         (uint64_t{static_cast<uint32_t>(flight::HandleKind::kStep)} << 46) +
         (static_cast<uint64_t>(step & 0x3fff) << 24);
}

// A step reaches state `field` (0-2) or its end (3) after steps were skipped, or without the states
// before: all of them are entered now. Cold.
void ReachFar(Image* image, flight::EdgeRow* edge, uint32_t reached, uint32_t field);

// The entry of a step for RINGSCOPE_STREAM=steps.
void StreamReach(Image* image, const flight::EdgeRow* edge, uint32_t reached, uint32_t field,
                 uint64_t bytes);

// ProxyOp states of NCCL 2.23-2.26: `steps` steps of the operation have reached `field`. They say
// of receives what the steps themselves do not: of those that complete together only the first is
// stopped there. `handle` IsOurs().
void ProxyOpReach(Image* image, uint64_t handle, uint32_t field, uint32_t steps, bool peer_wait,
                  uint64_t bytes);

// A state or the stop (field 3) of a step whose handle IsOurs(). `peer_wait`: SendPeerWait comes
// with each attempt to send; a repetition is no progress. `handed_over`: SendWait follows the
// accepted attempt at once, so when there was one attempt only, it needs no clock of its own.
inline void StepReach(Image* image, uint64_t handle, uint32_t field, bool peer_wait,
                      bool handed_over, uint64_t bytes) {
  flight::EdgeRow* edge = &image->edges[flight::ProxyOpEdge(handle) & image->edge_mask];
  if (__builtin_expect(((Load(edge->current) ^ handle) & flight::kSameOperationMask) != 0, 0)) {
    StaleEdge(image);  // a late callback of an operation before, or of an edge that is gone
    return;
  }
  const uint64_t steps = Load(edge->steps);
  const uint32_t reached = flight::StepOf(handle) + 1;
  const uint32_t shift = field * 16;
  const uint32_t have = steps >> shift & 0xffff;
  if (__builtin_expect(reached <= have, 0)) {
    if (peer_wait) Store(edge->changed, Load(edge->changed) | 1);
    return;
  }
  if (__builtin_expect(steps == 0, 0)) FirstStep(image, edge);
  const uint64_t before = Load(edge->changed);
  // (Written so that a step that skipped nothing takes one comparison.)
  if (__builtin_expect(
          reached != have + 1 || (field != 0 && (steps >> (shift - 16) & 0xffff) < reached), 0)) {
    ReachFar(image, edge, reached, field);
  } else {
    const uint64_t now = handed_over && !(before & 1) ? before : Ticks() & ~uint64_t{1};
    Store(edge->entered[field], Load(edge->entered[field]) + now);
    Store(edge->steps, steps + (uint64_t{1} << shift));
    Store(edge->changed, now);
  }
  if (bytes != 0) Store(edge->bytes, Load(edge->bytes) + bytes);
  if (__builtin_expect(image->steps != nullptr, 0))
    StreamReach(image, edge, reached, field, bytes);
}

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_HOT_EDGE_H_
