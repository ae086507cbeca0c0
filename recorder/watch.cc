#include "recorder/watch.h"

#include <string.h>

#include <initializer_list>

#include "recorder/flight/ask.h"
#include "recorder/sys.h"

namespace ringscope::recorder {

using flight::Load;
using flight::Reason;
using flight::ReasonBit;

namespace {

constexpr uint64_t kSecond = 1000000000;

uint64_t Least(uint64_t a, uint64_t b) { return a < b ? a : b; }

}  // namespace

void Watch::Init(Runtime* r, unsigned char* encoder_memory) {
  memset(static_cast<void*>(this), 0, sizeof(*this));
  runtime = r;
  header = r->image.header;
  period_ticks = Ticks(uint64_t{header->heartbeat_period_ms} * 1000000);
  stall_ticks = Ticks(header->stall_ns);
  spread_ticks = Least(stall_ticks / 20, Ticks(3 * kSecond));
  share_ticks = spread_ticks * (header->process_nonce & 1023) / 1024;
  stalls.Init(&r->image, stall_ticks, Ticks(header->first_stall_ns), period_ticks);
  quiet.Init(&r->image, stall_ticks, period_ticks, share_ticks);
  snapshots.Init(r, encoder_memory);
  marker.Init(r, stall_ticks, period_ticks);
  pace.Init(header);
}

Written Watch::WriteTrace(Reason reason, uint64_t now) {
  written_at = now;
  return snapshots.Write(reason, now);
}

// The end of the process, or of its last communicator. Clean means that nothing was open and that
// the trace tells so: the bit is set before the trace is written, so that the trace has it, and
// taken back if the trace could not be written.
void Watch::Finish(Reason reason, uint64_t now) {
  const bool open = stalls.AnythingOpen();
  if (open) LookAtSiblings(runtime, now);
  if (!open) header->state.fetch_or(flight::kStateClean, std::memory_order_relaxed);
  const Written written = WriteTrace(reason, now);
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
      (void)WriteTrace(reason, now);
  }
  if (reason == Reason::kExit) {
    runtime->exit_done.store(1, std::memory_order_release);
    FutexWake(&runtime->exit_done, 1 << 20);
  }
}

// The callbacks mark such a communicator (flight::kCommFallbackNoted); saying it is a write to
// stderr, which is ours to do. One process of the node says it: they wait in the order of their
// local ranks, each a period longer than the one before, and look who has spoken.
void Watch::LookForFallback(uint64_t now) {
  if (fallback_over || (fallback_due && now < fallback_due)) return;
  for (uint32_t i = 0; i < runtime->image.comm_rows; ++i) {
    const flight::CommRow& comm = runtime->image.comms[i];
    if (comm.stamp.load(std::memory_order_acquire) == 0) continue;  // its name may be read now
    if (!(Load(comm.flags) & flight::kCommFallbackNoted)) continue;
    if (!fallback_due) {
      const uint32_t before = runtime->identity.local_rank == kNoNumber
                                  ? runtime->identity.rank
                                  : runtime->identity.local_rank;
      fallback_due = now + 2 * period_ticks + (before & 15) * period_ticks;
      return;
    }
    if (!LookAtSiblings(runtime, now).fallback_said) {
      header->state.fetch_or(flight::kStateFallbackSaid, std::memory_order_relaxed);
      speaker.Fallback(*runtime, i);
    }
    fallback_over = true;
    return;
  }
}

void Watch::NoticeStalls(const StallRound& round, uint64_t now) {
  to_say |= round.noticed;
  if (stall_due == 0) stall_due = now + share_ticks;
  // Not before every process that waits for the same has noticed it too.
  if (say_due == 0) say_due = now + spread_ticks + 2 * period_ticks;
  // The culprit is outside NCCL perhaps and has no stall of its own: all of the node write, and
  // those of other nodes that look for the marker.
  const uint64_t bits = runtime->settings.traces ? ReasonBit(Reason::kWake) : 0;
  LookAtSiblings(runtime, now, bits);
  marker.Raise(now);
}

// Somebody else stalls. A trace of this episode that exists, or is about to be written, is the
// answer.
void Watch::Answer(Reason reason, uint64_t now) {
  if (answer_due || stall_due) return;
  if (answered_at && now - answered_at < stall_ticks) return;
  answer_reason = reason;
  // A moment later, so that a process that is about to notice its own stall writes one trace only.
  answer_due = now + period_ticks + share_ticks;
}

void Watch::WriteWhatIsDue(uint64_t now) {
  if (stall_due && now >= stall_due) {
    stall_due = answer_due = 0;
    answered_at = now;
    LookAtSiblings(runtime, now);
    stall_written = WriteTrace(Reason::kStall, now);
  }
  if (answer_due && !stall_due && now >= answer_due) {
    answer_due = 0;
    answered_at = now;
    LookAtSiblings(runtime, now);
    (void)WriteTrace(answer_reason, now);
  }
  if (recovered_due && now >= recovered_due) {
    recovered_due = 0;
    (void)WriteTrace(Reason::kRecovered, now);
  }
}

void Watch::SpeakIfFirst(uint64_t now) {
  if (!say_due || now < say_due || stall_due) return;
  say_due = 0;
  uint32_t last = 0;  // a stall that ended while its trace waited for its turn is no alarm
  for (uint32_t i = 0; i < flight::kStallFindings; ++i) {
    if ((to_say >> i & 1) && Load(header->stalls[i].resolved) == 0) last |= 1u << i;
  }
  to_say = 0;
  if (last == 0 || LookAtSiblings(runtime, now).stalled_before) return;
  said |= last;
  speaker.Stall(*runtime, snapshots, stall_written, last, now);
}

void Watch::Round(uint64_t now, uint64_t asked) {
  const StallRound round = stalls.Look(now, pace.frozen_until());
  LookForFallback(now);
  if (round.noticed) {
    said &= ~round.noticed;
    NoticeStalls(round, now);
  }
  // Another process's end is worth knowing while it is fresh: long before the stall is one.
  const uint64_t early = Least(Ticks(kSecond), stall_ticks / 4);
  if (round.quiet_since && now - round.quiet_since > early && now >= siblings_next) {
    LookAtSiblings(runtime, now);
    siblings_next = now + Least(stall_ticks / 8, Ticks(5 * kSecond));
  }
  if (asked & ReasonBit(Reason::kWake)) Answer(Reason::kWake, now);
  if (marker.Poll(now)) Answer(Reason::kMarker, now);
  WriteWhatIsDue(now);
  SpeakIfFirst(now);
  if (round.recovered) {
    // The trace of another stall tells that this one is over.
    if (!stall_due) recovered_due = now + share_ticks;
    for (uint32_t i = 0; i < flight::kStallFindings; ++i) {
      if (round.recovered & said & 1u << i) speaker.Recovered(*runtime, i);
    }
    said &= ~round.recovered;
  }
  // Nothing has happened since a trace that was written later: it shows the same.
  if (quiet.Look(now, pace.frozen_until(), round.quiet_since != 0) &&
      written_at < quiet.last_activity() && !(Load(header->state) & flight::kStateUnloaded)) {
    LookAtSiblings(runtime, now);
    (void)WriteTrace(Reason::kQuiet, now);
  }
  for (const Reason reason : {Reason::kRequest, Reason::kAbort, Reason::kFinalize, Reason::kExit}) {
    if (asked & ReasonBit(reason)) Handle(reason, now);
  }
}

}  // namespace ringscope::recorder
