// PCIe links that trained below what they can, as lspci shows them. A link at rest lowers its speed to save power, so speed
// counts only while the device works; width is not lowered that way.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/gpu_view.h"
#include "analyzer/reasoning/text_evidence.h"
#include "analyzer/reasoning/thresholds.h"

namespace ringscope::reasoning {
namespace {

// "Speed 5GT/s (downgraded), Width x16": which of the two is.
struct Downgrade {
  bool speed = false, width = false;
};
Downgrade Read(std::string_view line) {
  Downgrade d;
  for (size_t at = line.find("(downgraded)"); at != line.npos; at = line.find("(downgraded)", at + 1)) {
    const size_t width = line.substr(0, at).rfind("Width"), speed = line.substr(0, at).rfind("Speed");
    (width != line.npos && (speed == line.npos || width > speed) ? d.width : d.speed) = true;
  }
  return d;
}

const GpuView* ViewOf(const std::vector<GpuView>& views, const model::PciFunction& f) {
  for (const GpuView& view : views) {
    if (f.bus_id && view.bus_id && *f.bus_id == *view.bus_id &&
        (view.host.empty() || f.by.host.empty() || view.host == f.by.host))
      return &view;
  }
  return nullptr;
}

bool Works(const GpuView& view) {
  return view.Value("pstate") == "P0" || view.Number("utilization.gpu", 0) >= thresholds::kBusyPercent;
}

std::vector<Candidate> FindLinks(const model::Job& job) {
  std::vector<Candidate> found;
  const std::vector<GpuView> views = GpuViews(job);
  std::map<std::string, std::pair<size_t, size_t>> links;  // by host: at full speed, below
  const auto& pci = job.evidence.network.pci;
  for (const model::PciFunction& f : pci) {
    if (f.link_line.empty() || !f.bus_id) continue;
    auto& [full, below] = links[f.by.host];
    ++(f.link_downgraded ? below : full);
  }
  for (const model::PciFunction& f : pci) {
    if (!f.link_downgraded || !f.bus_id || f.Bridge() || found.size() >= 8) continue;
    const auto& [full, below] = links[f.by.host];
    // Boards whose slots are all alike narrow, machines at rest, and one link that nothing compares with.
    if (full == 0 || below >= full) continue;
    const Downgrade what = Read(f.link_line);
    const GpuView* view = ViewOf(views, f);
    const bool works = view != nullptr && Works(*view);
    if (!what.width && view != nullptr && !works) continue;  // at rest
    const std::string device = view != nullptr ? view->NameOnHost()
                                               : absl::StrCat("device ", model::BusIdText(*f.bus_id),
                                                              f.by.host.empty() ? "" : absl::StrCat(" on ", f.by.host));
    Candidate c = Say(Kind::degraded_plan, works || what.width ? Confidence::probable : Confidence::possible, Layer::kHardware,
                      absl::StrCat("The PCIe link of ", device, " runs below its ", what.width ? "width" : "speed",
                                   works ? " under load" : "", ", ", full, full == 1 ? " other does not" : " others do not"),
                      "HW-09");
    c.order = Class::kPlan;
    c.state = State::slow;
    if (view != nullptr) {
      NameGpu(job, *view, &c.finding);
    } else if (const int rank = model::RankOfGpu(job.evidence, f.by.host, *f.bus_id); rank >= 0) {
      c.finding.mutable_who()->add_ranks(rank);
    }
    if (view == nullptr) c.finding.mutable_who()->add_gpus(model::BusIdText(*f.bus_id));
    Cite(job, f.link_where, absl::StrCat(model::BusIdText(*f.bus_id), ": ", f.link_line), &c.finding);
    for (const model::PciFunction& other : pci) {
      if (other.link_line.empty() || other.link_downgraded || other.by.host != f.by.host) continue;
      Cite(job, other.link_where,
           absl::StrCat(other.bus_id ? absl::StrCat(model::BusIdText(*other.bus_id), ": ") : "", other.link_line), &c.finding);
      break;
    }
    if (view != nullptr) {
      for (const char* key : {"utilization.gpu", "pstate", "pcie.link.gen.current"}) {
        if (const model::Reading* reading = view->Latest(key); reading != nullptr) CiteReading(job, *reading, &c.finding);
      }
    }
    c.finding.set_refuted_by("full speed and width while the device works");
    SetNext(
        "The link of the device and of every bridge above it while the device works, and AER errors of that slot; then retrain "
        "the link (a "
        "reset of the device, a power cycle) or reseat the card.",
        "lspci -vv -s <bus id> | grep -E 'LnkCap:|LnkSta:'; nvidia-smi -q -d PERFORMANCE; dmesg -T | grep -E 'AER|PCIe Bus "
        "Error'",
        &c.finding);
    found.push_back(std::move(c));
  }
  return found;
}

const Register kRegister("pcie link", FindLinks);

}  // namespace
}  // namespace ringscope::reasoning
