// The calling thread's row: which call it is in, since when. Found through one initial-exec
// thread-local pointer (16 bytes of static TLS, see docs/recorder.md), made on a thread's
// first callback.
#ifndef RINGSCOPE_RECORDER_HOT_THREAD_H_
#define RINGSCOPE_RECORDER_HOT_THREAD_H_

#include "recorder/clock.h"
#include "recorder/flight/format.h"
#include "recorder/flight/rows.h"
#include "recorder/runtime.h"

namespace ringscope::recorder {

using flight::Load;
inline void Store(flight::Word& w, uint64_t v) { w.store(v, std::memory_order_relaxed); }

struct ThreadSlot {
  flight::ThreadRow* row;
  flight::ThreadRow* table;  // the row belongs to this table: a forked child has another one, at another address
                             // (its parent's stays mapped). Set without a row: the table was full when this thread asked
};
// __thread, not thread_local: the latter would export a weak wrapper function of ours.
extern __thread ThreadSlot t_slot __attribute__((tls_model("initial-exec")));

// Slow path: takes a free row (one gettid() a thread, errno preserved). nullptr when all are taken;
// counted.
flight::ThreadRow* RegisterThread(Image* image);

// Row of the calling thread; nullptr when the table is full.
inline flight::ThreadRow* ThisThread(Image* image) {
  if (__builtin_expect(t_slot.table == image->threads, 1)) return t_slot.row;
  return RegisterThread(image);
}
inline uint32_t IndexOf(const Image* image, const flight::ThreadRow* row) {
  return row ? static_cast<uint32_t>(row - image->threads) : 0xffff;
}

// What a thread is in. A word of its own, valid alone: call | depth << 8 | captured << 16 |
// communicator row << 32.
inline void EnterCall(flight::ThreadRow* thread, flight::Call call, uint64_t rest, uint64_t now) {
  Store(thread->since, now);
  Store(thread->call, static_cast<uint64_t>(call) | rest);
}

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_HOT_THREAD_H_
