// Calls that NCCL's own log lists (NCCL_DEBUG_SUBSYS=COLL), compared between the ranks of each communicator: other function or
// arguments at the same position, or a rank that never made a call that all others made.
//
// Lines are printed when a call is made, long before it runs: how far ranks are apart says who has not come only when the job is
// known to stand still, and never by itself.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/text_evidence.h"
#include "analyzer/reasoning/thresholds.h"

namespace ringscope::reasoning {
namespace {

using model::CallHistory;
using model::LoggedCall;

struct Side {
  const CallHistory* history = nullptr;
  int rank = -1;  // of the job; -1 unknown
};
using Signature = std::tuple<int, uint64_t, int, int, int>;

Signature SignatureOf(const LoggedCall& c) { return {c.function, c.count, c.datatype, c.op, c.root}; }

std::string CallText(const LoggedCall& c) {
  return absl::StrCat(model::kLoggedFunctions[c.function], " of ", c.count, " elements (datatype ", c.datatype, ", root ", c.root, ")");
}

// The histories that belong to one communicator. NCCL's pointer names it in one process only; the init lines tell which of them
// are one communicator. Without those, processes that have a single communicator of a size are taken to share it.
std::map<std::string, std::vector<Side>> Communicators(const model::Evidence& evidence) {
  std::map<std::tuple<std::string, int64_t, std::string>, const model::LogRank*> known;
  for (const model::LogRank& r : evidence.log_ranks) known[{r.by.host, r.by.pid, r.pointer}] = &r;
  std::map<std::string, std::vector<Side>> communicators;
  std::map<int, std::vector<Side>> by_size;
  for (const CallHistory& h : evidence.calls.histories) {
    const auto it = known.find({h.by.host, h.by.pid, h.communicator});
    Side side{&h, h.by.rank};
    if (it != known.end() && it->second->has_comm_id) {
      if (side.rank < 0 && !it->second->split) side.rank = it->second->rank;
      communicators[absl::StrCat(it->second->communicator, "/", it->second->n_ranks)].push_back(side);
    } else if (h.n_ranks > 1) {
      by_size[h.n_ranks].push_back(side);
    }
  }
  for (auto& [size, sides] : by_size) {
    std::set<std::tuple<std::string, int64_t, int>> processes;
    bool one_each = static_cast<int>(sides.size()) <= size;
    for (const Side& s : sides) one_each &= processes.insert({s.history->by.host, s.history->by.pid, s.history->by.device}).second;
    if (one_each) communicators[absl::StrCat("of ", size, " ranks")] = std::move(sides);
  }
  return communicators;
}

// Position of a call: NCCL's own counter where it counts, else ours (which needs logs that begin at the beginning).
class Positions {
 public:
  explicit Positions(const std::vector<Side>& sides) {
    for (const Side& s : sides) {
      const auto& calls = s.history->calls;
      for (size_t i = 1; i < calls.size(); ++i) counts_ &= calls[i].op_count > calls[i - 1].op_count;
      whole_ &= !calls.empty() && calls.front().number == 1 && calls.front().op_count == sides[0].history->calls.front().op_count;
    }
  }
  bool usable() const { return counts_ || whole_; }
  uint64_t Of(const LoggedCall& c) const { return counts_ ? c.op_count : c.number; }
  std::string Text(const LoggedCall& c) const {
    return counts_ ? absl::StrCat("operation ", absl::Hex(c.op_count), " (opCount)") : absl::StrCat("call ", c.number);
  }

