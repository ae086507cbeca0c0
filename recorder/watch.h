// What our thread does in each round: looks for stalls and quiet, answers those who ask, writes
// traces when they are due, and says on stderr what has to be said.
#ifndef RINGSCOPE_RECORDER_WATCH_H_
#define RINGSCOPE_RECORDER_WATCH_H_

#include <stdint.h>

#include "recorder/marker.h"
#include "recorder/messages.h"
#include "recorder/pace.h"
#include "recorder/quiet.h"
#include "recorder/siblings.h"
#include "recorder/snapshot.h"
#include "recorder/stall.h"
#include "recorder/state.h"

namespace ringscope::recorder {

// Everything that the thread needs, in the memory that Start() reserved.
//
// An episode is one stop of the job as this process sees it. In each it writes one trace that shows
// its state: of its own stall, or else because a sibling (wake) or another node (marker) has one.
// It answers the others at most once in a stall time, and answering never makes it ask: two
// processes cannot keep each other writing.
struct Watch {
  void Init(Runtime* r, unsigned char* encoder_memory);
  // `asked`: bits of reasons, taken out of the header.
  void Round(uint64_t now, uint64_t asked);

  Runtime* runtime;
  flight::FileHeader* header;
  StallWatch stalls;
  QuietWatch quiet;
  SnapshotWriter snapshots;
  Marker marker;
  Pace pace;
  Speaker speaker;

 private:
  uint64_t Ticks(uint64_t ns) const { return NsToTicks(*header, ns); }
  void NoticeStalls(const StallRound& round, uint64_t now);
  void Answer(flight::Reason reason, uint64_t now);
  void WriteWhatIsDue(uint64_t now);
  void SpeakIfFirst(uint64_t now);
  void LookForFallback(uint64_t now);
  void Handle(flight::Reason reason, uint64_t now);
  void Finish(flight::Reason reason, uint64_t now);
  Written WriteTrace(flight::Reason reason, uint64_t now);

  // Ticks all of them; "due" is 0 when nothing waits.
  uint64_t period_ticks, stall_ticks;
  uint64_t spread_ticks;  // a few thousand ranks notice within a second: their traces are spread
  uint64_t share_ticks;   // over this time, and this is our part of it
  uint64_t stall_due, recovered_due, answer_due;
  uint64_t say_due;      // when all stalls of the node that belong to this one are noticed
  uint64_t answered_at;  // the newest trace of this episode: stall, wake or marker
  uint64_t written_at;   // the newest trace of any kind
  uint64_t siblings_next;
  uint64_t fallback_due;
  flight::Reason answer_reason;
  Written stall_written;
  uint32_t to_say;     // bit per slot of FileHeader::stalls: noticed, not spoken about
  uint32_t said;       // bit per slot: its stall was said, so its end is too
  bool fallback_over;  // said, here or by a sibling
};

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_WATCH_H_
