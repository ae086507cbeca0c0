// The witness: while something is stuck here, our thread looks at the flight files of the other
// processes of its job on this host. A killed process leaves a free lock, a stopped one a held lock
// and an old heartbeat; what the survivors saw is in their records even if the dead one's file is
// lost.
#ifndef RINGSCOPE_RECORDER_SIBLINGS_H_
#define RINGSCOPE_RECORDER_SIBLINGS_H_

#include <stdint.h>

#include "recorder/state.h"

namespace ringscope::recorder {

// What one look told about the node, besides the rows of the table.
struct NodeView {
  bool stalled_before;  // a living process that comes before this one has an operation that stalls
  bool fallback_said;   // some process of the job said already that data goes through the network
};

// Looks once at every sibling and updates the table. Opens, reads and closes one file a sibling;
// waits for nothing. `now`: ticks. `ask`: bits of reasons (flight::ReasonBit) that each living
// sibling of the same user is asked for. Does nothing for an image in private memory.
NodeView LookAtSiblings(Runtime* runtime, uint64_t now, uint64_t ask = 0);

// Order of the processes of a node: by local rank (containers may all have the same) and rank, else
// by rank, else by pid. The first that is concerned speaks for all.
uint64_t NodeOrder(uint32_t local_rank, uint32_t rank, int32_t pid);

// A heartbeat older than this many periods (and than a second) is old.
inline constexpr uint64_t kOldHeartbeatPeriods = 4;
inline constexpr uint64_t kStarvedNs = 250000000;  // shorter waits for a processor are everyday
inline constexpr uint64_t kStarvedFactor = 4;

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_RECORDER_SIBLINGS_H_
