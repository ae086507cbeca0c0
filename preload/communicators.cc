#include "preload/communicators.h"

#include <string.h>

#include "recorder/hot_comm.h"

namespace ringscope::preload {
namespace {

constexpr uint32_t kSlots = 1024;  // twice the recorder's communicators; a power of two
struct Slot {
  std::atomic<uintptr_t> comm;  // 0 free; 1 was used, look on
  std::atomic<uint64_t> context, id;
  std::atomic<uint32_t> splits, known;
};
Slot g_slots[kSlots];
constexpr uintptr_t kUsed = 1;

uint64_t Mix(uint64_t h) {
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccdull;
  h ^= h >> 33;
  h *= 0xc4ceb9fe1a85ec53ull;
  return h ^ h >> 33;
}

Slot* SlotOf(void* comm) {
  const auto key = reinterpret_cast<uintptr_t>(comm);
  if (key <= kUsed) return nullptr;
  for (uint32_t i = 0, at = static_cast<uint32_t>(Mix(key)); i < kSlots; ++i, ++at) {
    const uintptr_t seen = g_slots[at % kSlots].comm.load(std::memory_order_acquire);
    if (seen == key) return &g_slots[at % kSlots];
    if (seen == 0) return nullptr;
  }
  return nullptr;
}

}  // namespace

bool PluginTells() { return recorder::PluginSeen(); }

void Opened(Image* image, void* comm, uint64_t comm_id, int n_ranks, int rank) {
  if (comm == nullptr || PluginTells()) return;
  const uint64_t context = recorder::OpenCommunicator(image, {comm_id, nullptr, 0, n_ranks, rank, 0, true, false});
  const auto key = reinterpret_cast<uintptr_t>(comm);
  for (uint32_t i = 0, at = static_cast<uint32_t>(Mix(key)); i < kSlots; ++i, ++at) {
    Slot* slot = &g_slots[at % kSlots];
    uintptr_t seen = slot->comm.load(std::memory_order_relaxed);
    if (seen > kUsed && seen != key) continue;
    // Taken before its fields are there: nobody asks for a communicator whose init has not returned.
    if (seen != key && !slot->comm.compare_exchange_strong(seen, key, std::memory_order_acq_rel)) continue;
    slot->context.store(context, std::memory_order_relaxed);
    slot->id.store(comm_id, std::memory_order_relaxed);
    slot->splits.store(0, std::memory_order_relaxed);
    slot->known.store(n_ranks > 0 && rank >= 0, std::memory_order_release);
    return;
  }
  Count(image, flight::Counter::kCommNoRow);
}

void Closed(Image* image, void* comm) {
  Slot* slot = SlotOf(comm);
  if (slot == nullptr) return;
  const uint64_t context = slot->context.exchange(0, std::memory_order_relaxed);
  slot->comm.store(kUsed, std::memory_order_release);
  if (context != 0) recorder::CloseCommunicator(image, context);
}

uint64_t ContextOf(void* comm) {
  const Slot* slot = SlotOf(comm);
  return slot == nullptr ? 0 : slot->context.load(std::memory_order_relaxed);
}

void Learn(Image* image, void* comm, uint64_t context, const void* caller) {
  Slot* slot = SlotOf(comm);
  if (slot == nullptr || slot->known.load(std::memory_order_acquire)) return;
  static Target rank_target, count_target;
  using Getter = int (*)(void*, int*);
  const auto rank_of = reinterpret_cast<Getter>(Find(&rank_target, Library::kNccl, "ncclCommUserRank", caller, nullptr));
  const auto count_of = reinterpret_cast<Getter>(Find(&count_target, Library::kNccl, "ncclCommCount", caller, nullptr));
  int rank = -1, n = 0;
  if (rank_of == nullptr || count_of == nullptr || rank_of(comm, &rank) != 0 || count_of(comm, &n) != 0) return;
  slot->known.store(1, std::memory_order_release);
  recorder::LearnIdentity(image, context, slot->id.load(std::memory_order_relaxed), rank, static_cast<uint32_t>(n));
}

uint64_t IdOf(const NcclId& id) {
  uint64_t hash = 0x9e3779b97f4a7c15ull;
  for (size_t i = 0; i < sizeof(id.bytes); i += 8) {
    uint64_t word;
    memcpy(&word, id.bytes + i, 8);
    hash = Mix(hash ^ word);
  }
  return hash;
}

uint64_t IdOfSplit(void* parent, int color) {
  Slot* slot = SlotOf(parent);
  if (slot == nullptr) return 0;
  const uint64_t number = slot->splits.fetch_add(1, std::memory_order_relaxed) + 1;
  return Mix(slot->id.load(std::memory_order_relaxed) ^ number << 32 ^ static_cast<uint32_t>(color));
}

}  // namespace ringscope::preload
