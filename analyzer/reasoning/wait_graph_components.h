// Strongly connected components without recursion: a chain of a million waits must not end the
// stack.
#ifndef RINGSCOPE_ANALYZER_REASONING_WAIT_GRAPH_COMPONENTS_H_
#define RINGSCOPE_ANALYZER_REASONING_WAIT_GRAPH_COMPONENTS_H_

#include <vector>

namespace ringscope::reasoning::graph {

// Components that no edge leaves, each as its nodes. A node without edges is one.
std::vector<std::vector<int>> SinkComponents(const std::vector<std::vector<int>>& next);

}  // namespace ringscope::reasoning::graph

#endif  // RINGSCOPE_ANALYZER_REASONING_WAIT_GRAPH_COMPONENTS_H_
