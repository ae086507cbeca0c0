// The witness: while something is stuck here, our thread looks at the flight files of the other
// processes of its job on this host. A killed process leaves a free lock, a stopped one a held lock
// and an old heartbeat; what the survivors saw is in their records even if the dead one's file is
// lost.
#ifndef RINGSCOPE_RECORDER_SIBLINGS_H_
#define RINGSCOPE_RECORDER_SIBLINGS_H_

#include <stdint.h>

#include "recorder/state.h"

namespace ringscope::recorder {

// Looks once at every sibling and updates the table. Opens, reads and closes one file a sibling;
// waits for nothing. `now`: ticks. Does nothing for an image in private memory.
void LookAtSiblings(Runtime* runtime, uint64_t now);

// A heartbeat older than this many periods (and than a second) is old.
inline constexpr uint64_t kOldHeartbeatPeriods = 4;

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_SIBLINGS_H_
