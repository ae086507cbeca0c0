// What PyTorch's analyzer of flight recorder dumps concluded, as far as its own rules carry it.
//
// It reads the dumps one after the other, compares every rank with the first, and calls whoever differs a culprit. Is the first
// one the odd one, then everybody else is listed; so its list is never believed, only counted. It aligns the ring buffers by
// record number, which ranks with different work do not share, so that its "missing ranks" can be all of them. And behind the
// first complaint about a group its pairing is off, by its own comment: only that one is looked at.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

using model::AnalyzerReport;
using Problem = AnalyzerReport::Problem;

constexpr char kEntries[] = "torchfrtrace -j <directory of dumps>; or: ringscope diagnose <directory of dumps>";

std::string OpName(const AnalyzerReport& r) {
  std::string text = r.func != trace::FUNC_UNKNOWN ? FuncText(r.func) : "an operation";
  if (r.sequence >= 0) absl::StrAppend(&text, " #", r.sequence);
  if (!r.group.empty()) absl::StrAppend(&text, " of process group ", r.group);
  if (!r.collective.empty()) absl::StrAppend(&text, " (", r.collective, ")");
  return text;
}

void Quote(const model::Job& job, const AnalyzerReport& r, Finding* f) {
  for (const auto& [where, text] : r.lines) Cite(job, where, text, f);
}

Candidate Missing(const model::Job& job, const AnalyzerReport& r) {
  const std::set<int> missing(r.missing.begin(), r.missing.end());
  const auto expected = static_cast<size_t>(std::max(r.world, static_cast<int>(r.expected.size())));
  // Of a pair either may be the one; the analyzer only lists who has no entry, so a rank that is listed has none.
  const bool many = missing.size() > 1 && expected > 0 && 2 * missing.size() >= expected;
  Candidate c =
      many ? Say(Kind::undetermined, Confidence::possible, Layer::kProgram,
                 absl::StrCat(
                     missing.size(), " of ", expected, " ranks have no entry for ", OpName(r),
                     " in their flight recorder: either they are late, or the others are ahead, or their rings start later"),
                 "")
           : Say(Kind::missing_rank, Confidence::possible, Layer::kProgram,
                 absl::StrCat(RanksText(missing), missing.size() == 1 ? " has" : " have", " not entered ", OpName(r),
                              ", which the others wait in, by the flight recorder's analyzer"),
                 "");
  Finding& f = c.finding;
  c.stops_job = true;
  c.state = State::hang;
  if (!many) {
    AddRanks(missing, f.mutable_who()->mutable_ranks());
    std::set<int> waiting(r.expected.begin(), r.expected.end());
    for (const int rank : missing) waiting.erase(rank);
    AddRanks(waiting, f.mutable_collateral()->mutable_ranks());
  }
  Quote(job, r, &f);
  f.set_refuted_by(absl::StrCat("an entry of ", RanksText(missing),
                                " for this collective_seq_id in its own dump (the analyzer cuts rings by record "
                                "number, which differs between ranks)"));
  SetNext(absl::StrCat("See where ", many ? "one rank of each side" : RanksText(missing),
                       " is instead: a stack taken while it hangs, and the newest entries of its dump."),
          absl::StrCat("py-spy dump --pid <pid of ", many ? "a rank" : RanksText(missing), ">"), &f);
  return c;
}

// What each side calls, and how many were counted on it.
struct Sides {
  std::string what, expected;
  std::map<std::string, std::set<int>> found;
  std::set<std::string> errors;
  size_t listed = 0;
};

Sides SidesOf(const AnalyzerReport& r) {
  Sides sides;
  std::set<int> ranks;
  for (const model::AnalyzerCulprit& culprit : r.culprits) {
    ranks.insert(culprit.rank);
    sides.errors.insert(culprit.error);
    if (culprit.found.empty()) continue;
    if (sides.what.empty()) {
      sides.what = culprit.what;
      sides.expected = culprit.expected;
    }
    sides.found[culprit.found].insert(culprit.rank);
  }
  sides.listed = ranks.size();
  return sides;
}

