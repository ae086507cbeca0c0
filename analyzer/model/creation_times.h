// When communicators were made, on one clock, before there is a better one (clocks.h needs them joined). Internal to analyzer/model/.
#ifndef RINGSCOPE_ANALYZER_MODEL_CREATION_TIMES_H_
#define RINGSCOPE_ANALYZER_MODEL_CREATION_TIMES_H_

#include <cstdint>
#include <vector>

#include "analyzer/model/model.h"

namespace ringscope::model {

// Making a communicator is a thing that its members do together: they tell the profiler of it right after an exchange among all (apart
// by up to 0.23 s in recorded runs). Those that cannot be taken for another one (an id and size that no process has twice) tie the
// clocks of hosts together, the widest first.
struct CreationTime {
  bool tied = false;              // to the other clocks that are
  int64_t job_minus_monotonic_ns = 0;  // only differences between tied clocks mean anything; not tied: the record's anchor
  int64_t at_ns = 0;              // when, monotonic
};
// By process; those of one boot share a clock.
std::vector<CreationTime> CreationTimes(const Job& job);

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_CREATION_TIMES_H_
