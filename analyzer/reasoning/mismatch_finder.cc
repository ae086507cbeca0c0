// Different arguments, functions or order at the same position of one communicator.
//
// NCCL does not compare arguments between ranks: a mismatch completes with wrong data, or hangs
// some operations later, possibly on the innocent ranks only. So neither who hangs nor where it
// hangs is looked at here, only what every rank asked for at the same position. The first position
// at which the ranks differ counts; whatever differs later follows from it.
//
// Who is odd is a vote of the ranks. Half against half is a mismatch without a culprit: which half
// is wrong is the program's intent (docs/localisation.md, What cannot be told apart).
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analyzer/reasoning/call_sequence.h"
#include "analyzer/reasoning/divergence_finding.h"
#include "analyzer/reasoning/finders.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/signature_chain.h"
#include "analyzer/reasoning/thresholds.h"

namespace ringscope::reasoning {
namespace {

using model::Communicator;
using model::Job;
using model::Member;
using model::Op;

struct Camp {
  const std::vector<Call>* calls = nullptr;
  const std::vector<const Voter*>* voters = nullptr;
};

struct Verdict {
  std::vector<Camp> odd;     // all camps in a tie
  std::vector<Camp> common;  // the majority; empty in a tie
  size_t voters = 0, dissenters = 0;
  bool tie() const { return common.empty(); }
};

Verdict Vote(const Split& split) {
  Verdict verdict;
  for (const auto& [calls, voters] : split.camps) verdict.voters += voters.size();
  for (const auto& [calls, voters] : split.camps) {
    const bool majority = 2 * voters.size() > verdict.voters;
    if (!majority) verdict.dissenters += voters.size();
    (majority ? verdict.common : verdict.odd).push_back({&calls, &voters});
  }
  return verdict;
}

// What one side calls and the other does not; both empty when they call the same.
void Difference(const std::vector<Call>& a, const std::vector<Call>& b, std::vector<Call>* only_a,
                std::vector<Call>* only_b) {
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(*only_a));
  std::set_difference(b.begin(), b.end(), a.begin(), a.end(), std::back_inserter(*only_b));
}

Kind::Value KindOf(Shape shape, const std::vector<Call>& odd, const std::vector<Call>& common) {
  if (shape == Shape::kOrder) return Kind::order_mismatch;
  if (shape != Shape::kReplaced || odd.size() != common.size()) return Kind::collective_mismatch;
  for (size_t i = 0; i < odd.size(); ++i) {
    Call call = odd[i];
    call.count = common[i].count;
    if (!(call == common[i])) return Kind::collective_mismatch;
  }
  return Kind::size_mismatch;
}

std::string CallsText(const std::vector<Call>& calls) {
  constexpr size_t kShown = 3;
  std::vector<std::string> texts;
  for (size_t i = 0; i < calls.size() && i < kShown; ++i) {
    trace::Operation op;
    op.set_func(static_cast<trace::Func>(calls[i].func));
    op.set_datatype(static_cast<trace::DataType>(calls[i].datatype));
    op.set_count(calls[i].count);
    op.set_root(calls[i].root);
    texts.push_back(OpText(model::OpRecord(op)));
  }
  if (calls.size() > kShown) texts.push_back(absl::StrCat(calls.size() - kShown, " more"));
  return calls.empty() ? "nothing" : absl::StrJoin(texts, " + ");
}

std::set<int> JobRanks(const std::vector<Camp>& camps) {
  std::set<int> ranks;
  for (const Camp& camp : camps) {
    for (const Voter* voter : *camp.voters) {
      if (voter->member->job_rank >= 0) ranks.insert(voter->member->job_rank);
    }
  }
  return ranks;
}

std::string CampsText(const Communicator& communicator, const std::vector<Camp>& camps) {
  const std::set<int> ranks = JobRanks(camps);
  size_t all = 0;
  for (const Camp& camp : camps) all += camp.voters->size();
  if (ranks.size() == all) return RanksText(ranks);
  std::vector<std::string> names;
  for (const Camp& camp : camps) {
    for (const Voter* voter : *camp.voters) names.push_back(RankText(communicator, *voter->member));
  }
  return absl::StrJoin(names, ", ");
}

std::string ShapeText(Shape shape, const std::string& odd_does, const std::string& common_does) {
  switch (shape) {
    case Shape::kOrder:
      return absl::StrCat("calls ", odd_does, " where the others call ", common_does,
                          ": the same operations in another order");
    case Shape::kMissing:
      return absl::StrCat("leaves out ", common_does,
                          ": from there on its calls are the others' next ones");
    case Shape::kExtra:
      return absl::StrCat("calls ", odd_does,
                          " in addition: from there on its calls are one behind the others'");
    default:
      return absl::StrCat("calls ", odd_does, " where the others call ", common_does);
  }
}

void AddNote(std::string text, Finding* finding) {
  Evidence* note = finding->add_evidence();
  note->set_text(std::move(text));
  note->set_rank(-1);
}

void AddCalls(const Job& job, const Unit& unit, const Camp& camp, size_t cited, Finding* finding) {
  const std::string what = absl::StrCat(
      unit.single() ? absl::StrCat("operation ", unit.first)
                    : absl::StrCat("operations ", unit.first, " to ", unit.last, " (one group)"),
      ": ", CallsText(*camp.calls));
  for (size_t i = 0; i < camp.voters->size() && i < cited; ++i) {
    const Voter& voter = *(*camp.voters)[i];
    const model::OpRecord& op = voter.At(unit.first)->raw;
    *finding->add_evidence() =
        MemberEvidence(job, *voter.member, op.row(), absl::StrCat(what, CallText(job, *voter.member, op)));
  }
  if (camp.voters->size() > cited) {
    AddNote(absl::StrCat(what, " on ", camp.voters->size() - cited, " more ranks"), finding);
  }
}

// Both ends of a connection must expect the same number of steps at the same position; if not, the
// plans differ.
void AddStepEvidence(const Job& job, const Communicator& communicator, uint64_t first,
                     Finding* finding) {
  int left = 4;
  for (const model::Edge& edge : job.edges) {
    if (left == 0) return;
    if (edge.communicator != communicator.index || edge.p2p || !edge.sender || !edge.receiver)
      continue;
    const trace::Edge *send = edge.sender->raw, *receive = edge.receiver->raw;
    if (send == nullptr || receive == nullptr || edge.sender->position_p2p ||
        edge.receiver->position_p2p)
      continue;
    if (edge.sender->position < first || edge.sender->position != edge.receiver->position) continue;
    if (send->n_steps() == 0 || receive->n_steps() == 0 || send->n_steps() == receive->n_steps())
      continue;
    const Member& from = communicator.members[edge.from];
    const Member& to = communicator.members[edge.to];
    *finding->add_evidence() = MemberEvidence(
        job, from, send->row(),
        absl::StrCat("both ends of edge ", from.job_rank, "->", to.job_rank, " channel ",
                     edge.channel, " are in operation ", edge.sender->position,
                     " but expect different work: ", send->n_steps(), " steps at the sender, ",
                     receive->n_steps(), " at the receiver (its table entry ", receive->row(),
                     ")"));
    --left;
  }
}

// The voter of a camp that kept the most after the difference, so that the comparison reaches far.
const Voter& Longest(const Camp& camp) {
  return **std::max_element(camp.voters->begin(), camp.voters->end(),
                            [](const Voter* a, const Voter* b) {
                              return a->ops.back()->position() < b->ops.back()->position();
                            });
}

Confidence::Value ConfidenceOf(const Verdict& verdict, bool complete, bool lossy) {
  if (lossy || (verdict.voters < 3 && !complete)) return Confidence::possible;
  const bool clear = !verdict.tie() && verdict.voters - verdict.dissenters >=
                                           thresholds::kMajorityFactor * verdict.dissenters;
  return clear && complete ? Confidence::established : Confidence::probable;
}

Candidate Describe(const Job& job, const Communicator& communicator,
                   const std::vector<Voter>& voters, const Split& split) {
  const Verdict verdict = Vote(split);
  const uint64_t first = split.unit.first;
  // Two sequences stand for the sides: the first dissenter's and the majority's, or the first two
  // camps' in a tie.
  const Camp& a = verdict.odd[0];
  const Camp& b = verdict.tie() ? verdict.odd[1] : verdict.common[0];
  Shape shape = Shape::kReplaced;
  if (split.unit.single()) {
    constexpr size_t kTail = 64;
    shape = ShapeOf(Tail(Longest(a), first, kTail), Tail(Longest(b), first, kTail));
  }
  std::vector<Call> only_a, only_b;
  Difference(*a.calls, *b.calls, &only_a, &only_b);
  const bool complete =
      communicator.size_known && verdict.voters == static_cast<size_t>(communicator.n_ranks);
  const bool lossy =
      std::any_of(voters.begin(), voters.end(), [](const Voter& voter) { return voter.lossy; });

  Candidate candidate;
  candidate.order = Class::kMismatch;
  candidate.communicator = communicator.index;
  candidate.position = first;
  Finding& finding = candidate.finding;
  finding.set_kind(KindOf(shape, only_a, only_b));
  finding.set_confidence(ConfidenceOf(verdict, complete, lossy));
  finding.mutable_who()->add_communicators(communicator.Label());
  const std::string place = PlaceText(communicator, first);
  const std::string odd_text = CampsText(communicator, verdict.odd);
  if (verdict.tie()) {
    finding.set_title(absl::StrCat(
        "The ranks disagree in ", place, ": ", CallsText(only_a), " on ",
        CampsText(communicator, {a}), ", ", CallsText(only_b), " on ", CampsText(communicator, {b}),
        shape == Shape::kOrder ? " (the same operations in another order)" : "",
        "; which side is wrong is the program's intent"));
  } else {
    AddRanks(JobRanks(verdict.odd), finding.mutable_who()->mutable_ranks());
    finding.set_title(absl::StrCat("In ", place, " ", odd_text, " ",
                                   ShapeText(shape, CallsText(only_a), CallsText(only_b))));
  }

  constexpr size_t kOddCited = 16, kCommonCited = 4;
  for (const Camp& camp : verdict.odd) AddCalls(job, split.unit, camp, kOddCited, &finding);
  for (const Camp& camp : verdict.common) AddCalls(job, split.unit, camp, kCommonCited, &finding);
  AddStepEvidence(job, communicator, first, &finding);
  if (!complete) {
    AddNote(absl::StrCat(communicator.size_known ? "only " : "", verdict.voters, " of ",
                         communicator.SizeText(), " ranks have a record that holds this position"),
            &finding);
  }
  if (lossy) {
    AddNote(
        "some records lost operations, so equal positions may not be the same operation on all "
        "ranks",
        &finding);
  }
  if (split.first_kept) {
    AddNote(
        "earlier operations are no longer kept: the difference may have begun before this position",
        &finding);
  }

  std::set<int> waiting = WaitingSince(job, communicator, first, &candidate.stops_job);
  for (int rank : finding.who().ranks()) waiting.erase(rank);
  AddRanks(waiting, finding.mutable_collateral()->mutable_ranks());
  finding.mutable_cause()->set_id("not established");
  finding.set_refuted_by(absl::StrCat(
      "a record of the calls made by the program in which all ranks agree up to operation ", first,
      ", or two communicators that share this id"));
  finding.mutable_next()->set_text(absl::StrCat(
      "Compare what ",
      verdict.tie() ? "the two sides run" : absl::StrCat(odd_text, " and the others run"),
      " before this call: a branch on data or rank, a bucket or batch of another size, a swallowed "
      "exception. The next run "
      "with the command's settings prints each call with its arguments and checks them across "
      "ranks."));
  finding.mutable_next()->set_command(
      "TORCH_DISTRIBUTED_DEBUG=DETAIL NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL");
  return candidate;
}

}  // namespace

