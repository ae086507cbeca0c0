// The wait-for graph: who waits for whom, and where the waiting ends (docs/localisation.md,
// Wait-for graph).
//
// Pure: works on the small description below, knows nothing of records and jobs. Linear in the size
// of the description (a communicator of 16,384 ranks that wait for one is 16,384 edges, not the
// square): what many ranks wait for together is one node in between.
//
// Cursors (docs/localisation.md: A entered, Q enqueued, S started, F finished) are given per
// operation as a stage that is at least and at most reached, so that "not seen" is never read as
// "did not happen".
#ifndef RINGSCOPE_ANALYZER_REASONING_WAIT_GRAPH_H_
#define RINGSCOPE_ANALYZER_REASONING_WAIT_GRAPH_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/reasoning/pivot.h"

namespace ringscope::reasoning::graph {

enum class Stage : uint8_t { kNotEntered, kEntered, kEnqueued, kStarted, kFinished };

// How far an operation got on one rank, both ends included; equal ends: known.
struct Progress {
  Stage at_least = Stage::kNotEntered;
  Stage at_most = Stage::kFinished;
  bool Reached(Stage s) const { return at_least >= s; }
  bool Before(Stage s) const { return at_most < s; }  // certainly not there yet
};

enum class Host : uint8_t {
  kSync,      // waits for the GPU, or nothing better is known: waits for what it has enqueued
  kUser,      // alive, outside NCCL, nothing enqueued
  kApi,       // inside an NCCL call
  kFrozen,    // exists and does not run
  kDead,      // ended without a clean end
  kLost,      // dead or frozen, which of the two is not known
  kExited,    // ended in order, while others waited
  kNoRecord,  // nothing is known of it (for the time that matters)
};

struct Rank {
  Host host = Host::kSync;
  // It has operations of which nothing tells whether they are over (no kernel events, no network edges): what its GPU has before
  // another one in its queue is not known, so its GPU is not accused.
  bool queue_hidden = false;
  std::vector<int> waits_for =
      {};  // ranks that the call it is inside waits for (connection, store, barrier)
};

struct Comm {
  std::string name = {};
  std::vector<int> ranks = {};
  bool p2p = false;  // its operations are sends and receives
  std::vector<uint64_t> entered =
      {};  // beside `ranks`: position of the newest operation that it entered (A)
};

// The `number`-th message of one direction between two ranks of a communicator.
struct Message {
  bool send = false;
  int peer = -1;
  uint64_t number = 0;
};

// An operation on one rank. Those that are not listed are over when their position is <=
// Comm::entered, else not entered.
struct Participation {
  int comm = -1;
  int rank = -1;
  uint64_t position = 0;
  Progress progress = {};
  std::vector<int> after = {};  // indices of participations of this rank that the GPU runs before
  std::vector<Message> messages = {};  // of a point-to-point operation
  bool shared = false;                 // stands for several messages; those that have a partner are not in `messages`
  uint32_t group = 0;                  // point-to-point operations of one kernel; 0: alone
  bool stuck = true;                   // had no progress for the stall time: the search starts here
  Pattern pattern = Pattern::kOther;
  bool chain = false;  // see PivotQuery
};

// Messages of one direction that a rank entered, those included that are no longer listed.
struct MessageTotal {
  int comm = -1;
  int rank = -1;
  int peer = -1;
  bool send = false;
  uint64_t number = 0;
};

// An asynchronous error that one rank reported and that names a peer.
struct AsyncError {
  int rank = -1;
  int peer = -1;
  bool timeout = false;  // no answer from the peer (completion status 12): explained by a dead peer
};

// One rank's arguments of an operation, spelled so that equal means equal.
struct Signature {
  int comm = -1;
  uint64_t position = 0;
  int rank = -1;
  std::string text;
};

struct Input {
  std::vector<Rank> ranks;
  std::vector<Comm> comms;
  std::vector<Participation> ops;
  std::vector<MessageTotal> totals;
  std::vector<EdgeView> edges;
  std::vector<std::string>
      hosts;  // beside `ranks`; empty list or string: not known (then each rank stands alone)
  std::vector<AsyncError> errors;
  std::vector<Signature> signatures;
};

enum class End {
  kSignature,  // arguments differ; ranks of the minority
  kRankDead,
  kRankFrozen,
  kRankLost,
  kRankExited,
  kNotEntered,  // alive, outside NCCL
  kInApi,
  kGpuStalled,
  kInsideNode,
  kNetEdge,
  kNetControl,
  kRecvFlush,
  kUnequalSteps,  // the two ends of an edge do not run the same operation
  kUnmatched,  // a send or receive whose partner's rank waits, over any number of others, for the
               // one that lacks it
  kCycle,
  kAmbiguous,  // all started, nothing visible: inside the communicator
  kNoRecord,   // ends at a rank of which nothing is known
};

struct Node {
  enum Kind : uint8_t {
    kOp,
    kHost,
    kGpu,
    kEdge,
    kControl,
    kFlush,
    kUnit,
    kUnequal,
    kComm,
    kUnmatched,
    kMissingRecord,
    kLateHub,    // "all that have not started position of comm": no node of the report
    kAbsentHub,  // "all that have not entered position of comm"
    kBodyHub,    // "what the started operation stands at"
    kGroupHub,   // "what the other messages of the kernel stand at"
  };
  Kind kind = kOp;
  int comm = -1;
  uint64_t position = 0;
  int rank = -1;  // kOp, kHost, kGpu, kMissingRecord; sender of kEdge…; the rank that lacks the
                  // message of kUnmatched
  int peer = -1;  // receiver of kEdge…; the rank that has it of kUnmatched
  std::string unit = {};
  std::vector<int> edges = {};  // indices in Input::edges that say so
  bool weak = false;
};

struct Root {
  End cls = End::kAmbiguous;
  std::vector<int> nodes;  // of the component, hubs left out; several: a cycle
};

struct Result {
  std::vector<Node> nodes;
  std::vector<std::vector<int>> next;  // waits for
  std::vector<Root> roots;             // sink components, in the order of their first node
  std::vector<int> starts;             // nodes of the stuck operations that the search began with
  // Nodes on a shortest way from `start` to the root, both ends included, hubs left out; empty:
  // does not lead there.
  std::vector<int> Path(int start, const Root& root) const;
};

Result Analyse(const Input& input);

// As the worked examples write it: H2, KW9@0, G2, E1->2, F1, NA, C:W5, U2->4, R3 (a rank without
// record).
std::string Name(const Input& input, const Node& node);
// not-entered, rank-dead, net-edge, …
std::string Name(End cls);

}  // namespace ringscope::reasoning::graph

#endif  // RINGSCOPE_ANALYZER_REASONING_WAIT_GRAPH_H_
