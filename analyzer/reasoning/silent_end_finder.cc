// A job none of whose ranks had been in NCCL for longer than a stall takes when it was last seen, and none of which ended in
// order.
//
// Nothing is open in the records, so nothing is wrong in them. But a job that works is rarely quiet that long, and not killed
// while it is: it may have stood where records do not reach: in the creation of a further communicator, in a host's barrier, in
// data loading or a checkpoint. Or it was idle and somebody ended it. "Healthy" would be an all-clear that the evidence does not
// bear.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <limits>
#include <set>

#include "analyzer/reasoning/finder.h"
#include "analyzer/reasoning/op_text.h"

namespace ringscope::reasoning {
namespace {

using model::Communicator;
using model::Job;
using model::Life;
using model::Member;
using model::Process;

// How long the process had not called NCCL when it was last seen; -1 unknown.
int64_t QuietNs(const Process& p) {
  const trace::Liveness& life = p.trace.liveness();
  if (life.last_callback_ns() <= 0 || life.heartbeat_ns() < life.last_callback_ns()) return -1;
  return life.heartbeat_ns() - life.last_callback_ns();
}

std::vector<Candidate> Find(const Job& job) {
  int64_t quiet = std::numeric_limits<int64_t>::max();
  size_t ended = 0, gone = 0;
  const Process* example = nullptr;
  for (const Communicator& comm : job.communicators) {
    for (const Member& m : comm.members) {
      if (m.raw == nullptr) continue;
      if (std::any_of(m.ops.begin(), m.ops.end(), [](const model::Op& op) { return op.finished != model::Truth::kYes; }))
        return {};
    }
  }
  for (const Process& p : job.processes) {
    bool uses_nccl = false, open = false;
    for (const trace::Communicator& c : p.trace.communicators()) {
      uses_nccl = true;
      open |= c.finalized_ns() == 0;
    }
    if (!uses_nccl) continue;
    // One that ended in order, is frozen, or had destroyed its communicators: another story.
    const int64_t now = QuietNs(p);
    if ((p.life != Life::kGone && p.life != Life::kRunning && p.life != Life::kUnknown) || !open || now < 0) return {};
    gone += p.life == Life::kGone;
    if (static_cast<double>(now) < p.trace.settings().stall_seconds() * 1e9 || p.trace.settings().stall_seconds() <= 0) return {};
    ++ended;
    if (now < quiet) {
      quiet = now;
      example = &p;
    }
  }
  if (ended == 0) return {};
  Candidate candidate;
  candidate.order = Class::kUndetermined;
  Finding& finding = candidate.finding;
  finding.set_kind(Kind::undetermined);
  finding.set_confidence(Confidence::possible);
  const bool one = ended == 1;
  finding.set_title(absl::StrCat(one ? "The only process" : absl::StrCat("None of the ", ended, " processes"),
                                 one ? " had not called" : " had called", " an operation of NCCL for at least ", DurationText(quiet),
                                 " when ", one ? "it " : "they ",
                                 gone == ended ? "ended without a clean end" : one ? "was last seen" : "were last seen",
                                 ": what ", one ? "it waited for, if it" : "they waited for, if they",
                                 " did (a further communicator, the host's own barrier, data), is not in the records"));
  finding.mutable_cause()->set_id("not established");
  for (const Process* p : {example}) {
    Evidence& evidence = *finding.add_evidence();
    evidence.set_text(absl::StrCat("its last operation of NCCL lies ", DurationText(QuietNs(*p)), " before its last sign of life, ",
                                   "no operation is open, no communicator was destroyed", p->life_evidence.empty() ? "" : "; ",
                                   p->life_evidence));
    evidence.set_rank(p->job_rank);
    evidence.set_source(p->source);
  }
  finding.set_refuted_by("whoever ended the job knows that it was idle on purpose, or its program's output goes on to the end");
  finding.mutable_next()->set_text(
      "Where a job stands outside of NCCL's operations, its stacks tell: take them of all ranks while it hangs. NCCL's log "
      "(NCCL_DEBUG=INFO) "
      "shows a communicator whose Init START has no COMPLETE, and which rank has no START.");
  finding.mutable_next()->set_command(
      "py-spy dump --native -p <pid>  # every rank; and: grep -h 'Init START\\|Init COMPLETE' <NCCL logs>");
  return {candidate};
}

const Register kRegister("silent_end", Find);

}  // namespace
}  // namespace ringscope::reasoning
