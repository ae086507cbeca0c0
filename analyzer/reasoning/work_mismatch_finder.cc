// Ranks that time out in different collectives, or in one with different sizes, at the same position of a process group.
//
// The position is torch's sequence number, which counts the collectives of one group: where two ranks are at the same number with
// different operations their programs have parted before. NCCL does not check this; the ranks wait for each other.
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "analyzer/model/ranks_text.h"
#include "analyzer/reasoning/text_evidence.h"
#include "analyzer/reasoning/work_groups.h"

namespace ringscope::reasoning {
namespace {

std::string CampText(const std::map<std::string, std::set<int>>& camps) {
  std::vector<std::string> parts;
  for (const auto& [what, ranks] : camps) {
    if (parts.size() == 4) {
      parts.push_back("…");
      break;
    }
    parts.push_back(absl::StrCat(model::RanksText({ranks.begin(), ranks.end()}), " in ", what));
  }
  std::string text;
  for (const std::string& part : parts) absl::StrAppend(&text, text.empty() ? "" : ", ", part);
  return text;
}

Candidate Put(const model::Job& job, const GroupWork& group, const Divergence& found) {
  const Vote vote = CountVotes(found.camps);
  const FewerBatches batches = FewerBatchesIn(job);
  std::set<int> involved, who = vote.odd;
  for (const auto& [what, ranks] : found.camps) involved.insert(ranks.begin(), ranks.end());
  std::string cause = found.sizes ? "UC-02" : "UC-01";
  std::string why;
  bool even = vote.tie;
  if (batches.fewer != nullptr && involved.count(batches.fewer->by.rank) > 0 &&
      (who.empty() || who.count(batches.fewer->by.rank) > 0)) {
    who = {batches.fewer->by.rank};
    even = false;
    cause = "UC-04";
    why = absl::StrCat("; rank ", batches.fewer->by.rank, " ended its loop after fewer batches (", *batches.fewer->done, ") than rank ",
                       batches.more->by.rank, " (", *batches.more->done, " and more)");
  }
  if (even) who = involved;
  const std::string place = absl::StrCat(found.shifted ? " near work " : " at work ", found.seq,
                                         group.Label().empty() ? "" : absl::StrCat(" of ", group.Label()));
  // Two groups can be at the same small number by chance when the log names no groups.
  const bool weak = found.shifted || (!group.group.known() && found.seq < 16);
  const bool one = who.size() == 1;
  std::string title = absl::StrCat(one ? absl::StrCat("Rank ", *who.begin(), " runs ") : "Ranks run ",
                                   found.sizes ? "another size" : "another collective", one ? " than the others" : " than each other",
                                   place, ": ", CampText(found.camps), why, even ? "; which side is wrong cannot be told" : "",
                                   "; the timeout on every rank follows from it");
  Candidate candidate = Say(found.sizes ? Kind::size_mismatch : Kind::collective_mismatch,
                            weak ? Confidence::possible : Confidence::probable, Layer::kProgram, std::move(title), cause);
  candidate.stops_job = true;
  candidate.state = State::hang;
  Finding& finding = candidate.finding;
  for (const int rank : who) finding.mutable_who()->add_ranks(rank);
  if (!group.Label().empty()) finding.mutable_who()->add_communicators(group.Label());
  for (const int rank : involved) {
    if (who.count(rank) == 0) finding.mutable_collateral()->add_ranks(rank);
  }
  // One line of each camp first, the odd one's before all.
  for (const int rank : who) {
    if (finding.evidence_size() < 4) CiteTimeout(job, *group.ranks.at(rank).timeout, &finding);
  }
  for (const auto& [what, ranks] : found.camps) {
    if (finding.evidence_size() < 8) CiteTimeout(job, *group.ranks.at(*ranks.begin()).timeout, &finding);
  }
  for (const int rank : involved) {
    const model::WorkCursor* cursor = group.ranks.at(rank).cursor;
    if (cursor != nullptr && finding.evidence_size() < 10) CiteCursor(job, *cursor, &finding);
  }
  if (batches.fewer != nullptr) {
    CiteHostWork(job, *batches.fewer, &finding);
    CiteHostWork(job, *batches.more, &finding);
  }
  // What the odd rank said it was about to do.
  int told = 0;
  for (const model::HostWork& h : job.evidence.work.host_work) {
    if (told < 3 && h.by.rank >= 0 && who.count(h.by.rank) > 0 && who.size() < involved.size()) CiteHostWork(job, h, &finding), ++told;
  }
  finding.set_refuted_by(group.group.known()
                             ? "flight recorder dumps that show the same operations in the same order on these ranks"
                             : "the two works belong to different process groups (this release's log does not name them)");
  if (cause == "UC-04") {
    SetNext("Let all ranks stop together: all_reduce (MIN) a has-data flag each step, drop uneven tails, or use DDP's join.",
            "TORCH_DISTRIBUTED_DEBUG=DETAIL on a small run checks every collective", &finding);
  } else if (found.sizes) {
    SetNext(
        "What makes the tensor smaller on one rank: a branch that only some batches take (no images, no text), unused parameters, "
        "padding. "
        "Let every rank run all parts of the model.",
        "TORCH_DISTRIBUTED_DEBUG=DETAIL on a small run checks every collective", &finding);
  } else {
    SetNext(
        "The condition on which that rank takes another branch (save a checkpoint, evaluate, stop early) must have the same value on "
        "all "
        "ranks: all_reduce or broadcast the value before the branch.",
        "py-spy dump --pid <pid>  # on each rank while it hangs; or TORCH_DISTRIBUTED_DEBUG=DETAIL", &finding);
  }
  return candidate;
}

std::vector<Candidate> FindWorkMismatch(const model::Job& job) {
  std::vector<Candidate> found;
  for (const GroupWork& group : GroupsOf(job)) {
    const Divergence divergence = Compare(group);
    if (divergence.camps.size() >= 2) found.push_back(Put(job, group, divergence));
  }
  return found;
}

const Register kRegister("work mismatch", FindWorkMismatch);

}  // namespace
}  // namespace ringscope::reasoning
