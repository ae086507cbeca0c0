// Stacks of several ranks side by side: who does something else than wait.
//
// A stack says where a process stands, not since when nor on which communicator: two collectives by different names may belong to
// two communicators. Only with a second witness (RAS, a recorder, the watchdog) is a stack's odd one out more than a probable one.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/ras_view.h"
#include "analyzer/reasoning/stack_view.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

constexpr size_t kMostCited = 8;

bool Waits(Doing d) { return d == Doing::kCollective || d == Doing::kSync || d == Doing::kSend || d == Doing::kReceive; }
bool Elsewhere(Doing d) {
  return d == Doing::kDriver || d == Doing::kLoad || d == Doing::kSave || d == Doing::kStore || d == Doing::kUser ||
         d == Doing::kInit || d == Doing::kIdle;
}

using Group = std::vector<const Stance*>;

std::set<int> RanksOf(const Group& group) {
  std::set<int> ranks;
  for (const Stance* s : group) {
    if (s->rank >= 0) ranks.insert(s->rank);
  }
  return ranks;
}

std::string NamesOf(const Group& group) {
  const std::set<int> ranks = RanksOf(group);
  if (!ranks.empty() && ranks.size() == group.size()) return RanksText(ranks);
  if (group.size() == 1) return WhoText(*group[0]);
  return absl::StrCat(group.size(), " processes");
}

void CiteGroup(const model::Job& job, const Group& group, size_t most, Finding* finding) {
  for (size_t i = 0; i < group.size() && i < most; ++i) CiteStance(job, *group[i], finding);
}

void NameGroups(const Group& odd, const Group& rest, Candidate* c) {
  AddRanks(RanksOf(odd), c->finding.mutable_who()->mutable_ranks());
  std::set<int> waiting = RanksOf(rest);
  for (const int rank : RanksOf(odd)) waiting.erase(rank);
  AddRanks(waiting, c->finding.mutable_collateral()->mutable_ranks());
}

// Their GPU work is done, or they wait: only `odd` does something else.
Candidate Odd(const model::Job& job, const Group& odd, const Group& rest, const std::set<int>& behind) {
  const Stance& first = *odd[0];
  const bool same = std::all_of(odd.begin(), odd.end(), [&](const Stance* s) { return s->doing == first.doing; });
  const StanceReading reading = ReadingOf(same ? first.doing : Doing::kUser);
  const std::set<int> who = RanksOf(odd);
  const bool agreed = !who.empty() && who == behind;
  const bool driver = same && first.doing == Doing::kDriver;
  Candidate c = Say(
      driver ? Kind::host_blocked : Kind::missing_rank,
      agreed                                           ? Confidence::established
      : rest.size() > 1 && first.doing != Doing::kIdle ? Confidence::probable
                                                       : Confidence::possible,
      Layer::kProgram,
      absl::StrCat(NamesOf(odd), odd.size() > 1 ? " are in " : " is in ", StanceText(first), " and ", odd.size() > 1 ? "do" : "does",
                   " not take part; ", NamesOf(rest), rest.size() > 1 ? " wait in " : " waits in ", StanceText(*rest[0])),
      reading.cause);
  if (*reading.cause) c.finding.mutable_cause()->set_confidence(Confidence::possible);
  c.order = Class::kStall;
  c.stops_job = true;
  c.state = State::hang;
  NameGroups(odd, rest, &c);
  CiteGroup(job, odd, kMostCited, &c.finding);
  CiteGroup(job, rest, 4, &c.finding);
  c.finding.set_refuted_by("a later stack in which it is in the same wait as the others: it was late, not stuck");
  SetNext(absl::StrCat(NamesOf(odd), " ", reading.what, ". ", reading.next),
          odd.size() == 1 && first.process->by.pid >= 0 ? absl::StrCat("py-spy dump --native --pid ", first.process->by.pid)
                                                        : "py-spy dump --native --pid <pid>",
          &c.finding);
  return c;
}

