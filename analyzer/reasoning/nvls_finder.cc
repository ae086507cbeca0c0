// NVLink SHARP and the fabric behind it: multicast memory that the driver refuses, GPUs that are not registered with the fabric.
#include <absl/strings/str_cat.h>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/nccl_text.h"

namespace ringscope::reasoning {
namespace {

// Errors of other mechanisms that also surface in the NVLS code.
bool OtherMechanism(std::string_view error) {
  return Contains(error, "out of memory") || Contains(error, "driver version") || Contains(error, "capture");
}

struct FabricManager {
  std::vector<const model::Event*> lines;
  bool restarted = false, failed = false;
};

// Stopped and started again: the GPUs keep state from before, which only a reset clears.
FabricManager Look(const model::Job& job) {
  FabricManager fm;
  fm.lines = EventsOf(job, {"fm-service-stopped", "fm-service-started", "fm-service-failed"});
  bool stopped = false;
  for (const model::Event* event : fm.lines) {
    stopped |= event->signature == "fm-service-stopped";
    fm.failed |= event->signature == "fm-service-failed";
    if (event->signature == "fm-service-started" && (stopped || fm.failed)) fm.restarted = true;
  }
  return fm;
}

std::vector<Candidate> FindNvls(const model::Job& job) {
  std::vector<const model::Event*> refused = EventsOf(job, {"nccl-nvls-bind-failed"});
  for (const model::Event* event : EventsOf(job, {"nccl-cuda-failure"})) {
    if (Contains(event->text, "nvls.cc") && !OtherMechanism(event->Field("error"))) refused.push_back(event);
  }
  const auto not_ready = EventsOf(job, {"cuda-system-not-ready"});
  const FabricManager fm = Look(job);
  if (const auto imex = EventsOf(job, {"nccl-mnnvl-not-working"}); !imex.empty()) {
    Candidate candidate =
        Say(Kind::misconfigured, Confidence::probable, Layer::kDriver,
            "The multi-node NVLink domain is there and does not work: IMEX daemon, its node list or the channel devices", "FB-03",
            "nccl-mnnvl-not-working");
    candidate.stops_job = true;
    candidate.state = State::init_failure;
    Accuse(imex, &candidate.finding);
    candidate.finding.mutable_who()->clear_ranks();
    CiteAll(job, imex, 3, &candidate.finding);
    candidate.finding.set_refuted_by(
        "nvidia-imex-ctl -N shows all nodes of the domain READY and the channel device is in the container");
    return {candidate};
  }
  const bool nvls = !refused.empty();
  if (!nvls && not_ready.empty()) return {};
  if (!nvls) refused = not_ready;

  const bool witness = fm.restarted || fm.failed;
  std::string title = nvls ? "NVLS (NVLink SHARP) setup fails: the driver refuses multicast memory"
                           : "The GPUs are not registered with the NVSwitch fabric (CUDA error 802)";
  absl::StrAppend(&title, fm.restarted ? "; the fabric manager was restarted and the GPUs were not reset since"
                          : fm.failed  ? "; the fabric manager failed"
                          : nvls       ? "; the usual reason is the state of fabric manager or NVSwitches"
                                       : "; the fabric manager does not run or does not match the driver");
  Candidate candidate = Say(Kind::misconfigured,
                            witness ? Confidence::established
                            : nvls  ? Confidence::possible
                                    : Confidence::probable,
                            Layer::kDriver, title, "FB-01", nvls ? "nccl-nvls-bind-failed" : "cuda-system-not-ready");
  candidate.stops_job = true;
  candidate.state = State::init_failure;
  Finding& finding = candidate.finding;
  std::set<std::string> hosts;
  for (const model::Event* event : refused) {
    if (!event->by.host.empty() && hosts.insert(event->by.host).second) finding.mutable_who()->add_hosts(event->by.host);
  }
  // Where all ranks fail alike none of them is singled out.
  const std::set<int> ranks = RanksOf(refused);
  if (!ranks.empty() && static_cast<int>(ranks.size()) < WorldSize(job)) {
    for (const int rank : ranks) finding.mutable_who()->add_ranks(rank);
  }
  CiteAll(job, refused, 4, &finding);
  CiteAll(job, fm.lines, 6, &finding);
  for (const model::Version* v : NcclVersions(job)) CiteVersion(job, *v, &finding);
  finding.set_refuted_by(
      nvls ? "the same failure with fabric State Completed and Status Success on all GPUs after a reset of GPUs and NVSwitches"
           : "nvidia-smi -q shows fabric State Completed and Status Success on every GPU");
  if (fm.restarted) {
    SetNext(
        "Stop all jobs, reset the GPUs (or reboot), then start the fabric manager: it must not be restarted under initialised "
        "GPUs. "
        "NCCL_NVLS_ENABLE=0 gets by without NVLS.",
        "nvidia-smi -q | grep -A4 Fabric; journalctl -u nvidia-fabricmanager --since -1d", &finding);
  } else if (nvls) {
    SetNext(
        "The fabric's state on every GPU and the fabric manager's log (was it restarted without resetting the GPUs?). "
        "NCCL_NVLS_ENABLE=0 gets by "
        "without NVLS.",
        "nvidia-smi -q | grep -A4 Fabric; systemctl status nvidia-fabricmanager; journalctl -u nvidia-fabricmanager --since -1d",
        &finding);
  }
  return {candidate};
}

const Register kRegister("nvls", FindNvls);

}  // namespace
}  // namespace ringscope::reasoning
