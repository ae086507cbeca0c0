// A process of the job crashed in its own code, by the kernel's line: its peers only see a closed connection.
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/gpu_faults.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

std::vector<Candidate> FindSegfault(const model::Job& job) {
  const auto crashes = EventsOf(job, {"kernel-segfault"});
  const model::Event* chosen = nullptr;
  int rank = -1;
  for (const model::Event* crash : crashes) {
    // The kernel's log holds other people's programs, and those of the days before.
    if (AllLivedOn(job, crash->time)) continue;
    const int of = RankOfProcess(job, crash->by.host, crash->Number("pid").value_or(-1));
    if (of >= 0 && rank < 0) {
      rank = of;
      chosen = crash;
    }
    const absl::string_view process = Absl(crash->Field("process"));
    const absl::string_view library = Absl(crash->Field("library"));
    if (chosen == nullptr &&
        (absl::StrContains(process, "python") || absl::StartsWith(process, "pt_") || absl::StartsWith(library, "libnccl") ||
         absl::StartsWith(library, "libcuda") || absl::StartsWith(library, "libtorch")))
      chosen = crash;
  }
  if (chosen == nullptr) return {};
  const std::string library(chosen->Field("library"));
  Candidate c =
      Say(Kind::process_exited, rank >= 0 ? Confidence::probable : Confidence::possible, Layer::kProgram,
          absl::StrCat(rank >= 0 ? absl::StrCat("Rank ", rank) : absl::StrCat("Process ", Absl(chosen->Field("process"))),
                       " (pid ", Absl(chosen->Field("pid")), chosen->by.host.empty() ? "" : " on ", chosen->by.host, ") crashed",
                       library.empty() ? std::string() : absl::StrCat(" in ", library), " (segmentation fault)"),
          "UC-05", "kernel-segfault");
  Finding& finding = c.finding;
  if (rank >= 0) finding.mutable_who()->add_ranks(rank);
  if (!chosen->by.host.empty()) finding.mutable_who()->add_hosts(chosen->by.host);
  Cite(job, *chosen, &finding);
  for (const model::Event* crash : crashes) {
    if (crash != chosen && !AllLivedOn(job, crash->time) && finding.evidence_size() < 4) Cite(job, *crash, &finding);
  }
  c.order = Class::kLiveness;
  c.stops_job = true;
  c.state = State::crashed;
  c.when = chosen->time;
  OthersWaited(job, &finding);
  finding.set_refuted_by(
      "the crash came after the job had ended (exit handlers crash often), or the process is none of the job's");
  return {c};
}

const Register kRegister("segfault", FindSegfault);

}  // namespace
}  // namespace ringscope::reasoning