// In different collectives.
std::vector<Candidate> Divergence(const model::Job& job, const Group& all) {
  std::map<std::string, Group> by_call;
  size_t in_collective = 0;
  for (const Stance* s : all) {
    if (s->doing != Doing::kCollective) continue;
    by_call[s->collective].push_back(s);
    ++in_collective;
  }
  if (by_call.size() < 2) return {};
  std::vector<const Group*> groups;
  for (const auto& [name, group] : by_call) groups.push_back(&group);
  std::stable_sort(groups.begin(), groups.end(), [](const Group* a, const Group* b) { return a->size() > b->size(); });
  const Group& most = *groups[0];
  const Group& odd = *groups.back();
  const bool clear = groups.size() == 2 && odd.size() < most.size();
  // Where no side is the odd one, one that saves while the others do not has left the loop that they are in.
  Candidate c =
      Say(Kind::collective_mismatch, Confidence::possible, Layer::kProgram,
          absl::StrCat(NamesOf(odd), odd.size() > 1 ? " are in " : " is in ", odd[0]->collective, odd[0]->saving ? " of a save" : "",
                       " (", StanceText(*odd[0]), "), ", NamesOf(most), most.size() > 1 ? " are in " : " is in ", most[0]->collective,
                       " (", StanceText(*most[0]), "): they took different ways through the program"),
          "UC-01");
  c.order = Class::kMismatch;
  c.stops_job = true;
  c.state = State::hang;
  if (clear) NameGroups(odd, most, &c);
  CiteGroup(job, odd, 4, &c.finding);
  CiteGroup(job, most, 4, &c.finding);
  const auto reports = HangReports(job);
  if (!reports.empty())
    c.finding.set_confidence(Confidence::probable), c.finding.mutable_cause()->set_confidence(Confidence::possible);
  CiteReports(job, reports, 4, &c.finding);
  c.finding.set_refuted_by(
      "the two collectives belong to different communicators, and one of them waits for a rank that is in neither");
  SetNext(absl::StrCat(
              "The condition by which ", NamesOf(odd), odd[0]->saving ? " decided to save" : " got there",
              ": it must come out the same on all ranks (all_reduce or broadcast the decision instead of reducing it to one rank)"),
          "grep -n -B5 '<the call>' <the program>", &c.finding);
  return {c};
}

std::vector<Candidate> PointToPoint(const model::Job& job, const Group& all) {
  Group senders, receivers;
  for (const Stance* s : all) {
    const bool left_out = std::any_of(s->thread->not_reached.begin(), s->thread->not_reached.end(),
                                      [](const std::string& call) { return call.find("ecv") != call.npos; });
    bool sends = s->doing == Doing::kSend || left_out;
    for (const model::StackFrame& f : s->thread->frames)
      sends |= s->doing == Doing::kSync && (f.function == "ncclSend" || f.function == "send");
    if (sends)
      senders.push_back(s);
    else if (s->doing == Doing::kReceive)
      receivers.push_back(s);
  }
  if (all.size() < 2 || (senders.size() != all.size() && receivers.size() != all.size())) return {};
  const bool send = !senders.empty();
  Candidate c =
      Say(send ? Kind::order_mismatch : Kind::p2p_unmatched, all.size() == 2 || send ? Confidence::probable : Confidence::possible,
          Layer::kProgram,
          send ? absl::StrCat("All of ", NamesOf(all), " are in Send and none receives: each waits for the other to post its receive")
               : absl::StrCat("All of ", NamesOf(all), " wait to receive, and none of them sends"),
          "UC-03");
  c.order = Class::kMismatch;
  c.stops_job = true;
  c.state = State::hang;
  AddRanks(RanksOf(all), c.finding.mutable_collateral()->mutable_ranks());
  CiteGroup(job, all, kMostCited, &c.finding);
  c.finding.set_refuted_by("a rank whose stack was not given is in the matching call");
  SetNext(send ? "Put the send and the receive of each rank between ncclGroupStart and ncclGroupEnd (torch: batch_isend_irecv), or "
                 "let one side receive first"
               : "Which rank should send now, and its stack",
          "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL", &c.finding);
  return {c};
}

std::vector<Candidate> Aborting(const model::Job& job, const Group& all) {
  Group inside;
  for (const Stance* s : all) {
    if (s->doing == Doing::kAbort) inside.push_back(s);
  }
  if (inside.empty()) return {};
  Candidate c = Say(Kind::host_blocked, Confidence::possible, Layer::kReport,
                    absl::StrCat(NamesOf(inside), inside.size() > 1 ? " are" : " is", " blocked while taking a communicator down (",
                                 StanceText(*inside[0]), "): that waits for a kernel or a peer, and follows an earlier fault"),
                    "NC-07");
  c.stops_job = true;
  c.state = State::hang;
  Group rest;
  for (const Stance* s : all) {
    if (s->doing != Doing::kAbort) rest.push_back(s);
  }
  NameGroups(inside, rest, &c);
  CiteGroup(job, inside, kMostCited, &c.finding);
  CiteGroup(job, rest, 4, &c.finding);
  c.finding.set_refuted_by(
      "no earlier error, timeout or hang in the logs: then the program took the communicator down in the middle of its work");
  SetNext(
      "What happened before the abort: the first error or timeout of any rank. To get free: abort on all ranks at the same time, from "
      "a thread of its own; "
      "or end the processes",
      "grep -nE 'NCCL WARN|Watchdog|Error' <log of each rank> | head", &c.finding);
  return {c};
}

