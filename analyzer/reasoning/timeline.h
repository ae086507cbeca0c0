// When one rank of the job was free: its operations over all its communicators on one clock.
#ifndef RINGSCOPE_ANALYZER_REASONING_TIMELINE_H_
#define RINGSCOPE_ANALYZER_REASONING_TIMELINE_H_

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "analyzer/model/model.h"

namespace ringscope::reasoning {

class Timeline {
 public:
  void Add(const model::Op& op) {
    if (op.raw.entered_ns() != 0) spans_.push_back({op.raw.entered_ns(), op.raw.finished_ns()});
  }
  // REQUIRES: called once, after the last Add.
  void Sort() {
    std::sort(spans_.begin(), spans_.end());
    int64_t newest = 0;
    for (Span& span : spans_) newest = span.finished = std::max(newest, span.finished);
  }
  // The record has forgotten operations that were called before this: what held the rank up until then is not known.
  void Forgot(int64_t entered) { horizon_ = std::max(horizon_, entered); }
  int64_t horizon() const { return horizon_; }
  // Newest known completion among the operations entered before `entered`; 0 when there is none.
  // Later than `entered` when the call was made while an earlier operation still ran.
  int64_t FreeSince(int64_t entered) const {
    const auto it = std::lower_bound(spans_.begin(), spans_.end(), Span{entered, 0});
    return it == spans_.begin() ? 0 : std::prev(it)->finished;
  }

 private:
  struct Span {
    int64_t entered, finished;
    bool operator<(const Span& other) const { return entered < other.entered; }
  };
  std::vector<Span> spans_;
  int64_t horizon_ = 0;
};

using RankKey = std::pair<int, int>;  // process, job rank: one rank of the job, however many
                                      // communicators it is in
inline RankKey KeyOf(const model::Member& member) { return {member.process, member.job_rank}; }

// Of all ranks, each made when it is first asked for: in most jobs nobody is suspected of anything that needs one.
class Timelines {
 public:
  explicit Timelines(const model::Job& job) : job_(job) {}
  const Timeline& at(const RankKey& key) const {
    if (members_.empty()) Index();
    const auto [made, fresh] = made_.try_emplace(key);
    if (fresh) {
      if (const auto members = members_.find(key); members != members_.end()) {
        for (const model::Member* m : members->second) {
          bool first[2] = {true, true};  // collectives, sends and receives
          for (const model::Op& op : m->ops) {
            made->second.Add(op);
            if (first[op.p2p()] && op.position() > 1) made->second.Forgot(op.raw.entered_ns());
            first[op.p2p()] = false;
          }
        }
      }
      made->second.Sort();
    }
    return made->second;
  }

 private:
  void Index() const {
    for (const model::Communicator& c : job_.communicators) {
      for (const model::Member& m : c.members) {
        if (m.has_record()) members_[KeyOf(m)].push_back(&m);
      }
    }
  }
  const model::Job& job_;
  mutable std::map<RankKey, std::vector<const model::Member*>> members_;
  mutable std::map<RankKey, Timeline> made_;
};

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_TIMELINE_H_
