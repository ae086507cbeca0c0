// Ranks that launched different numbers of operations, as NCCL's RAS counts them.
//
// RAS asks the ranks one after the other while the job runs on, so counts of one answer may differ in a healthy job; what does
// not change between two answers does not run (docs/userguide, RAS). Every rank runs the same program: whoever is at an earlier
// place of it is behind in some function and ahead in none. Ahead in one and behind in another is another program, at any time.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "analyzer/model/ranks_text.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/ras_view.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

constexpr int64_t kApartEnough_s =
    30;  // between two equal answers: longer than a save, evaluation or collection of garbage usually takes
constexpr size_t kMostNamed = 8;

using Process = std::tuple<std::string, int64_t, int>;  // node, pid, GPU
Process ProcessOf(const model::RasRank& r) { return {r.node, r.pid, r.cuda_device}; }

std::string FunctionText(const model::RasCounts& counts) { return counts.function.empty() ? "collective" : counts.function; }

std::string LineText(const model::RasCounts& counts, const model::RasShare& share) {
  std::vector<int> ranks;
  for (const model::RasRank& r : share.named) ranks.push_back(r.rank);
  std::string who = share.ranks == 1 && !ranks.empty() ? absl::StrCat("rank ", ranks[0])
                                                       : absl::StrCat(share.ranks, share.ranks == 1 ? " rank" : " ranks");
  const bool plural = share.ranks != 1;
  std::string text = absl::StrCat("RAS: ", who, plural ? " have" : " has",
                                  share.count > 0 ? absl::StrCat(" launched up to ", FunctionText(counts), " operation ", share.count)
                                                  : absl::StrCat(" not launched any ", FunctionText(counts), " operations"));
  if (plural && !ranks.empty() && ranks.size() <= kMostNamed) absl::StrAppend(&text, " (", model::RanksText(ranks), ")");
  if (share.named.size() == 1) absl::StrAppend(&text, " -- ", RasProcessText(share.named[0]));
  return text;
}

void CiteCounts(const model::Job& job, const RasSight& sight, Finding* finding) {
  size_t tables = 0;
  for (const model::RasCounts& counts : sight.communicator->counts) {
    if (counts.shares.size() < 2 || ++tables > 4) continue;
    for (size_t i = 0; i < counts.shares.size() && i < 4; ++i)
      Cite(job, counts.shares[i].where, LineText(counts, counts.shares[i]), finding);
  }
}

std::string CommunicatorText(const RasHistory& h) {
  std::string text = "the communicator";
  if (h.size > 0) absl::StrAppend(&text, " of ", h.size, " ranks");
  if (!h.hash.empty()) absl::StrAppend(&text, " ", h.hash);
  return text;
}

// ---- ahead in one function, behind in another
struct Divergence {
  std::vector<model::RasRank> odd;
  const model::RasCounts *more = nullptr, *fewer = nullptr;
  int64_t by = 0;
};

std::optional<Divergence> FindDivergence(const RasSight& sight) {
  const auto& tables = sight.communicator->counts;
  for (const model::RasCounts& more : tables) {
    for (const model::RasCounts& fewer : tables) {
      if (&more == &fewer || more.shares.size() < 2 || fewer.shares.size() < 2) continue;
      int total_more = 0, total_fewer = 0;
      for (const model::RasShare& s : more.shares) total_more += s.ranks;
      for (const model::RasShare& s : fewer.shares) total_fewer += s.ranks;
      if (total_more == 2 && total_fewer == 2) {
        // One against one: nobody is the odd one, so either order will do.
        const auto &m = more.shares, &f = fewer.shares;
        if (m.size() < 2 || f.size() < 2 || m[0].named.empty() || f[0].named.empty()) continue;
        const bool same_order = (m[0].count > m[1].count) == (f[0].count > f[1].count);
        if ((m[0].named[0].rank == f[0].named[0].rank) == same_order) continue;
        const model::RasShare& front = m[0].count > m[1].count ? m[0] : m[1];
        if (front.named.empty()) continue;
        return Divergence{front.named, &more, &fewer, 1};
      }
      // The majority stands first in every table. Two that overlap have a rank with both counts to compare with.
      if (more.shares[0].ranks + fewer.shares[0].ranks <= std::max(total_more, total_fewer)) continue;
      const uint64_t usual_more = more.shares[0].count, usual_fewer = fewer.shares[0].count;
      std::map<int, uint64_t> behind;
      for (const model::RasShare& s : fewer.shares) {
        if (s.count >= usual_fewer) continue;
        for (const model::RasRank& r : s.named) behind[r.rank] = s.count;
      }
      Divergence found;
      for (const model::RasShare& s : more.shares) {
        if (s.count <= usual_more) continue;
        for (const model::RasRank& r : s.named) {
          if (behind.count(r.rank) == 0) continue;
          found.odd.push_back(r);
          found.by = static_cast<int64_t>(s.count - usual_more);
        }
      }
      if (found.odd.empty()) continue;
      found.more = &more, found.fewer = &fewer;
      return found;
    }
  }
  return std::nullopt;
}