 private:
  bool counts_ = true, whole_ = true;
};

std::string SideText(const Side& s) {
  model::Speaker by = s.history->by;
  by.rank = s.rank;
  const std::string text = SpeakerText(by);
  return text.empty() ? absl::StrCat("communicator ", s.history->communicator) : text;
}

void CiteCall(const model::Job& job, const Side& side, const LoggedCall& call, Finding* finding) {
  Cite(job, call.where, absl::StrCat(SideText(side), " calls ", CallText(call)), finding);
  if (side.rank >= 0) finding->mutable_evidence(finding->evidence_size() - 1)->set_rank(side.rank);
}

// The first position at which ranks differ.
bool FindDifference(const model::Job& job, const std::string& name, const std::vector<Side>& sides, Candidate* candidate) {
  const Positions positions(sides);
  if (!positions.usable()) return false;
  std::map<uint64_t, std::map<Signature, std::vector<std::pair<const Side*, const LoggedCall*>>>> at;
  for (const Side& s : sides) {
    for (const LoggedCall& c : s.history->calls) at[positions.Of(c)][SignatureOf(c)].emplace_back(&s, &c);
  }
  for (const auto& [position, kinds] : at) {
    if (kinds.size() < 2) continue;
    // The larger side is taken to be right when it is much larger; else both are named.
    const auto most = std::max_element(kinds.begin(), kinds.end(),
                                       [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    size_t others = 0;
    for (const auto& kind : kinds) others += &kind == &*most ? 0 : kind.second.size();
    const bool majority = most->second.size() >= thresholds::kMajorityFactor * others;
    const auto& odd = std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return k.first != most->first; })->second;
    const LoggedCall &usual = *most->second[0].second, &other = *odd[0].second;
    const bool size_only = usual.function == other.function && usual.datatype == other.datatype && usual.op == other.op &&
                           usual.root == other.root;
    std::string who;
    std::set<int> ranks;
    for (const auto& [signature, list] : kinds) {
      if (majority && signature == most->first) continue;
      for (const auto& [side, call] : list) {
        if (side->rank >= 0) ranks.insert(side->rank);
      }
    }
    who = majority && !ranks.empty() ? RanksText(ranks) : "ranks";
    *candidate = Say(size_only ? Kind::size_mismatch : Kind::collective_mismatch, Confidence::probable, Layer::kProgram,
                     absl::StrCat("At ", positions.Text(usual), " of communicator ", name, " ", who,
                                  majority ? " made another call than the rest: " : " made different calls: ", CallText(other),
                                  " against ", CallText(usual), majority ? "" : "; which side is wrong the log does not tell"),
                     "UC-02");
    candidate->order = Class::kMismatch;
    candidate->position = position;
    candidate->stops_job = true;
    candidate->state = State::hang;
    Finding& finding = candidate->finding;
    AddRanks(ranks, finding.mutable_who()->mutable_ranks());
    finding.mutable_who()->add_communicators(name);
    int cited = 0;
    for (const auto& [signature, list] : kinds) {
      for (size_t i = 0; i < list.size() && i < 3 && cited < 8; ++i, ++cited) CiteCall(job, *list[i].first, *list[i].second, &finding);
    }
    if (majority) {
      std::set<int> rest;
      for (const auto& [side, call] : most->second) {
        if (side->rank >= 0) rest.insert(side->rank);
      }
      AddRanks(rest, finding.mutable_collateral()->mutable_ranks());
    }
    finding.set_refuted_by("the lines belong to different communicators, or one of the logs lost lines before this call");
    SetNext("Find the branch of the program that makes this call on one side only; a stack of each side at this call shows it.",
            "TORCH_DISTRIBUTED_DEBUG=DETAIL  # names the first call that differs, with its shape", &finding);
    return true;
  }
  return false;
}

// One rank's list ends before a call that all others made, in a job that is known to stand still.
bool FindBehind(const model::Job& job, const std::string& name, const std::vector<Side>& sides, Candidate* candidate) {
  const Positions positions(sides);
  if (!positions.usable() || sides.size() < 2) return false;
  std::vector<std::pair<uint64_t, const Side*>> last;
  for (const Side& s : sides) last.emplace_back(positions.Of(s.history->calls.back()), &s);
  std::sort(last.begin(), last.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  if (last[0].first == last[1].first || last[0].second->rank < 0) return false;
  if (job.evidence.work.timeouts.empty()) return false;  // nobody says that it stands still
  const model::WorkTimeout& still = job.evidence.work.timeouts.front();
  const int size = sides[0].history->n_ranks;
  const bool all = size > 0 && static_cast<int>(sides.size()) == size;
  const Side& behind = *last[0].second;
  const LoggedCall& newest = behind.history->calls.back();
  *candidate = Say(all ? Kind::missing_rank : Kind::undetermined, all ? Confidence::probable : Confidence::possible, Layer::kProgram,
                   absl::StrCat(SideText(behind), " has not made the call after ", positions.Text(newest), " of communicator ", name,
                                ", which ", all ? "all others" : "the others whose log is here", " made"),
                   "UC-01");
  candidate->order = all ? Class::kStall : Class::kUndetermined;
  candidate->stops_job = all;
  candidate->state = State::hang;
  Finding& finding = candidate->finding;
  finding.mutable_who()->add_ranks(behind.rank);
  finding.mutable_who()->add_communicators(name);
  CiteCall(job, behind, newest, &finding);
  std::set<int> rest;
  for (size_t i = 1; i < last.size(); ++i) {
    if (last[i].second->rank >= 0) rest.insert(last[i].second->rank);
    if (i <= 3) CiteCall(job, *last[i].second, last[i].second->history->calls.back(), &finding);
  }
  AddRanks(rest, finding.mutable_collateral()->mutable_ranks());
  Cite(job, still.where, still.text, &finding);
  finding.set_refuted_by("the log of that rank was cut before its last lines");
  SetNext(absl::StrCat("See what ", SideText(behind), " does instead of the call: its stack."),
          absl::StrCat("py-spy dump --pid ", behind.history->by.pid >= 0 ? absl::StrCat(behind.history->by.pid) : "PID",
                       "  # on ", ShellHost(behind.history->by.host)),
          &finding);
  return true;
}

std::vector<Candidate> FindInCalls(const model::Job& job) {
  // Records of the same processes hold the same calls, and how far each of them came.
  if (!job.processes.empty()) return {};
  std::vector<Candidate> candidates;
  for (auto& [name, sides] : Communicators(job.evidence)) {
    std::vector<Side> with_calls;
    for (const Side& s : sides) {
      if (!s.history->calls.empty()) with_calls.push_back(s);
    }
    if (with_calls.size() < 2) continue;
    Candidate candidate;
    if (FindDifference(job, name, with_calls, &candidate) || FindBehind(job, name, with_calls, &candidate))
      candidates.push_back(std::move(candidate));
  }
  return candidates;
}

const Register kRegister("logged calls", FindInCalls);

}  // namespace
}  // namespace ringscope::reasoning
