// Ranks that reduce the same buffers with another operation: a sum here, a maximum there.
//
// NCCL does not compare it, and nothing waits for it: each rank computes its part of the result in its own way, so the results
// are wrong, on different ranks differently, and the job goes on. NCCL's profiler events do not carry the reduction; the
// preloaded library's records do. A rank whose record does not tell takes no part.
//
// Calls of one group are left out: NCCL may order them anew, and equal positions need not be the same call. From the first call
// on in which the ranks differ otherwise, positions say nothing (mismatch_finder's business).
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/reasoning/call_sequence.h"
#include "analyzer/reasoning/finder.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/thresholds.h"

namespace ringscope::reasoning {
namespace {

using model::Communicator;
using model::Op;

// Members by the reduction that they asked for (Operation.reduction).
using Camps = std::map<uint32_t, std::vector<const Voter*>>;

std::string ReductionText(uint32_t reduction) {
  constexpr const char* kNames[] = {"sum", "product", "maximum", "minimum", "average"};  // ncclRedOp_t, nccl.h
  return reduction >= 1 && reduction <= 5 ? kNames[reduction - 1] : "an operation of the program's own";
}

// The first collective that the ranks call alike but for the reduction; empty: none.
Camps FirstDifference(const std::vector<Voter>& voters, uint64_t* position) {
  std::map<uint64_t, std::vector<std::pair<const Voter*, const Op*>>> at;
  for (const Voter& voter : voters) {
    for (const Op* op : voter.ops) at[op->position()].push_back({&voter, op});
  }
  for (const auto& [where, calls] : at) {
    Camps camps;
    bool grouped = false;
    for (const auto& [voter, op] : calls) {
      grouped |= InGroup(*op);
      if (op->raw.reduction() != 0) camps[op->raw.reduction()].push_back(voter);
    }
    if (grouped) continue;
    for (const auto& [voter, op] : calls) {
      if (!(CallOf(*op) == CallOf(*calls[0].second))) return {};
    }
    if (camps.size() < 2) continue;
    *position = where;
    return camps;
  }
  return {};
}

std::set<int> JobRanks(const std::vector<const Voter*>& voters) {
  std::set<int> ranks;
  for (const Voter* voter : voters) {
    if (voter->member->job_rank >= 0) ranks.insert(voter->member->job_rank);
  }
  return ranks;
}

Candidate Describe(const model::Job& job, const Communicator& communicator, uint64_t position, const Camps& camps) {
  size_t all = 0;
  const Camps::value_type* most = nullptr;
  bool lossy = false;
  for (const auto& camp : camps) {
    all += camp.second.size();
    if (most == nullptr || camp.second.size() > most->second.size()) most = &camp;
    for (const Voter* voter : camp.second) lossy |= voter->lossy;
  }
  const bool majority = 2 * most->second.size() > all;
  const bool complete = communicator.size_known && all == static_cast<size_t>(communicator.n_ranks);
  const bool clear = majority && most->second.size() >= thresholds::kMajorityFactor * (all - most->second.size());
  Candidate candidate;
  candidate.order = Class::kMismatch;
  candidate.communicator = communicator.index;
  candidate.position = position;
  Finding& finding = candidate.finding;
  finding.set_kind(Kind::collective_mismatch);
  finding.set_confidence(lossy ? Confidence::possible : clear && complete ? Confidence::established : Confidence::probable);
  finding.mutable_who()->add_communicators(communicator.Label());
  std::vector<std::string> ways;
  std::set<int> odd;
  for (const auto& camp : camps) {
    if (majority && &camp == most) continue;
    const std::set<int> ranks = JobRanks(camp.second);
    ways.push_back(absl::StrCat(RanksText(ranks), " with ", ReductionText(camp.first)));
    odd.insert(ranks.begin(), ranks.end());
  }
  if (majority) {
    ways.push_back(absl::StrCat("the others with ", ReductionText(most->first)));
    AddRanks(odd, finding.mutable_who()->mutable_ranks());
  }
  const model::OpRecord& call = most->second[0]->At(position)->raw;
  finding.set_title(absl::StrCat("Ranks reduce ", OpText(call), " (", PlaceText(communicator, position),
                                 ") differently: ", absl::StrJoin(ways, ", "), "; the results are wrong",
                                 majority ? "" : ", and which side is, is the program's intent"));
  constexpr size_t kCited = 4;
  for (const auto& [reduction, voters] : camps) {
    for (size_t i = 0; i < voters.size() && i < kCited; ++i) {
      const model::OpRecord& op = voters[i]->At(position)->raw;
      *finding.add_evidence() =
          MemberEvidence(job, *voters[i]->member, op.row(),
                         absl::StrCat("operation ", position, ": ", OpText(op), ", ", ReductionText(reduction)));
    }
  }
  if (!complete) {
    Evidence* note = finding.add_evidence();
    note->set_rank(-1);
    note->set_text(absl::StrCat("the reduction is known of ", all,
                                communicator.size_known ? absl::StrCat(" of ", communicator.n_ranks) : "",
                                " ranks: only the preloaded library records it"));
  }
  finding.mutable_cause()->set_id("not established");
  finding.set_refuted_by(
      absl::StrCat("the same ncclRedOp_t in operation ", position, " on all ranks, by a record of the program's calls"));
  finding.mutable_next()->set_text(
      "Compare what the ranks pass as the operation there: a branch on data or rank, an average that one rank divides out "
      "itself. "
      "What was computed since is not to be trusted. The next run with the command's settings prints each call with its "
      "operation.");
  finding.mutable_next()->set_command("TORCH_DISTRIBUTED_DEBUG=DETAIL NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL");
  return candidate;
}

std::vector<Candidate> Find(const model::Job& job) {
  std::vector<Candidate> found;
  for (const Communicator& communicator : job.communicators) {
    const std::vector<Voter> voters = Voters(communicator);
    uint64_t position = 0;
    const Camps camps = FirstDifference(voters, &position);
    if (!camps.empty()) found.push_back(Describe(job, communicator, position, camps));
  }
  return found;
}

const Register kRegister("reduction", Find);

}  // namespace
}  // namespace ringscope::reasoning
