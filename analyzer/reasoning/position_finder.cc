// Notes of where each rank's program stood, one rank elsewhere than the others.
//
// A rank that is elsewhere may be behind (the others wait for it) or ahead (it has finished what the others still stand in): opposite
// conclusions. Lines of a source file do not tell which, since programs loop. Nobody is named as missing.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>
#include <utility>

#include "analyzer/model/ranks_text.h"
#include "analyzer/model/views.h"
#include "analyzer/reasoning/text_evidence.h"
#include "analyzer/reasoning/work_groups.h"

namespace ringscope::reasoning {
namespace {

std::vector<Candidate> FindPositions(const model::Job& job) {
  // The newest note of each rank.
  std::map<int, const model::Position*> newest;
  for (const model::Position& p : job.evidence.work.positions) newest[p.rank] = &p;
  std::map<std::string, std::set<int>> camps;
  for (const auto& [rank, p] : newest) camps[absl::StrCat(p->file, ":", p->line)].insert(rank);
  if (newest.size() < 2 || camps.size() < 2) return {};
  const Vote vote = CountVotes(camps);
  const auto captures = EventsOf(job, {"note-odd-rank"});
  bool ahead = false, behind = false;
  for (const int rank : vote.odd) {
    const std::string& rest = newest[rank]->rest;
    ahead |= Contains(rest, "next ") || Contains(rest, "ahead");
    behind |= Contains(rest, "previous ") || Contains(rest, "behind");
  }
  std::set<std::string> odd_before;  // which rank was the odd one, capture by capture
  for (const model::Event* event : captures) {
    ahead |= event->Field("how") == "ahead";
    behind |= event->Field("how") == "behind";
    std::string number;
    for (const char c : absl::StrCat(std::string(event->Field("ranks")), ",")) {
      if (c >= '0' && c <= '9') {
        number += c;
      } else if (!number.empty()) {
        odd_before.insert(std::exchange(number, ""));
      }
    }
  }
  std::string title = vote.odd.empty() ? std::string("The ranks stand at different places of the program")
                                       : model::RanksText({vote.odd.begin(), vote.odd.end()});
  title[0] = static_cast<char>(title[0] == 'r' ? 'R' : title[0]);
  if (!vote.odd.empty()) {
    absl::StrAppend(&title, ahead && !behind ? " is ahead of the others: it has finished what they still stand in, so it is not missing"
                                             : " stands elsewhere than the others; whether ahead or behind the places do not tell");
  }
  if (odd_before.size() > 1) title += "; the odd rank changes from capture to capture, so no one rank is the reason";
  Candidate candidate = Say(Kind::undetermined, Confidence::possible, Layer::kReport, std::move(title), "");
  candidate.state = State::hang;
  Finding& finding = candidate.finding;
  for (const int rank : vote.odd) {
    if (finding.evidence_size() < 3) Cite(job, newest[rank]->where, newest[rank]->text, &finding);
  }
  for (const auto& [rank, p] : newest) {
    if (finding.evidence_size() < 7 && vote.odd.count(rank) == 0) Cite(job, p->where, p->text, &finding);
  }
  CiteAll(job, captures, 2, &finding);
  finding.set_refuted_by("counts of collectives (RAS, flight recorder) that show a rank behind the others and not moving");
  SetNext(
      "How many collectives each rank has launched and finished during a stall, on every rank: flight recorder dumps or NCCL's RAS, "
      "twice; "
      "then the counters of the NICs and the state of the GPUs' kernels.",
      "ncclras -v; sleep 60; ncclras -v", &finding);
  return {candidate};
}

const Register kRegister("positions", FindPositions);

}  // namespace
}  // namespace ringscope::reasoning
