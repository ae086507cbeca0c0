// How far one operation got on one rank, from what its record shows; never more than that.
#ifndef RINGSCOPE_ANALYZER_REASONING_WAIT_GRAPH_PROGRESS_H_
#define RINGSCOPE_ANALYZER_REASONING_WAIT_GRAPH_PROGRESS_H_

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "analyzer/model/model.h"
#include "analyzer/reasoning/wait_graph.h"

namespace ringscope::reasoning {

// True when steps of the side's current operation are missing.
bool Incomplete(const model::EdgeSide& side);

// What the steps of connections tell of operations, per member: which have steps that still run,
// and which the GPU has worked on.
class OpenEdges {
 public:
  explicit OpenEdges(const model::Job& job);
  bool Receiving(int communicator, int member, bool p2p, uint64_t position) const;
  bool Sending(int communicator, int member, bool p2p, uint64_t position) const;
  // A step that is sent has data, and only a kernel that runs fills it. (Receives tell less: with
  // registered buffers nobody waits for the GPU.)
  bool Ran(int communicator, int member, bool p2p, uint64_t position) const;
  // Some received step was taken, or Ran().
  bool Touched(int communicator, int member, bool p2p, uint64_t position) const;

 private:
  bool Has(int communicator, int member, bool p2p, uint64_t position, int bit) const;
  using Key = std::tuple<int, int, bool, uint64_t>;
  std::map<Key, int> bits_;  // 1 sends, 2 receives, 4 ran, 8 a received step is done
};

// Kernel events were asked for and reach us: some member saw one. Where none ever did (a release or
// a mask that does not deliver them) "not started" is not a fact, whatever was asked for.
bool KernelsVisible(const model::Communicator& communicator);

// `ran`: of use where kernels are not visible.
graph::Progress ProgressOf(const model::Op& op, bool kernels_visible, bool receiving, bool sending,
                           bool ran);

// Messages of one group run in one kernel, and NCCL hands out kernel events to some of them only:
// when one has started all have, and the end of those without events of their own is not known.
graph::Progress InStartedGroup(const graph::Progress& progress, bool receiving);

// Whether an unfinished operation stands still: quiet.h, and beyond it what holds for the queue it
// is in.
class Standstill {
 public:
  explicit Standstill(const model::Job& job);
  bool Of(const model::Communicator& communicator, const model::Member& member, const model::Op& op,
          const graph::Progress& progress) const;

 private:
  bool Moves(const model::Communicator& communicator, uint64_t position) const;

  const model::Job& job_;
  mutable std::map<std::pair<int, uint64_t>, bool> moves_;  // communicator, position
  std::map<std::pair<int, uint64_t>, int64_t>
      stream_progress_;  // process, stream -> newest progress, its clock
};

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_WAIT_GRAPH_PROGRESS_H_
