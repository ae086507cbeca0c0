// The desync report (TORCH_NCCL_DESYNC_DEBUG): what every rank had told the store when one of them timed out, read for who stands
// behind. Unlike a silent log, "finished #12, but didn't join #13" is that rank's own word.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>

#include "analyzer/model/ranks_text.h"
#include "analyzer/reasoning/text_evidence.h"
#include "analyzer/reasoning/work_groups.h"

namespace ringscope::reasoning {
namespace {

using State_ = model::DesyncLine::State;

std::vector<Candidate> FindDesync(const model::Job& job) {
  const auto& lines = job.evidence.work.desync;
  std::set<int> never, behind, others;
  int64_t behind_at = -1, lowest = -1;
  std::map<int64_t, std::map<std::string, std::set<int>>> started;
  for (const model::DesyncLine& line : lines) {
    if (line.state == State_::kNeverJoined) never.insert(line.ranks.begin(), line.ranks.end());
    if (line.state == State_::kFinishedNotJoinedNext && (behind_at < 0 || line.seq <= behind_at)) {
      if (line.seq < behind_at) behind.clear();
      behind_at = line.seq;
      behind.insert(line.ranks.begin(), line.ranks.end());
    }
    if (line.state == State_::kStarted && line.seq >= 0) {
      started[line.seq][line.op].insert(line.ranks.begin(), line.ranks.end());
      others.insert(line.ranks.begin(), line.ranks.end());
    }
  }
  // Reports of several ranks are made one after the other: who joined in the meantime is not behind.
  for (const int rank : others) behind.erase(rank);
  if (!started.empty()) lowest = started.begin()->first;
  const auto finish = [&](Candidate candidate, const std::set<int>& who) {
    candidate.stops_job = true;
    candidate.state = State::hang;
    for (const int rank : who) candidate.finding.mutable_who()->add_ranks(rank);
    for (const int rank : others) {
      if (who.count(rank) == 0) candidate.finding.mutable_collateral()->add_ranks(rank);
    }
    size_t cited = 0;
    for (const model::DesyncLine& line : lines) {
      if (++cited <= 8) Cite(job, line.where, line.text, &candidate.finding);
    }
    for (const model::WorkTimeout& t : job.evidence.work.timeouts) {
      if (++cited <= 11) CiteTimeout(job, t, &candidate.finding);
    }
    SetNext("What that rank's host did instead: its stack while it hangs, or the Python stack in its flight recorder dump.",
            "py-spy dump --pid <pid of that rank>", &candidate.finding);
    return std::vector<Candidate>{candidate};
  };
  const auto named = [](const std::set<int>& ranks) {
    std::string text = model::RanksText({ranks.begin(), ranks.end()});
    if (!text.empty()) text[0] = 'R';
    return text;
  };
  // Ranks that stand in one collective with different operations.
  if (!started.empty() && started.begin()->second.size() > 1) {
    const auto& camps = started.begin()->second;
    const Vote vote = CountVotes(camps);
    std::set<int> who = vote.odd;
    if (who.empty()) who = others;
    std::string text;
    for (const auto& [op, ranks] : camps) {
      absl::StrAppend(&text, text.empty() ? "" : ", ", model::RanksText({ranks.begin(), ranks.end()}), " in ", op);
    }
    if (behind.empty() && never.empty()) {
      Candidate candidate = Say(Kind::collective_mismatch, Confidence::probable, Layer::kProgram,
                                absl::StrCat("Ranks run different collectives at position ", lowest, ": ", text), "UC-01");
      candidate.finding.set_refuted_by("flight recorder dumps with the same operations in the same order");
      return finish(std::move(candidate), who);
    }
  }
  const std::set<int>& who = never.empty() ? behind : never;
  if (who.empty() || (!others.empty() && who.size() > others.size())) return {};
  Candidate candidate =
      Say(Kind::missing_rank, Confidence::probable, Layer::kProgram,
          never.empty() ? absl::StrCat(named(who), " finished collective ", behind_at, " and did not join collective ", behind_at + 1,
                                       "; the others went on and wait")
                        : absl::StrCat(named(who), " never joined any collective of the group; the others wait"),
          "UC-01");
  candidate.finding.mutable_cause()->set_confidence(Confidence::possible);
  candidate.finding.set_refuted_by("that rank's own log or flight recorder dump with the collective enqueued");
  return finish(std::move(candidate), who);
}

const Register kRegister("desync report", FindDesync);

}  // namespace
}  // namespace ringscope::reasoning
