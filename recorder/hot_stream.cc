#include "recorder/hot_stream.h"

namespace ringscope::recorder {
namespace {

// Index + 1 of a ring that nobody has, now the calling thread's; 0 when all are taken. Looked for again with the next entry:
// our thread gives back the rings of threads that ended.
__attribute__((noinline, cold)) uint32_t TakeRing(StreamDoor* door, uint64_t tid) {
  for (uint32_t i = 0; i < kStreamRings; ++i) {
    uint64_t free = 0;
    if (Load(door->rings[i].owner) == 0 &&
        door->rings[i].owner.compare_exchange_strong(free, tid, std::memory_order_acq_rel)) {
      Store(door->rings[i].tail_seen, door->rings[i].tail.load(std::memory_order_acquire));
      return i + 1;
    }
  }
  return 0;
}

// The calling thread's ring + 1, or 0.
uint32_t RingOfThis(Image* image, StreamDoor* door) {
  const flight::ThreadRow* thread = ThisThread(image);
  const uint32_t index = IndexOf(image, thread);
  if (index >= flight::kThreadRows) return 0;
  uint32_t ring = door->ring_of[index].load(std::memory_order_relaxed);
  if (__builtin_expect(ring == 0, 0)) {
    ring = TakeRing(door, Load(thread->tid));
    door->ring_of[index].store(ring, std::memory_order_relaxed);
  }
  return ring;
}

void Raise(flight::Word& word) { Store(word, Load(word) + 1); }

__attribute__((noinline, cold)) void CountLoss(Image* image, StreamDoor* door, bool step) {
  if (const uint32_t ring = RingOfThis(image, door)) {
    Raise(step ? door->rings[ring - 1].lost_steps : door->rings[ring - 1].lost_ops);
  } else {
    (step ? door->homeless_steps : door->homeless_ops).fetch_add(1, std::memory_order_relaxed);
  }
}

uint64_t CommKey(const Image* image, const flight::CommRow* comm) {
  return static_cast<uint64_t>(comm - image->comms) | (Load(comm->stamp) & 0xffff) << 16;
}

}  // namespace

bool PushWords(Image* image, StreamDoor* door, const uint64_t* words, uint32_t n) {
  const uint32_t number = RingOfThis(image, door);
  if (__builtin_expect(number == 0, 0)) return false;
  StreamRing& ring = door->rings[number - 1];
  const uint64_t head = Load(ring.head);
  if (__builtin_expect(head + n - Load(ring.tail_seen) > kRingWords, 0)) {
    const uint64_t tail = ring.tail.load(std::memory_order_acquire);
    Store(ring.tail_seen, tail);
    if (head + n - tail > kRingWords) return false;
  }
  flight::Word* to = door->words[number - 1];
  for (uint32_t i = 0; i < n; ++i) Store(to[(head + i) & (kRingWords - 1)], words[i]);
  ring.head.store(head + n, std::memory_order_release);
  return true;
}

void KeepOp(Image* image, StreamDoor* door, const flight::CommRow* comm, const flight::OpRow* row) {
  const auto index = static_cast<uint32_t>(row - image->ops);
  const uint64_t stamp = Load(row->stamp);
  if (stamp == 0 || door->closed.load(std::memory_order_relaxed)) return;
  if ((Load(door->copied[index]) & 0xffffffff) == (stamp & 0xffffffff)) return;
  uint64_t words[1 + kOpWords];
  words[0] = EntryWord(StreamEntry::kOp, 1 + kOpWords, index | CommKey(image, comm) << 16);
  const flight::Word* from = &row->stamp;
  for (uint32_t i = 0; i < kOpWords; ++i) words[1 + i] = Load(from[i]);
  if (!PushWords(image, door, words, 1 + kOpWords)) CountLoss(image, door, false);
}

void KeepCommIfStreaming(Image* image, const flight::CommRow* comm) {
  StreamDoor* door = image->stream;
  if (door == nullptr || door->closed.load(std::memory_order_relaxed)) return;
  uint64_t words[6 + kNameWords] = {EntryWord(StreamEntry::kComm, 6 + kNameWords, CommKey(image, comm)),
                                    Load(comm->stamp),
                                    Load(comm->comm_id),
                                    Load(comm->ranks),
                                    Load(comm->nodes),
                                    Load(comm->flags)};
  const flight::Word* name = reinterpret_cast<const flight::Word*>(comm->name);
  for (uint32_t i = 0; i < kNameWords; ++i) words[6 + i] = Load(name[i]);
  (void)PushWords(image, door, words, 6 + kNameWords);  // without it the operations name a communicator without a name
  const uint64_t ring = Load(comm->ring);
  const auto mask = static_cast<uint32_t>(ring >> 32);
  const auto head = static_cast<uint32_t>(Load(comm->head));  // oldest first
  for (uint32_t i = 0; i <= mask; ++i) {
    KeepOp(image, door, comm, &image->ops[static_cast<uint32_t>(ring) + ((head + i) & mask)]);
  }
}

void KeepStep(Image* image, StreamDoor* door, const flight::EdgeRow* edge, uint32_t step, uint32_t field, uint64_t now,
              uint64_t bytes) {
  const uint64_t current = Load(edge->current);
  const uint64_t what = static_cast<uint64_t>(edge - image->edges) | static_cast<uint64_t>(field) << 12 |
                        static_cast<uint64_t>(step & 0x3fff) << 14 |
                        static_cast<uint64_t>(flight::ProxyOpOrdinal(current)) << 28 |
                        static_cast<uint64_t>(flight::ProxyOpRowLow(current)) << 34 |
                        static_cast<uint64_t>(flight::ProxyOpGeneration(current)) << 42 |
                        static_cast<uint64_t>(bytes != 0) << 48;
  if (door->closed.load(std::memory_order_relaxed)) return;
  const uint32_t n = bytes != 0 ? 3 : 2;
  const uint64_t words[3] = {EntryWord(StreamEntry::kStep, n, what), now, bytes};
  if (!PushWords(image, door, words, n)) CountLoss(image, door, true);
}

}  // namespace ringscope::recorder
