#include "analyzer/reasoning/signature_chain.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "analyzer/reasoning/call_sequence.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/thresholds.h"

namespace ringscope::reasoning {
namespace {

using model::Communicator;
using model::Job;
using model::Member;
using model::Op;

constexpr uint64_t kNowhere = std::numeric_limits<uint64_t>::max();

// What one rank kept of its chain at one position. A newest hash and a checkpoint are computed
// differently.
struct Point {
  uint64_t position;
  bool newest;
  uint64_t hash;
  uint32_t member;  // index in Communicator::members
  auto Slot() const { return std::make_tuple(position, newest); }
  auto Key() const { return std::make_tuple(position, newest, hash, member); }
};

// The points of all ranks at one position.
struct Slot {
  const Point *begin, *end;
  size_t holders() const { return static_cast<size_t>(end - begin); }
  bool differs() const { return begin->hash != (end - 1)->hash; }  // sorted by hash
  uint64_t position() const { return begin->position; }
};

// Chains of different kinds hash different things. API events give what the caller asked for,
// launch events what NCCL made of it. Among launch events a captured graph shows at each replay
// only on ranks where its plan has proxy operations, unless kernel events make it show everywhere
// (docs/nccl.md). 0: no chain, or none that can be believed.
uint32_t KindOfChain(const Member& m) {
  if (!m.has_record() || m.raw == nullptr || m.raw->chain_position() == 0) return 0;
  if (m.raw->api_events()) return 1;
  return 2 + m.raw->profiler_api() * 4 +
         (m.raw->completion_visible() ? 2u
          : m.raw->has_steps()        ? 1u
                                      : 0u);
}

// Without a row for the thread nobody knows where its groups end: each call was folded as a group
// of its own.
bool LostGroups(const Job& job, const Member& m) {
  return CounterValue(job.processes[static_cast<size_t>(m.process)], "thread_no_row") > 0;
}

bool SameChainGroup(const Op& a, const Op& b) {
  constexpr uint32_t kNoThread = 0xffff;
  return a.raw.group() == b.raw.group() && a.raw.thread() == b.raw.thread() &&
         a.raw.thread() != kNoThread;
}

// Every collective is in the chain, but for those of the newest group: position k of the chain is
// operation k.
bool Aligned(const Member& m) {
  if (m.by_position.empty()) return false;
  size_t open = 1;
  const auto at = [&](size_t from_end) -> const Op& {
    return m.ops[m.by_position[m.by_position.size() - from_end]];
  };
  if (at(1).position() != m.collectives) return false;
  while (open < m.by_position.size() && at(open + 1).position() + open == m.collectives &&
         SameChainGroup(at(open + 1), at(1))) {
    ++open;
  }
  return m.raw->chain_position() + open == m.collectives;
}

// Both kept every operation of the range, and they are the same one by one: the hashes differ for
// another reason (the same calls grouped differently, a damaged record).
bool RowsAgree(const Member& a, const Member& b, uint64_t agreed, uint64_t differed) {
  if (!Aligned(a) || !Aligned(b)) return false;
  uint64_t last = differed;
  const auto goes_on = [&](const Member& m) {
    const Op *op = m.Collective(last), *next = m.Collective(last + 1);
    return op != nullptr && next != nullptr && SameChainGroup(*op, *next);
  };
  while (goes_on(a) || goes_on(b)) ++last;
  for (uint64_t k = last; k > agreed; --k) {
    const Op *x = a.Collective(k), *y = b.Collective(k);
    if (x == nullptr || y == nullptr || !(CallOf(*x) == CallOf(*y))) return false;
  }
  return true;
}

class Comparison {
 public:
  Comparison(const Job& job, const Communicator& c) : job_(job), c_(c) {}

  std::optional<Divergence> Run() {
    Collect();
    const Slot* vote = nullptr;
    for (const Slot& slot : slots_) {
      if (!slot.differs()) continue;
      ++found_.positions;
      if (vote == nullptr || slot.holders() > vote->holders()) vote = &slot;
    }
    if (vote == nullptr) return std::nullopt;
    found_.voters = vote->holders();
    std::vector<std::pair<const Point*, const Point*>> groups;
    for (const Point* p = vote->begin; p != vote->end;) {
      const Point* end = p;
      while (end != vote->end && end->hash == p->hash) ++end;
      groups.emplace_back(p, end);
      p = end;
    }
    std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
      return std::make_pair(b.second - b.first, a.first->member) <
             std::make_pair(a.second - a.first, b.first->member);
    });
    side_.assign(c_.members.size(), -1);
    for (const auto& [begin, end] : groups) {
      auto& side = found_.sides.emplace_back();
      for (const Point* p = begin; p != end; ++p) {
        side.push_back(&c_.members[p->member]);
        side_[p->member] = static_cast<int>(found_.sides.size()) - 1;
      }
    }
    const size_t most = found_.sides[0].size();
    const bool clear = most >= thresholds::kMajorityFactor * (found_.voters - most);
    if (!(clear ? Outvoted(*vote) : Tie(*vote))) return std::nullopt;
    const Member& other = *(clear ? found_.odd[0] : found_.sides[1][0]);
    if (RowsAgree(found_.reference(), other, found_.agreed, found_.differed)) return std::nullopt;
    found_.by_launch = !found_.reference().raw->api_events();
    found_.aligned = Aligned(found_.reference()) && Aligned(other);
    return std::move(found_);
  }

