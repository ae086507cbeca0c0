// The recorder as the callback code sees it: where the tables are, how they come into being, how our thread is woken.
#ifndef RINGSCOPE_RECORDER_RUNTIME_H_
#define RINGSCOPE_RECORDER_RUNTIME_H_

#include <stdint.h>

#include <atomic>

#include "recorder/flight/format.h"

namespace ringscope::recorder {

struct StreamDoor;

// The tables of this process. Fixed for the life of the process once published; never unmapped (late callbacks).
struct Image {
  flight::FileHeader* header;
  flight::Word* counters;
  flight::SiblingRow* siblings;
  flight::ThreadRow* threads;
  flight::CommRow* comms;
  flight::OpRow* ops;
  flight::EdgeRow* edges;
  flight::HostRow* host;
  uint32_t nonce;      // header->process_nonce
  uint32_t comm_rows;  // of the three tables; powers of two
  uint32_t op_rows;
  uint32_t edge_mask;  // rows - 1
  StreamDoor* stream;  // RINGSCOPE_STREAM=ops, steps; else nullptr (stream_door.h)
  StreamDoor* steps;   // RINGSCOPE_STREAM=steps; else nullptr
};

// What a child process must not find: a page by itself, which the kernel zeroes in every child that gets a copy of this
// memory, however it was made (fork handlers do not run for a raw clone()). So no child writes into its parent's tables.
// Where the kernel cannot (before Linux 4.14, or with pages of another size), the fork handler clears it.
struct alignas(4096) OwnerPage {
  std::atomic<Image*> image;    // nullptr until Start() has succeeded, when recording is off, and in a child
  std::atomic<uint64_t> owned;  // 1 in the process that began Start()
};
extern OwnerPage g_owner;  // set in runtime.cc
inline Image* Current() { return g_owner.image.load(std::memory_order_acquire); }

// Makes the flight file and our thread; called from a profiler's init (never a hot path). Idempotent; safe from several
// threads at once: one does the work, the others wait for it. Returns false when RINGSCOPE=0 or nothing could be mapped;
// the caller then asks NCCL for no events. Never fails louder than one line on stderr. errno is preserved.
bool Start();

// Says in the record which NCCL called (its number, 0 unknown) and which events were asked of it; of
// the newest communicator.
void NoteNccl(Image* image, uint32_t nccl_version, uint32_t events);

// A profiler plugin's init was called in this process: its events are the record of operations, and the preloaded library tells of
// none.
void NotePlugin();
bool PluginSeen();

// Asks our thread for a snapshot. Sets a bit and wakes it: no lock, no allocation, one futex system call at most.
// Callable from any thread; does nothing without a recorder.
void AskSnapshot(flight::Reason reason);

inline void Count(Image* image, flight::Counter which) {
  auto& word = image->counters[static_cast<uint32_t>(which)];
  word.store(word.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_RUNTIME_H_
