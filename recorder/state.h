// What the cold parts of the recorder share: Start(), our thread and the library's destructor.
// Callbacks never see it.
#ifndef RINGSCOPE_RECORDER_STATE_H_
#define RINGSCOPE_RECORDER_STATE_H_

#include <stdint.h>

#include <atomic>

#include "recorder/flight_file.h"
#include "recorder/identity.h"
#include "recorder/runtime.h"
#include "recorder/settings.h"

namespace ringscope::recorder {

struct Runtime {
  Image image;
  FlightFile file;
  Identity identity;
  Settings settings;
  unsigned char* scratch;             // kThreadScratchBytes of our thread, mapped by Start()
  unsigned char* stream_memory;       // of stream.cc; nullptr: RINGSCOPE_STREAM is off
  std::atomic<uint32_t> wake;         // futex: our thread sleeps on it; any change wakes it
  std::atomic<uint32_t> thread_runs;  // 1 while our thread serves this process
  std::atomic<uint32_t> exit_done;    // futex: 1 once the exit snapshot was handled
  std::atomic<uint32_t> forked;       // this process was forked from one that recorded
};

// One a process, zero-initialized, no constructor. In a forked child Start() fills it anew.
extern Runtime g_runtime;

inline uint64_t TicksToNs(const flight::FileHeader& header, uint64_t ticks) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(ticks) * header.tick_ns_q32 >> 32);
}
inline uint64_t NsToTicks(const flight::FileHeader& header, uint64_t ns) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(ns) << 32) / header.tick_ns_q32);
}

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_STATE_H_