 private:
  void Collect() {
    std::map<uint32_t, std::vector<uint32_t>> kinds;
    for (uint32_t i = 0; i < c_.members.size(); ++i) {
      const uint32_t kind = KindOfChain(c_.members[i]);
      if (kind == 0) continue;
      if (LostGroups(job_, c_.members[i])) {
        ++found_.not_comparable;
      } else {
        kinds[kind].push_back(i);
      }
    }
    const auto largest = std::max_element(
        kinds.begin(), kinds.end(),
        [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    for (auto it = kinds.begin(); it != kinds.end(); ++it) {
      if (it != largest) found_.not_comparable += it->second.size();
    }
    if (largest == kinds.end()) return;
    for (const uint32_t i : largest->second) {
      const trace::Communicator& raw = *c_.members[i].raw;
      if (raw.signature() != 0) points_.push_back({raw.chain_position(), true, raw.signature(), i});
      for (const trace::Checkpoint& at : raw.checkpoints())
        points_.push_back({at.position(), false, at.hash(), i});
    }
    // A multiple of several levels is there several times.
    std::sort(points_.begin(), points_.end(),
              [](const Point& a, const Point& b) { return a.Key() < b.Key(); });
    points_.erase(std::unique(points_.begin(), points_.end(),
                              [](const Point& a, const Point& b) { return a.Key() == b.Key(); }),
                  points_.end());
    const Point* const end = points_.data() + points_.size();
    for (const Point* p = points_.data(); p != end;) {
      const Point* next = p;
      while (next != end && next->Slot() == p->Slot()) ++next;
      if (next - p > 1) slots_.push_back({p, next});
      p = next;
    }
  }

  // Hash of the majority's ranks in a slot; false when none of them is there, or (`split`) they
  // differ among themselves.
  bool MajorityHash(const Slot& slot, uint64_t* hash, bool* split) const {
    bool any = false;
    for (const Point* p = slot.begin; p != slot.end; ++p) {
      if (side_[p->member] != 0) continue;
      *split |= any && p->hash != *hash;
      *hash = p->hash;
      any = true;
    }
    return any && !*split;
  }

  // Ranks of the majority that left it after the vote.
  void MarkLeft(const Slot& slot, std::vector<bool>* left) const {
    std::map<uint64_t, size_t> count;
    size_t all = 0;
    for (const Point* p = slot.begin; p != slot.end; ++p) {
      if (side_[p->member] != 0) continue;
      ++count[p->hash];
      ++all;
    }
    for (const Point* p = slot.begin; p != slot.end; ++p) {
      if (side_[p->member] == 0 && 2 * count[p->hash] < all) (*left)[p->member] = true;
    }
  }

  // Ranks that the vote did not see may differ from the majority elsewhere.
  bool Outvoted(const Slot& vote) {
    std::vector<uint64_t> agreed(c_.members.size(), 0), differed(c_.members.size(), kNowhere);
    std::vector<bool> broken(c_.members.size(), false);
    std::vector<bool> left(c_.members.size(), false);
    for (const Slot& slot : slots_) {
      uint64_t hash = 0;
      bool split = false;
      if (!MajorityHash(slot, &hash, &split)) {
        // Equal chains are equal before: a majority that is not contradicts itself.
        if (split && slot.position() <= vote.position()) return false;
        if (split) MarkLeft(slot, &left);
        continue;
      }
      for (const Point* p = slot.begin; p != slot.end; ++p) {
        if (side_[p->member] == 0) continue;
        if (p->hash != hash) {
          differed[p->member] = std::min(differed[p->member], p->position);
        } else if (differed[p->member] < p->position) {
          broken[p->member] = true;  // chains that differ never meet again
        } else {
          agreed[p->member] = p->position;
        }
      }
    }
    uint64_t first = kNowhere;
    for (uint32_t i = 0; i < c_.members.size(); ++i) {
      if (!broken[i]) first = std::min(first, differed[i]);
    }
    if (first == kNowhere) return false;
    found_.agreed = kNowhere;
    for (uint32_t i = 0; i < c_.members.size(); ++i) {
      if (left[i]) found_.later.push_back(&c_.members[i]);
      if (broken[i] || differed[i] == kNowhere) continue;
      if (agreed[i] >= first) {
        found_.later.push_back(&c_.members[i]);
        continue;
      }
      found_.odd.push_back(&c_.members[i]);
      found_.agreed = std::min(found_.agreed, agreed[i]);
      found_.differed = std::max(found_.differed, differed[i]);
    }
    return true;
  }

  bool Tie(const Slot& vote) {
    for (const Slot& slot : slots_) {
      if (slot.differs()) {
        if (found_.differed == 0) found_.differed = slot.position();
        continue;
      }
      int side = -1;
      for (const Point* p = slot.begin; p != slot.end; ++p) {
        if (side_[p->member] < 0) continue;
        if (side >= 0 && side != side_[p->member]) {
          if (slot.position() > vote.position())
            return false;  // chains that differ never meet again
          if (found_.differed == 0) found_.agreed = slot.position();
        }
        side = side_[p->member];
      }
    }
    return found_.differed != 0;
  }

  const Job& job_;
  const Communicator& c_;
  std::vector<Point> points_;
  std::vector<Slot> slots_;  // ascending
  std::vector<int> side_;    // of each member; -1 not in the vote
  Divergence found_;
};

}  // namespace

std::optional<Divergence> FindDivergence(const Job& job, const Communicator& communicator) {
  return Comparison(job, communicator).Run();
}

}  // namespace ringscope::reasoning
