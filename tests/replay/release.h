// What NCCL of a release delivers under a mask and after a NULL handle (docs/nccl.md).
#ifndef RINGSCOPE_TESTS_REPLAY_RELEASE_H_
#define RINGSCOPE_TESTS_REPLAY_RELEASE_H_

#include "tests/replay/event.h"

namespace ringscope::replay {

// Mask bits any of which makes NCCL start events of this type. Bits are implied upwards: the
// ancestors of a wanted event are started although their own bits are off.
uint32_t StartedBy(Release release, uint32_t type);

inline bool Starts(Release release, int mask, uint32_t type) {
  return (static_cast<uint32_t>(mask) & StartedBy(release, type)) != 0;
}

// A NULL Group handle suppresses the Coll and P2p starts of that plan.
inline bool NullGroupSilencesOperations(Release release) { return release <= 227; }

// A NULL ProxyOp handle suppresses the starts of its steps; from 2.28 steps start, but record no
// states.
inline bool NullProxyOpSilencesSteps(Release release) { return release <= 227; }

// The last word of a failed init: from 2.28 events come with a NULL context, before that the table
// is dropped.
inline bool FailedInitDropsTable(Release release) { return release <= 227; }

}  // namespace ringscope::replay

#endif  // RINGSCOPE_TESTS_REPLAY_RELEASE_H_
