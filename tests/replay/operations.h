// Which operations a captured process entered and which of them it finished, as far as callbacks
// can tell. Only used to know how long a replay must wait and what "the hung operation" is: no
// judgement about who is at fault.
#ifndef RINGSCOPE_TESTS_REPLAY_OPERATIONS_H_
#define RINGSCOPE_TESTS_REPLAY_OPERATIONS_H_

#include <cstdint>
#include <vector>

#include "tests/replay/capture.h"

namespace ringscope::replay {

struct Operation {
  int32_t context = kNone;
  uint64_t comm_id = 0;
  bool point_to_point = false;
  int index =
      0;  // from 0: among the collectives, or the point-to-point calls, of this rank's communicator
  uint64_t entered_t = 0;  // first callback of the call
  bool finished = false;
};

// In order of entry. Callbacks later than `until` are taken as not made (0: all count).
std::vector<Operation> OperationsOf(const Process& process, uint64_t until);

// True when an unfinished operation belongs to a communicator in which no kernel was seen to end: a
// recorder then waits longer before it calls that a stall.
bool NothingEverCompleted(const Process& process, uint64_t until);

// When some rank first entered the operation that the job hangs in: of the operations that some
// rank entered and did not finish, the one entered first. In a job that finished everything: the
// last operation entered. 0 without operations.
uint64_t HungOperationEntered(const Capture& capture, uint64_t until);

}  // namespace ringscope::replay

#endif  // RINGSCOPE_TESTS_REPLAY_OPERATIONS_H_
