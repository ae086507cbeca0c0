// Who of several `ringscope run` on one machine asks the machine: one for each rank are started as often as one for each node.
#ifndef RINGSCOPE_SUPERVISOR_TURN_H_
#define RINGSCOPE_SUPERVISOR_TURN_H_

#include <string>

namespace ringscope::supervisor {

// Takes the turn `what` ("start", "stall") of the evidence that goes to `directory`, for as long as this process lives or until
// the descriptor is closed. Returns a descriptor, or -1 when another process on this machine (of this network namespace) has it.
// Where it cannot be told, everybody has the turn: evidence twice is better than none; then -2.
int TakeTurn(const std::string& directory, const std::string& what);

}  // namespace ringscope::supervisor

#endif  // RINGSCOPE_SUPERVISOR_TURN_H_
