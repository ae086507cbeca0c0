// What else an answer of NCCL's RAS says, and what it cannot: errors that ranks reported, ranks in different states, nothing.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <set>

#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/ras_view.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

constexpr char kRemote[] = "Remote process error";

// ---- ERROR
std::vector<Candidate> Errors(const model::Job& job, const RasRanks& ranks, const std::vector<RasHistory>& histories) {
  std::set<int> own, remote;
  std::set<std::string> texts;
  std::vector<std::pair<model::Where, std::string>> cites;
  bool any = false, init = false;
  for (const RasHistory& h : histories) {
    const model::RasCommunicator& c = *h.last().communicator;
    for (const bool at_init : {true, false}) {
      for (const model::RasShare& share : at_init ? c.init_errors : c.async_errors) {
        any = true;
        const bool is_remote = share.value == kRemote;
        if (!is_remote) texts.insert(share.value), init |= at_init;
        std::set<int> here;
        for (const model::RasRank& r : share.named) {
          if (const int rank = ranks.Of(h, r); rank >= 0) here.insert(rank);
        }
        (is_remote ? remote : own).insert(here.begin(), here.end());
        std::string who = here.empty() ? absl::StrCat(share.ranks, share.ranks == 1 ? " rank" : " ranks") : RanksText(here);
        if (share.named.size() == 1) absl::StrAppend(&who, " (", RasProcessText(share.named[0]), ")");
        cites.push_back(
            {share.where, absl::StrCat("RAS: ", who, " reported ", share.value, at_init ? " while initialising" : " (asynchronous)")});
      }
    }
  }
  if (!any) return {};
  for (const int rank : own) remote.erase(rank);
  Candidate c;
  if (texts.empty()) {
    c = Say(Kind::undetermined, Confidence::possible, Layer::kReport,
            absl::StrCat(remote.empty() ? "Some ranks" : RanksText(remote),
                         " reported a remote process error to NCCL's RAS: a peer went away; which, they do not say"),
            "");
    SetNext("NCCL's warnings of those ranks name the peer; the launcher's log says which process ended first",
            "grep -n 'NCCL WARN' <log of each rank>", &c.finding);
    AddRanks(remote, c.finding.mutable_collateral()->mutable_ranks());
  } else {
    std::string text;
    for (const std::string& t : texts) absl::StrAppend(&text, text.empty() ? "" : ", ", t);
    c = Say(Kind::error_reported, own.empty() ? Confidence::possible : Confidence::probable, Layer::kProgram,
            absl::StrCat(own.empty() ? "Some ranks" : RanksText(own), " reported an error of its own to NCCL's RAS: ", text), "");
    c.stops_job = true;
    c.state = init ? State::init_failure : State::crashed;
    AddRanks(own, c.finding.mutable_who()->mutable_ranks());
    AddRanks(remote, c.finding.mutable_collateral()->mutable_ranks());
    c.finding.set_refuted_by("an earlier error of another rank in NCCL's log or in the kernel's");
    SetNext("NCCL's warning of that rank says what failed; its node's kernel log says whether a GPU or a NIC did",
            "grep -n 'NCCL WARN' <log>; dmesg -T | grep -E 'Xid|mlx5'", &c.finding);
  }
  for (size_t i = 0; i < cites.size() && i < 6; ++i) Cite(job, cites[i].first, cites[i].second, &c.finding);
  return {c};
}

// ---- status
std::string StatusText(const model::RasShare& share) {
  std::set<int> ranks;
  for (const model::RasRank& r : share.named) ranks.insert(r.rank);
  return absl::StrCat(
      "RAS: ",
      share.ranks == 1 && ranks.size() == 1 ? RanksText(ranks) : absl::StrCat(share.ranks, share.ranks == 1 ? " rank" : " ranks"),
      share.ranks == 1 ? " has" : " have", " status ", share.value,
      share.ranks > 1 && !ranks.empty() && ranks.size() <= 8 ? absl::StrCat(" (", RanksText(ranks), ")") : "");
}

bool SameStatuses(const model::RasCommunicator& a, const model::RasCommunicator& b) {
  std::multiset<std::pair<std::string, int>> x, y;
  for (const model::RasShare& s : a.statuses) x.insert({s.value, s.ranks});
  for (const model::RasShare& s : b.statuses) y.insert({s.value, s.ranks});
  return x == y;
}

