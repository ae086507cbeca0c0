// Ends of the graph: which components nothing leaves, and what kind of end each is.
#ifndef RINGSCOPE_ANALYZER_REASONING_WAIT_GRAPH_ROOTS_H_
#define RINGSCOPE_ANALYZER_REASONING_WAIT_GRAPH_ROOTS_H_

#include "analyzer/reasoning/wait_graph.h"

namespace ringscope::reasoning::graph {

// What goes before the graph: different signatures, then reported errors. True when there was any:
// no graph is needed.
bool AddEarlyRoots(const Input& input, Result* result);

// Fills Result::roots from its nodes and edges.
void AddRoots(const Input& input, Result* result);

}  // namespace ringscope::reasoning::graph

#endif  // RINGSCOPE_ANALYZER_REASONING_WAIT_GRAPH_ROOTS_H_
