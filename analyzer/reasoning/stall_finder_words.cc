#include "analyzer/reasoning/stall_finder_words.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analyzer/reasoning/op_text.h"

namespace ringscope::reasoning {

using graph::End;

bool OfDumps(const StallAnalysis& a) {
  return std::any_of(a.job.processes.begin(), a.job.processes.end(), [](const model::Process& p) { return p.trace.has_dump(); });
}

bool TimeAssumed(const StallAnalysis& a) {
  return std::any_of(a.job.processes.begin(), a.job.processes.end(),
                     [](const model::Process& p) { return p.trace.has_dump() && p.trace.dump().taken_assumed(); });
}

bool InsideOperation(End cls) {
  switch (cls) {
    case End::kGpuStalled:
    case End::kInsideNode:
    case End::kNetEdge:
    case End::kNetControl:
    case End::kRecvFlush:
    case End::kUnequalSteps:
      return true;
    default:
      return false;
  }
}

Candidate StallWords::Start(const RootGroup& group, Kind::Value kind,
                            Confidence::Value confidence) const {
  Candidate c;
  c.order = kind == Kind::undetermined ? Class::kUndetermined : Class::kStall;
  c.finding.set_kind(kind);
  // Cursors of all members are one complete line of evidence; without some of them it is a hint
  // (docs/localisation.md, Ranking and confidence).
  if (group.comm >= 0 && !a_.AllSeen(group.comm))
    confidence = std::min(confidence, Confidence::possible);
  c.finding.set_confidence(confidence);
  return c;
}

std::string StallWords::Place(const RootGroup& group) const {
  if (group.comm < 0) return "an operation";
  const model::Communicator& c = a_.CommunicatorOf(group.comm);
  if (a_.input.comms[group.comm].p2p)
    return absl::StrCat("a send or receive of communicator ", c.Label());
  for (const model::Member& m : c.members) {
    if (const model::Op* op = m.Collective(group.position)) {
      return absl::StrCat(FuncText(op->raw.func()), " #", group.position, " of communicator ",
                          c.Label());
    }
  }
  return PlaceText(c, group.position);
}

std::set<int> StallWords::RanksOf(const RootGroup& group) const {
  std::set<int> ranks;
  for (int n : group.nodes) ranks.insert(a_.NodeAt(n).rank);
  return ranks;
}

std::string StallWords::StackCommand(const std::set<int>& ranks) const {
  std::vector<std::string> parts;
  for (int r : ranks) {
    const model::Process* p = a_.ProcessOf(r);
    if (p == nullptr) continue;
    const int pid = p->trace.process().pid();
    parts.push_back(absl::StrCat("ssh ", ShellHost(p->host), " py-spy dump --pid ",
                                 pid > 0 ? absl::StrCat(pid) : absl::StrCat("<pid of ", a_.RankName(r), ">")));
    if (parts.size() == 4) break;
  }
  return parts.empty() ? "py-spy dump --pid <pid>" : absl::StrJoin(parts, "; ");
}

void StallWords::SetNext(Finding* f, std::string text, std::string command) {
  f->mutable_next()->set_text(std::move(text));
  f->mutable_next()->set_command(std::move(command));
}
void StallWords::AddNote(Finding* f, std::string text) {
  Evidence& e = *f->add_evidence();
  e.set_text(std::move(text));
  e.set_rank(-1);
}

void StallWords::AddMissingNote(const RootGroup& group, Finding* f) const {
  const std::string missing = a_.MissingMembers(group.comm);
  if (!missing.empty()) AddNote(f, absl::StrCat("incomplete view: no usable record of ", missing));
  if (TimeAssumed(a_))
    AddNote(f,
            "no time in the dumps tells for how long this had stood when they were written "
            "(TORCH_NCCL_ENABLE_TIMING is off, as usual): that it stood at all is taken from their being "
            "there, since PyTorch writes them when an operation has timed out");
}

bool StallWords::TooMany(const RootGroup& group, size_t named) const {
  return named >= 2 && group.comm >= 0 && 2 * static_cast<int>(named) >= a_.MembersSeen(group.comm);
}

std::string StallWords::NamesText(const std::set<int>& ranks) const {
  std::vector<std::string> names;
  for (int r : ranks) names.push_back(a_.RankName(r));
  if (names.size() == 1) return names[0];
  const std::set<int> jobs = a_.JobRanks(ranks);
  const bool known = std::all_of(ranks.begin(), ranks.end(),
                                 [&](int r) { return a_.input.ranks[r].job_rank >= 0; });
  if (known) return RanksText(jobs);
  if (names.size() > 8) names.resize(8);
  return absl::StrJoin(names, ", ");
}

}  // namespace ringscope::reasoning