Candidate Diverged(const model::Job& job, const RasRanks& ranks, const RasHistory& h, const Divergence& d) {
  std::set<int> who;
  for (const model::RasRank& r : d.odd) {
    if (const int rank = ranks.Of(h, r); rank >= 0) who.insert(rank);
  }
  // Two ranks, or halves: either may be the one that is wrong.
  const bool majority = d.more->shares[0].ranks > static_cast<int>(d.odd.size()) || h.size > 2 * static_cast<int>(d.odd.size());
  const bool name = majority && h.size != 2 && !who.empty();
  Candidate c = Say(Kind::collective_mismatch, Confidence::probable, Layer::kProgram,
                    absl::StrCat(name ? RanksText(who) : "The ranks", " called ", FunctionText(*d.more), " where ",
                                 name ? "the others" : "some", " called ", FunctionText(*d.fewer), " on ", CommunicatorText(h)),
                    "UC-01");
  c.order = Class::kMismatch;
  c.stops_job = true;
  c.state = State::hang;
  if (name) AddRanks(who, c.finding.mutable_who()->mutable_ranks());
  CiteCounts(job, h.last(), &c.finding);
  c.finding.set_refuted_by("another RAS answer in which those ranks are behind in every function, or in none");
  SetNext(absl::StrCat("Where the program branches on something that a rank alone knows: compare the stacks of ",
                       name ? RanksText(who) : "both sides", " with another rank's"),
          "py-spy dump --pid <pid>", &c.finding);
  return c;
}

// ---- behind
struct Lag {
  const RasHistory* history;
  const model::RasCounts* counts;
  std::vector<model::RasRank> behind, ahead;  // named ones
  int n_behind = 0, n_ahead = 0;
  bool front_is_minority = false;
};

std::optional<Lag> LagOf(const RasHistory& h) {
  std::optional<Lag> lag;
  for (const model::RasCounts& counts : h.last().communicator->counts) {
    if (counts.shares.size() < 2) continue;
    const uint64_t front = FrontCount(counts);
    Lag found{&h, &counts, {}, {}, 0, 0, false};
    for (const model::RasShare& s : counts.shares) {
      (s.count == front ? found.n_ahead : found.n_behind) += s.ranks;
      auto& list = s.count == front ? found.ahead : found.behind;
      list.insert(list.end(), s.named.begin(), s.named.end());
    }
    // Of several functions the one with the fewest ranks behind says most about who.
    found.front_is_minority = found.n_ahead < found.n_behind;
    if (!lag || std::make_pair(found.front_is_minority, found.n_behind) < std::make_pair(lag->front_is_minority, lag->n_behind))
      lag = found;
  }
  return lag;
}

// How sure it is that the counts stand still.
enum class Still { kNo, kMaybe, kYes };
Still Stands(const RasHistory& h, bool hang_reported) {
  switch (h.motion) {
    case RasMotion::kAdvancing:
      return Still::kNo;
    case RasMotion::kLagging:
      return Still::kYes;
    case RasMotion::kUnchanged:
      return hang_reported || h.said_unchanged || h.apart_s >= kApartEnough_s ? Still::kYes : Still::kMaybe;
    default:
      return h.said_unchanged ? Still::kYes : hang_reported ? Still::kMaybe : Still::kNo;
  }
}

