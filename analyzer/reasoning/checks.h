// Counterfactual checks: what must be seen elsewhere if a finding is right. They look at records other than those that the
// finding rests on, so that a wrong finding has a chance to be found out. A check for a kind of finding is one function in a file
// of its own with a static RegisterChecks; no other file changes.
#ifndef RINGSCOPE_ANALYZER_REASONING_CHECKS_H_
#define RINGSCOPE_ANALYZER_REASONING_CHECKS_H_

#include <initializer_list>
#include <string>
#include <vector>

#include "analyzer/reasoning/finder.h"

namespace ringscope::reasoning {

// Where a finding bites, resolved. `who`: the members that it names, in the communicator of the candidate; never empty.
struct CheckedPlace {
  const model::Job& job;
  const model::Communicator& communicator;
  uint64_t position;  // 0: the finding is about many operations
  const Finding& finding;
  std::vector<const model::Member*> who;
  bool Names(const model::Member& m) const;
};

using CheckFn = void (*)(const CheckedPlace&, std::vector<Check>*);
struct RegisterChecks {
  RegisterChecks(std::initializer_list<Kind::Value> kinds, CheckFn check);
};

// Makes the checks of the candidate's kind. One that fails lowers the finding's confidence by one step: something in the evidence
// contradicts it. Does nothing for findings that are not about an operation of a communicator.
void AddChecks(const model::Job& job, Candidate* candidate);

Check Holds(std::string expects, std::string seen, std::string source);
Check Fails(std::string expects, std::string seen, std::string source);
Check NotSeen(std::string expects, std::string collect);

// The collective edges of the place's operation that leave (`out`) or reach the member, with the side that the member's
// neighbour (`neighbour`) or the member itself recorded; sides that show another operation are left out.
struct EdgeAt {
  const model::Edge* edge;
  const model::EdgeSide* side;
  const model::Member* recorded_by;  // whose end it is
};
std::vector<EdgeAt> EdgesAt(const CheckedPlace& place, const model::Member& member, bool out, bool neighbour);
// "edge 3->4, channel 0" in job ranks where known.
std::string EdgeText(const CheckedPlace& place, const model::Edge& edge);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_CHECKS_H_
