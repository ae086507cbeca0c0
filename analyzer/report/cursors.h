// Who has entered, enqueued, started, finished what: the state of each communicator in a few lines,
// however many ranks.
#ifndef RINGSCOPE_ANALYZER_REPORT_CURSORS_H_
#define RINGSCOPE_ANALYZER_REPORT_CURSORS_H_

#include <string>
#include <vector>

#include "analyzer/model/model.h"

namespace ringscope::report {

struct CursorLine {
  std::vector<int> ranks;  // job ranks; ranks of the communicator where the job ranks are not known
  bool job_ranks = true;
  std::string state;  // "entered #11 all-reduce, running"
  bool open = false;  // something is not finished
};

// One line for all ranks in the same state, in order of their first rank; members without a record
// last.
std::vector<CursorLine> CursorLines(const model::Communicator& communicator);

// "all-reduce", "send", …
std::string FuncName(trace::Func func);

// What `op` waits for or has reached: "inside the call", "not in the stream", "in the stream, not
// started", "running", "finished", "in the stream (completion not visible)".
std::string Stage(const model::Op& op);

}  // namespace ringscope::report

#endif  // RINGSCOPE_ANALYZER_REPORT_CURSORS_H_
