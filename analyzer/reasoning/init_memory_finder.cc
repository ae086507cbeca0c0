// A GPU without room left for NCCL: the allocation of one rank fails while a communicator or a connection comes up, and the
// others see that rank's sockets close.
#include <absl/strings/str_cat.h>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/nccl_text.h"
#include "analyzer/reasoning/op_text.h"

namespace ringscope::reasoning {
namespace {

std::vector<Candidate> FindInitMemory(const model::Job& job) {
  std::vector<const model::Event*> refused;
  for (const model::Event* event : EventsOf(job, {"nccl-cuda-failure", "nccl-cuda-alloc-failed"})) {
    if (event->signature == "nccl-cuda-alloc-failed" || Contains(event->Field("error"), "out of memory"))
      refused.push_back(event);
  }
  // "Failed to CUDA calloc" alone also follows any other CUDA failure.
  bool memory = false;
  for (const model::Event* event : refused) memory |= event->signature == "nccl-cuda-failure";
  if (!memory) return {};
  Candidate candidate = Say(Kind::error_reported, Confidence::probable, Layer::kProgram, "", "UC-05", "nccl-cuda-alloc-failed");
  Finding& finding = candidate.finding;
  Accuse(refused, &finding);
  const std::set<int> ranks(finding.who().ranks().begin(), finding.who().ranks().end());
  finding.set_title(absl::StrCat("CUDA out of memory: NCCL could not allocate its buffers on the GPU of ",
                                 ranks.empty() ? SpeakerText(refused.front()->by) : RanksText(ranks),
                                 "; other ranks' socket errors follow from it"));
  candidate.stops_job = true;
  candidate.state = AnyInitComplete(job) ? State::crashed : State::init_failure;
  CiteAll(job, refused, 4, &finding);
  CiteAll(job, EventsOf(job, {"nccl-proxy-operation-failed"}), 1, &finding);
  const auto losses = PeerLosses(job);
  CiteAll(job, losses, 1, &finding);
  OnlyWaited(losses, &finding);
  finding.set_refuted_by("free memory on that GPU at that time was far more than the size that failed");
  return {candidate};
}

const Register kRegister("init_memory", FindInitMemory);

}  // namespace
}  // namespace ringscope::reasoning