std::vector<Candidate> Statuses(const model::Job& job, const RasRanks& ranks, const std::vector<RasHistory>& histories,
                                bool hang_reported) {
  for (const RasHistory& h : histories) {
    const model::RasCommunicator& c = *h.last().communicator;
    if (c.statuses.size() < 2) continue;
    const bool stays = h.sights.size() > 1 && h.sights[h.sights.size() - 2].snapshot != h.last().snapshot &&
                       SameStatuses(*h.sights[h.sights.size() - 2].communicator, c) &&
                       (hang_reported || h.apart_s >= 30 || h.said_unchanged);
    Candidate candidate;
    // One rank (or few) that left, or did not leave: it went another way through the program than the rest.
    const model::RasShare& odd = c.statuses.back();
    std::set<int> who;
    for (const model::RasRank& r : odd.named) {
      if (const int rank = ranks.Of(h, r); rank >= 0) who.insert(rank);
    }
    const bool left = odd.value == "FINALIZE" || odd.value == "NOCOMM" || odd.value == "UNKNOWN";
    if ((stays || h.said_unchanged) && c.statuses.size() == 2 && 2 * odd.ranks < c.statuses[0].ranks + odd.ranks && !who.empty() &&
        (left ? c.statuses[0].value == "RUNNING" : odd.value == "RUNNING")) {
      candidate =
          Say(Kind::missing_rank, Confidence::possible, Layer::kProgram,
              left ? absl::StrCat(RanksText(who), " left the communicator (", odd.value, ") while the others still run on it")
                   : absl::StrCat(RanksText(who), " still runs on a communicator that the others leave (", c.statuses[0].value, ")"),
              left ? "UC-04" : "UC-01");
      candidate.order = Class::kStall;
      candidate.stops_job = true;
      candidate.state = State::hang;
      AddRanks(who, candidate.finding.mutable_who()->mutable_ranks());
      candidate.finding.set_refuted_by("a further RAS answer in which all ranks have the same status");
      SetNext("Stacks of that rank and of one of the others: which reached the end of its loop, and why the other did not",
              "py-spy dump --pid <pid>", &candidate.finding);
    } else if (stays || hang_reported) {
      candidate = Say(Kind::undetermined, Confidence::possible, Layer::kReport,
                      "RAS: the ranks of a communicator are in different states; whether that lasts is what tells a hang", "");
      SetNext("Ask RAS again after a minute", "ncclras -v; sleep 60; ncclras -v", &candidate.finding);
    } else {
      candidate = Say(Kind::none, Confidence::possible, Layer::kUnset,
                      "RAS saw a communicator while it was made or torn down: ranks in different states are normal then, as long as "
                      "the next answer differs",
                      "");
      SetNext("Nothing, unless a second answer shows the same states", "ncclras -v; sleep 60; ncclras -v", &candidate.finding);
    }
    for (size_t i = 0; i < c.statuses.size() && i < 5; ++i)
      Cite(job, c.statuses[i].where, StatusText(c.statuses[i]), &candidate.finding);
    return {candidate};
  }
  return {};
}

// ---- nothing to see
struct Whole {
  const model::RasSnapshot* newest = nullptr;
  model::Where where;
  std::string text;
};

// The newest answer in which everything is OK, when no answer says anything else.
bool AllOk(const model::Job& job, Whole* whole) {
  for (const model::RasSnapshot& s : job.evidence.ras.snapshots) {
    if (s.missing_processes + s.dead_processes > 0) return false;
    int communicators = 0, ranks = 0;
    for (const model::RasGroup& g : s.groups) {
      if (g.errors != "OK" || g.status != "RUNNING") return false;
      communicators += g.communicators;
      ranks = std::max(ranks, g.ranks_per_communicator);
    }
    for (const model::RasCommunicator& c : s.communicators) {
      if (c.incomplete || c.error || c.mismatch) return false;
      for (const model::RasShare& share : c.statuses) {
        if (share.value != "RUNNING") return false;
      }
      if (s.json) ++communicators, ranks = std::max(ranks, c.size);
    }
    if (communicators == 0) continue;
    whole->newest = &s;
    whole->where = s.groups.empty() ? s.where : s.groups[0].where;
    whole->text = absl::StrCat("RAS: ", communicators == 1 ? "one communicator" : absl::StrCat(communicators, " communicators"),
                               " of ", communicators == 1 ? "" : "up to ", ranks, " ranks RUNNING, OK");
  }
  return whole->newest != nullptr;
}

constexpr char kCannotSee[] =
    "It compares how many collectives the ranks launched: a stuck GPU kernel, a stalled network connection, sends and receives, "
    "captured graphs and "
    "communicators that wait for each other all look OK";

