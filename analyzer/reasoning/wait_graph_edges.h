// The edges of a job as the pivot sees them: each at the operation whose steps run.
#ifndef RINGSCOPE_ANALYZER_REASONING_WAIT_GRAPH_EDGES_H_
#define RINGSCOPE_ANALYZER_REASONING_WAIT_GRAPH_EDGES_H_

#include <functional>
#include <utility>
#include <vector>

#include "analyzer/model/model.h"
#include "analyzer/reasoning/pivot.h"

namespace ringscope::reasoning {

struct EdgeSources {
  // Graph rank of (communicator, member); -1 none.
  std::function<int(int, int)> rank_of;
  // Graph rank whose process drives the side; -1 unknown.
  std::function<int(const model::Edge&, const model::EdgeSide&)> driver_of;
  // The side's process says nothing about the time that matters.
  std::function<bool(const model::EdgeSide&)> stale;
  // Graph communicator of (communicator, p2p); -1: nothing open there.
  std::function<int(int, bool)> comm_of;
  // The only collective of the communicator that stands still somewhere, for sides whose operation
  // is not known; 0: none or several.
  std::function<uint64_t(int)> only_position;
};

// One view per edge and operation that runs at one of its ends, with the edge it came from.
std::vector<std::pair<EdgeView, const model::Edge*>> MakeEdgeViews(const model::Job& job,
                                                                   const EdgeSources& sources);

// Changes of an edge that came with the end of an aborted communicator say nothing about what it
// waited for: when kernels are aborted they release buffers, and proxies take a last step (seen on
// NCCL 2.30). True when the longest silence of the aborted operation took at least half of its life
// and the change came after it.
bool ChangedByAbort(const model::Job& job, const model::Member& member,
                    const model::EdgeSide& side);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_WAIT_GRAPH_EDGES_H_
