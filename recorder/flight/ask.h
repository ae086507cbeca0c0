// Asking the thread of another process of the same user for a snapshot: its header page is mapped,
// a bit is set in FileHeader::asked_reasons, and its thread finds it with its next heartbeat.
#ifndef RINGSCOPE_RECORDER_FLIGHT_ASK_H_
#define RINGSCOPE_RECORDER_FLIGHT_ASK_H_

#include <string.h>
#include <sys/mman.h>

#include "recorder/flight/format.h"

namespace ringscope::flight {

constexpr uint64_t ReasonBit(Reason reason) { return uint64_t{1} << static_cast<uint32_t>(reason); }

// `fd`: a flight file open for reading and writing. `woken_by` (0: leave what is there) is
// FileHeader::woken_by. False when it is no flight file of this version and user, or cannot be
// mapped; nothing is written then. Nothing that the page says is followed.
// REQUIRES: a regular file of at least a page (a shorter one would raise SIGBUS).
inline bool AskOwner(int fd, uint32_t uid, uint64_t reasons, uint64_t woken_by) {
  constexpr size_t kPage = 4096;
  void* page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) return false;
  auto* header = static_cast<FileHeader*>(page);
  const bool ours = memcmp(header->magic, kMagic, sizeof(kMagic)) == 0 &&
                    header->version == kVersion && header->byte_order == kByteOrder &&
                    header->uid == uid;
  if (ours) {
    if (woken_by) header->woken_by.store(woken_by, std::memory_order_relaxed);
    header->asked_reasons.fetch_or(reasons, std::memory_order_release);
  }
  munmap(page, kPage);
  return ours;
}

}  // namespace ringscope::flight

#endif  // RINGSCOPE_RECORDER_FLIGHT_ASK_H_
