// Plays a job: when each call was made, enqueued, started and finished, and where everybody stands
// when nothing moves any more.
#ifndef RINGSCOPE_TESTS_PROPERTY_SIMULATE_H_
#define RINGSCOPE_TESTS_PROPERTY_SIMULATE_H_

#include <cstdint>
#include <vector>

#include "tests/property/world.h"

namespace ringscope::property {

// One operation of one rank. Times: kNever = did not happen.
struct OpRun {
  Call call;
  uint64_t position = 0;  // of its communicator and class
  uint64_t message = 0;   // p2p: n-th of its direction between the two
  int group = 0;          // number of the ncclGroup in this process
  bool grouped = false;
  int stream = 0;
  int step = 0;  // index in the program
  double entered = kNever, returned = kNever, enqueued = kNever, started = kNever,
         finished = kNever;
};

enum class HostState { kDone, kWaiting, kInCall, kStuck, kKilled, kFrozen, kExited };

struct RankRun {
  std::vector<OpRun> ops;  // in the order of the calls
  HostState host = HostState::kDone;
  double host_time = 0;  // when the host came to where it is
  int at_step = 0;
  double gone = kNever;  // killed or frozen
};

// A collective that some members are in for ever although all have started it, or would have.
struct Played {
  std::vector<RankRun> ranks;
  double last = 0;     // when the last thing moved
  bool hangs = false;  // some operation never finishes
  // Fault i did what it should (its operation came, and stands).
  std::vector<bool> bites;
};

Played Play(World* world);

}  // namespace ringscope::property

#endif  // RINGSCOPE_TESTS_PROPERTY_SIMULATE_H_