std::vector<Candidate> FindInStacks(const model::Job& job) {
  if (job.evidence.stacks.processes.empty()) return {};
  std::vector<Stance> stances = Stances(job);
  // What a rank waits in is known better from its own record; the stall finders cite the stacks.
  for (const model::Process& p : job.processes) {
    if (p.trace.has_dump()) continue;
    if (std::any_of(stances.begin(), stances.end(), [&](const Stance& s) { return IsOf(s, p); })) return {};
  }
  // Several dumps of one process: the newest counts.
  std::map<std::tuple<int, std::string, int64_t>, size_t> newest;
  for (size_t i = 0; i < stances.size(); ++i) {
    const model::Speaker& by = stances[i].process->by;
    if (stances[i].rank >= 0)
      newest[{stances[i].rank, "", -1}] = i;
    else if (by.pid >= 0)
      newest[{-1, by.host, by.pid}] = i;
    else
      newest[{-1, "", -2 - static_cast<int64_t>(i)}] = i;
  }
  std::set<size_t> kept;
  for (const auto& [key, i] : newest) kept.insert(i);
  Group all;
  for (const size_t i : kept) {
    // nccl_defect_finder.cc reads those that wait for a proxy slot.
    if (stances[i].doing != Doing::kUnknown && stances[i].doing != Doing::kProxySlot) all.push_back(&stances[i]);
  }
  if (all.empty()) return {};
  std::vector<Candidate> found = Aborting(job, all);
  Group waiting, elsewhere;
  for (const Stance* s : all) {
    if (Waits(s->doing)) waiting.push_back(s);
    if (Elsewhere(s->doing)) elsewhere.push_back(s);
  }
  for (Candidate& c : PointToPoint(job, all)) found.push_back(std::move(c));
  if (found.empty()) found = Divergence(job, all);
  if (!found.empty()) return found;
  if (!elsewhere.empty() && !waiting.empty() && elsewhere.size() <= waiting.size())
    return {Odd(job, elsewhere, waiting, RasRanksBehind(job))};
  if (all.size() == 1 && (all[0]->doing == Doing::kDriver || all[0]->doing == Doing::kLoad || all[0]->doing == Doing::kSave ||
                          all[0]->doing == Doing::kStore)) {
    const StanceReading reading = ReadingOf(all[0]->doing);
    Candidate c = Say(Kind::host_blocked, Confidence::possible, Layer::kProgram,
                      absl::StrCat(NamesOf(all), " is in ", StanceText(*all[0]), " and so not in a collective"), reading.cause);
    c.order = Class::kStall;
    c.stops_job = true;
    NameGroups(all, {}, &c);
    CiteGroup(job, all, 1, &c.finding);
    c.finding.set_refuted_by("a later stack that shows it elsewhere, or the other ranks doing the same");
    SetNext(absl::StrCat(reading.next, "; and the stacks of the other ranks"), "py-spy dump --native --pid <pid>", &c.finding);
    return {c};
  }
  if (waiting.empty()) return {};
  Candidate c = Say(
      Kind::undetermined, Confidence::possible, Layer::kReport,
      waiting.size() == all.size()
          ? absl::StrCat(all.size() == 1 ? "The one stack given waits" : absl::StrCat("All ", all.size(), " stacks wait"), " in ",
                         StanceText(*waiting[0]), all.size() == 1 ? "" : " or the like", ": that says that they wait, not for whom")
          : absl::StrCat("The stacks show no single rank that stands apart: ", NamesOf(waiting), " in ", StanceText(*waiting[0]), ", ",
                         NamesOf(elsewhere), " in ", elsewhere.empty() ? "other places" : StanceText(*elsewhere[0])),
      "");
  CiteGroup(job, waiting, 3, &c.finding);
  CiteGroup(job, elsewhere, 3, &c.finding);
  SetNext("Stacks of all ranks at one time, and how many operations each launched",
          "py-spy dump --native --pid <pid>  # on every rank; ncclras -v", &c.finding);
  return {c};
}

const Register kRegister("stacks", FindInStacks);

}  // namespace
}  // namespace ringscope::reasoning
