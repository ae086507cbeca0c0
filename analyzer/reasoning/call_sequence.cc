#include "analyzer/reasoning/call_sequence.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "analyzer/model/safe_math.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/quiet.h"
#include "analyzer/reasoning/thresholds.h"

namespace ringscope::reasoning {
namespace {

using model::Op;

// Part of a group in which order means nothing: an explicit ncclGroup; of operations known from
// their launch (below profiler API v5) the kernel plan, inside which NCCL has put them in an order
// of its own.
bool SameGroup(const Op& a, const Op& b) {
  return InGroup(a) && InGroup(b) && a.raw.group() == b.raw.group() &&
         a.raw.thread() == b.raw.thread();
}

// a[i..] and b[j..] are equal as far as both reach, over at least `at_least` positions.
bool AgreeFrom(const std::vector<Call>& a, size_t i, const std::vector<Call>& b, size_t j,
               size_t at_least) {
  size_t n = 0;
  for (; i + n < a.size() && j + n < b.size(); ++n) {
    if (!(a[i + n] == b[j + n])) return false;
  }
  return n >= at_least;
}

void Merge(std::vector<uint64_t> add, std::vector<uint64_t>* all) {
  std::vector<uint64_t> merged;
  merged.reserve(all->size() + add.size());
  std::set_union(all->begin(), all->end(), add.begin(), add.end(), std::back_inserter(merged));
  all->swap(merged);
}

std::vector<Unit> Units(const std::vector<Voter>& voters) {
  std::vector<uint64_t> positions, joined;  // joined: bound to the position before it
  for (const Voter& voter : voters) {
    std::vector<uint64_t> own, bound;
    for (size_t i = 0; i < voter.ops.size(); ++i) {
      own.push_back(voter.ops[i]->position());
      if (i > 0 && voter.ops[i - 1]->position() + 1 == voter.ops[i]->position() &&
          SameGroup(*voter.ops[i - 1], *voter.ops[i])) {
        bound.push_back(voter.ops[i]->position());
      }
    }
    Merge(std::move(own), &positions);
    Merge(std::move(bound), &joined);
  }
  std::vector<Unit> units;
  for (uint64_t position : positions) {
    if (!units.empty() && units.back().last + 1 == position &&
        std::binary_search(joined.begin(), joined.end(), position)) {
      units.back().last = position;
    } else {
      units.push_back({position, position});
    }
  }
  return units;
}

// A group of which a part is not held (its beginning was overwritten, or it is still being filled)
// cannot be compared: the part that is held may be any part of it. Removes such groups. `newest` is
// the position of the newest call the member made.
void DropPartialGroups(uint64_t newest, std::vector<const Op*>* ops) {
  std::vector<const Op*> whole;
  for (size_t i = 0; i < ops->size();) {
    size_t end = i + 1;
    while (end < ops->size() && (*ops)[end - 1]->position() + 1 == (*ops)[end]->position() &&
           SameGroup(*(*ops)[end - 1], *(*ops)[end])) {
      ++end;
    }
    const Op &first = *(*ops)[i], &last = *(*ops)[end - 1];
    bool partial = false;
    if (InGroup(first)) {
      const bool hole_before =
          first.position() > 1 && (i == 0 || (*ops)[i - 1]->position() + 1 != first.position());
      const bool hole_after = end < ops->size() ? (*ops)[end]->position() != last.position() + 1
                                                : last.position() < newest;
      // The launch happens at the end of the group: nothing of it enqueued means that calls may
      // follow.
      bool open = end == ops->size();
      for (size_t k = i; k < end; ++k) open &= (*ops)[k]->enqueued == model::Truth::kNo;
      partial = hole_before || hole_after || open;
    }
    if (!partial)
      whole.insert(whole.end(), ops->begin() + static_cast<std::ptrdiff_t>(i),
                   ops->begin() + static_cast<std::ptrdiff_t>(end));
    i = end;
  }
  ops->swap(whole);
}

// Cheap look at the common case: one operation, everybody who kept it agrees.
bool AllAgree(const std::vector<Voter>& voters, uint64_t position) {
  const Op* one = nullptr;
  for (const Voter& voter : voters) {
    const Op* op = voter.At(position);
    if (op == nullptr) continue;
    if (one == nullptr) {
      one = op;
    } else if (!(CallOf(*one) == CallOf(*op))) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool InGroup(const Op& op) { return op.raw.group() != 0 && (op.raw.grouped() || !op.raw.from_api()); }

Call CallOf(const Op& op) {
  Call call{op.raw.func(), op.raw.datatype(), op.raw.count(), -1};
  if (op.raw.count_varies()) call.count = 0;
  switch (op.raw.func()) {
    case trace::BROADCAST:
    case trace::REDUCE:
    case trace::SCATTER:
    case trace::GATHER:
      call.root = op.raw.root();
      break;
    case trace::ALL_GATHER_V:
      call.count = 0;  // each rank contributes its own number of elements
      break;
    default:
      break;
  }
  return call;
}

uint64_t Call::WidthInBytes() const {
  switch (func) {
    case trace::BROADCAST:
    case trace::ALL_GATHER:
    case trace::ALL_TO_ALL:
    case trace::SCATTER:
    case trace::GATHER:
      break;
    default:
      return 0;
  }
  switch (datatype) {
    case trace::FLOAT16:
    case trace::BFLOAT16:
      return 2;
    case trace::INT32:
    case trace::UINT32:
    case trace::FLOAT32:
      return 4;
    case trace::INT64:
    case trace::UINT64:
    case trace::FLOAT64:
      return 8;
    case trace::TYPE_UNKNOWN:
      return 0;
    default:
      return 1;
  }
}

const Op* Voter::At(uint64_t position) const {
  const auto it =
      std::lower_bound(ops.begin(), ops.end(), position,
                       [](const Op* op, uint64_t value) { return op->position() < value; });
  return it != ops.end() && (*it)->position() == position ? *it : nullptr;
}

std::vector<Voter> Voters(const model::Communicator& communicator) {
  std::vector<Voter> from_api, from_launch;
  for (const model::Member& member : communicator.members) {
    if (!member.has_record()) continue;
    Voter voter{&member, {}, member.raw != nullptr && member.raw->no_row() > 0};
    size_t api = 0;
    for (const Op& op : member.ops) {
      // An operation without a function is a row whose identity was not readable: it says nothing
      // about the call.
      if (op.p2p() || op.position() == 0 || op.raw.func() == trace::FUNC_UNKNOWN) continue;
      voter.ops.push_back(&op);
      api += op.raw.from_api();
    }
    if (voter.ops.empty()) continue;
    const bool all_api = api == voter.ops.size();
    if (!all_api && api != 0) continue;
    const auto before = [](const Op* a, const Op* b) { return a->position() < b->position(); };
    std::stable_sort(voter.ops.begin(), voter.ops.end(), before);
    const auto same = [](const Op* a, const Op* b) { return a->position() == b->position(); };
    voter.ops.erase(std::unique(voter.ops.begin(), voter.ops.end(), same), voter.ops.end());
    DropPartialGroups(member.collectives, &voter.ops);
    if (voter.ops.empty()) continue;
    (all_api ? from_api : from_launch).push_back(std::move(voter));
  }
  return from_api.size() >= from_launch.size() ? from_api : from_launch;
}

std::optional<std::vector<Call>> CallsIn(const Voter& voter, const Unit& unit) {
  std::vector<Call> calls;
  for (uint64_t position = unit.first; position <= unit.last; ++position) {
    const Op* op = voter.At(position);
    if (op == nullptr) return std::nullopt;
    calls.push_back(CallOf(*op));
  }
  std::sort(calls.begin(), calls.end());
  return calls;
}

std::optional<Split> FirstSplit(const std::vector<Voter>& voters) {
  size_t compared = 0;
  for (const Unit& unit : Units(voters)) {
    if (unit.single() && AllAgree(voters, unit.first)) {
      size_t holders = 0;
      for (const Voter& voter : voters) holders += compared == 0 && voter.At(unit.first) != nullptr;
      compared += holders > 1;
      continue;
    }
    Split split{unit, {}, false};
    size_t holders = 0;
    for (const Voter& voter : voters) {
      if (auto calls = CallsIn(voter, unit)) {
        split.camps[*std::move(calls)].push_back(&voter);
        ++holders;
      }
    }
    if (split.camps.size() > 1) {
      split.first_kept = compared == 0 && unit.first > 1;
      return split;
    }
    compared += holders > 1;
  }
  return std::nullopt;
}

std::vector<Call> Tail(const Voter& voter, uint64_t position, size_t limit) {
  std::vector<Call> calls;
  auto it = std::lower_bound(voter.ops.begin(), voter.ops.end(), position,
                             [](const Op* op, uint64_t value) { return op->position() < value; });
  for (; it != voter.ops.end() && calls.size() < limit; ++it) {
    if ((*it)->position() != position + calls.size()) break;
    calls.push_back(CallOf(**it));
  }
  return calls;
}

namespace {

// Its end is not visible, but that of its proxy operations is, and did not come.
bool StepsOpen(const Op& op) {
  return op.finished == model::Truth::kUnknown && op.full && op.raw.unfinished() &&
         op.raw.proxy_ops_started() > op.raw.proxy_ops_stopped();
}

}  // namespace

std::set<int> WaitingSince(const model::Job& job, const model::Communicator& communicator, uint64_t first, bool* any) {
  std::set<int> ranks;
  *any = false;
  uint64_t most = 0;
  for (const model::Member& member : communicator.members) most = std::max(most, member.collectives);
  for (const model::Member& member : communicator.members) {
    bool waits = member.finalized_open;
    // Where completion is hidden: it made this call, nothing shows that it is over, and for the stall time it has not made the next,
    // which others have.
    const Op* newest = member.Collective(first);
    if (newest != nullptr && member.has_record() && member.collectives == first && most > first &&
        newest->finished == model::Truth::kUnknown) {
      const model::Process& process = job.processes[static_cast<size_t>(member.process)];
      waits |= static_cast<double>(model::SatSub(LastSign(process), newest->raw.enqueued_ns())) >=
               process.trace.settings().stall_seconds() * 1e9;
    }
    for (const Op& op : member.ops) {
      waits |= !op.p2p() && op.position() >= first && (Open(op) || StepsOpen(op));
    }
    *any |= waits;
    if (waits && member.job_rank >= 0) ranks.insert(member.job_rank);
  }
  return ranks;
}

// A replaced call is the plainest reading, then calls that changed places, then a call too few or
// too many. A shift is only believed when it explains several positions, since any two sequences
// agree somewhere.
Shape ShapeOf(const std::vector<Call>& odd, const std::vector<Call>& common) {
  if (AgreeFrom(odd, 1, common, 1, 1)) return Shape::kReplaced;
  for (size_t n = 2; n <= thresholds::kOrderWindow && n <= odd.size() && n <= common.size(); ++n) {
    std::vector<Call> a(odd.begin(), odd.begin() + n), b(common.begin(), common.begin() + n);
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    if (a == b && AgreeFrom(odd, n, common, n, 0)) return Shape::kOrder;
  }
  if (AgreeFrom(odd, 0, common, 1, thresholds::kShiftRun)) return Shape::kMissing;
  if (AgreeFrom(odd, 1, common, 0, thresholds::kShiftRun)) return Shape::kExtra;
  return Shape::kReplaced;
}

}  // namespace ringscope::reasoning
