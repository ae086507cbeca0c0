// The kernel killed a process of the job for want of memory: the process leaves no word, its peers complain.
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/gpu_faults.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

// Programs that are ranks or run them; another victim (a browser, a database) is not shown to matter to the job.
bool LooksLikeRank(std::string_view process) {
  for (const char* name :
       {"python", "pt_main", "pt_data", "ray::", "vllm", "torchrun", "all_reduce", "train", "sglang", "julia", "mpi"}) {
    if (ContainsIgnoringCase(process, name)) return true;
  }
  return false;
}

std::vector<Candidate> FindOomKill(const model::Job& job) {
  std::vector<Candidate> candidates;
  std::vector<const model::Event*> kills = EventsOf(job, {"kernel-oom-kill"});
  // The summary line says the same where the other is cut off.
  if (kills.empty()) {
    for (const model::Event* e : EventsOf(job, {"kernel-oom-context"})) {
      if (!e->Field("constraint").empty()) kills.push_back(e);
    }
  }
  std::erase_if(kills, [&](const model::Event* kill) { return AllLivedOn(job, kill->time); });
  if (kills.empty()) return candidates;
  const model::Event* chosen = nullptr;
  int rank = -1;
  for (const model::Event* kill : kills) {
    const int of = RankOfProcess(job, kill->by.host, kill->Number("pid").value_or(-1));
    if (of >= 0 && rank < 0) {
      rank = of;
      chosen = kill;
    }
    if (chosen == nullptr && LooksLikeRank(kill->Field("process"))) chosen = kill;
  }
  const bool of_job = chosen != nullptr;
  if (chosen == nullptr) chosen = kills[0];
  const bool limit = chosen->Field("scope") == "Memory cgroup out of memory" || chosen->Field("constraint") == "CONSTRAINT_MEMCG";
  std::string process(chosen->Field("process"));
  const std::string who = rank >= 0         ? absl::StrCat("rank ", rank)
                          : process.empty() ? "a process"
                                            : absl::StrCat("process ", process);
  Candidate c =
      Say(Kind::process_exited,
          rank >= 0 ? Confidence::established
          : of_job  ? Confidence::probable
                    : Confidence::possible,
          Layer::kHost,
          absl::StrCat("The kernel killed ", who, " (pid ", Absl(chosen->Field("pid")), chosen->by.host.empty() ? "" : " on ",
                       chosen->by.host, "): ", limit ? "its memory limit (cgroup) was reached" : "the host ran out of memory"),
          "UC-08", "kernel-oom-kill");
  Finding& finding = c.finding;
  if (rank >= 0) finding.mutable_who()->add_ranks(rank);
  if (!chosen->by.host.empty()) finding.mutable_who()->add_hosts(chosen->by.host);
  Cite(job, *chosen, &finding);
  for (const model::Event* kill : kills) {
    if (kill != chosen && finding.evidence_size() < 4) Cite(job, *kill, &finding);
  }
  CiteAll(job, EventsOf(job, {"kernel-oom-context"}), 2, &finding);
  c.order = of_job ? Class::kLiveness : Class::kPlan;
  c.stops_job = of_job;
  c.state = State::crashed;
  c.when = chosen->time;
  if (of_job) OthersWaited(job, &finding);
  finding.set_refuted_by("that process id is none of the job's, or the kill is later than the job's end");
  SetNext(limit ? "Raise the limit of the container or the Slurm job (--mem, memory limit of the pod), or need less: fewer "
                  "data-loader workers, smaller host buffers, checkpoints that are not gathered in one process."
                : "What used the host's memory; fewer data-loader workers, smaller host buffers, checkpoints that are not "
                  "gathered in one process.",
          "dmesg -T | grep -iE 'oom-kill|killed process'; cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory.events; free -g",
          &finding);
  candidates.push_back(std::move(c));
  return candidates;
}

const Register kRegister("oom_killer", FindOomKill);

}  // namespace
}  // namespace ringscope::reasoning