Candidate Differs(const model::Job& job, const AnalyzerReport& r) {
  const Sides sides = SidesOf(r);
  const bool state = sides.errors.size() == 1 && sides.errors.count("COLLECTIVE_STATE_MISMATCH") > 0;
  const bool size =
      r.problem == Problem::kTotals || (sides.errors.size() == 1 && sides.errors.count("SIZE_OR_SYNTAX_MISMATCH") > 0);
  const Kind::Value kind = state ? Kind::undetermined : size ? Kind::size_mismatch : Kind::collective_mismatch;
  std::string title;
  if (r.problem == Problem::kTotals) {
    title = absl::StrCat("In ", OpName(r),
                         " the ranks send other amounts than they expect to receive; which rank's splits are wrong the flight "
                         "recorder's analyzer cannot tell");
  } else {
    title = absl::StrCat("The flight recorder's analyzer sees ranks disagree in ", OpName(r));
    if (!sides.found.empty()) {
      std::vector<std::string> parts;
      for (const auto& [value, ranks] : sides.found) {
        if (parts.size() == 4) break;
        parts.push_back(absl::StrCat(value, " on ", ranks.size(), ranks.size() == 1 ? " rank" : " ranks", " that it lists"));
      }
      absl::StrAppend(&title, ": ", sides.what, " ", sides.expected, " on the rank it read first, ", absl::StrJoin(parts, ", "));
      if (r.world > 0) absl::StrAppend(&title, ", of ", r.world);
    }
    absl::StrAppend(
        &title, state ? "; a state that differs is no disagreement about the call: who is behind is not told"
                      : "; which side is wrong it does not tell: the first rank may be the odd one, its culprits the majority");
  }
  Candidate c = Say(kind, Confidence::possible, Layer::kProgram, std::move(title), "");
  c.stops_job = true;
  c.state = State::hang;
  Finding& f = c.finding;
  Quote(job, r, &f);
  f.set_refuted_by("the entries of all ranks for this operation agree, as when rings that start apart were compared");
  SetNext(absl::StrCat("Dump the flight recorder entries of all ranks for ",
                       r.sequence >= 0 ? absl::StrCat("collective_seq_id ", r.sequence, " and the five before and after it")
                                       : "this operation",
                       ", count the ranks on each side",
                       sides.expected.empty() ? "" : absl::StrCat(" (how many have ", sides.expected, ")"),
                       ", and look which code makes the call that the fewer make (frames of its entry)."),
          kEntries, &f);
  return c;
}

Candidate NoDumps(const model::Job& job, const AnalyzerReport& r) {
  const std::set<int> ranks(r.missing.begin(), r.missing.end());
  Candidate c = Say(Kind::undetermined, Confidence::possible, Layer::kReport,
                    absl::StrCat("The flight recorder's analyzer lacks the dumps of ", RanksText(ranks),
                                 ": a missing dump says nothing of its rank"),
                    "");
  Quote(job, r, &c.finding);
  c.finding.set_refuted_by("the dumps of those ranks");
  SetNext(
      "Collect the missing dumps: each rank writes its own on its own host. A rank that is in teardown or whose watchdog is "
      "stuck writes none; a "
      "stack of it tells then.",
      "ls -l /tmp/nccl_trace_rank_* ${TORCH_FR_DUMP_TEMP_FILE:+$TORCH_FR_DUMP_TEMP_FILE*}  # on every host", &c.finding);
  return c;
}

std::vector<Candidate> FindFrTrace(const model::Job& job) {
  std::vector<Candidate> out;
  // The dumps themselves are here: what it made of them adds nothing.
  if (std::any_of(job.processes.begin(), job.processes.end(), [](const model::Process& p) { return p.trace.has_dump(); }))
    return out;
  std::map<std::string, const AnalyzerReport*> first;  // by group
  std::vector<std::string> order;
  for (const AnalyzerReport& r : job.evidence.flight_recorder.reports) {
    if (r.problem == Problem::kUntold) continue;
    const std::string key = r.problem == Problem::kNoDumps ? "?" : r.group;
    const auto [it, fresh] = first.try_emplace(key, &r);
    if (fresh) order.push_back(key);
    if (!fresh && r.sequence >= 0 && it->second->sequence > r.sequence) it->second = &r;
  }
  for (const std::string& key : order) {
    const AnalyzerReport& r = *first[key];
    switch (r.problem) {
      case Problem::kMissing:
        if (!r.missing.empty()) out.push_back(Missing(job, r));
        break;
      case Problem::kDiffers:
      case Problem::kTotals:
        out.push_back(Differs(job, r));
        break;
      case Problem::kNoDumps:
        if (order.size() == 1) out.push_back(NoDumps(job, r));
        break;
      case Problem::kUntold:
        break;
    }
  }
  return out;
}

const Register kRegister("fr_trace", FindFrTrace);

}  // namespace
}  // namespace ringscope::reasoning
