// Where a running operation stands still: what the two ends of each edge say and where "data backs
// up" turns into "data is wanted" (docs/localisation.md, Edge table and Pivot rule). Pure: knows
// nothing of records and jobs.
#ifndef RINGSCOPE_ANALYZER_REASONING_PIVOT_H_
#define RINGSCOPE_ANALYZER_REASONING_PIVOT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "proto/trace.pb.h"

namespace ringscope::reasoning {

// One end of an edge with regard to one operation.
struct EdgeEnd {
  enum Phase {
    kUnseen,    // no record of this end: nothing is known
    kNotBegun,  // recorded, and the operation has not come here
    kOpen,      // the operation's steps run
    kOver,      // recorded, and all steps of the operation are done here
  };
  Phase phase = kUnseen;
  trace::StepState state =
      trace::STEP_FREE;  // of the step that tells (StepThatTells), valid when open
  bool counted = false;  // the four numbers below are known
  uint32_t posted = 0;
  uint32_t moved = 0;  // handed to (sender) or arrived from (receiver) the network
  uint32_t done = 0;
  uint32_t total = 0;
  int driver =
      -1;  // rank whose process drives this end (another than the owner with PXN); -1 unknown
  uint32_t row = 0;  // edge row in the driver's record
};

// A directed connection on one channel, seen at one operation. Ranks are whatever numbers the
// caller uses.
struct EdgeView {
  int comm = -1;
  uint64_t send_position =
      0;  // position of the operation as the sender numbers it; for collectives both are equal
  uint64_t recv_position = 0;
  int from = -1;
  int to = -1;
  int channel = 0;
  bool in_step = false;  // both ends are at the same message of the connection (send and receive)
  bool peer_wait_visible = true;  // SendPeerWait exists in this release (profiler API 4 and newer)
  EdgeEnd send = {};
  EdgeEnd recv = {};
};

enum class EdgeVerdict {
  kSilent,    // says nothing (an end is unseen, not begun, or the states do not combine)
  kStarved,   // the receiver waits for data that the sender's GPU has not produced
  kBackedUp,  // the receiver's GPU does not take what arrived, or the receiver is late
  kWire,  // data was handed to the network and has not arrived although the receiver waits for it
  kControl,  // the receiver has posted, its clear-to-send does not reach the sender
  kFlush,    // data arrived and is not flushed to the receiver's GPU memory
  kUnequal,  // the two ends have different numbers of steps: they do not run the same operation
};
EdgeVerdict Judge(const EdgeView& edge);

// The state that tells of an edge: that of the oldest open step. Before API 4 receive steps that
// were consumed together are never stopped (NCCL < 2.27) and stay in RecvGPUWait for ever, so there
// only the newest step counts.
trace::StepState StepThatTells(const trace::Edge& edge, uint32_t profiler_api);

enum class Pattern { kOther, kRing, kTree };

struct Suspect {
  enum Kind {
    kWire,
    kControl,
    kFlush,    // `from` -> `to` is the data edge
    kGpu,      // `rank`
    kUnit,     // several ranks that see each other's data without steps; `unit` is their host
    kUnequal,  // arguments or plan differ on `from` -> `to`
  };
  Kind kind = kWire;
  int from = -1;
  int to = -1;
  int rank = -1;
  std::string unit = {};
  std::vector<int> edges = {};  // indices of the views that say so, each channel once
  bool weak = false;            // follows from less than a complete pattern
};

struct PivotQuery {
  std::vector<EdgeView> edges;  // of one operation
  Pattern pattern = Pattern::kOther;
  bool chain = false;  // data starts at one rank, which receives nothing (broadcast, reduce)
  // Host of a rank; ranks of one host may exchange data without steps. Empty: not known.
  std::function<std::string(int)> host;
  // Ranks of the operation, and whether all of them have a record with a known host (else a host's
  // unit is not closed).
  std::vector<int> ranks;
  bool hosts_complete = true;
};
// Indices in Suspect::edges refer to query.edges. Empty: the edges do not say.
std::vector<Suspect> FindSuspects(const PivotQuery& query);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_PIVOT_H_
