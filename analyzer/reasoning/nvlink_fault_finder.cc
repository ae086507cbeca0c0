// NVLink, NVSwitch and NVLink-domain faults that the kernel log names (Xid 74, 144-150, 155; SXid): one GPU and link, or a
// domain.
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>

#include "analyzer/reasoning/gpu_faults.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

using catalog::XidEntry;

constexpr size_t kMostCited = 6;
// So many GPUs at one moment share a switch or a fabric; a single broken link shows at its two ends.
constexpr size_t kDomain = 3;

std::string Command(const GpuFault& fault) {
  if (!fault.fact->bus_id.has_value() || fault.fact->nvswitch)
    return "nvidia-smi nvlink -s; nvidia-smi nvlink -e; dmesg -T | grep -E 'Xid|SXid'; tail -n 100 /var/log/fabricmanager.log";
  const std::string id = model::BusIdText(*fault.fact->bus_id);
  return absl::StrCat("nvidia-smi nvlink -s -i ", id, "; nvidia-smi nvlink -e -i ", id, "; dmesg -T | grep -E 'Xid|SXid'");
}

std::string Advice(const Incident& incident, const GpuFault& root) {
  std::string text;
  if (!incident.action.empty()) text = absl::StrCat("The driver asks for: ", incident.action, " (Xid 154). ");
  absl::StrAppend(&text, root.entry != nullptr && !root.entry->action().empty()
                             ? root.entry->action()
                             : "Drain the node; reset NVSwitches and GPUs together, or reboot; replace on recurrence.");
  return text;
}

void CommonParts(const model::Job& job, const Incident& incident, Candidate* candidate) {
  const GpuFault& root = incident.faults[incident.root];
  Finding& finding = candidate->finding;
  for (size_t i = 0; i < incident.together.size() && i < kMostCited; ++i)
    CiteFault(job, incident.faults[incident.together[i]], &finding);
  CiteOthers(job, incident, kMostCited, &finding);
  const auto complaints = Complaints(job);
  CiteComplaints(job, complaints, 4, &finding);
  candidate->when = root.fact->time;
  candidate->stops_job = !incident.long_before;
  candidate->state = std::any_of(complaints.begin(), complaints.end(), [](const Complaint& c) { return c.timeout; })
                         ? State::hang
                         : State::crashed;
  SetNext(Advice(incident, root), Command(root), &finding);
  OthersWaited(job, &finding);
}

// The teardown of a job makes such lines too.
Candidate AfterTheEnd(const model::Job& job, const Incident& incident) {
  const GpuFault& root = incident.faults[incident.root];
  Candidate candidate =
      Say(Kind::undetermined, Confidence::possible, Layer::kReport,
          absl::StrFormat("%s on %s came %.0f s after the job had already given up: NVLink is not shown to be the reason",
                          NumberText(root), DeviceText(root), incident.after_end_s),
          "");
  CiteFault(job, root, &candidate.finding);
  CiteComplaints(job, Complaints(job), 3, &candidate.finding);
  candidate.finding.set_refuted_by(
      "link counters that moved before the job gave up, or clocks of kernel log and program that differ");
  SetNext(
      "Ending a job that uses NVLink can itself log this error. The link counters tell: compare them with those from before the "
      "job.",
      Command(root), &candidate.finding);
  return candidate;
}

Candidate FailedTraining(const model::Job& job, const Incident& incident) {
  const GpuFault& root = incident.faults[incident.root];
  Candidate candidate = Say(
      Kind::degraded_plan, Confidence::probable, Layer::kHardware,
      absl::StrCat("An NVLink of ", DeviceText(root), " could not be trained (", NumberText(root), "): NCCL plans without it"),
      "HW-02");
  candidate.order = Class::kPlan;
  for (const int i : incident.together) CiteFault(job, incident.faults[i], &candidate.finding);
  for (const int i : incident.together) NameDevice(incident.faults[i], true, &candidate.finding);
  candidate.finding.set_refuted_by("`nvidia-smi nvlink -s` shows all links of that GPU active");
  SetNext(Advice(incident, root), Command(root), &candidate.finding);
  return candidate;
}