// The calls themselves say more than their hash, as long as the first difference is among them.
std::vector<Candidate> FindMismatches(const model::Job& job) {
  std::vector<Candidate> candidates;
  std::map<std::pair<uint64_t, int>, int> same_id;
  for (const Communicator& c : job.communicators) ++same_id[{c.id, c.n_ranks}];
  for (const Communicator& communicator : job.communicators) {
    const std::vector<Voter> voters = Voters(communicator);
    std::optional<Candidate> rows;
    std::optional<Split> split;
    if (voters.size() >= 2) split = FirstSplit(voters);
    if (split) rows = Describe(job, communicator, voters, *split);
    const std::optional<Divergence> chains = FindDivergence(job, communicator);
    if (!chains) {
      if (rows) candidates.push_back(*std::move(rows));
      continue;
    }
    const bool later = rows && chains->aligned && split->unit.first > chains->differed;
    const bool earlier = rows && chains->aligned && split->unit.last <= chains->agreed;
    if (rows && !later) {
      if (!earlier) AddChainEvidence(job, communicator, *chains, &rows->finding);
      candidates.push_back(*std::move(rows));
    } else {
      candidates.push_back(
          DescribeDivergence(job, communicator, *chains, rows ? &*rows : nullptr,
                             same_id[{communicator.id, communicator.n_ranks}] > 1));
    }
  }
  return candidates;
}

static const Register kRegister("mismatch", FindMismatches);

}  // namespace ringscope::reasoning
