// PXN: a proxy operation that runs in the process of another rank arrives there with pointers of
// its owner's address space.
#ifndef RINGSCOPE_TESTS_REPLAY_FOREIGN_H_
#define RINGSCOPE_TESTS_REPLAY_FOREIGN_H_

#include "tests/replay/capture.h"

namespace ringscope::replay {

// Sets owner_process, owner_slot and owner_context of every foreign ProxyOp, and of its steps, as
// far as they can be found.
//
// The recording holds the pointers but not what they pointed to. They are mapped by order: the
// foreign operations of one (rank, channel, peer, direction) are, in order, the operations of that
// rank that use the channel and have no proxy operation of their own for that peer and direction.
// Where the owner has more candidates than there are foreign operations (some of its operations did
// not use that edge at all), the pairing in order with the least total delay is taken: a proxy
// operation starts soon after its parent, never before.
void MapForeign(Capture& capture);

}  // namespace ringscope::replay

#endif  // RINGSCOPE_TESTS_REPLAY_FOREIGN_H_
