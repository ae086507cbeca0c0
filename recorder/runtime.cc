#include "recorder/runtime.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "recorder/anchor.h"
#include "recorder/hot_thread.h"
#include "recorder/state.h"
#include "recorder/stream.h"
#include "recorder/sys.h"
#include "recorder/watch_thread.h"

namespace ringscope::recorder {

OwnerPage g_owner;
Runtime g_runtime;

namespace {

// State of Start(), also its futex word.
enum StartState : uint32_t { kNotStarted = 0, kWorking = 1, kOn = 2, kOff = 3 };
std::atomic<uint32_t> g_start{kNotStarted};

std::atomic<int32_t> g_owner_pid{0};    // process that began Start(); 0 none
std::atomic<uint32_t> g_page_wiped{0};  // the kernel zeroes g_owner in children
bool g_fork_handler_set = false;
std::atomic<uint32_t> g_plugin_seen{0};

enum class Whose { kNobodys, kOurs, kParents, kShared };
// To whom the state in this memory belongs. kShared: to another process that has the very same
// memory (vfork, CLONE_VM): nothing of it may be changed here.
Whose WhoseState() {
  const int32_t pid = g_owner_pid.load(std::memory_order_acquire);
  if (pid == 0) return Whose::kNobodys;
  // Not getpid(): up to glibc 2.24 it answers from a cache that a raw clone() does not renew.
  const bool same_pid = pid == static_cast<int32_t>(syscall(SYS_getpid));
  if (!g_page_wiped.load(std::memory_order_acquire)) {
    return same_pid ? Whose::kOurs : Whose::kParents;
  }
  if (g_owner.owned.load(std::memory_order_relaxed) != 1) return Whose::kParents;
  return same_pid ? Whose::kOurs : Whose::kShared;
}

// Makes this process, a child of one that records, one that does not: the parent's tables stay
// mapped (nothing of them may move under a late callback) but are not written again.
// Async-signal-safe, as fork handlers must be.
void ForgetParent() {
  g_owner.image.store(nullptr, std::memory_order_release);
  g_owner.owned.store(0, std::memory_order_relaxed);
  // The lock belongs to the parent alone; closing our copy of the descriptor does not touch it.
  CloseInherited(&g_runtime.file);
  g_runtime.thread_runs.store(0, std::memory_order_relaxed);
  if (g_start.load(std::memory_order_relaxed) == kOn) {
    g_runtime.forked.store(1, std::memory_order_relaxed);
  }
  g_page_wiped.store(0, std::memory_order_relaxed);
  g_owner_pid.store(0, std::memory_order_relaxed);
  g_plugin_seen.store(0, std::memory_order_relaxed);
  if (g_start.load(std::memory_order_relaxed) != kOff) {
    g_start.store(kNotStarted, std::memory_order_release);
  }
}

void InForkedChild() {
  KeepErrno keep;
  ForgetParent();
}

void* MapPrivate(size_t size, int extra) {
  void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | extra, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

void MarkOwner() {
  constexpr int kWipeOnFork = 18;  // MADV_WIPEONFORK, Linux 4.14; without it the pid must do
  g_owner.owned.store(1, std::memory_order_relaxed);
  // On larger pages the neighbours of g_owner would be zeroed with it.
  if (sysconf(_SC_PAGESIZE) == sizeof(OwnerPage) &&
      madvise(&g_owner, sizeof(g_owner), kWipeOnFork) == 0) {
    g_page_wiped.store(1, std::memory_order_release);
  }
}

// The rate of the tick is measured over at least this long; the anchors refine it later.
constexpr uint64_t kRateNs = 4000000;

bool DoStart() {
  Runtime* runtime = &g_runtime;
  ReadSettings(&runtime->settings, Say);
  SetTheSettings(runtime->settings);
  if (!runtime->settings.enabled) return false;
  g_clock = ChooseClock();
  const Reading first = ReadClocks();
  Identity identity;
  ReadIdentity(runtime->settings, &identity);
  if (!runtime->scratch) {
    runtime->scratch = static_cast<unsigned char*>(MapPrivate(kThreadScratchBytes, MAP_POPULATE));
  }
  if (!runtime->scratch) {
    Say("no memory: recording is off");
    return false;
  }
  if (!MakeFlightFile(runtime->settings, identity, &runtime->file)) return false;
  runtime->image = ImageAt(runtime->file.base);
  PrepareStream(runtime);

  flight::FileHeader* header = runtime->image.header;
  const uint64_t spent = MonotonicNs() - first.monotonic_ns;
  if (g_clock != flight::ClockKind::kMonotonicNs && spent < kRateNs) {
    const timespec rest = {0, static_cast<long>(kRateNs - spent)};
    nanosleep(&rest, nullptr);
  }
  const Reading second = ReadClocks();
  header->clock_kind = static_cast<uint32_t>(g_clock);
  header->tick_ns_q32 = MeasureTickRate(first, second);
  header->heartbeat_period_ms = PeriodMs(header->stall_ns);
  StoreAnchor(&header->first_anchor, second, header->tick_ns_q32);
  StoreAnchor(&header->last_anchor, second, header->tick_ns_q32);
  header->heartbeat.store(second.ticks, std::memory_order_relaxed);
  header->state.fetch_or(flight::kStateRecording, std::memory_order_relaxed);
  PublishImage(runtime->file.base);

  runtime->identity = identity;
  runtime->exit_done.store(0, std::memory_order_relaxed);
  if (!g_fork_handler_set) {
    g_fork_handler_set = pthread_atfork(nullptr, nullptr, InForkedChild) == 0;
  }
  if (runtime->forked.exchange(0, std::memory_order_relaxed)) {
    Count(&runtime->image, flight::Counter::kForked);
  }
  if (!StartWatchThread(runtime)) {
    runtime->image.stream = runtime->image.steps = nullptr;
    Say("no thread could be started: stalls will not be noticed and no traces written; the flight "
        "file is kept");
  }
  if (runtime->settings.verbose && runtime->file.directory[0]) {
    TextBuffer<1280> line;
    line.Add("recording in ").Add(runtime->file.directory).AddChar('/').Add(runtime->file.name);
    Say(line.c_str());
  }
  g_owner.image.store(&runtime->image, std::memory_order_release);
  return true;
}

}  // namespace

bool Start() {
  KeepErrno keep;
  const Whose whose = WhoseState();
  if (whose == Whose::kShared) return false;
  if (whose == Whose::kParents) ForgetParent();
  for (;;) {
    uint32_t seen = g_start.load(std::memory_order_acquire);
    if (seen == kOff) return false;
    if (seen == kOn) {
      // NCCL is back after its last communicator went: whatever was clean no longer is.
      g_runtime.image.header->state.fetch_and(
          ~static_cast<uint64_t>(flight::kStateClean | flight::kStateUnloaded),
          std::memory_order_relaxed);
      return true;
    }
    if (seen == kWorking) {
      FutexWait(&g_start, kWorking, 100000000);
      continue;
    }
    if (!g_start.compare_exchange_strong(seen, kWorking, std::memory_order_acq_rel)) continue;
    g_owner_pid.store(static_cast<int32_t>(syscall(SYS_getpid)), std::memory_order_release);
    MarkOwner();
    const bool on = DoStart();
    g_start.store(on ? kOn : kOff, std::memory_order_release);
    FutexWake(&g_start, 1000000);
    return on;
  }
}

void NoteNccl(Image* image, uint32_t nccl_version, uint32_t events) {
  if (nccl_version != 0) {
    image->header->nccl_version.store(nccl_version, std::memory_order_relaxed);
  }
  __atomic_store_n(&image->header->event_mask, events, __ATOMIC_RELAXED);
}

void NotePlugin() { g_plugin_seen.store(1, std::memory_order_relaxed); }
bool PluginSeen() { return g_plugin_seen.load(std::memory_order_relaxed) != 0; }

void AskSnapshot(flight::Reason reason) {
  Image* image = Current();
  if (!image) return;
  image->header->asked_reasons.fetch_or(uint64_t{1} << static_cast<uint32_t>(reason),
                                        std::memory_order_release);
  g_runtime.wake.fetch_add(1, std::memory_order_release);
  FutexWake(&g_runtime.wake, 1);
}

namespace {

// exit(), or the library is unloaded after all (-z nodelete forbids it): one last trace, written by
// our thread while this one waits a little. A process that dies by a signal or _exit() does not
// come here; its flight file speaks for it.
__attribute__((destructor)) void AtExit() {
  Image* image = Current();
  if (!image || WhoseState() != Whose::kOurs) return;
  KeepErrno keep;
  image->header->state.fetch_or(flight::kStateExiting, std::memory_order_relaxed);
  if (!g_runtime.thread_runs.load(std::memory_order_acquire)) return;
  AskSnapshot(flight::Reason::kExit);
  const uint64_t until = MonotonicNs() + 2000000000;
  while (g_runtime.exit_done.load(std::memory_order_acquire) == 0) {
    const uint64_t now = MonotonicNs();
    if (now >= until) break;
    FutexWait(&g_runtime.exit_done, 0, until - now);
  }
}

}  // namespace

}  // namespace ringscope::recorder
