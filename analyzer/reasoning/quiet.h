// Whether an unfinished operation stands still, as opposed to being caught in mid-flight by the
// snapshot.
#ifndef RINGSCOPE_ANALYZER_REASONING_QUIET_H_
#define RINGSCOPE_ANALYZER_REASONING_QUIET_H_

#include <cstdint>

#include "analyzer/model/model.h"

namespace ringscope::reasoning {

// Newest sign of life in the member's record, its own monotonic clock; 0 unknown.
int64_t LastSign(const model::Process& process);

// True when the open operation of this member had no progress for at least the record's stall time
// before its last sign of life, or a stall that lasts was recorded for the communicator, or the
// communicator was aborted with it open.
bool Stuck(const model::Job& job, const model::Communicator& communicator,
           const model::Member& member, const model::Op& op);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_QUIET_H_
