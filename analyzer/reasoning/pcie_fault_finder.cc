// A failing PCIe link: AER reports of the kernel, alone a hint, with a GPU or adapter that went away a fault.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>

#include "analyzer/reasoning/gpu_faults.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

using model::AerFact;

// Corrected errors are repaired by the link; a handful a day is common, so many in one log are a failing link.
constexpr uint64_t kFlood = 50;
// ... and with a device that is gone fewer are enough.
constexpr uint64_t kFew = 3;

std::string SeverityText(AerFact::Severity severity) {
  return severity == AerFact::Severity::kFatal ? "fatal" : severity == AerFact::Severity::kNonfatal ? "uncorrected" : "corrected";
}

std::string AerText(const AerFact& aer) {
  std::string text = absl::StrCat(aer.count, " ", SeverityText(aer.severity), " PCIe error", aer.count == 1 ? "" : "s",
                                  " (AER) at ", aer.device);
  if (!aer.layer.empty()) absl::StrAppend(&text, ", ", aer.layer);
  if (!aer.errors.empty()) absl::StrAppend(&text, ": ", absl::StrJoin(aer.errors, ", "));
  return text;
}

bool OfHost(const model::Speaker& a, const model::Speaker& b) { return a.host.empty() || b.host.empty() || a.host == b.host; }

std::vector<Candidate> FindPcieFault(const model::Job& job) {
  const auto& aers = job.evidence.kernel.aers;
  if (aers.empty()) return {};
  // A GPU that the driver declared lost is told by its own finder, which cites these lines.
  if (const Incident incident = FindIncident(job);
      incident.root >= 0 && incident.faults[incident.root].part == catalog::XidEntry::bus)
    return {};
  const AerFact* worst = &aers[0];
  for (const AerFact& aer : aers) {
    if (std::make_pair(aer.severity, aer.count) > std::make_pair(worst->severity, worst->count)) worst = &aer;
  }
  std::vector<const model::Event*> lost;
  for (const model::Event* e :
       EventsOf(job, {"smi-gpu-handle-lost", "kernel-nvrm-init-failed", "kernel-gpu-fell-off", "kernel-pcie-recovery-failed"})) {
    if (OfHost(e->by, worst->by)) lost.push_back(e);
  }
  const bool uncorrected = worst->severity != AerFact::Severity::kCorrected;
  const bool gone = !lost.empty() && (uncorrected || worst->count >= kFew);
  if (!gone && !uncorrected && worst->count < kFlood) return {};

  std::string title;
  std::optional<model::BusId> gpu;
  if (gone) {
    const std::string_view pci = lost[0]->Field("bus").empty() ? lost[0]->Field("pci") : lost[0]->Field("bus");
    gpu = model::ParseBusId(pci);
    title = absl::StrCat("PCIe link failing: ", AerText(*worst), "; ",
                         gpu.has_value() ? absl::StrCat("the GPU at ", model::BusIdText(*gpu)) : std::string("a GPU"),
                         " does not answer any more");
  } else {
    title = absl::StrCat(uncorrected ? "PCIe errors that could not be corrected: " : "A PCIe link corrects many errors: ",
                         AerText(*worst));
  }
  const bool fatal = worst->severity == AerFact::Severity::kFatal;
  Candidate candidate = Say(Kind::error_reported, gone || fatal ? Confidence::probable : Confidence::possible, Layer::kHardware,
                            title, gone ? "HW-05" : "HW-09", "kernel-aer");
  Finding& finding = candidate.finding;
  candidate.stops_job = gone || fatal;
  if (!candidate.stops_job) candidate.order = Class::kPlan;
  candidate.when = worst->time;
  if (gone) candidate.state = State::hang;
  Who& who = *finding.mutable_who();
  if (gpu.has_value()) {
    who.add_gpus(model::BusIdText(*gpu));
    if (const int rank = model::RankOfGpu(job.evidence, worst->by.host, *gpu); rank >= 0) who.add_ranks(rank);
  }
  who.add_links(absl::StrCat("PCIe ", worst->device));
  if (!worst->by.host.empty()) who.add_hosts(worst->by.host);
  for (const AerFact& aer : aers) {
    if (OfHost(aer.by, worst->by)) Cite(job, aer.where, absl::StrCat(aer.quote, " [", AerText(aer), "]"), &finding);
  }
  CiteAll(job, lost, 4, &finding);
  if (gone) OthersWaited(job, &finding);
  finding.set_refuted_by("the port that reports them leads to another device than the one that is gone (lspci -tv)");
  SetNext(gone ? "Which device sits below that port and whether its link is down or slower than it should be; then drain the "
                 "node, power-cycle it, reseat the GPU and its riser, and replace on recurrence."
               : "Which device sits below that port and whether its link lost speed or width under load; whether that host's "
                 "rank is the late one.",
          "lspci -tv; lspci -vv | grep -E '^[0-9a-f]|LnkSta:|UESta|CESta'; dmesg -T | grep -E 'AER|NVRM'", &finding);
  return {candidate};
}

const Register kRegister("pcie_fault", FindPcieFault);

}  // namespace
}  // namespace ringscope::reasoning
