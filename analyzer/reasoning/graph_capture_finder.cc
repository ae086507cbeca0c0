// Calls that are not allowed while a CUDA graph is being captured.
#include <absl/strings/str_cat.h>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/nccl_text.h"

namespace ringscope::reasoning {
namespace {

std::vector<Candidate> FindCapture(const model::Job& job) {
  const auto misuse = EventsOf(job, {"nccl-capture-misuse"});
  const auto errors = EventsOf(job, {"cuda-capture-error"});
  if (misuse.empty() && errors.empty()) return {};
  // NCCL takes part when it says so, or when the stack that failed passes through it.
  std::vector<const model::Event*> calls;
  for (const model::Event* event : EventsOf(job, {"nccl-register-call"})) {
    for (const model::Event* error : errors) {
      if (error->where.file == event->where.file) {
        calls.push_back(event);
        break;
      }
    }
  }
  std::string title;
  if (!misuse.empty()) {
    title = absl::StrCat("NCCL was called in a way that CUDA graph capture does not allow: ",
                         std::string(misuse.front()->Field("what")));
  } else if (!calls.empty()) {
    std::string call(calls.back()->Field("call"));
    title = absl::StrCat(
        call, " was called while a CUDA graph was being captured; it allocates or maps memory, which a capture does not allow");
  } else {
    title = "A call that is not allowed during CUDA graph capture was made while a stream was being captured";
  }
  Candidate candidate = Say(Kind::error_reported, misuse.empty() && calls.empty() ? Confidence::possible : Confidence::probable,
                            Layer::kProgram, title, "NC-09", misuse.empty() ? "cuda-capture-error" : "nccl-capture-misuse");
  candidate.stops_job = true;
  candidate.state = State::crashed;
  Finding& finding = candidate.finding;
  Accuse(misuse.empty() ? errors : misuse, &finding);
  CiteAll(job, EventsOf(job, {"cuda-graph-capturing"}), 1, &finding);
  CiteAll(job, calls, 3, &finding);
  CiteAll(job, misuse, 2, &finding);
  CiteAll(job, errors, 2, &finding);
  for (const model::Version* v : NcclVersions(job)) CiteVersion(job, *v, &finding);
  for (const model::Setting& s : job.evidence.settings) {
    if (Contains(s.name, "SYMM_MEM") || s.name == "NCCL_GRAPH_REGISTER" || s.name == "NCCL_GRAPH_MIXING_SUPPORT" ||
        s.name == "NCCL_WIN_ENABLE")
      CiteSetting(job, s, &finding);
  }
  finding.set_refuted_by("the same error with graphs off");
  if (!calls.empty() &&
      (Contains(calls.back()->Field("call"), "egister") || Contains(calls.back()->Field("call"), "egister_comm"))) {
    SetNext(
        "Register the windows or buffers before the capture begins, or switch symmetric memory (VLLM_USE_NCCL_SYMM_MEM=0, "
        "NCCL_WIN_ENABLE=0) or graphs "
        "(--enforce-eager) off. Then see whether the error stays.",
        "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,REG,ALLOC", &finding);
  }
  return {candidate};
}

const Register kRegister("graph_capture", FindCapture);

}  // namespace
}  // namespace ringscope::reasoning
