#include "recorder/watch_thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "recorder/anchor.h"
#include "recorder/flight/encode.h"
#include "recorder/stream.h"
#include "recorder/sys.h"
#include "recorder/watch.h"

namespace ringscope::recorder {

namespace {

void BecomeOrdinary() {
  prctl(PR_SET_NAME, "ringscope", 0, 0, 0);
  // The creator may be pinned to the core that feeds a GPU, or run with real-time priority.
  unsigned char all[1024];
  memset(all, 0xff, sizeof(all));
  syscall(SYS_sched_setaffinity, 0, sizeof(all), all);
  sched_param normal;
  memset(&normal, 0, sizeof(normal));
  syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &normal);
}

// Until the next heartbeat is due, or somebody asks for something. What streams is drained meanwhile.
void Rest(Runtime* runtime, Pace* pace, Streamer* streamer, uint32_t seen, uint64_t period_ns) {
  const uint64_t until = MonotonicNs() + period_ns;
  for (uint64_t left = period_ns;;) {
    const uint64_t sleep = streamer && streamer->PollNs() < left ? streamer->PollNs() : left;
    pace->BeforeSleep();
    FutexWait(&runtime->wake, seen, sleep);
    pace->AfterSleep(sleep);
    const uint64_t now = MonotonicNs();
    if (now >= until || !streamer || runtime->wake.load(std::memory_order_acquire) != seen) return;
    left = until - now;
    streamer->Drain();
  }
}

constexpr size_t kWatchBytes = (sizeof(Watch) + 4095) & ~size_t{4095};

void* Run(void* arg) {
  Runtime* runtime = static_cast<Runtime*>(arg);
  flight::FileHeader* header = runtime->image.header;
  BecomeOrdinary();
  Watch* watch = reinterpret_cast<Watch*>(runtime->scratch);
  watch->Init(runtime, runtime->scratch + kWatchBytes);
  if (runtime->file.directory[0]) {
    ReapFlightFiles(runtime->file.directory, runtime->identity, runtime->file.name);
  }
  Streamer* streamer = Streamer::Of(runtime);
  const uint64_t period_ns = uint64_t{header->heartbeat_period_ms} * 1000000;
  for (;;) {
    const uint32_t seen = runtime->wake.load(std::memory_order_acquire);
    const uint64_t asked = header->asked_reasons.exchange(0, std::memory_order_acquire);
    const Reading now = ReadClocks();
    StoreAnchor(&header->last_anchor, now, header->tick_ns_q32);
    KeepOwnerLock(&runtime->file);
    header->heartbeat.store(now.ticks, std::memory_order_relaxed);
    header->heartbeats.fetch_add(1, std::memory_order_relaxed);
    if (streamer) streamer->Round(now.ticks, asked);  // first: a trace of the end closes the matter
    watch->Round(now.ticks, asked);
    Rest(runtime, &watch->pace, streamer, seen, period_ns);
  }
  return nullptr;
}

}  // namespace

const size_t kThreadScratchBytes = kWatchBytes + flight::kEncodeScratchBytes;

uint32_t PeriodMs(uint64_t stall_ns) {
  const uint64_t eighth = stall_ns / 8 / 1000000;
  return static_cast<uint32_t>(eighth < 50 ? 50 : eighth > 500 ? 500 : eighth);
}

bool StartWatchThread(Runtime* runtime) {
  pthread_attr_t attr;
  if (pthread_attr_init(&attr) != 0) return false;
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attr, 256 << 10);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  runtime->thread_runs.store(1, std::memory_order_release);
  pthread_t thread;
  int rc = pthread_create(&thread, &attr, Run, runtime);
  // glibc takes static TLS out of the stack: a host with much of it needs the default size.
  if (rc == EINVAL) {
    pthread_attr_t plain;
    if (pthread_attr_init(&plain) == 0) {
      pthread_attr_setdetachstate(&plain, PTHREAD_CREATE_DETACHED);
      rc = pthread_create(&thread, &plain, Run, runtime);
      pthread_attr_destroy(&plain);
    }
  }
  if (rc != 0) runtime->thread_runs.store(0, std::memory_order_release);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attr);
  return rc == 0;
}

}  // namespace ringscope::recorder
