#include "recorder/watch_thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "recorder/anchor.h"
#include "recorder/sys.h"

namespace ringscope::recorder {

const size_t kThreadScratchBytes = 4096;

uint32_t PeriodMs(uint64_t stall_ns) {
  const uint64_t eighth = stall_ns / 8 / 1000000;
  return static_cast<uint32_t>(eighth < 50 ? 50 : eighth > 500 ? 500 : eighth);
}

namespace {

void* Run(void* arg) {
  Runtime* runtime = static_cast<Runtime*>(arg);
  flight::FileHeader* header = runtime->image.header;
  for (;;) {
    const uint32_t seen = runtime->wake.load(std::memory_order_acquire);
    const uint64_t asked = header->asked_reasons.exchange(0, std::memory_order_acquire);
    const Reading now = ReadClocks();
    StoreAnchor(&header->last_anchor, now, header->tick_ns_q32);
    header->heartbeat.store(now.ticks, std::memory_order_relaxed);
    header->heartbeats.fetch_add(1, std::memory_order_relaxed);
    if (asked & uint64_t{1} << static_cast<uint32_t>(flight::Reason::kExit)) {
      runtime->exit_done.store(1, std::memory_order_release);
      FutexWake(&runtime->exit_done, 1000000);
    }
    FutexWait(&runtime->wake, seen, uint64_t{header->heartbeat_period_ms} * 1000000);
  }
  return nullptr;
}

}  // namespace

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
