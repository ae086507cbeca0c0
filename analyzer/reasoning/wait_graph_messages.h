// Sends and receives carry no number: which of them belong together follows from counting.
#ifndef RINGSCOPE_ANALYZER_REASONING_WAIT_GRAPH_MESSAGES_H_
#define RINGSCOPE_ANALYZER_REASONING_WAIT_GRAPH_MESSAGES_H_

#include <vector>

#include "analyzer/model/model.h"
#include "analyzer/reasoning/wait_graph_input.h"

namespace ringscope::reasoning {

// Number of each open message of `comm` (a communicator of the graph) among those of its direction,
// counted back from what each side launched in all, and the totals. `rank_of`: rank of the graph by
// member.
void AddMessages(const model::Job& job, const std::vector<int>& rank_of, int comm, WaitInput* out);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_WAIT_GRAPH_MESSAGES_H_
