// What the ranks of one communicator asked for, position by position, and where they first
// disagree.
#ifndef RINGSCOPE_ANALYZER_REASONING_CALL_SEQUENCE_H_
#define RINGSCOPE_ANALYZER_REASONING_CALL_SEQUENCE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "analyzer/model/model.h"

namespace ringscope::reasoning {

// What all ranks must agree on. Algorithm, protocol, stream, grouping and time are left out: NCCL
// chooses those, or they may differ. `root` is -1 where the function has none (the API hands down 0
// there).
struct Call {
  int func = 0;
  int datatype = 0;
  uint64_t count = 0;
  int root = -1;
  // What only moves data works in bytes: a rank may call them by another type.
  auto Key() const {
    const uint64_t width = WidthInBytes();
    return std::make_tuple(func, width != 0 ? 0 : datatype, width != 0 ? count * width : count,
                           root);
  }
  uint64_t WidthInBytes()
      const;  // of an element, for functions that move data; 0 for those that compute
  bool operator==(const Call& other) const { return Key() == other.Key(); }
  bool operator<(const Call& other) const { return Key() < other.Key(); }
};
Call CallOf(const model::Op& op);

// Part of a group of calls (ncclGroupStart), not only of the one that NCCL makes of every call for itself.
bool InGroup(const model::Op& op);

// One member's collectives, ascending by position, without repetition; there may be holes.
struct Voter {
  const model::Member* member = nullptr;
  std::vector<const model::Op*> ops;
  bool lossy = false;  // its ring dropped operations, so its numbering may have holes
  const model::Op* At(uint64_t position) const;  // nullptr when not kept
};

// Members whose sequences can be compared. Those are the members whose operations come from the
// same kind of event: launch events spell AllGather and Broadcast in bytes and number what was
// launched rather than what was called. Where both kinds occur the larger side is returned.
std::vector<Voter> Voters(const model::Communicator& communicator);

// Positions [first, last] inside which the order means nothing, because some rank issued them as
// one group.
struct Unit {
  uint64_t first = 0, last = 0;
  bool single() const { return first == last; }
};

// The member's calls in a unit, sorted; nothing when it does not hold all of the unit.
std::optional<std::vector<Call>> CallsIn(const Voter& voter, const Unit& unit);

struct Split {
  Unit unit;
  std::map<std::vector<Call>, std::vector<const Voter*>>
      camps;  // two or more; pointers into the voters
  bool first_kept =
      false;  // nothing before this position can be compared, although there was something
};
// First unit in which those that kept it disagree.
std::optional<Split> FirstSplit(const std::vector<Voter>& voters);

// Calls of a voter from `position` on up to the first hole.
std::vector<Call> Tail(const Voter& voter, uint64_t position, size_t limit);

// Ranks with an unfinished collective at or after the difference; `any` also counts ranks whose job
// rank is unknown.
std::set<int> WaitingSince(const model::Job& job, const model::Communicator& communicator, uint64_t first, bool* any);

// How the odd rank's sequence relates to the others' from the first difference on.
enum class Shape {
  kReplaced,  // another call at this position
  kOrder,     // the same calls within a few positions, in another order
  kMissing,   // one call less: everything after is shifted
  kExtra,     // one call more
};
Shape ShapeOf(const std::vector<Call>& odd, const std::vector<Call>& common);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_CALL_SEQUENCE_H_