std::string MotionText(const RasHistory& h) {
  const RasSight& last = h.last();
  if (h.said_unchanged && h.motion == RasMotion::kOnce) return "a later answer was the same, somebody wrote";
  switch (h.motion) {
    case RasMotion::kUnchanged:
      return absl::StrCat("unchanged in ", h.sights.size(), " answers",
                          h.apart_s >= 0 ? absl::StrCat(", the last two ", h.apart_s, " s apart") : "");
    case RasMotion::kLagging:
      return "it stands still while the others go on";
    default:
      return last.snapshot->json ? "one answer" : "one answer, and RAS prints no time";
  }
}

void AskAgain(Finding* finding) {
  SetNext("Ask RAS again after a minute: counts that did not change name who is stuck; if they increase, the job makes progress",
          "ncclras -v; sleep 60; ncclras -v", finding);
}

// PyTorch's flight recorder misses the same ranks in an operation of the same function.
bool FlightRecorderAgrees(const model::Job& job, const std::set<int>& who, const std::string& function) {
  for (const model::AnalyzerReport& r : job.evidence.flight_recorder.reports) {
    if (r.problem != model::AnalyzerReport::Problem::kMissing) continue;
    const bool other = !function.empty() && r.func != trace::FUNC_UNKNOWN && FuncText(r.func) != function;
    if (!who.empty() && !other && std::set<int>(r.missing.begin(), r.missing.end()) == who) return true;
  }
  return false;
}

Candidate Behind(const model::Job& job, const RasRanks& ranks, const Lag& lag, const std::vector<const Lag*>& others, Still still,
                 const std::vector<HangReport>& reports) {
  const RasHistory& h = *lag.history;
  std::set<int> who, collateral;
  std::string processes;
  for (const model::RasRank& r : lag.behind) {
    if (const int rank = ranks.Of(h, r); rank >= 0) who.insert(rank);
    if (lag.behind.size() <= kMostNamed) absl::StrAppend(&processes, processes.empty() ? "" : "; ", RasProcessText(r));
  }
  for (const Lag* other : others) {
    for (const model::RasRank& r : other->ahead) {
      if (const int rank = ranks.Of(*other->history, r); rank >= 0 && who.count(rank) == 0) collateral.insert(rank);
    }
  }
  if (ranks.Spans(h) && h.size > 0 && h.size <= 4096) {
    for (int r = 0; r < h.size; ++r) {
      if (who.count(r) == 0) collateral.insert(r);
    }
  }
  std::vector<int> inside;
  for (const model::RasRank& r : lag.behind) inside.push_back(r.rank);
  const std::string name =
      !who.empty() ? RanksText(who) : absl::StrCat("R", model::RanksText(inside).substr(1), " of ", CommunicatorText(h));
  const uint64_t front = FrontCount(*lag.counts), rear = RearCount(*lag.counts);
  const std::string what = absl::StrCat(FunctionText(*lag.counts), " operation ", front, " (",
                                        rear > 0 ? absl::StrCat("launched up to ", rear) : "launched none", ")");
  if (still == Still::kNo) {
    Candidate c = Say(Kind::undetermined, Confidence::possible, Layer::kReport,
                      absl::StrCat("RAS saw ", name, " behind at one moment: ", FunctionText(*lag.counts), " ", rear, " against ",
                                   front, "; whether anything is stuck only a second answer tells"),
                      "");
    CiteCounts(job, h.last(), &c.finding);
    c.finding.set_refuted_by("a second answer in which the counts increase: then it was a moment's difference");
    AskAgain(&c.finding);
    return c;
  }
  const bool agreed = FlightRecorderAgrees(job, who, lag.counts->function);
  const Confidence::Value sure = still == Still::kYes ? (agreed ? Confidence::established : Confidence::probable)
                                                      : (agreed ? Confidence::probable : Confidence::possible);
  Candidate c = Say(Kind::missing_rank, sure, Layer::kProgram,
                    absl::StrCat(name, " did not launch ", what, ", which the others wait in: ", MotionText(h),
                                 agreed ? "; the flight recorder misses it there, too" : ""),
                    "");
  // What records and both tools say of one rank is one finding; records tell it best, two tools better than one.
  c.order = agreed && job.processes.empty() ? Class::kError : Class::kStall;
  c.stops_job = true;
  // Two answers may be seconds apart: a pause looks the same.
  if (still == Still::kYes || !reports.empty()) c.state = State::hang;
  AddRanks(who, c.finding.mutable_who()->mutable_ranks());
  AddRanks(collateral, c.finding.mutable_collateral()->mutable_ranks());
  if (who.empty()) {
    for (const model::RasRank& r : lag.behind) {
      if (!r.node.empty() && c.finding.who().hosts_size() == 0) c.finding.mutable_who()->add_hosts(r.node);
    }
  }
  CiteCounts(job, h.last(), &c.finding);
  if (h.said_unchanged)
    Cite(job, h.last().snapshot->said_unchanged, "a note below the RAS answer says that a later one was the same", &c.finding);
  if (h.sights.size() > 1) CiteCounts(job, h.sights[h.sights.size() - 2], &c.finding);
  for (size_t i = 0; i < others.size() && i < 4; ++i) {
    const Lag* other = others[i];
    if (other != &lag) CiteCounts(job, other->history->last(), &c.finding);
  }
  CiteReports(job, reports, 2, &c.finding);
  c.finding.set_refuted_by(
      "counts that increase in a further answer; or a stack that shows this rank waiting for another one (RAS counts launches of "
      "collectives only, so a rank inside a send or receive looks missing)");
  SetNext(absl::StrCat("What ", name, " does instead: the stack of its process (", processes, ")"),
          lag.behind.size() == 1 && lag.behind[0].pid >= 0 ? absl::StrCat("py-spy dump --pid ", lag.behind[0].pid, "; gdb -p ",
                                                                          lag.behind[0].pid, " -batch -ex 'thread apply all bt'")
                                                           : "py-spy dump --pid <pid>",
          &c.finding);
  return c;
}

