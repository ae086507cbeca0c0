// torch's own comparison of what the ranks are about to run (TORCH_DISTRIBUTED_DEBUG=DETAIL).
//
// A rank compares itself with the others in ascending order and reports the first that differs: every rank below that one agrees with
// it. From all ranks' reports the camps follow; from one report of rank 0 against rank 3, that ranks 0 to 2 agree.
#include <absl/strings/str_cat.h>

#include <map>

#include "analyzer/model/ranks_text.h"
#include "analyzer/model/views.h"
#include "analyzer/reasoning/text_evidence.h"
#include "analyzer/reasoning/work_groups.h"

namespace ringscope::reasoning {
namespace {

std::string PrintText(const model::FingerPrint& print) {
  return absl::StrCat(print.op.empty() ? "another operation" : print.op, print.shapes.empty() ? "" : " of shape ", print.shapes,
                      print.dtypes.empty() ? "" : " ", print.dtypes);
}

// Elements of the first shape; -1 when it cannot be told.
int64_t Elements(const std::string& shapes) {
  int64_t product = 1, n = -1;
  for (const char c : shapes) {
    if (c >= '0' && c <= '9') {
      n = (n < 0 ? 0 : n) * 10 + (c - '0');
      if (n > (int64_t{1} << 40)) return -1;
    } else if (n >= 0) {
      if (n > 0 && product > (int64_t{1} << 60) / n) return -1;
      product *= n;
      n = -1;
      if (c == ']') break;
    }
  }
  return shapes.empty() ? -1 : product;
}

std::vector<Candidate> FindFingerprints(const model::Job& job) {
  const auto& all = job.evidence.work.fingerprints;
  if (all.empty()) return {};
  // The first mismatch in the program: the lowest sequence number told.
  const model::FingerPrintMismatch* first = &all[0];
  for (const auto& m : all) {
    if (m.own.seq && first->own.seq && *m.own.seq < *first->own.seq) first = &m;
  }
  std::map<std::string, std::set<int>> camps;
  std::map<int, model::FingerPrint> prints;
  std::vector<const model::FingerPrintMismatch*> cited;
  for (const auto& m : all) {
    if (m.own.seq != first->own.seq) continue;
    if (cited.size() < 4) cited.push_back(&m);
    for (const model::FingerPrint* print : {&m.own, &m.other}) {
      if (print->rank >= 0 && prints.emplace(print->rank, *print).second) camps[PrintText(*print)].insert(print->rank);
    }
  }
  for (const auto* m : cited) {
    for (int rank = 0; rank < m->other.rank && rank < 4096; ++rank) {
      if (prints.count(rank) == 0) camps[PrintText(m->own)].insert(rank);
    }
  }
  const Vote vote = CountVotes(camps);
  const model::FingerPrint &a = first->own, &b = first->other;
  const bool ops = !a.op.empty() && !b.op.empty() && a.op != b.op;
  const bool types = !ops && a.dtypes != b.dtypes && !a.dtypes.empty() && !b.dtypes.empty();
  const bool numbers = b.seq && a.seq && *a.seq != *b.seq;
  const bool sizes = !ops && !types && a.shapes != b.shapes;
  std::set<int> who = vote.odd;
  std::string side;
  bool guess = false;
  if (vote.tie && camps.size() == 2) {
    const FewerBatches batches = FewerBatchesIn(job);
    if (batches.fewer != nullptr && prints.count(batches.fewer->by.rank) > 0) {
      who = {batches.fewer->by.rank};
    } else if (sizes && a.op == "ALLREDUCE" && prints.size() == 2) {
      // A sum over gradients is smaller where a part of the model took no part: that rank is the first to look at, no more.
      const int64_t mine = Elements(a.shapes), theirs = Elements(b.shapes);
      if (mine >= 0 && theirs >= 0 && mine != theirs) {
        who = {mine < theirs ? a.rank : b.rank};
        guess = true;
        side = absl::StrCat("; which side is wrong cannot be told from two, rank ", *who.begin(),
                            " has fewer elements to reduce and is the first to look at");
      }
    }
    if (who.empty()) {
      for (const auto& [rank, print] : prints) who.insert(rank);
      side = "; which side is wrong cannot be told";
    }
  }
  std::string title = absl::StrCat("Ranks disagree", a.seq ? absl::StrCat(" at collective ", *a.seq) : "", ": ");
  bool comma = false;
  for (const auto& [what, ranks] : camps) {
    absl::StrAppend(&title, comma ? ", but " : "", model::RanksText({ranks.begin(), ranks.end()}), " in ", what);
    comma = true;
  }
  if (camps.size() == 1 && !first->differ.empty()) absl::StrAppend(&title, "; ", first->differ);
  title += side;
  Candidate candidate =
      Say(sizes                       ? Kind::size_mismatch
          : numbers && !ops && !types ? Kind::order_mismatch
                                      : Kind::collective_mismatch,
          guess ? Confidence::possible : Confidence::probable, Layer::kProgram, std::move(title), ops ? "UC-01" : "UC-02");
  candidate.stops_job = true;
  candidate.state = State::crashed;
  Finding& finding = candidate.finding;
  for (const int rank : who) finding.mutable_who()->add_ranks(rank);
  for (const auto& [rank, print] : prints) {
    if (who.count(rank) == 0) finding.mutable_collateral()->add_ranks(rank);
  }
  for (const auto* m : cited) {
    Cite(job, m->where, m->text, &finding);
    if (!m->differ.empty() && !Contains(m->text, m->differ)) Cite(job, m->where, m->differ, &finding);
    if (!m->other.op.empty() && !Contains(m->text, "but Rank"))
      Cite(job, m->where, absl::StrCat("rank ", m->other.rank, " runs ", PrintText(m->other)), &finding);
  }
  finding.set_refuted_by("the same operation, shape and type on all ranks at that number");
  if (sizes) {
    SetNext(
        "What makes the tensor smaller on one rank: a branch that only some batches take (no images, no text), unused parameters, "
        "uneven "
        "batches. Let every rank run all parts of the model (a dummy pass with weight zero), or pad.",
        "", &finding);
  } else {
    SetNext("The stack of each rank at that call: the branch on which they part must be taken by all ranks or by none.",
            "py-spy dump --pid <pid>  # on each rank; or the traceback that follows this error on each rank", &finding);
  }
  return {candidate};
}

const Register kRegister("fingerprint", FindFingerprints);

}  // namespace
}  // namespace ringscope::reasoning
