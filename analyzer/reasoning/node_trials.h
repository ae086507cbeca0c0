// Benchmarks on several groups of nodes: which node is in every slow trial and in no fast one.
#ifndef RINGSCOPE_ANALYZER_REASONING_NODE_TRIALS_H_
#define RINGSCOPE_ANALYZER_REASONING_NODE_TRIALS_H_

#include <optional>
#include <string>
#include <vector>

#include "analyzer/model/model.h"

namespace ringscope::reasoning {

struct SlowNodes {
  std::vector<std::string> nodes;  // more than one: always tried together, the trials do not tell them apart
  std::vector<const model::NodeTrial*> with, without;
  double worst_without = 0, best_with = 0;
};
// Every trial with the node is worse than every trial without it, by more than trials of one kind differ among themselves;
// two trials of each kind at least.
std::optional<SlowNodes> NodesThatSlow(const model::Job& job);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_NODE_TRIALS_H_