// The larger part of the ranks is behind: who is the odd one is open.
Candidate FewAhead(const model::Job& job, const RasRanks& ranks, const Lag& lag, Still still) {
  const RasHistory& h = *lag.history;
  std::set<int> ahead;
  for (const model::RasRank& r : lag.ahead) {
    if (const int rank = ranks.Of(h, r); rank >= 0) ahead.insert(rank);
  }
  const std::string name = ahead.empty() ? absl::StrCat(lag.n_ahead, lag.n_ahead == 1 ? " rank" : " ranks") : RanksText(ahead);
  Candidate c =
      Say(Kind::undetermined, Confidence::possible, Layer::kReport,
          absl::StrCat("RAS: ", name, lag.n_ahead == 1 ? " is" : " are", " ahead of the other ", lag.n_behind,
                       lag.n_behind == 1 ? " rank" : " ranks", " in ", FunctionText(*lag.counts), " (", FrontCount(*lag.counts),
                       " against ", RearCount(*lag.counts), "), ",
                       still == Still::kNo ? "at one moment" : "and it stays so: one call too many there, or the others are held up"),
          "");
  c.stops_job = still != Still::kNo;
  if (still == Still::kYes) c.state = State::hang;
  CiteCounts(job, h.last(), &c.finding);
  c.finding.set_refuted_by("counts that increase in a further answer: then the job makes progress");
  if (still == Still::kNo) {
    AskAgain(&c.finding);
  } else {
    SetNext(absl::StrCat("Stacks of ", name,
                         " and of one of the others: who is in that operation, and where the others are; the ranks that RAS lists "
                         "are not the ones that are late"),
            "py-spy dump --pid <pid>", &c.finding);
  }
  return c;
}

