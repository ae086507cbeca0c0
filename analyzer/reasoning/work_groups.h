// Watchdog timeouts and cursors by process group and rank, and the vote over who differs.
#ifndef RINGSCOPE_ANALYZER_REASONING_WORK_GROUPS_H_
#define RINGSCOPE_ANALYZER_REASONING_WORK_GROUPS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "analyzer/model/model.h"
#include "analyzer/reasoning/finder.h"

namespace ringscope::reasoning {

struct RankWork {
  const model::WorkTimeout* timeout = nullptr;  // the oldest work of this rank that timed out
  const model::WorkCursor* cursor = nullptr;    // the newest word on how far it had come
};

// One process group as far as its members' logs tell.
struct GroupWork {
  model::WorkGroup group;         // not known(): releases that do not tell
  std::map<int, RankWork> ranks;  // by job rank; -1 holds a member whose job rank is not known
  std::set<int> TimedOut() const;
  // The lowest sequence number that timed out anywhere; -1 when none was told.
  int64_t Oldest() const;
  // Members of the group, from the ratio of what an all-gather or reduce-scatter takes and gives; 0 when nothing tells.
  int Members() const;
  // "process group 11 (mesh_tp)"; empty for one that is not known or spans the job.
  std::string Label() const;
};
std::vector<GroupWork> GroupsOf(const model::Job& job);

// Ranks at one position of a group that do not do the same.
struct Divergence {
  bool sizes = false;    // else operations
  bool shifted = false;  // not at the same number: neighbours
  int64_t seq = -1;
  std::map<std::string, std::set<int>> camps;
};
// Empty camps: they do, as far as the timeouts tell.
Divergence Compare(const GroupWork& group);

// Ranks by what they do: who is in the minority. A tie accuses nobody.
struct Vote {
  std::set<int> odd;  // all that are not of the largest camp; empty in a tie
  bool tie = false;
};
Vote CountVotes(const std::map<std::string, std::set<int>>& camps);

// Ranks of the job as the logs tell its size: NCCL's init lines. 0: not told.
int WorldOf(const model::Job& job);

// A rank whose loop ended with fewer batches than another rank has seen: both lines. nullptr when the logs do not count.
struct FewerBatches {
  const model::HostWork* fewer = nullptr;
  const model::HostWork* more = nullptr;
};
FewerBatches FewerBatchesIn(const model::Job& job);

void CiteTimeout(const model::Job& job, const model::WorkTimeout& timeout, Finding* finding);
void CiteCursor(const model::Job& job, const model::WorkCursor& cursor, Finding* finding);
void CiteHostWork(const model::Job& job, const model::HostWork& work, Finding* finding);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_WORK_GROUPS_H_
