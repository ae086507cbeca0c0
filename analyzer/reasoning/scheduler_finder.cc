// The scheduler ended the job, or lost a host: time limit, preemption, eviction, node failure.
//
// A job that hangs runs into its time limit as well: where anything else tells of a failure, the limit explains nothing.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/exception_nature.h"
#include "analyzer/reasoning/text_evidence.h"
#include "catalog/catalog.h"

namespace ringscope::reasoning {
namespace {

bool AnythingElse(const model::Job& job) {
  if (!job.evidence.work.timeouts.empty()) return true;
  for (const Raised& raised : RaisedIn(job)) {
    if (raised.nature != Nature::kInterrupt && raised.nature != Nature::kLauncher) return true;
  }
  return std::any_of(job.evidence.events.begin(), job.evidence.events.end(), [](const model::Event& event) {
    const catalog::Signature* known = catalog::FindSignature(event.signature);
    return known != nullptr && known->source() != "slurm" &&
           (known->role() == catalog::Role::symptom || known->role() == catalog::Role::cause);
  });
}

std::vector<Candidate> FindScheduler(const model::Job& job) {
  std::vector<const model::Event*> lost, limit, preempted;
  for (const model::Event* event : EventsOf(job, {"slurm-cancelled", "slurm-node-failure"})) {
    const std::string_view why = event->Field("why");
    if (event->signature == "slurm-node-failure" || Contains(why, "NODE FAIL")) {
      lost.push_back(event);
    } else if (Contains(why, "PREEMPT") || Contains(why, "REQUEUE")) {
      preempted.push_back(event);
    } else if (Contains(why, "TIME LIMIT")) {
      limit.push_back(event);
    }
  }
  std::vector<const model::ProcessEnd*> evicted;
  for (const model::ProcessEnd& end : job.evidence.work.ends) {
    if (end.source == "kubernetes" && !end.out_of_memory && !end.reason.empty() && end.reason != "Terminated") evicted.push_back(&end);
  }
  std::vector<Candidate> found;
  const auto put = [&](std::string title, const std::vector<const model::Event*>& events, Confidence::Value confidence, Layer layer) {
    Candidate candidate = Say(Kind::process_exited, confidence, layer, std::move(title), "UC-08");
    candidate.stops_job = true;
    candidate.state = State::crashed;
    Finding& finding = candidate.finding;
    CiteAll(job, events, 3, &finding);
    for (const model::Event* event : events) {
      const std::string host(event->Field("host"));
      if (&events == &lost && !host.empty() && host.find('[') == host.npos) finding.mutable_who()->add_hosts(host);
    }
    for (size_t i = 0; events.empty() && i < evicted.size() && i < 4; ++i) {
      Cite(job, evicted[i]->where, evicted[i]->text, &finding);
      if (!evicted[i]->by.host.empty()) finding.mutable_who()->add_hosts(evicted[i]->by.host);
    }
    finding.set_refuted_by("an error of a rank before the scheduler's line");
    SetNext("What the scheduler says of the job's and the node's end.",
            events.empty() ? "kubectl describe pod <pod>; kubectl get events --sort-by=.lastTimestamp"
                           : "sacct -j <job> --format=JobID,State,ExitCode,NodeList,Elapsed,Timelimit; scontrol show node <node>",
            &finding);
    found.push_back(std::move(candidate));
  };
  if (!lost.empty())
    put("The scheduler lost a host of the job (node failure); what the other ranks report follows from it", lost, Confidence::probable,
        Layer::kHost);
  if (!preempted.empty()) put("The scheduler preempted the job", preempted, Confidence::probable, Layer::kHost);
  if (!evicted.empty())
    put(absl::StrCat("The cluster ended a container of the job: ", evicted[0]->reason), {}, Confidence::probable, Layer::kHost);
  if (!limit.empty() && found.empty() && !AnythingElse(job))
    put("The job reached its time limit and the scheduler ended it; nothing here tells of a fault before", limit, Confidence::possible,
        Layer::kReport);
  return found;
}

const Register kRegister("scheduler", FindScheduler);

}  // namespace
}  // namespace ringscope::reasoning
