#include "analyzer/reasoning/divergence_finding.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analyzer/reasoning/call_sequence.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/thresholds.h"

namespace ringscope::reasoning {
namespace {

using model::Communicator;
using model::Job;
using model::Member;

// 12,864: these numbers are long and close to each other.
std::string Grouped(uint64_t n) {
  std::string text = absl::StrCat(n);
  for (size_t i = text.size(); i > 3;) text.insert(i -= 3, ",");
  return text;
}

std::set<int> JobRanks(const std::vector<const Member*>& members) {
  std::set<int> ranks;
  for (const Member* m : members) {
    if (m->job_rank >= 0) ranks.insert(m->job_rank);
  }
  return ranks;
}

std::string MembersText(const Communicator& c, const std::vector<const Member*>& members) {
  const std::set<int> ranks = JobRanks(members);
  if (ranks.size() == members.size()) return RanksText(ranks);
  constexpr size_t kShown = 8;
  std::vector<std::string> names;
  for (const Member* m : members) {
    if (names.size() == kShown) {
      names.push_back(absl::StrCat(members.size() - kShown, " more"));
      break;
    }
    names.push_back(RankText(c, *m));
  }
  return absl::StrJoin(names, ", ");
}

std::string RangeText(const Divergence& d) {
  return d.agreed == 0
             ? absl::StrCat("within the first ", Grouped(d.differed), " operations")
             : absl::StrCat("between operations ", Grouped(d.agreed), " and ", Grouped(d.differed));
}

// Two sides as words: "ranks 0 and 1; ranks 2 and 3".
std::string SidesText(const Communicator& c, const Divergence& d) {
  constexpr size_t kShown = 4;
  std::vector<std::string> sides;
  for (const auto& side : d.sides) {
    if (sides.size() == kShown) {
      sides.push_back(absl::StrCat(d.sides.size() - kShown, " more sides"));
      break;
    }
    sides.push_back(MembersText(c, side));
  }
  return absl::StrJoin(sides, "; ");
}

void AddNote(std::string text, Finding* finding) {
  Evidence* note = finding->add_evidence();
  note->set_text(std::move(text));
  note->set_rank(-1);
}

void AddMember(const Job& job, const Member& m, std::string text, Finding* finding) {
  *finding->add_evidence() = MemberEvidence(job, m, m.raw->row(), std::move(text));
}

// Somebody of the communicator died or was frozen: that stops the others by itself, and may have
// come long after.
bool LostSomebody(const Job& job, const Communicator& c) {
  return std::any_of(c.members.begin(), c.members.end(), [&](const Member& m) {
    if (!m.has_record()) return false;
    const model::Life life = job.processes[static_cast<size_t>(m.process)].life;
    return life == model::Life::kGone || life == model::Life::kFrozen ||
           life == model::Life::kGoneOrFrozen;
  });
}

Confidence::Value ConfidenceOf(const Communicator& c, const Divergence& d, bool ambiguous) {
  const bool complete = c.size_known && d.voters == static_cast<size_t>(c.n_ranks);
  if (ambiguous || (d.voters < 3 && !complete)) return Confidence::possible;
  // One value that differs at several positions cannot be a damaged word.
  return complete && !d.odd.empty() && d.positions > 1 ? Confidence::established
                                                       : Confidence::probable;
}

}  // namespace

void AddChainEvidence(const Job& job, const Communicator& c, const Divergence& d,
                      Finding* finding) {
  constexpr size_t kCited = 8;
  const std::string range =
      absl::StrCat(d.agreed == 0 ? "there is no earlier position to compare"
                                 : absl::StrCat("agree up to operation ", Grouped(d.agreed)),
                   d.agreed == 0 ? ", and they differ at " : " and differ at ", "operation ",
                   Grouped(d.differed));
  std::vector<const Member*> cited = d.odd;
  if (cited.empty()) {
    for (const auto& side : d.sides) cited.push_back(side[0]);
    cited.erase(cited.begin());
  }
  for (size_t i = 0; i < cited.size() && i < kCited; ++i) {
    AddMember(job, *cited[i],
              absl::StrCat("signature chains of ", RankText(c, *cited[i]), " and ",
                           RankText(c, d.reference()), ": ", range),
              finding);
  }
  if (cited.size() > kCited)
    AddNote(absl::StrCat("the same on ", cited.size() - kCited, " more ranks"), finding);
}

Candidate DescribeDivergence(const Job& job, const Communicator& c, const Divergence& d,
                             const Candidate* rows, bool ambiguous) {
  const uint64_t first = d.agreed + 1;
  Candidate candidate;
  candidate.order = Class::kMismatch;
  candidate.communicator = c.index;
  candidate.position = d.aligned ? first : 0;
  Finding& finding = candidate.finding;
  finding.set_kind(Kind::collective_mismatch);
  finding.set_confidence(ConfidenceOf(c, d, ambiguous));
  if (d.by_launch && finding.confidence() == Confidence::established)
    finding.set_confidence(Confidence::probable);
  finding.mutable_who()->add_communicators(c.Label());
  AddRanks(JobRanks(d.odd), finding.mutable_who()->mutable_ranks());
  const std::string where = absl::StrCat(RangeText(d), " of communicator ", c.Label());
  finding.set_title(d.odd.empty()
                        ? absl::StrCat("The ranks diverged ", where, ": ", SidesText(c, d),
                                       "; which side is wrong is the program's intent")
                        : absl::StrCat("The ranks diverged ", where, ": ", MembersText(c, d.odd),
                                       d.odd.size() == 1 ? " alone" : " against the others"));

  AddChainEvidence(job, c, d, &finding);
  AddMember(
      job, d.reference(),
      absl::StrCat("same chain as ", d.sides[0].size() - 1, " other",
                   d.sides[0].size() == 2 ? " rank" : " ranks", ", of ", d.voters, " compared"),
      &finding);
  AddNote(
      "a chain is a hash over function, datatype, count and root of each collective: where it "
      "differs, a call differed",
      &finding);
  if (rows != nullptr) {
    const std::set<int> odd = JobRanks(d.odd);
    const auto& named = rows->finding.who().ranks();
    if (odd == std::set<int>(named.begin(), named.end())) finding.set_kind(rows->finding.kind());
    constexpr int kRows = 6;
    AddNote(absl::StrCat("of the calls that are still kept, the first that differ: ",
                         rows->finding.title()),
            &finding);
    for (int i = 0; i < rows->finding.evidence_size() && i < kRows; ++i)
      *finding.add_evidence() = rows->finding.evidence(i);
  }
  if (!d.later.empty()) {
    AddNote(absl::StrCat(MembersText(c, d.later), " left the others' chain only later"), &finding);
  }
  if (d.voters < static_cast<size_t>(c.n_ranks)) {
    AddNote(absl::StrCat("only ", d.voters, " of ", c.SizeText(),
                         " ranks kept their chain at a common position"),
            &finding);
  }
  if (d.not_comparable > 0) {
    AddNote(absl::StrCat("chains of ", d.not_comparable,
                         d.not_comparable == 1 ? " rank are" : " ranks are",
                         " not comparable: other profiler events, or a thread without a table row"),
            &finding);
  }
  if (ambiguous)
    AddNote(
        "several communicators share this id and size; they are told apart by the times of their "
        "creation",
        &finding);

  bool waits = false;
  std::set<int> waiting = WaitingSince(job, c, d.aligned ? first : 1, &waits);
  candidate.stops_job = waits && !LostSomebody(job, c);
  for (int rank : finding.who().ranks()) waiting.erase(rank);
  if (candidate.stops_job) AddRanks(waiting, finding.mutable_collateral()->mutable_ranks());
  finding.mutable_cause()->set_id("not established");
  finding.set_refuted_by(absl::StrCat(
      "a record of all calls in which the ranks agree up to operation ", Grouped(d.differed),
      ", ranks that group the same calls differently, or two communicators that share this id"));
  finding.mutable_next()->set_text(absl::StrCat(
      "The calls of that range are no longer in the records. Look at what ",
      d.odd.empty() ? "the sides do"
                    : absl::StrCat(MembersText(c, d.odd), d.odd.size() == 1 ? " does" : " do"),
      " differently there: the last batch of an epoch, a branch on data or rank, a "
      "swallowed exception, a retry. The next run with the command's settings prints "
      "each call with its arguments and checks them across ranks."));
  finding.mutable_next()->set_command(
      "TORCH_DISTRIBUTED_DEBUG=DETAIL NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL");
  return candidate;
}

}  // namespace ringscope::reasoning
