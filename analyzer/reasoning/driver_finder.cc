// Driver libraries and kernel module of different releases, or a driver too old for the program's CUDA.
#include <absl/strings/str_cat.h>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/nccl_text.h"

namespace ringscope::reasoning {
namespace {

std::vector<Candidate> FindDriver(const model::Job& job) {
  std::vector<Candidate> found;
  const auto mismatch = EventsOf(job, {"nvml-mismatch", "smi-driver-library-mismatch", "kernel-nvrm-api-mismatch"});
  if (!mismatch.empty()) {
    const auto upgrades = EventsOf(job, {"apt-driver-upgrade"});
    const bool kernel = FirstEvent(job, {"kernel-nvrm-api-mismatch"}) != nullptr &&
                        FirstEvent(job, {"nvml-mismatch", "smi-driver-library-mismatch"}) != nullptr;
    const bool witness = !upgrades.empty() || kernel;
    std::string title =
        "Driver/library version mismatch: the NVIDIA libraries on disk and the loaded kernel module are of different releases";
    if (!upgrades.empty() && !upgrades.front()->Field("old").empty()) {
      absl::StrAppend(&title, "; the driver was upgraded from ", std::string(upgrades.front()->Field("old")), " to ",
                      std::string(upgrades.front()->Field("new")), " while the old module stayed loaded");
    }
    Candidate candidate = Say(Kind::misconfigured, witness ? Confidence::established : Confidence::probable, Layer::kDriver,
                              title, "FB-06", "nvml-mismatch");
    candidate.stops_job = true;
    candidate.state = State::init_failure;
    Accuse(mismatch, &candidate.finding);
    CiteAll(job, mismatch, 4, &candidate.finding);
    CiteAll(job, upgrades, 3, &candidate.finding);
    CiteAll(job, EventsOf(job, {"unattended-upgrade"}), 1, &candidate.finding);
    for (const model::Version* v : VersionsOf(job, "driver")) CiteVersion(job, *v, &candidate.finding);
    candidate.finding.set_refuted_by(
        "/proc/driver/nvidia/version names the release of libnvidia-ml.so.1 on that host (in the container too)");
    found.push_back(std::move(candidate));
  }
  if (const auto old = EventsOf(job, {"cuda-driver-too-old"}); !old.empty()) {
    Candidate candidate = Say(
        Kind::misconfigured, Confidence::probable, Layer::kDriver,
        absl::StrCat("The NVIDIA driver does not support the program's CUDA version: ", std::string(old.front()->Field("error"))),
        "FB-06", "cuda-driver-too-old");
    candidate.stops_job = true;
    candidate.state = State::init_failure;
    Accuse(old, &candidate.finding);
    CiteAll(job, old, 3, &candidate.finding);
    for (const char* component : {"driver", "nccl", "torch"}) {
      for (const model::Version* v : VersionsOf(job, component)) CiteVersion(job, *v, &candidate.finding);
    }
    candidate.finding.set_refuted_by("nvidia-smi on that host shows a CUDA version at least as new as the program's");
    found.push_back(std::move(candidate));
  }
  return found;
}

const Register kRegister("driver", FindDriver);

}  // namespace
}  // namespace ringscope::reasoning
