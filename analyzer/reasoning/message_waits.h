// Who waits for whom inside NCCL, as far as unmatched messages need it: the ends that calls of one
// rank hang on, over all of its communicators.
#ifndef RINGSCOPE_ANALYZER_REASONING_MESSAGE_WAITS_H_
#define RINGSCOPE_ANALYZER_REASONING_MESSAGE_WAITS_H_

#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "analyzer/model/model.h"
#include "analyzer/reasoning/timeline.h"

namespace ringscope::reasoning {

// One rank of one communicator: index in Job::communicators and rank there.
struct Place {
  int communicator = 0;
  int rank = 0;
};

// Answers are computed when first asked for and kept. The job must outlive it.
class MessageWaits {
 public:
  explicit MessageWaits(const model::Job& job);

  using Head = std::pair<Place, const model::Op*>;
  // Operations of the rank that stand still by themselves: not those queued behind another one on
  // their stream. Operations of one group start together, so they do not queue behind each other.
  const std::vector<Head>& Heads(const RankKey& key) const;

  // True when `start` waits for `goal`, over any number of ranks: a running collective waits for
  // every member that has not joined it, an open message for the peer that has not launched its
  // partner. What is queued behind an open operation of the same stream waits for nobody yet.
  // `through` gets the ranks on the way.
  // `collectives_only`: over no message that lacks its partner.
  bool Waits(const RankKey& start, const RankKey& goal, std::vector<RankKey>* through, bool collectives_only = false) const;
  // Somebody that `start` waits for, over any number of ranks, waits for nobody: there the waiting ends, whatever else it leads to.
  bool EndsAtSomebody(const RankKey& start) const;
  // The rank has entered fewer collectives of some communicator than another member.
  bool ShortOfCollectives(const RankKey& key) const;

 private:
  bool Surplus(int communicator, int from, int to, bool at_sender) const;
  const std::set<RankKey>& WaitsFor(const RankKey& key, bool collectives_only) const;
  void AddAbsent(const model::Communicator& c, const model::Member& m, uint64_t position,
                 std::set<RankKey>* others) const;
  void AddPeers(const model::Communicator& c, const model::Member& m, const model::Op& op,
                std::set<RankKey>* others) const;
  const model::Communicator& At(const Place& place) const {
    return job_.communicators[place.communicator];
  }
  const model::Member& MemberAt(const Place& place) const { return At(place).members[place.rank]; }

  const model::Job& job_;
  std::map<RankKey, std::vector<Place>> places_;
  std::map<std::tuple<int, int, int>, const model::MessageCount*> counts_;
  mutable std::map<RankKey, std::vector<Head>> heads_;
  mutable std::map<std::pair<RankKey, bool>, std::set<RankKey>> waits_;
};

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_MESSAGE_WAITS_H_