std::vector<Candidate> Blind(const model::Job& job, const std::vector<RasHistory>& histories,
                             const std::vector<HangReport>& reports) {
  Whole whole;
  if (!AllOk(job, &whole)) return {};
  for (const RasHistory& h : histories) {
    if (h.motion == RasMotion::kAdvancing && reports.empty()) return {};  // ras_count_finder.cc says more
  }
  Candidate c;
  if (reports.empty()) {
    c = Say(Kind::none, Confidence::possible, Layer::kUnset,
            "RAS shows nothing wrong: every process answered, and the ranks of each communicator launched the same operations", "");
    c.order = Class::kUndetermined;  // nothing wrong in it is not a healthy job
    c.finding.set_refuted_by(absl::StrCat("anything that shows the job standing still. ", kCannotSee));
    SetNext("If the job stands still all the same: stacks of all ranks, the flight recorder's dumps, and the counters of the NICs",
            "ncclras -v; sleep 60; ncclras -v", &c.finding);
  } else {
    c = Say(Kind::undetermined, Confidence::possible, Layer::kProgram,
            absl::StrCat("Operations timed out while RAS says OK: no rank is missing as far as it sees; the stall is where RAS does not "
                         "look, or it was asked at another time. ",
                         kCannotSee),
            "");
    c.state = State::hang;
    c.finding.set_refuted_by("a RAS answer from during the stall in which counts differ");
    SetNext(
        "The flight recorder's dumps of all ranks (TORCH_NCCL_TRACE_BUFFER_SIZE=2000, TORCH_NCCL_DUMP_ON_TIMEOUT=1) say which ranks "
        "started the operation; GPU load and "
        "power and the NIC counters during a stall say which device does nothing; note when RAS was asked",
        "torchfrtrace -p <prefix of the dumps>; nvidia-smi --query-gpu=index,utilization.gpu,power.draw --format=csv; ncclras -v",
        &c.finding);
  }
  Cite(job, whole.where, whole.text, &c.finding);
  CiteReports(job, reports, 4, &c.finding);
  return {c};
}

std::vector<Candidate> Empty(const model::Job& job) {
  const model::RasSnapshot* empty = nullptr;
  bool only_init = !job.evidence.ras.snapshots.empty();
  const model::RasGroup* init = nullptr;
  for (const model::RasSnapshot& s : job.evidence.ras.snapshots) {
    if (!s.no_communicators && (!s.groups.empty() || !s.communicators.empty())) empty = nullptr;
    if (s.no_communicators) empty = &s;
    for (const model::RasGroup& g : s.groups) {
      only_init &= g.status == "INIT" && g.errors == "OK";
      init = &g;
    }
    if (s.groups.empty()) only_init = false;
  }
  if (empty != nullptr) {
    Candidate c = Say(Kind::undetermined, Confidence::possible, Layer::kReport,
                      "RAS knows no communicator: none has come so far as to be counted (ranks that are absent hold up the "
                      "bootstrap), or all are destroyed",
                      "");
    Cite(job, empty->where, "RAS: no communicator data collected", &c.finding);
    SetNext("NCCL's log of every rank (bootstrap and Init lines): which ranks entered ncclCommInitRank",
            "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP", &c.finding);
    return {c};
  }
  if (only_init && init != nullptr) {
    Candidate c = Say(
        Kind::undetermined, Confidence::possible, Layer::kReport,
        "RAS: the communicators are still initialising, and every process answers; whether that lasts only a second answer tells", "");
    Cite(job, init->where, absl::StrCat("RAS: a communicator of ", init->ranks_per_communicator, " ranks is INIT, OK"), &c.finding);
    SetNext("Ask RAS again after a minute; if it still says INIT, the stacks of all ranks", "ncclras -v; sleep 60; ncclras -v",
            &c.finding);
    return {c};
  }
  return {};
}

std::vector<Candidate> FindRasStates(const model::Job& job) {
  if (job.evidence.ras.snapshots.empty()) return {};
  const RasRanks ranks(job);
  const std::vector<RasHistory> histories = RasHistories(job);
  const std::vector<HangReport> reports = HangReports(job);
  std::vector<Candidate> all = Errors(job, ranks, histories);
  for (auto& c : Statuses(job, ranks, histories, !reports.empty())) all.push_back(std::move(c));
  for (auto& c : Blind(job, histories, reports)) all.push_back(std::move(c));
  for (auto& c : Empty(job)) all.push_back(std::move(c));
  return all;
}

const Register kRegister("ras states", FindRasStates);

}  // namespace
}  // namespace ringscope::reasoning
