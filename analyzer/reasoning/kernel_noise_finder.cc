// Lines of the kernel log that look like faults of the GPU and are none by themselves: channels of a process that ended (Xid 45),
// warnings of what may come (63, 92, non-fatal NVLink 5 reports), recovery instructions alone.
#include <absl/strings/str_cat.h>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/gpu_faults.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

using catalog::XidEntry;

constexpr size_t kMostCited = 4;

std::vector<Candidate> FindKernelNoise(const model::Job& job) {
  const Incident incident = FindIncident(job);
  std::vector<const GpuFault*> ended, warnings;
  for (const GpuFault& f : incident.faults) {
    if (f.role == XidEntry::collateral) ended.push_back(&f);
    if (f.role == XidEntry::precursor) warnings.push_back(&f);
  }
  std::vector<Candidate> candidates;
  // Beside a fault they are cited there.
  if (incident.root >= 0) return candidates;
  if (!ended.empty()) {
    Candidate c = Say(Kind::none, Confidence::probable, Layer::kReport,
                      absl::StrCat(NumberText(*ended[0]), " on ", DeviceText(*ended[0]),
                                   " only says that a process ended while it used the GPU; it is no fault of the GPU"),
                      "");
    c.order = Class::kPlan;
    for (size_t i = 0; i < ended.size() && i < kMostCited; ++i) CiteFault(job, *ended[i], &c.finding);
    c.finding.set_refuted_by("another Xid of that host before it");
    SetNext("The kernel log from before these lines, if it begins with them.", "journalctl -k -b | grep -E 'NVRM|Xid'",
            &c.finding);
    candidates.push_back(std::move(c));
  }
  if (!warnings.empty()) {
    const GpuFault& first = *warnings[0];
    Candidate c = Say(Kind::none, Confidence::possible, Layer::kReport,
                      absl::StrCat("The driver warns of ", DeviceText(first), " (", NumberText(first),
                                   first.entry != nullptr ? absl::StrCat(": ", Absl(first.entry->meaning())) : std::string(),
                                   "); this alone ends no job"),
                      "");
    c.order = Class::kPlan;
    for (size_t i = 0; i < warnings.size() && i < kMostCited; ++i) CiteFault(job, *warnings[i], &c.finding);
    c.finding.set_refuted_by("a fatal Xid of the same GPU");
    SetNext(first.entry != nullptr && !first.entry->action().empty() ? first.entry->action() : "Watch that GPU.",
            "nvidia-smi nvlink -e; nvidia-smi -q -d ECC,ROW_REMAPPER", &c.finding);
    candidates.push_back(std::move(c));
  }
  return candidates;
}

const Register kRegister("kernel_noise", FindKernelNoise);

}  // namespace
}  // namespace ringscope::reasoning
