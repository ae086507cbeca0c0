// A kernel of the program used memory that is not its own, by the kernel log: Xid 13, 31, 43 without a fault of hardware before.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <set>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/gpu_faults.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

using catalog::XidEntry;

std::vector<Candidate> FindIllegalAccess(const model::Job& job) {
  const Incident incident = FindIncident(job);
  if (incident.root < 0) return {};
  GpuFault root = incident.faults[incident.root];
  if (root.part != XidEntry::program) return {};
  if (incident.after_end_s > 0) {
    Candidate late = Say(Kind::none, Confidence::possible, Layer::kReport,
                         absl::StrFormat("%s on %s came %.0f s after the job had given up: it follows from the end",
                                         NumberText(root), DeviceText(root), incident.after_end_s),
                         "");
    late.order = Class::kPlan;
    CiteFault(job, root, &late.finding);
    return {late};
  }
  const bool first_hand = root.role == XidEntry::application;
  const auto complaints = Complaints(job);
  // An illegal access is an error of one process only: the one rank that reports it is the one whose GPU faulted.
  std::set<int> accused;
  for (const Complaint& c : complaints) {
    if (!c.timeout && c.by.rank >= 0) accused.insert(c.by.rank);
  }
  if (root.rank < 0 && first_hand && incident.together.size() == 1 && accused.size() == 1) root.rank = *accused.begin();
  const bool agrees = root.rank >= 0 && std::any_of(complaints.begin(), complaints.end(), [&](const Complaint& c) {
                        return !c.timeout && (c.by.rank == root.rank || (root.fact->pid >= 0 && c.by.pid == root.fact->pid));
                      });
  Candidate candidate = Say(Kind::error_reported,
                            agrees && first_hand ? Confidence::established
                            : first_hand         ? Confidence::probable
                                                 : Confidence::possible,
                            Layer::kProgram,
                            absl::StrCat("A kernel of the program failed on ", DeviceText(root), " (", NumberText(root), ": ",
                                         Absl(root.entry->meaning()), ")"),
                            "UC-10");
  Finding& finding = candidate.finding;
  NameDevice(root, incident.together.size() == 1, &finding);
  for (const int i : incident.together) CiteFault(job, incident.faults[i], &finding);
  CiteOthers(job, incident, 4, &finding);
  CiteComplaints(job, complaints, 4, &finding);
  OthersWaited(job, &finding);
  candidate.when = root.fact->time;
  candidate.order = Class::kLiveness;  // with it the process ends
  candidate.stops_job = true;
  candidate.state = State::crashed;
  finding.set_refuted_by(
      "an NVLink, memory or bus fault (Xid 74, 144-150, 48, 94, 79) of that host before it, or the error follows the GPU to "
      "other programs");
  SetNext(root.entry->action(), "CUDA_LAUNCH_BLOCKING=1 compute-sanitizer --tool memcheck <program>", &finding);
  return {candidate};
}

const Register kRegister("illegal_access", FindIllegalAccess);

}  // namespace
}  // namespace ringscope::reasoning
