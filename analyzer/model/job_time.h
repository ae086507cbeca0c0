// Times of different processes compared, with what their clocks may be wrong by (clocks.h).
//
// Nothing is earlier than something of another host unless the difference exceeds both errors. Times of one clock compare exactly.
#ifndef RINGSCOPE_ANALYZER_MODEL_JOB_TIME_H_
#define RINGSCOPE_ANALYZER_MODEL_JOB_TIME_H_

#include <cstdint>

#include "analyzer/model/model.h"

namespace ringscope::model {

struct JobTime {
  int64_t ns = 0;        // the job's time: the wall clock of most hosts; 0 did not happen
  int64_t error_ns = 0;  // the truth lies within this
  int clock = -1;        // names the clock
  bool assumed = false;  // the error is no bound, but what wall clocks may be off
  bool known() const { return ns != 0; }
};
// `monotonic_ns` 0 gives an unknown time.
JobTime ToJobTime(const Process& process, int64_t monotonic_ns);
// The newest sign of life.
JobTime LastSignOf(const Process& process);

// What the difference b - a may be wrong by; 0 within one clock.
int64_t ErrorBetween(const JobTime& a, const JobTime& b);
// b is after a by this at least (at most), whatever the clocks. Negative: it may be (is) before it.
int64_t AfterAtLeast(const JobTime& a, const JobTime& b);
int64_t AfterAtMost(const JobTime& a, const JobTime& b);

enum class Order { kBefore, kAfter, kCannotTell };
// Of a against b. Unknown times cannot be told, nor can equal ones.
Order OrderOf(const JobTime& a, const JobTime& b);

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_JOB_TIME_H_
