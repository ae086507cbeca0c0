// How the ranks of the stalled communicator are joined, as far as logs and records tell. Nothing is assumed: where no plan tells
// the order, there is none.
#ifndef RINGSCOPE_ANALYZER_REPORT_HTML_RING_VIEW_H_
#define RINGSCOPE_ANALYZER_REPORT_HTML_RING_VIEW_H_

#include <string>
#include <utility>
#include <vector>

#include "analyzer/report/html/context.h"

namespace ringscope::report::html {

struct RingNode {
  int rank = -1;      // in the communicator
  int job_rank = -1;  // -1 unknown
  std::string host;   // empty: unknown
};

struct RingEdge {
  enum class Path { kUnknown, kP2p, kShm, kNet } path = Path::kUnknown;
  int from = -1, to = -1;  // ranks in the communicator
  std::string via;         // as NCCL logged it: "P2P/IPC"; empty: no log tells
  int channels = 0;        // that run so; 0 unknown
  std::string said;        // what the records say of its steps; empty: nothing open
  enum class Tone { kPlain, kOpen, kStarved, kSuspect, kBroken } tone = Tone::kPlain;
  int finding = -1;  // that accuses it
};

struct RingView {
  enum class Order { kUnknown, kRing, kTree } order = Order::kUnknown;
  std::string label;            // of the communicator; empty: there is none to draw
  std::vector<RingNode> nodes;  // kRing: in its order; else by rank
  std::vector<int> parent;      // kTree: index of the node above; -1 the root
  std::vector<RingEdge> edges;  // kRing, kTree: those of the plan; besides, all that something tells of
  int channel = -1;             // whose order this is
  int channels = 0;             // that the plan has; 0 unknown
  int orders = 0;               // how many different orders these have
  std::string source;           // where the order stands
  std::string operation;        // "all-reduce #30": the oldest that is open; empty: none
  std::vector<std::pair<std::string, std::vector<int>>> algorithms;  // of that operation, with the job ranks
  int NodeOf(int rank) const;                                        // index in nodes; -1
};

RingView RingOf(const Context& c);

}  // namespace ringscope::report::html

#endif  // RINGSCOPE_ANALYZER_REPORT_HTML_RING_VIEW_H_
