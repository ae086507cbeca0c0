// Processes that ended before they had called any operation, or that say themselves that they ended with an error.
//
// In such records nothing is open and nobody waits: all that NCCL knows is in order. But a program that creates a communicator
// and ends at once has met a mistake in its arguments or data more often than it had nothing to do, and one that calls exit(1)
// says so. NCCL has no part in either; why it was is in the program's own output.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>

#include "analyzer/model/ranks_text.h"
#include "analyzer/reasoning/finder.h"

namespace ringscope::reasoning {
namespace {

using model::Communicator;
using model::Job;
using model::Life;
using model::Member;
using model::Process;

struct Seen {
  bool member = false, called = false, destroyed = true;
};

std::map<int, Seen> What(const Job& job) {
  std::map<int, Seen> of;
  for (const Communicator& comm : job.communicators) {
    for (const Member& m : comm.members) {
      if (m.raw == nullptr || !m.has_record()) continue;
      Seen& seen = of[m.process];
      seen.member = true;
      seen.called |= m.raw->collectives() > 0 || m.raw->p2ps() > 0 || !m.ops.empty();
      seen.destroyed &= m.raw->finalized_ns() != 0;
    }
  }
  return of;
}

const char* HowText(const Process& p) { return p.life == Life::kExited ? "exit()" : "no clean end"; }

Candidate Put(const std::vector<const Process*>& ended, size_t all) {
  Candidate candidate;
  candidate.order = Class::kUndetermined;
  Finding& finding = candidate.finding;
  finding.set_kind(Kind::undetermined);
  finding.set_confidence(Confidence::possible);
  std::vector<int> ranks;
  std::map<std::string, size_t> how;
  for (const Process* p : ended) {
    if (p->job_rank >= 0) ranks.push_back(p->job_rank);
    ++how[HowText(*p)];
  }
  std::string ways;
  for (const auto& [way, count] : how)
    absl::StrAppend(&ways, ways.empty() ? "" : ", ", how.size() > 1 ? absl::StrCat(count, " ") : "", way);
  finding.set_title(absl::StrCat("No operation was ever called: ", ended.size(), " of ", all, " processes",
                                 ranks.size() == ended.size() && ended.size() < all
                                     ? absl::StrCat(" (", model::RanksText({ranks.begin(), ranks.end()}), ")")
                                     : "",
                                 " ended with ", ways, " after their communicators were created; why is not in these records"));
  finding.mutable_cause()->set_id("not established");
  for (const Process* p : ended) {
    if (finding.evidence_size() >= 4) break;
    Evidence& evidence = *finding.add_evidence();
    evidence.set_text(
        absl::StrCat(p->job_rank >= 0 ? absl::StrCat("rank ", p->job_rank) : absl::StrCat("pid ", p->trace.process().pid()), ": ",
                     HowText(*p), ", no operation called", p->life_evidence.empty() ? "" : "; ", p->life_evidence));
    evidence.set_source(p->source);
    evidence.set_rank(p->job_rank);
  }
  finding.set_refuted_by("a program that was to create its communicators and do nothing more");
  finding.mutable_next()->set_text(
      "The last lines that these processes printed: usage errors, missing files and exceptions end a program before NCCL.");
  finding.mutable_next()->set_command("tail -n 30 <the log of each rank>");
  return candidate;
}

std::vector<Candidate> Find(const Job& job) {
  const std::map<int, Seen> what = What(job);
  std::vector<const Process*> early;
  size_t all = 0;
  for (const Process& p : job.processes) {
    const auto found = what.find(p.index);
    if (found == what.end() || !found->second.member) continue;
    ++all;
    if (found->second.called) return {};
    // Who destroyed what it had made ended as it meant to. A free lock is an end, also where all ended together.
    const trace::Liveness& live = p.trace.liveness();
    const bool gone = p.life == Life::kGone || (p.life != Life::kExited && live.lock_known() && !live.lock_held());
    if (gone || (p.life == Life::kExited && !found->second.destroyed)) early.push_back(&p);
  }
  if (early.empty() || 2 * early.size() <= all) return {};
  return {Put(early, all)};
}

const Register kRegister("early_end", Find);

}  // namespace
}  // namespace ringscope::reasoning