Candidate Progress(const model::Job& job, const RasHistory& h) {
  const RasSight &a = h.sights[h.sights.size() - 2], &b = h.last();
  std::string counts;
  for (const model::RasCounts& before : a.communicator->counts) {
    for (const model::RasCounts& after : b.communicator->counts) {
      if (after.function != before.function || !counts.empty() || FrontCount(after) == FrontCount(before)) continue;
      counts = absl::StrCat(FunctionText(before), " ", RearCount(before), "-", FrontCount(before), ", then ", RearCount(after), "-",
                            FrontCount(after));
    }
  }
  Candidate c = Say(Kind::none, Confidence::probable, Layer::kUnset,
                    absl::StrCat("The job makes progress: the counts of ", CommunicatorText(h), " increase between two RAS answers (",
                                 counts, "); ranks that differ by a few operations at one moment are no fault"),
                    "");
  c.state = State::healthy;
  for (const RasSight& sight : {a, b}) {
    for (const model::RasCounts& table : sight.communicator->counts) {
      if (table.shares.size() < 2 && sight.communicator->mismatch) continue;
      for (size_t i = 0; i < table.shares.size() && i < 2; ++i) {
        if (table.shares[i].count > 0) Cite(job, table.shares[i].where, LineText(table, table.shares[i]), &c.finding);
      }
    }
  }
  c.finding.set_refuted_by("a further answer in which the counts stopped");
  SetNext("Nothing; ask again only if the job stops", "ncclras -v", &c.finding);
  return c;
}

std::vector<Candidate> FindRasCounts(const model::Job& job) {
  if (job.evidence.ras.snapshots.empty()) return {};
  const RasRanks ranks(job);
  const std::vector<RasHistory> histories = RasHistories(job);
  const std::vector<HangReport> reports = HangReports(job);
  std::vector<Candidate> candidates;
  std::vector<Lag> lags;
  bool diverged = false;
  for (const RasHistory& h : histories) {
    if (const auto d = FindDivergence(h.last())) {
      candidates.push_back(Diverged(job, ranks, h, *d));
      diverged = true;
    } else if (auto lag = LagOf(h)) {
      lags.push_back(std::move(*lag));
    }
  }
  // Progress anywhere speaks for the whole job only when nothing stands still.
  bool any_still = false;
  const RasHistory* moving = nullptr;
  for (const RasHistory& h : histories) {
    if (h.motion == RasMotion::kAdvancing && moving == nullptr) moving = &h;
    any_still |= h.motion == RasMotion::kLagging || (h.motion == RasMotion::kUnchanged && h.last().communicator->mismatch);
  }
  if (moving != nullptr && !any_still && !diverged) candidates.push_back(Progress(job, *moving));
  if (diverged) return candidates;

  // A process that is behind on one communicator, and waits on another for somebody else, is not where it began.
  std::set<Process> waiting;
  for (const Lag& lag : lags) {
    for (const model::RasRank& r : lag.ahead) {
      if (r.pid >= 0) waiting.insert(ProcessOf(r));
    }
  }
  const auto only_waits = [&](const Lag& lag) {
    return lags.size() > 1 && !lag.behind.empty() &&
           std::all_of(lag.behind.begin(), lag.behind.end(), [&](const model::RasRank& r) { return waiting.count(ProcessOf(r)) > 0; });
  };
  std::map<std::set<Process>, std::vector<const Lag*>> roots;
  for (const Lag& lag : lags) {
    if (lag.front_is_minority || lag.behind.empty() || only_waits(lag)) continue;
    std::set<Process> key;
    for (const model::RasRank& r : lag.behind) key.insert(ProcessOf(r));
    roots[key].push_back(&lag);
  }
  for (const auto& [key, same] : roots) {
    const Lag* best = same[0];
    Still still = Still::kNo;
    for (const Lag* lag : same) still = std::max(still, Stands(*lag->history, !reports.empty()));
    if (still == Still::kNo && best->history->motion == RasMotion::kAdvancing) continue;
    // A busy job differs in many communicators at one moment; saying so once is enough.
    if (candidates.size() >= (still == Still::kNo ? 1 : 4)) continue;
    candidates.push_back(Behind(job, ranks, *best, same, still, reports));
  }
  if (!roots.empty()) return candidates;
  for (const Lag& lag : lags) {
    if (lag.history->motion == RasMotion::kAdvancing) continue;
    candidates.push_back(FewAhead(job, ranks, lag, Stands(*lag.history, !reports.empty())));
    break;
  }
  return candidates;
}

const Register kRegister("ras counts", FindRasCounts);

}  // namespace
}  // namespace ringscope::reasoning
