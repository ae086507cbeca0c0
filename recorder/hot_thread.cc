#include "recorder/hot_thread.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "recorder/stream_door.h"

namespace ringscope::recorder {

__thread ThreadSlot t_slot __attribute__((tls_model("initial-exec"))) = {nullptr, nullptr};

namespace {

// A row whose thread ended without telling us (NCCL's short-lived helper threads) is free again.
// Only asked when the table is full: one system call a row, on a thread's first callback.
bool ThreadIsGone(const Image* image, uint64_t tid) {
  return syscall(SYS_tgkill, image->header->pid, static_cast<pid_t>(tid), 0) != 0 && errno == ESRCH;
}

flight::ThreadRow* Take(Image* image, flight::ThreadRow* row, uint64_t expected, uint64_t tid) {
  if (!row->tid.compare_exchange_strong(expected, tid, std::memory_order_relaxed)) return nullptr;
  Store(row->call, 0);
  Store(row->since, 0);
  Store(row->position, 0);
  Store(row->group_p2p, 0);
  Store(row->group_tail, 0);
  Store(row->host_call, 0);
  Store(row->last_error, 0);
  // A ring stays with the thread that took it: our thread frees it when that one has ended.
  if (image->stream != nullptr)
    image->stream->ring_of[row - image->threads].store(0, std::memory_order_relaxed);
  t_slot.row = row;
  t_slot.table = image->threads;
  return row;
}

}  // namespace

flight::ThreadRow* RegisterThread(Image* image) {
  const int saved = errno;
  const auto tid = static_cast<uint64_t>(syscall(SYS_gettid));
  flight::ThreadRow* mine = nullptr;
  for (uint32_t i = 0; i < flight::kThreadRows && mine == nullptr; ++i) {
    if (Load(image->threads[i].tid) == 0) mine = Take(image, &image->threads[i], 0, tid);
  }
  for (uint32_t i = 0; i < flight::kThreadRows && mine == nullptr; ++i) {
    const uint64_t owner = Load(image->threads[i].tid);
    if (owner != 0 && ThreadIsGone(image, owner))
      mine = Take(image, &image->threads[i], owner, tid);
  }
  if (mine == nullptr) {
    Count(image, flight::Counter::kThreadNoRow);
    t_slot.row = nullptr;  // asked once, not with each callback
    t_slot.table = image->threads;
  }
  errno = saved;
  return mine;
}

}  // namespace ringscope::recorder