Candidate Domain(const model::Job& job, const Incident& incident, const std::vector<const GpuFault*>& gpus, bool switch_named) {
  const GpuFault& root = incident.faults[incident.root];
  std::vector<std::string> names;
  for (const GpuFault* gpu : gpus) names.push_back(DeviceText(*gpu));
  if (names.size() > 4) {
    const size_t more = names.size() - 3;
    names.resize(3);
    names.push_back(absl::StrCat(more, " more"));
  }
  const std::string title = gpus.empty()
                                ? absl::StrCat("NVSwitch fault: ", DeviceText(root), " reports ", NumberText(root))
                                : absl::StrCat("NVLink domain fault: ", absl::StrJoin(names, ", "), " report ", NumberText(root),
                                               " at one moment; what they share (NVSwitch, fabric) failed, no single rank");
  Candidate candidate = Say(Kind::error_reported, Confidence::probable, Layer::kHardware, title, "HW-04");
  for (const int i : incident.together) NameDevice(incident.faults[i], false, &candidate.finding);
  CommonParts(job, incident, &candidate);
  if (switch_named && !gpus.empty()) candidate.finding.set_confidence(Confidence::established);
  candidate.finding.mutable_cause()->set_confidence(candidate.finding.confidence());
  candidate.finding.set_refuted_by(
      "one of these GPUs reported a link-down (Xid 149, 74) earlier than the others: then that link began it");
  return candidate;
}

Candidate Link(const model::Job& job, const Incident& incident, const std::vector<const GpuFault*>& gpus) {
  const GpuFault& root = incident.faults[incident.root];
  const bool receiving = root.role == XidEntry::secondary;
  std::string what = root.fact->link >= 0 ? absl::StrCat("link ", root.fact->link, " of ") : "";
  absl::StrAppend(&what, DeviceText(root));
  std::string title = receiving ? absl::StrCat("NVLink error received at ", what, " (", NumberText(root),
                                               "): the fault lies at that link or beyond it")
                                : absl::StrCat("NVLink fault at ", what, " (", NumberText(root), ")");
  if (gpus.size() == 2) absl::StrAppend(&title, "; its other end is ", DeviceText(*gpus[gpus[0]->fact == root.fact ? 1 : 0]));
  Candidate candidate =
      Say(Kind::error_reported, receiving || incident.long_before ? Confidence::possible : Confidence::probable, Layer::kHardware,
          title, root.entry != nullptr && !root.entry->cause().empty() ? root.entry->cause() : "HW-01");
  Finding& finding = candidate.finding;
  for (const int i : incident.together) NameDevice(incident.faults[i], !receiving, &finding);
  CommonParts(job, incident, &candidate);
  const auto complaints = Complaints(job);
  const bool agrees = incident.before_stall || std::any_of(complaints.begin(), complaints.end(), [](const Complaint& c) {
                        return ContainsIgnoringCase(c.text, "nvlink");
                      });
  if (!receiving && agrees && root.rank >= 0 && gpus.size() < 2 && !incident.order_unknown)
    finding.set_confidence(Confidence::established);
  finding.mutable_cause()->set_confidence(finding.confidence());
  finding.set_refuted_by(absl::StrCat(
      "the line is later than the end of the job, an earlier fault of that GPU (Xid 79, 48, 119) is found, or its link state and "
      "counters are clean",
      incident.order_unknown ? "; or another host's fault was first: the clocks of these logs do not tell" : ""));
  return candidate;
}

std::vector<Candidate> FindNvlinkFault(const model::Job& job) {
  const Incident incident = FindIncident(job);
  if (incident.root < 0) return {};
  const GpuFault& root = incident.faults[incident.root];
  if (root.part != XidEntry::nvlink) return {};
  if (root.number == 136 || ContainsIgnoringCase(root.fact->text, "failed to train")) return {FailedTraining(job, incident)};
  if (incident.after_end_s > 0) return {AfterTheEnd(job, incident)};
  std::vector<const GpuFault*> gpus;
  bool switch_named = false;
  for (const int i : incident.together) {
    const GpuFault& fault = incident.faults[i];
    switch_named |= fault.fact->nvswitch;
    if (!fault.fact->nvswitch) gpus.push_back(&fault);
  }
  const bool several = root.role == XidEntry::secondary ? gpus.size() >= 2 : gpus.size() >= kDomain;
  if (several || (switch_named && gpus.size() != 1)) return {Domain(job, incident, gpus, switch_named)};
  Incident told = incident;
  // A switch and exactly one GPU at one moment: the link between them, and the GPU is whom one can name.
  if (root.fact->nvswitch)
    told.root = incident.together[std::find_if(incident.together.begin(), incident.together.end(),
                                               [&](int i) { return !incident.faults[i].fact->nvswitch; }) -
                                  incident.together.begin()];
  return {Link(job, told, gpus)};
}

const Register kRegister("nvlink_fault", FindNvlinkFault);

}  // namespace
}  // namespace ringscope::reasoning
