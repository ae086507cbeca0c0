// The job as input of the wait-for graph: what stands still, how far each rank got, what each
// rank's host does, and which model rows each number came from.
#ifndef RINGSCOPE_ANALYZER_REASONING_WAIT_GRAPH_INPUT_H_
#define RINGSCOPE_ANALYZER_REASONING_WAIT_GRAPH_INPUT_H_

#include <cstdint>
#include <vector>

#include "analyzer/model/job_time.h"
#include "analyzer/model/model.h"
#include "analyzer/reasoning/wait_graph.h"

namespace ringscope::reasoning {

// A rank of the job, in however many communicators. (Ranks of the graph are indices of these.)
struct RankInfo {
  int job_rank = -1;      // -1 unknown
  int process = -1;       // in Job::processes; -1 no record
  int communicator = -1;  // one that it is a member of, and as which
  int member = -1;
  bool inferred = false;  // its end follows from the others' reaction only
};

// Where a participation of the graph came from.
struct OpOrigin {
  int communicator = -1;
  int member = -1;
  const model::Op* op = nullptr;
};

// How long several processes waited, from the first that began to the last that was there: between which times of the job each end lies,
// by what the clocks may be wrong. Those of one clock are exact.
class WaitSpan {
 public:
  void Begin(const model::JobTime& t);
  void End(const model::JobTime& t);
  void Join(const WaitSpan& other);
  bool known() const { return begin_high_ != 0 && end_high_ != 0; }
  int64_t MostLength() const;
  // Whether it surely began before the other.
  bool Before(const WaitSpan& other) const;
  // Whether a time lies after `share` of it; kUnknown where the clocks do not tell.
  model::Truth Past(const model::JobTime& t, double share) const;

 private:
  void OfClock(int clock);
  bool exact() const { return clocks_ == 1; }
  int64_t begin_low_ = 0, begin_high_ = 0, end_low_ = 0, end_high_ = 0;
  int64_t begin_ns_ = 0, end_ns_ = 0;  // by one clock
  int clock_ = 0, clocks_ = 0;         // clocks_: 2 stands for more
};

// Collectives, or point-to-point calls, of one communicator that has something open: a communicator
// of the graph.
struct CommInfo {
  int communicator = -1;
  bool p2p = false;
  bool hung = false;     // something in it stood still for the stall time
  WaitSpan wait;   // from the entry of the first operation that stands still to the newest sign of life of those in it, or the abort
  int began = 0;   // so many communicators surely began to stand still before it
};

// Borrows the job.
struct WaitInput {
  graph::Input graph;
  std::vector<RankInfo> ranks;            // beside graph.ranks
  std::vector<CommInfo> comms;            // beside graph.comms
  std::vector<OpOrigin> ops;              // beside graph.ops
  std::vector<const model::Edge*> edges;  // beside graph.edges
  bool open = false;                      // some operation is known to be unfinished
  bool hung = false;                      // ... and stood still for the stall time, or was aborted

  const model::Member* MemberOf(const model::Job& job,
                                int rank) const;  // the membership named in RankInfo
};

WaitInput BuildWaitInput(const model::Job& job);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_WAIT_GRAPH_INPUT_H_
