// How far the steps of one operation get over the connections of a ring, when some members do not
// run or something stands still. The rules are those of NCCL's ring primitives: a member sends
// slices of its own, then what it received a chunk ago; a connection has a few slots; the network
// takes a step when the receiver has given credit for it (or, with sockets, when its buffer has
// room).
#ifndef RINGSCOPE_TESTS_PROPERTY_RING_STEPS_H_
#define RINGSCOPE_TESTS_PROPERTY_RING_STEPS_H_

#include <cstddef>
#include <vector>

namespace ringscope::property {

inline constexpr int kEndless = 1 << 30;

struct StepMember {
  bool appended = false;     // its proxy knows of the operation
  bool running = false;      // its kernel runs
  int limit = kEndless;      // the kernel stops after so many primitives
  bool out_blocked = false;  // an older operation still fills its out-connection
};
// A connection from member i of the ring to the next.
struct StepLink {
  bool network = false;
  int wire = kEndless;    // steps that arrive
  int credit = kEndless;  // steps for which clear-to-send comes through
  int flush = kEndless;   // steps that get flushed into the receiver's GPU memory
};
struct StepCounts {
  int send_posted = 0, send_given = 0, send_done = 0;  // given: in SendWait or later
  int send_ready = 0;                                  // filled by the GPU
  int recv_posted = 0, recv_arrived = 0, recv_flushed = 0, recv_done = 0;
};
struct StepResult {
  std::vector<StepCounts> links;
  std::vector<int> progress;  // primitives of each member
  int steps = 0, primitives = 0;
  bool Complete(int member) const { return progress[static_cast<size_t>(member)] >= primitives; }
};

struct StepRules {
  int steps = 0;          // of each connection
  int slices = 2;         // slices a chunk
  int depth = 4;          // steps that fit into a connection's slots
  int socket_buffer = 0;  // steps that a socket takes before they arrive; 0: credits instead
};

StepResult PlayRing(const StepRules& rules, const std::vector<StepMember>& members,
                    const std::vector<StepLink>& links);

// One message: a sender, a receiver, no order among more.
StepCounts PlayMessage(const StepRules& rules, const StepMember& sender, const StepMember& receiver,
                       const StepLink& link);

}  // namespace ringscope::property

#endif  // RINGSCOPE_TESTS_PROPERTY_RING_STEPS_H_
