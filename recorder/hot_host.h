// What the application called of NCCL and CUDA: the preloaded library's door to the tables.
#ifndef RINGSCOPE_RECORDER_HOT_HOST_H_
#define RINGSCOPE_RECORDER_HOT_HOST_H_

#include "recorder/flight/host_calls.h"
#include "recorder/hot_thread.h"

namespace ringscope::recorder {

constexpr uint64_t kLow48 = 0xffffffffffff;

// The calling thread is in this function from now on. `about`: its stream or event; `bytes` of a copy.
inline void EnterHost(flight::ThreadRow* thread, uint32_t number, const void* about, uint64_t bytes, uint32_t reduction = 0) {
  Store(thread->host_about, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(about)) & kLow48);
  Store(thread->host_bytes, bytes);
  Store(thread->host_since, Ticks());
  Store(thread->host_call, (Load(thread->host_call) & 0xffff0000) | number | static_cast<uint64_t>(reduction) << 32);
}
inline void LeaveHost(flight::ThreadRow* thread) { Store(thread->host_call, Load(thread->host_call) & 0xffff0000); }

// Explicit NCCL groups of this thread that are open.
inline uint32_t HostGroupDepth(const flight::ThreadRow* thread) { return Load(thread->host_call) >> 16 & 0xffff; }
inline void SetHostGroupDepth(flight::ThreadRow* thread, uint32_t depth) {
  Store(thread->host_call, (Load(thread->host_call) & ~uint64_t{0xffff0000}) | static_cast<uint64_t>(depth & 0xffff) << 16);
}

inline void CountCopy(Image* image, int kind, uint64_t bytes) {
  const uint32_t k = static_cast<uint32_t>(kind) < flight::kCopyKinds ? static_cast<uint32_t>(kind) : flight::kCopyUnknown;
  flight::Word(&of)[2] = image->host->copies[k][flight::CopySizeOf(bytes)];
  of[0].fetch_add(1, std::memory_order_relaxed);
  of[1].fetch_add(bytes, std::memory_order_relaxed);
}

inline void SeeHost(Image* image, uint64_t what) {
  if ((Load(image->host->seen) & what) != what) image->host->seen.fetch_or(what, std::memory_order_relaxed);
}

// A result that is an error, of the function `number`. Seldom; `thread` may be nullptr.
void NoteHostError(Image* image, flight::ThreadRow* thread, uint32_t number, uint32_t code);

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_HOT_HOST_H_
