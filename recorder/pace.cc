#include "recorder/pace.h"

#include <string.h>

#include "recorder/clock.h"
#include "recorder/flight/rows.h"
#include "recorder/flight/text.h"
#include "recorder/sys.h"

namespace ringscope::recorder {
namespace {

using flight::Load;

// Second number of schedstat: ns spent waiting on a run queue. False where the kernel does not
// count.
bool RunDelay(uint64_t* ns) {
  char text[96];
  if (ReadSmallFile("/proc/thread-self/schedstat", text, sizeof(text)) <= 0) return false;
  uint64_t on_cpu;
  const char* p = ParseUint(text, &on_cpu);
  return p && *p == ' ' && ParseUint(p + 1, ns) && on_cpu != 0;
}

void Raise(flight::Word& word, uint64_t v) {
  if (v > Load(word)) word.store(v, std::memory_order_relaxed);
}

}  // namespace

void Pace::Init(flight::FileHeader* header) {
  memset(static_cast<void*>(this), 0, sizeof(*this));
  header_ = header;
}

void Pace::BeforeSleep() {
  waited_known_ = RunDelay(&waited_ns_);
  slept_at_ticks_ = Ticks();
  slept_at_ns_ = MonotonicNs();
}

void Pace::AfterSleep(uint64_t asked_ns) {
  const uint64_t gap = MonotonicNs() - slept_at_ns_;
  if (gap < asked_ns + kGapNs) return;
  uint64_t waited = 0;
  if (!waited_known_ || !RunDelay(&waited)) return;  // cannot be told apart: claim nothing
  waited -= waited_ns_;
  const uint64_t over = gap - asked_ns;
  Raise(header_->starve_ns, waited);
  if (waited > over / 2) return;
  frozen_until_ = Ticks();
  header_->freeze_count.fetch_add(1, std::memory_order_relaxed);
  if (gap > Load(header_->freeze_ns)) {
    header_->freeze_begin.store(slept_at_ticks_, std::memory_order_relaxed);
    header_->freeze_ns.store(gap, std::memory_order_relaxed);
  }
}

}  // namespace ringscope::recorder
