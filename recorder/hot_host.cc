#include "recorder/hot_host.h"

namespace ringscope::recorder {
namespace {

// The first one stays. Two threads at once: the one that takes the word writes the rest.
void KeepFirst(flight::HostError* slot, uint64_t what, uint64_t tid) {
  uint64_t none = 0;
  if (!slot->what.compare_exchange_strong(none, what & ~(uint64_t{1} << 63), std::memory_order_relaxed)) return;
  Store(slot->when, Ticks());
  Store(slot->tid, tid);
  slot->what.store(what, std::memory_order_release);
}

}  // namespace

void NoteHostError(Image* image, flight::ThreadRow* thread, uint32_t number, uint32_t code) {
  const uint64_t what = code | static_cast<uint64_t>(number & 0xffff) << 32 | uint64_t{1} << 63;
  const uint64_t tid = thread != nullptr ? Load(thread->tid) : 0;
  if (thread != nullptr) Store(thread->last_error, what);
  flight::HostRow* host = image->host;
  if (flight::HostCallOf(number).library == flight::HostLibrary::kNccl) {
    host->nccl_errors.fetch_add(1, std::memory_order_relaxed);
    KeepFirst(&host->first_nccl, what, tid);
    return;
  }
  host->cuda_errors.fetch_add(1, std::memory_order_relaxed);
  KeepFirst(&host->first_cuda, what, tid);
  if (flight::IsSticky(code)) KeepFirst(&host->sticky, what, tid);
}

}  // namespace ringscope::recorder
