#include "recorder/hot_edge.h"

#include "recorder/flight/steps.h"
#include "recorder/hot_stream.h"

namespace ringscope::recorder {
namespace {

using flight::EdgeRow;

constexpr uint32_t kWays = 8;
constexpr uint32_t kMessageWays =
    4;  // of a set's rows, how many message counts may take: connections keep the others

struct Key {
  uint32_t comm;     // row, kNoComm when foreign
  uint64_t context;  // foreign context, 0 when own
  uint32_t rank, peer, channel, flags;
};

// Every bit of the key must reach the low bits, which choose the set: a multiplication carries
// upwards only, so each is followed by a shift down (the finalizer of MurmurHash3, A. Appleby,
// public domain).
uint64_t Mix(uint64_t h) {
  h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
  h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
  return h ^ h >> 33;
}

uint64_t Hash(const Key& key) {
  const uint64_t who = static_cast<uint64_t>(key.peer) << 32 | key.rank;
  const uint64_t what = static_cast<uint64_t>(key.comm) << 32 | key.channel << 8 | key.flags;
  return Mix(Mix(Mix(who) ^ what) ^ key.context);
}

bool Matches(const EdgeRow& row, const Key& key) {
  const uint64_t stamp = Load(row.stamp);
  return stamp != 0 && (stamp >> 16 & 0xff) == key.channel && (stamp >> 24 & 0xff) == key.flags &&
         (stamp >> 32 & 0xffff) == key.comm &&
         Load(row.peer) == (key.peer | static_cast<uint64_t>(key.rank) << 32) &&
         Load(row.context) == key.context;
}

// Stamp of a row that a thread is filling (with the new generation in its low bits): no row to anybody else. Bit 63, which
// every published stamp has, is missing.
constexpr uint64_t kClaimed = uint64_t{0xfffe} << 32;

// Whether an idle row may be given away by the thread that asks: connections of one communicator have one progress thread,
// and those of a finalized one have none. Any other thread might use its row again this very moment.
bool MayTake(const Image* image, const EdgeRow& row, uint64_t stamp, const Key& key) {
  if (stamp >> 63 == 0 || (stamp >> 24 & flight::kEdgePseudo)) return false;
  const uint32_t comm = stamp >> 32 & 0xffff;
  if (comm < image->comm_rows && Load(image->comms[comm].finalized) != 0) return true;
  return comm == key.comm && Load(row.context) == key.context && !(key.flags & flight::kEdgePseudo);
}

bool Idle(const EdgeRow& row) {
  const uint64_t ops = Load(row.ops);
  return (ops & 0xffffffff) == ops >> 32;
}

// Fills a row that this thread has claimed. The generation goes on from the row's last use, which
// `queued` remembers.
void Fill(EdgeRow* row, const Key& key, uint64_t generation, uint64_t now) {
  for (flight::Word* w = &row->peer; w != reinterpret_cast<flight::Word*>(row + 1); ++w)
    Store(*w, 0);
  Store(row->peer, key.peer | static_cast<uint64_t>(key.rank) << 32);
  Store(row->context, key.context);
  Store(row->changed, now);
  row->stamp.store(generation | static_cast<uint64_t>(key.channel) << 16 |
                       static_cast<uint64_t>(key.flags) << 24 |
                       static_cast<uint64_t>(key.comm) << 32 | uint64_t{1} << 63,
                   std::memory_order_release);
}

// Finds the edge's row, or takes a free one, or evicts the idle one that rested longest. Message
// counts are never evicted: what they count cannot be had again; so they may take half of a set
// only. nullptr when all eight are busy (counted). Several progress threads may take rows of one
// set: the stamp is claimed by compare-exchange, once in the life of an edge.
EdgeRow* FindOrTake(Image* image, const Key& key, uint64_t now) {
  EdgeRow* set = &image->edges[(Hash(key) * kWays & image->edge_mask)];
  for (uint32_t i = 0; i < kWays; ++i) {
    if (Matches(set[i], key)) return &set[i];
  }
  for (;;) {
    EdgeRow* best = nullptr;
    uint64_t old = 0;  // its stamp when it was found free or idle
    for (uint32_t i = key.flags & flight::kEdgePseudo ? kMessageWays : kWays; i-- > 0;) {
      const uint64_t stamp = Load(set[i].stamp);
      if (stamp == 0) {
        best = &set[i];
        old = 0;
        break;
      }
      if (!MayTake(image, set[i], stamp, key) || !Idle(set[i])) continue;
      if (best != nullptr && Load(set[i].changed) >= Load(best->changed)) continue;
      best = &set[i];
      old = stamp;
    }
    if (best == nullptr) {
      Count(image, flight::Counter::kEdgeNoRow);
      return nullptr;
    }
    uint64_t generation = old != 0 ? old & 0x3f : flight::ProxyOpGeneration(Load(best->queued));
    generation = (generation + 1) & 0x3f;
    if (!best->stamp.compare_exchange_strong(old, kClaimed | generation,
                                             std::memory_order_relaxed)) {
      continue;
    }
    std::atomic_thread_fence(std::memory_order_release);
    Fill(best, key, generation, now);
    return best;
  }
}

}  // namespace

EdgeRow* RejectEdge(Image* image, uint64_t handle) {
  RejectHandle(image, handle);
  return nullptr;
}

EdgeRow* StaleEdge(Image* image) {
  Count(image, flight::Counter::kStaleHandle);
  return nullptr;
}

uint64_t ProxyOpStart(Image* image, const ProxyOpCall& call) {
  const flight::CommRow* comm = CommOf(image, call.context);
  // PXN: another process's operation. Neither its context nor its parent may be followed; both are
  // kept as they are.
  const bool foreign = call.pid != image->header->pid || comm == nullptr;
  if (foreign) {
    Count(image,
          call.context == 0 ? flight::Counter::kNullContext : flight::Counter::kForeignContext);
    comm = nullptr;
  }
  const bool parent_p2p = flight::HandleNonce(call.parent) != 0 &&
                          flight::KindOf(call.parent) == flight::HandleKind::kOp &&
                          call.parent & flight::kOpIsP2p;
  const uint64_t now = Ticks();
  const Key key = {foreign ? kNoComm : IndexOf(image, comm),
                   foreign ? call.context : 0,
                   call.rank,
                   call.peer,
                   call.channel & 0xff,
                   (call.send ? flight::kEdgeSend : 0u) | (parent_p2p ? flight::kEdgeP2p : 0u) |
                       (foreign ? flight::kEdgeForeign : 0u)};
  EdgeRow* edge = FindOrTake(image, key, now);
  if (edge == nullptr) return 0;

  uint32_t row_low = flight::OpRowOf(call.parent) & 0xff;
  if (foreign) {
    Store(edge->foreign, call.parent);
  } else {
    uint32_t generation = 0;
    flight::OpRow* op = flight::KindOf(call.parent) == flight::HandleKind::kOp
                            ? OpOf(image, call.parent, &generation)
                            : nullptr;
    if (op != nullptr) {
      const uint64_t lane = Load(op->proxy_ops);
      if ((lane & 0xffffffff) == generation) {
        if ((lane >> 32 & 0xffff) != 0xffff) Store(op->proxy_ops, lane + (uint64_t{1} << 32));
      } else {
        Store(op->proxy_ops, generation | uint64_t{1} << 32);  // the whole lane
      }
    }
  }
  const uint64_t ops = Load(edge->ops);
  const uint64_t ordinal = (ops + 1) & 0xffffffff;
  const uint64_t generation = Load(edge->stamp) & 0x3f;
  const uint64_t steps = call.n_steps < flight::kMaxSteps ? call.n_steps : flight::kMaxSteps;
  const uint64_t handle = flight::MakeHandle(
      image->nonce, flight::HandleKind::kProxyOp,
      static_cast<uint64_t>(edge - image->edges) | generation << 12 | (ordinal & 0x3f) << 18 |
          static_cast<uint64_t>(row_low) << 24 | steps << 32);
  // An operation appended behind another one is no progress of the edge: `changed` stays, or a
  // stall would look young.
  const bool idle = Idle(*edge);
  Store(edge->chunk, call.chunk | static_cast<uint64_t>(call.n_steps) << 32);
  Store(edge->queued, handle);
  Store(edge->ops, (ops & 0xffffffff00000000) | ordinal);
  if (idle) BeginOp(edge, handle);
  return handle;
}

namespace {

// Every step before `reached` that has not come to `field` comes there now.
void Advance(Image* image, EdgeRow* edge, uint32_t reached, uint32_t field) {
  const uint64_t now = Ticks() & ~uint64_t{1};
  uint64_t steps = Load(edge->steps);
  for (uint32_t f = 0; f <= field; ++f) {
    const uint32_t have = steps >> 16 * f & 0xffff;
    if (have >= reached) continue;
    if (image->steps != nullptr) {
      // All but the one that was told: its entry comes with its bytes (StepReach).
      const uint32_t end = f == field ? reached - 1 : reached;
      for (uint32_t s = have; s < end; ++s) KeepStep(image, image->steps, edge, s, f, now, 0);
    }
    Store(edge->entered[f], Load(edge->entered[f]) + now * (reached - have));
    steps += static_cast<uint64_t>(reached - have) << 16 * f;
  }
  Store(edge->steps, steps);
  Store(edge->changed, now);
}

}  // namespace

void StreamReach(Image* image, const EdgeRow* edge, uint32_t reached, uint32_t field,
                 uint64_t bytes) {
  KeepStep(image, image->steps, edge, reached - 1, field, Load(edge->changed) & ~uint64_t{1}, bytes);
}

void ReachFar(Image* image, EdgeRow* edge, uint32_t reached, uint32_t field) {
  Count(image, flight::Counter::kStepGap);
  Advance(image, edge, reached, field);
}

void ProxyOpReach(Image* image, uint64_t handle, uint32_t field, uint32_t steps, bool peer_wait,
                  uint64_t bytes) {
  EdgeRow* edge = EdgeOf(image, handle);
  if (edge == nullptr) return;
  // (A step that starts makes its operation the current one; without step events the first posted
  // one does.)
  if (Load(edge->current) != handle) {
    if (field != 0 || steps != 1) return;
    BeginOp(edge, handle);
  }
  const uint64_t have = Load(edge->steps);
  if (steps <= (have >> field * 16 & 0xffff)) {
    if (peer_wait) Store(edge->changed, Load(edge->changed) | 1);
    return;
  }
  if (steps > flight::ProxyOpSteps(handle)) return;  // no such step
  if (have == 0) FirstStep(image, edge);
  Advance(image, edge, steps, field);
  if (bytes != 0) Store(edge->bytes, Load(edge->bytes) + bytes);
  if (image->steps != nullptr) StreamReach(image, edge, steps, field, bytes);
}

void BeginOp(EdgeRow* edge, uint64_t proxy_op) {
  const uint64_t now = Ticks() & ~uint64_t{1};
  // Steps of the operation before that never ended (an abort) leave their state now, or the sums
  // would not close.
  const flight::StepCounts counts(Load(edge->steps));
  for (uint32_t f = 1; f < 4; ++f) {
    const uint64_t open =
        counts.reached[0] > counts.reached[f] ? counts.reached[0] - counts.reached[f] : 0;
    if (open != 0) Store(edge->entered[f], Load(edge->entered[f]) + now * open);
  }
  Store(edge->steps_total, Load(edge->steps_total) + counts.done());
  Store(edge->steps, 0);
  Store(edge->current, proxy_op);
  Store(edge->changed, now);
}

void FirstStep(Image* image, const EdgeRow* edge) {
  const uint64_t index = Load(edge->stamp) >> 32 & 0xffff;
  if (index >= image->comm_rows) return;
  flight::CommRow* comm = &image->comms[index];
  const uint64_t flags = Load(comm->flags);
  if (flags & flight::kCommHasSteps) return;
  // All ranks on one node, yet data goes through a network proxy: our thread says it once.
  const bool one_node = static_cast<uint32_t>(Load(comm->nodes)) == 1;
  Store(comm->flags, flags | flight::kCommHasSteps | (one_node ? flight::kCommFallbackNoted : 0u));
}

void ProxyOpStop(Image* image, uint64_t handle) {
  EdgeRow* edge = EdgeOf(image, handle);
  if (edge == nullptr) return;
  if (Idle(*edge)) {  // stopped twice
    StaleEdge(image);
    return;
  }
  const uint64_t now = Ticks();
  Store(edge->ops, Load(edge->ops) + (uint64_t{1} << 32));
  if (Load(edge->current) == handle) Store(edge->changed, now & ~uint64_t{1});
  const uint64_t index = Load(edge->stamp) >> 32 & 0xffff;
  if (index >= image->comm_rows) return;
  flight::CommRow* comm = &image->comms[index];
  Store(comm->last_progress, now);
  const uint64_t ring = Load(comm->ring);
  const uint32_t mask = static_cast<uint32_t>(ring >> 32);
  flight::OpRow* op =
      &image->ops[(static_cast<uint32_t>(ring) + (flight::ProxyOpRowLow(handle) & mask)) &
                  (image->op_rows - 1)];
  const uint64_t lane = Load(op->proxy_ops);
  if ((lane >> 32 & 0xffff) > lane >> 48) Store(op->proxy_ops, lane + (uint64_t{1} << 48));
}

void CountMessage(Image* image, flight::CommRow* comm, uint32_t peer, bool send, uint64_t bytes) {
  const uint64_t now = Ticks();
  const Key key = {IndexOf(image, comm),
                   0,
                   static_cast<uint32_t>(Load(comm->ranks)),
                   peer,
                   255,
                   (send ? flight::kEdgeSend : 0u) | flight::kEdgeP2p | flight::kEdgePseudo};
  EdgeRow* edge = FindOrTake(image, key, now);
  if (edge == nullptr) return;
  Store(edge->steps, Load(edge->steps) + 1);
  Store(edge->bytes, Load(edge->bytes) + bytes);
  Store(edge->changed, now);
}

}  // namespace ringscope::recorder
