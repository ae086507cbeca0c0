// What the recorder's tables must say after a number of callbacks, worked out in the plainest way
// from the captured events: maps and objects, no rows, lanes, generations or handles. Written from
// docs/recorder.md and recorder/flight/format.h, not from the recorder's code.
#ifndef RINGSCOPE_TESTS_INTEGRATION_KILL_MODEL_H_
#define RINGSCOPE_TESTS_INTEGRATION_KILL_MODEL_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/integration/kill_facts.h"
#include "tests/replay/capture.h"

namespace ringscope::integration {

// One process. Not for captures with operations of other processes (PXN), with more operations of a
// communicator than a ring has rows, with more than 8 point-to-point calls in a group, or with
// captured graphs.
class Model {
 public:
  Model(const replay::Process& process, int api) : process_(process), api_(api) {}
  void Apply(const replay::Event& event);
  Facts ToFacts() const;

 private:
  struct Op {
    uint64_t comm = 0, position = 0;
    bool p2p = false;
    std::map<std::string, uint64_t> fields;
    uint64_t& operator[](const char* field) { return fields[field]; }
  };
  struct Edge {
    int current = replay::kNone;       // slot of the proxy operation whose steps run
    std::map<int, uint64_t> ordinals;  // slot of each proxy operation: n-th of this edge, from 1
    std::map<std::string, uint64_t> fields;
    uint64_t reached[4] = {};  // steps of `current` that reached each wait state, and the stop
    uint64_t& operator[](const char* field) { return fields[field]; }
  };
  struct Thread {
    uint64_t call = 0, position = 0, before_launch = 0;
  };

  void Start(const replay::Event& event);
  void State(const replay::Event& event);
  void Stop(const replay::Event& event);

  Op& Open(const replay::Event& event, bool p2p);
  void Launch(const replay::Event& event);
  void KernelStart(const replay::Event& event);
  void KernelStop(const replay::Event& event);
  void ProxyOpStart(const replay::Event& event);
  void ProxyOpStop(const replay::Event& event);
  void Begin(Edge& edge, int proxy_op);
  void Reach(const replay::Event& event, int state);
  Thread& ThreadOf(const replay::Event& event);

  const replay::Process& process_;
  const int api_;
  std::map<std::string, Facts> comms_;  // counters by communicator's name
  std::vector<Op> ops_;
  std::map<int, size_t> op_of_slot_;  // API, launch and kernel events: whose they are
  std::map<std::string, Edge> edges_;
  std::map<int, std::string> edge_of_slot_;          // proxy operations
  std::map<int, std::pair<int, int>> step_of_slot_;  // steps: proxy operation's slot, number
  std::map<std::string, Facts> messages_;
  std::map<uint32_t, size_t> thread_of_tid_;
  std::vector<Thread> threads_;
};

}  // namespace ringscope::integration

#endif  // RINGSCOPE_TESTS_INTEGRATION_KILL_MODEL_H_
