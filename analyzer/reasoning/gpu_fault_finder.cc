// A GPU that left the bus, lost data, or whose firmware does not answer, as the kernel log tells it (Xid 79, 48, 94, 95, 119 and
// their like).
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <optional>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/gpu_faults.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

using catalog::XidEntry;

constexpr size_t kMostCited = 6;

// "525.60.13" < "525.105.17": by numbers, part by part.
bool VersionLess(std::string_view a, std::string_view b) {
  while (!a.empty() || !b.empty()) {
    const auto take = [](std::string_view* text) {
      long value = 0;
      size_t n = 0;
      for (; n < text->size() && n < 9 && (*text)[n] >= '0' && (*text)[n] <= '9'; ++n) value = value * 10 + ((*text)[n] - '0');
      const size_t dot = text->find('.');
      *text = dot == text->npos ? std::string_view() : text->substr(dot + 1);
      return value;
    };
    const long x = take(&a), y = take(&b);
    if (x != y) return x < y;
  }
  return false;
}

// The driver's release, when all that is told of it agrees for this host.
const model::Version* Driver(const model::Job& job, const GpuFault& fault) {
  const model::Version* found = nullptr;
  for (const model::Version& v : job.evidence.versions) {
    if (v.component != "driver" || (!v.by.host.empty() && !fault.fact->by.host.empty() && v.by.host != fault.fact->by.host))
      continue;
    if (found != nullptr && found->version != v.version) {
      // A log that spans a reboot: the one that this kernel log tells before the fault.
      if (v.where.file == fault.fact->where.file && v.where.line < fault.fact->where.line) found = &v;
      continue;
    }
    if (found == nullptr) found = &v;
  }
  return found;
}

const catalog::DriverDefect* Defect(int xid, std::string_view driver) {
  for (const catalog::DriverDefect& defect : catalog::Faults().driver_defect()) {
    if (defect.xid() == xid && !VersionLess(driver, defect.from()) && VersionLess(driver, defect.fixed())) return &defect;
  }
  return nullptr;
}

std::string What(const GpuFault& root) {
  if (root.number == 79)
    return root.fact->unnumbered ? " has fallen off the bus (what used to be Xid 79; the driver tells it here without the number)"
                                 : " has fallen off the bus (Xid 79)";
  if (root.entry == nullptr) return absl::StrCat(" reports ", NumberText(root));
  return absl::StrCat(" reports ", NumberText(root), ": ", Absl(root.entry->meaning()));
}

void CitePcie(const model::Job& job, const GpuFault& root, Finding* finding) {
  for (const model::AerFact& aer : job.evidence.kernel.aers) {
    if (aer.by.host != root.fact->by.host) continue;
    Cite(job, aer.where, absl::StrCat(aer.quote, " (", aer.count, " such reports)"), finding);
  }
}

std::vector<Candidate> FindGpuFault(const model::Job& job) {
  const Incident incident = FindIncident(job);
  if (incident.root < 0) return {};
  const GpuFault& root = incident.faults[incident.root];
  if (root.part == XidEntry::nvlink || root.part == XidEntry::program) return {};
  const bool firmware = root.part == XidEntry::firmware;
  std::vector<std::string> names;
  for (const int i : incident.together) names.push_back(DeviceText(incident.faults[i]));
  std::string title =
      names.size() == 1 ? absl::StrCat(names[0], What(root))
                        : absl::StrCat(names[0], What(root), "; at the same moment also ",
                                       absl::StrJoin(names.begin() + 1, names.begin() + std::min<size_t>(names.size(), 4), ", "));
  const model::Version* driver = firmware ? Driver(job, root) : nullptr;
  const catalog::DriverDefect* defect = driver == nullptr ? nullptr : Defect(root.number, driver->version);
  if (driver != nullptr) absl::StrAppend(&title, ", driver ", driver->version);
  if (defect != nullptr) absl::StrAppend(&title, ", a release with ", defect->text());

  const auto complaints = Complaints(job);
  const bool known = root.entry != nullptr && !root.entry->cause().empty();
  Confidence::Value confidence = known && !incident.long_before ? Confidence::probable : Confidence::possible;
  if (known && root.rank >= 0 && incident.before_stall && !incident.order_unknown && incident.after_end_s == 0)
    confidence = Confidence::established;
  Candidate candidate = Say(Kind::error_reported, confidence, firmware ? Layer::kDriver : Layer::kHardware, title,
                            known ? std::string_view(root.entry->cause()) : std::string_view());
  Finding& finding = candidate.finding;
  for (const int i : incident.together) NameDevice(incident.faults[i], true, &finding);
  for (size_t i = 0; i < incident.together.size() && i < kMostCited; ++i)
    CiteFault(job, incident.faults[incident.together[i]], &finding);
  if (driver != nullptr) Cite(job, driver->where, absl::StrCat("driver ", driver->version), &finding);
  if (root.part == XidEntry::bus) CitePcie(job, root, &finding);
  CiteOthers(job, incident, kMostCited, &finding);
  CiteComplaints(job, complaints, 3, &finding);
  OthersWaited(job, &finding);
  candidate.when = root.fact->time;
  candidate.stops_job = !incident.long_before;
  candidate.state = std::any_of(complaints.begin(), complaints.end(), [](const Complaint& c) { return c.timeout; })
                        ? State::hang
                        : State::crashed;
  std::string refuted = root.number == 79               ? "`nvidia-smi` answers for that GPU"
                        : firmware                      ? "driver calls and nvidia-smi return at once on that node"
                        : root.part == XidEntry::memory ? "no memory error in `nvidia-smi -q -d ECC` of that GPU"
                                                        : "an earlier fault of that host";
  if (incident.after_end_s > 0)
    absl::StrAppend(&refuted, "; the line is later than the job's own end, which may have made it visible only then");
  if (incident.order_unknown)
    absl::StrAppend(&refuted, "; another host's fault was first: the clocks of these logs do not tell");
  finding.set_refuted_by(refuted);
  std::string advice = incident.action.empty() ? "" : absl::StrCat("The driver asks for: ", incident.action, " (Xid 154). ");
  if (defect != nullptr) absl::StrAppend(&advice, "Update the driver to ", defect->fixed(), " or later. ");
  absl::StrAppend(&advice, known ? root.entry->action() : "Look the number up in NVIDIA's Xid catalogue.");
  const std::string id = root.fact->bus_id.has_value() ? model::BusIdText(*root.fact->bus_id) : "<bus id>";
  SetNext(advice,
          root.part == XidEntry::bus
              ? absl::StrCat("lspci -vv -s ", id, " | grep -E 'LnkSta|UESta'; dmesg -T | grep -E 'NVRM|AER|pcieport'")
          : root.part == XidEntry::memory ? absl::StrCat("nvidia-smi -q -d ECC,ROW_REMAPPER -i ", id)
          : firmware                      ? "cat /proc/driver/nvidia/version; dmesg -T | grep -E 'NVRM|Xid'"
                                          : absl::StrCat("nvidia-smi -q -i ", id, "; dmesg -T | grep -E 'NVRM|Xid'"),
          &finding);
  return {candidate};
}

const Register kRegister("gpu_fault", FindGpuFault);

}  // namespace
}  // namespace ringscope::reasoning
