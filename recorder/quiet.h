// Finds the process that does nothing: it had operations, waits for none, and no callback has come
// for the stall time. That is no fault (a data loader, an evaluation), but when the others hang it
// is the rank they wait for, and it has no stall of its own that would make it write.
#ifndef RINGSCOPE_RECORDER_QUIET_H_
#define RINGSCOPE_RECORDER_QUIET_H_

#include <stdint.h>

#include "recorder/runtime.h"

namespace ringscope::recorder {

class QuietWatch {
 public:
  // `share_ticks`: this process's part of the spread over which a job's processes write.
  void Init(const Image* image, uint64_t stall_ticks, uint64_t period_ticks, uint64_t share_ticks);

  // True once in a quiet period: when it has lasted for the stall time. `not_before`: end of the
  // last time that this process itself stood still. `waits`: an operation is open that could be a
  // stall; then stall.h decides. Progress is what operations and connections show, not that some
  // callback came: NCCL 2.24 and 2.26 report every turn of their progress loop, also in a hang.
  bool Look(uint64_t now, uint64_t not_before, bool waits);

  // Newest progress of which Look knows.
  uint64_t last_activity() const { return last_activity_; }

 private:
  uint64_t Sum(bool* any) const;
  uint64_t NewestEdge() const;

  const Image* image_;
  uint64_t stall_ticks_, pause_ticks_, share_ticks_;
  uint64_t next_;  // not looked at before
  uint64_t sum_;   // over all that the callbacks count
  uint64_t last_activity_;
  uint64_t reported_;  // last_activity_ of the period that was reported
};

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_QUIET_H_
