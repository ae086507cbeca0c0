// What NCCL complained of where no deeper reason is in the input: wrong calls, CUDA errors, peers that went away. The latter two
// only say where the damage arrived; they rank last and name the evidence to get.
#include <absl/strings/str_cat.h>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/nccl_text.h"
#include "analyzer/reasoning/op_text.h"

namespace ringscope::reasoning {
namespace {

// CUDA's words that say more than "something failed". Those of hardware stay "possible" here: the kernel log is the witness.
struct CudaError {
  std::string_view words;
  Layer layer;
  const char* cause;
  const char* reading;
};
constexpr CudaError kCudaErrors[] = {
    {"initialization error", Layer::kProgram, "",
     "CUDA was used in a parent before a fork, or the driver could not start: use spawn instead of fork"},
    {"invalid device ordinal", Layer::kProgram, "UC-09",
     "a rank asks for a GPU that its process does not see (CUDA_VISIBLE_DEVICES, more ranks than GPUs)"},
    {"no kernel image", Layer::kConfiguration, "FB-06", "this NCCL or program was not built for this GPU's architecture"},
    {"named symbol not found", Layer::kConfiguration, "FB-06",
     "this NCCL was not built for this GPU's architecture, or libraries are mixed"},
    {"peer access is not supported", Layer::kConfiguration, "FB-05",
     "peer access between these GPUs is not available (virtualisation, ACS, topology)"},
    {"busy or unavailable", Layer::kProgram, "FW-08", "another process holds that GPU (exclusive mode), or it was lost"},
};

std::vector<Candidate> FindReports(const model::Job& job) {
  std::vector<Candidate> found;
  const auto usage = EventsOf(
      job, {"nccl-invalid-usage", "nccl-mismatched-collective", "nccl-registration-mismatch", "nccl-symmetric-unsupported"});
  if (!usage.empty()) {
    const model::Event& event = *usage.front();
    const bool window = event.signature == "nccl-registration-mismatch" || event.signature == "nccl-symmetric-unsupported";
    const bool calls = event.signature == "nccl-mismatched-collective";
    std::string title =
        calls    ? "Ranks are in different collectives at the same place"
        : window ? absl::StrCat("Registered (symmetric) buffers are not what NCCL needs: ", std::string(event.Field("what")))
                 : absl::StrCat("The program called NCCL wrongly: ", std::string(event.Field("what")));
    Candidate candidate = Say(calls ? Kind::collective_mismatch : Kind::error_reported, Confidence::probable, Layer::kProgram,
                              title, window ? "NC-10" : "UC-02", event.signature);
    candidate.stops_job = true;
    candidate.state = State::crashed;
    Accuse(usage, &candidate.finding);
    CiteAll(job, usage, 4, &candidate.finding);
    OnlyWaited(PeerLosses(job), &candidate.finding);
    candidate.finding.set_refuted_by("the same warning with arguments that are right on all ranks");
    found.push_back(std::move(candidate));
  }
  if (const auto none = EventsOf(job, {"nccl-no-algorithm"}); !none.empty()) {
    const auto settings = SettingsOf(job, {"NCCL_ALGO", "NCCL_PROTO"});
    Candidate candidate = Say(
        Kind::misconfigured, settings.empty() ? Confidence::possible : Confidence::probable, Layer::kConfiguration,
        settings.empty()
            ? "No algorithm is left for a collective: NCCL_ALGO or NCCL_PROTO exclude all, or this release lacks the data type"
            : absl::StrCat("No algorithm is left for a collective: ", settings.front()->name, "=", settings.front()->value,
                           " excludes all that fit"),
        settings.empty() ? "" : "NC-04", "nccl-no-algorithm");
    candidate.stops_job = true;
    candidate.state = State::crashed;
    CiteAll(job, none, 3, &candidate.finding);
    for (const model::Setting* s : settings) CiteSetting(job, *s, &candidate.finding);
    candidate.finding.set_refuted_by("the same call fails without NCCL_ALGO and NCCL_PROTO");
    found.push_back(std::move(candidate));
  }
  std::vector<const model::Event*> cuda;
  for (const model::Event* event : EventsOf(job, {"nccl-cuda-failure"})) {
    const std::string_view error = event->Field("error");
    // These have finders of their own.
    if (Contains(error, "out of memory") || Contains(event->text, "nvls.cc") || Contains(event->text, "shm") ||
        Contains(error, "driver version") || Contains(error, "CUDA driver") || Contains(error, "capture") ||
        Contains(error, "illegal") || Contains(error, "assert") || Contains(error, "ncorrectable") ||
        Contains(error, "launch failure") || Contains(error, "hardware error") || Contains(error, "not yet initialized"))
      continue;
    cuda.push_back(event);
  }
  if (!cuda.empty()) {
    const std::string error(cuda.front()->Field("error"));
    Candidate candidate =
        Say(Kind::error_reported, Confidence::possible, Layer::kReport,
            absl::StrCat("CUDA failed under NCCL: ", error, "; the call that reports it is seldom the one that caused it"), "",
            "nccl-cuda-failure");
    for (const CudaError& known : kCudaErrors) {
      if (!Contains(error, known.words)) continue;
      candidate.layer = known.layer;
      if (known.cause[0] != 0) {
        candidate.finding.mutable_cause()->set_id(known.cause);
        candidate.finding.mutable_cause()->set_confidence(Confidence::possible);
      }
      candidate.finding.set_title(absl::StrCat("CUDA failed under NCCL: ", error, ": ", known.reading));
    }
    candidate.stops_job = true;
    candidate.state = State::crashed;
    const std::set<int> ranks = RanksOf(cuda);
    if (ranks.size() == 1) candidate.finding.mutable_who()->add_ranks(*ranks.begin());
    CiteAll(job, cuda, 4, &candidate.finding);
    OnlyWaited(PeerLosses(job), &candidate.finding);
    candidate.finding.set_refuted_by("an earlier CUDA error or Xid on that GPU, which then is the reason");
    found.push_back(std::move(candidate));
  }
  const auto inconsistent =
      EventsOf(job, {"nccl-internal-inconsistency", "nccl-message-truncated", "nccl-wrong-magic", "nccl-uds-failed"});
  if (!inconsistent.empty()) {
    Candidate candidate = Say(Kind::undetermined, Confidence::possible, Layer::kReport,
                              inconsistent.front()->signature == "nccl-uds-failed"
                                  ? "Two processes of one host could not hand over memory by a local socket"
                              : inconsistent.front()->signature == "nccl-wrong-magic"
                                  ? "A stranger connected to NCCL's control port: another job, an earlier run, a port scan"
                                  : "Ranks disagree on what they exchange: other calls, sizes, settings or releases of NCCL; "
                                    "which of them is not in the log",
                              "", inconsistent.front()->signature);
    candidate.stops_job = true;
    candidate.state = State::crashed;
    CiteAll(job, inconsistent, 4, &candidate.finding);
    OnlyWaited(inconsistent, &candidate.finding);
    candidate.finding.set_refuted_by("a warning of another kind before these lines");
    found.push_back(std::move(candidate));
  }
  return found;
}

const Register kRegister("nccl_report", FindReports);

}  // namespace
}  // namespace ringscope::reasoning
