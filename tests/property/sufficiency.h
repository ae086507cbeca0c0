// What a right diagnosis of a generated job is, and whether its evidence suffices for one: from
// what was done to the job, from NCCL's mechanisms, and from what was recorded and lost. Nothing
// here knows how the analyzer works; README.md has the table in words.
#ifndef RINGSCOPE_TESTS_PROPERTY_SUFFICIENCY_H_
#define RINGSCOPE_TESTS_PROPERTY_SUFFICIENCY_H_

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "proto/diagnosis.pb.h"
#include "tests/property/record.h"

namespace ringscope::property {

using Edges = std::set<std::pair<int, int>>;

// One way to name who it was. `any_of`: some of these ranks are enough (a side that nothing tells
// from the other).
struct Who {
  std::set<int> ranks;
  Edges edges;
  std::set<std::string> hosts;
  bool any_of = false;
};
struct Answer {
  std::set<Kind::Value> kinds;
  std::vector<Who> who;
};

struct Label {
  FaultKind fault = FaultKind::kNone;  // the row that it is counted under
  bool healthy = false;                // nobody may be accused
  bool sufficient = false;             // one of `right` must come first
  std::vector<Answer> right;
  std::vector<Answer> also_true;  // true, but not all that can be said
  std::string why;                // row of the table
};

Label LabelOf(const World& w, const Played& played, const Recorded& recorded);

}  // namespace ringscope::property

#endif  // RINGSCOPE_TESTS_PROPERTY_SUFFICIENCY_H_
