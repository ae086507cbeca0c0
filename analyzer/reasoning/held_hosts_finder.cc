// All ranks wait for their GPUs, and NCCL's own events are not in the records (preloaded library without the profiler plugin):
// calls and their arguments agree, and work that was given to the GPUs does not end. That it stands still is sure; at whom,
// nothing tells.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "analyzer/reasoning/finder.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/quiet.h"

namespace ringscope::reasoning {
namespace {

using model::Process;

// Its thread that has waited longest in a synchronising call, for the stall time or longer; nullptr: none.
const trace::CallInFlight* Waiting(const Process& p) {
  const trace::CallInFlight* longest = nullptr;
  for (const trace::CallInFlight& call : p.trace.calls()) {
    if (call.host_function().find("Synchronize") == std::string::npos || call.host_since_ns() == 0) continue;
    if (static_cast<double>(LastSign(p) - call.host_since_ns()) < p.trace.settings().stall_seconds() * 1e9) continue;
    if (longest == nullptr || call.host_since_ns() < longest->host_since_ns()) longest = &call;
  }
  return longest;
}

std::vector<Candidate> Find(const model::Job& job) {
  size_t using_nccl = 0, waiting = 0, over = 0;
  int64_t least = std::numeric_limits<int64_t>::max();
  std::set<int> ranks;
  std::map<std::string, size_t> functions;
  std::vector<std::pair<const Process*, const trace::CallInFlight*>> examples;
  for (const Process& p : job.processes) {
    bool any = false;
    for (const trace::Communicator& c : p.trace.communicators()) {
      any = true;
      // Where completion is visible the wait-for graph says more.
      if (c.completion_visible()) return {};
    }
    if (!any) continue;
    ++using_nccl;
    over += p.life == model::Life::kExited;
    const trace::CallInFlight* call = Waiting(p);
    if (call == nullptr) continue;
    ++waiting;
    ++functions[call->host_function()];
    least = std::min(least, LastSign(p) - call->host_since_ns());
    if (p.job_rank >= 0) ranks.insert(p.job_rank);
    if (examples.size() < 4) examples.emplace_back(&p, call);
  }
  // Most of those that have not ended in order.
  if (waiting == 0 || 2 * waiting <= using_nccl - over) return {};
  const auto most =
      std::max_element(functions.begin(), functions.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  Candidate candidate;
  candidate.order = Class::kUndetermined;
  candidate.stops_job = true;
  Finding& f = candidate.finding;
  f.set_kind(Kind::undetermined);
  f.set_confidence(Confidence::possible);
  f.set_title(absl::StrCat(waiting, " of ", using_nccl, waiting == 1 ? " ranks waits in " : " ranks wait in ", most->first,
                           " for at least ", DurationText(least),
                           ": work on the GPUs does not end; without NCCL's own events the records do not tell whose"));
  f.mutable_cause()->set_id("not established");
  AddRanks(ranks, f.mutable_collateral()->mutable_ranks());
  for (const auto& [process, call] : examples) {
    Evidence& evidence = *f.add_evidence();
    evidence.set_text(absl::StrCat("thread ", call->tid(), " is inside ", call->host_function(), " since ",
                                   DurationText(LastSign(*process) - call->host_since_ns())));
    evidence.set_source(process->source);
    evidence.set_rank(process->job_rank);
    evidence.set_row(call->row());
  }
  f.set_refuted_by("a later record in which these calls have returned");
  f.mutable_next()->set_text(
      "Run the job with NCCL_PROFILER_PLUGIN as well (NCCL 2.23 and later): then each rank's progress on its GPU and network is "
      "in the record. "
      "Now: what each GPU does, and the stacks.");
  f.mutable_next()->set_command("nvidia-smi; py-spy dump --native -p <pid>  # every rank");
  return {candidate};
}

const Register kRegister("held_hosts", Find);

}  // namespace
}  // namespace ringscope::reasoning
