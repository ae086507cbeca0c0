// Where the ranks of one communicator diverged, by their signature chains (recorder/flight/chain.h,
// proto/trace.proto).
//
// A chain is a rolling hash over a rank's collectives: equal at a position means equal calls up to
// there, different means that the calls (or what was grouped together) differed somewhere before.
// Each rank keeps the hash at a few positions only, so two ranks can be compared where both kept
// one, and what is found is a range of positions, not a call.
#ifndef RINGSCOPE_ANALYZER_REASONING_SIGNATURE_CHAIN_H_
#define RINGSCOPE_ANALYZER_REASONING_SIGNATURE_CHAIN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "analyzer/model/model.h"

namespace ringscope::reasoning {

struct Divergence {
  // The chains agree at `agreed` (0: nothing earlier is kept to compare) and differ at `differed`.
  // Positions count the collectives that are folded; where a group spans `differed` the call may
  // come up to the end of that group.
  uint64_t agreed = 0, differed = 0;
  // Equal chains at the position with the most ranks that differ, largest first. Each holds one
  // member at least.
  std::vector<std::vector<const model::Member*>> sides;
  // Outvoted, in the order of their ranks; empty when no side has a clear majority.
  std::vector<const model::Member*> odd;
  // Outvoted too, but they agreed with the majority at `differed` or later: not the beginning.
  std::vector<const model::Member*> later;
  size_t voters = 0;     // ranks compared at that position
  size_t positions = 0;  // common positions at which somebody differs
  size_t not_comparable =
      0;  // ranks with a chain of another kind, or of a process that lost where groups end
  // Positions of the chains are those of the operations. Not so where captured graphs were played.
  bool aligned = false;
  // From launch events: a group is a kernel plan there, and which calls share one is NCCL's choice.
  bool by_launch = false;
  const model::Member& reference() const { return *sides[0][0]; }
};

// Nothing when fewer than two ranks can be compared, when they agree wherever they can, or when the
// rows that are still kept show that the calls of the range were the same.
std::optional<Divergence> FindDivergence(const model::Job& job,
                                         const model::Communicator& communicator);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_SIGNATURE_CHAIN_H_
