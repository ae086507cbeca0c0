// Our one thread: heartbeat, stall detection, siblings, snapshots. It reads procfs and the tables,
// writes the header, the sibling table and traces; it never calls NCCL, CUDA or NVML, never forks,
// takes no signal, allocates nothing.
#ifndef RINGSCOPE_RECORDER_WATCH_THREAD_H_
#define RINGSCOPE_RECORDER_WATCH_THREAD_H_

#include <stddef.h>
#include <stdint.h>

#include "recorder/state.h"

namespace ringscope::recorder {

// Memory that the thread needs, reserved before it starts.
extern const size_t kThreadScratchBytes;

// Period of the thread's rounds: an eighth of the stall time, within 50 to 500 ms.
uint32_t PeriodMs(uint64_t stall_ns);

// Starts it with all signals blocked. False if the system gives no thread; the caller says so,
// recording goes on.
bool StartWatchThread(Runtime* runtime);

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_WATCH_THREAD_H_
