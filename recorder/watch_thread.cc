#include "recorder/watch_thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <initializer_list>

#include "recorder/anchor.h"
#include "recorder/flight/encode.h"
#include "recorder/messages.h"
#include "recorder/pace.h"
#include "recorder/siblings.h"
#include "recorder/snapshot.h"
#include "recorder/stall.h"
#include "recorder/stream.h"
#include "recorder/sys.h"

namespace ringscope::recorder {

namespace {

using flight::Load;
using flight::Reason;

// Everything that the thread needs, in the memory that Start() reserved.
struct Watch {
  Runtime* runtime;
  flight::FileHeader* header;
  StallWatch stalls;
  SnapshotWriter snapshots;
  Pace pace;
  uint64_t period_ticks, stall_ticks;
  uint64_t stall_due;      // ticks: when the trace of a noticed stall is written; 0 none waits
  uint32_t stalls_to_say;  // bit per slot of FileHeader::stalls
  uint64_t siblings_next;  // ticks: not looked at again before
  bool fallback_said;

  void Init(Runtime* r, unsigned char* encoder_memory);
  void Round(uint64_t now, uint64_t asked);
  void Handle(Reason reason, uint64_t now);
  void Finish(Reason reason, uint64_t now);
  void LookForFallback();
};

constexpr uint64_t Bit(Reason reason) { return uint64_t{1} << static_cast<uint32_t>(reason); }

void Watch::Init(Runtime* r, unsigned char* encoder_memory) {
  memset(static_cast<void*>(this), 0, sizeof(*this));
  runtime = r;
  header = r->image.header;
  period_ticks = NsToTicks(*header, uint64_t{header->heartbeat_period_ms} * 1000000);
  stall_ticks = NsToTicks(*header, header->stall_ns);
  stalls.Init(&r->image, stall_ticks, NsToTicks(*header, header->first_stall_ns), period_ticks);
  snapshots.Init(r, encoder_memory);
  pace.Init(header);
}

// The end of the process, or of its last communicator. Clean means that nothing was open and that
// the trace tells so: the bit is set before the trace is written, so that the trace has it, and
// taken back if the trace could not be written.
void Watch::Finish(Reason reason, uint64_t now) {
  const bool open = stalls.AnythingOpen();
  if (open) LookAtSiblings(runtime, now);
  if (!open) header->state.fetch_or(flight::kStateClean, std::memory_order_relaxed);
  const Written written = snapshots.Write(reason, now);
  const bool back = reason == Reason::kFinalize && !(Load(header->state) & flight::kStateUnloaded);
  if (written != Written::kYes || back) {
    header->state.fetch_and(~static_cast<uint64_t>(flight::kStateClean), std::memory_order_relaxed);
  } else if (reason == Reason::kExit && !open) {
    RemoveFlightFile(&runtime->file);
  }
}

void Watch::Handle(Reason reason, uint64_t now) {
  switch (reason) {
    case Reason::kFinalize:
    case Reason::kExit:
      Finish(reason, now);
      break;
    default:
      LookAtSiblings(runtime, now);
      (void)snapshots.Write(reason, now);
  }
  if (reason == Reason::kExit) {
    runtime->exit_done.store(1, std::memory_order_release);
    FutexWake(&runtime->exit_done, 1 << 20);
  }
}

// The callbacks mark such a communicator (flight::kCommFallbackNoted); saying it is a write to
// stderr, which is ours to do.
void Watch::LookForFallback() {
  for (uint32_t i = 0; i < runtime->image.comm_rows && !fallback_said; ++i) {
    const flight::CommRow& comm = runtime->image.comms[i];
    if (comm.stamp.load(std::memory_order_acquire) == 0) continue;  // its name may be read now
    if (!(Load(comm.flags) & flight::kCommFallbackNoted)) continue;
    SayFallback(*runtime, i);
    fallback_said = true;
  }
}

void Watch::Round(uint64_t now, uint64_t asked) {
  const StallRound round = stalls.Look(now, pace.frozen_until());
  if (!fallback_said) LookForFallback();
  if (round.noticed) {
    stalls_to_say |= round.noticed;
    // A few thousand ranks notice within a second: spread their traces over a twentieth of the
    // stall time, 3 s at most.
    uint64_t spread = stall_ticks / 20;
    const uint64_t most = NsToTicks(*header, 3000000000);
    if (spread > most) spread = most;
    if (stall_due == 0) stall_due = now + spread * (header->process_nonce & 1023) / 1024;
  }
  // Another process's end is worth knowing while it is fresh: long before the stall is one.
  uint64_t early = NsToTicks(*header, 1000000000);
  if (early > stall_ticks / 4) early = stall_ticks / 4;
  if (round.quiet_since && now - round.quiet_since > early && now >= siblings_next) {
    LookAtSiblings(runtime, now);
    uint64_t pause = stall_ticks / 8;
    const uint64_t most = NsToTicks(*header, 5000000000);
    siblings_next = now + (pause > most ? most : pause);
  }
  if (stall_due && now >= stall_due) {
    stall_due = 0;
    LookAtSiblings(runtime, now);
    const Written written = snapshots.Write(Reason::kStall, now);
    SayStall(*runtime, snapshots, written, stalls_to_say, now);
    stalls_to_say = 0;
  }
  if (round.recovered) {
    (void)snapshots.Write(Reason::kRecovered, now);
    for (uint32_t i = 0; i < flight::kStallFindings; ++i) {
      if (round.recovered >> i & 1) SayRecovered(*runtime, i);
    }
  }
  for (const Reason reason : {Reason::kRequest, Reason::kQuiet, Reason::kWake, Reason::kMarker,
                              Reason::kAbort, Reason::kFinalize, Reason::kExit}) {
    if (asked & Bit(reason)) Handle(reason, now);
  }
}

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
