// A GPU that nvidia-smi cannot reach any more: its handle cannot be had, or errors stand where its values belong.
#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/gpu_view.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

struct Lost {
  std::string host, name;  // "GPU 0000:41:00.0"
  std::optional<model::BusId> bus_id;
  int index = -1;
  std::vector<const model::Event*> events;
  std::vector<std::pair<model::Where, std::string>> lines;
};

// What the kernel said of PCIe: whoever reads its log, the words are its own.
bool SpeaksOfPcie(const model::Event& event) {
  return Contains(event.text, "AER:") || Contains(event.text, "PCIe Bus Error") || Contains(event.text, "fallen off the bus");
}

std::vector<Candidate> FindLost(const model::Job& job) {
  std::map<std::pair<std::string, std::string>, Lost> lost;
  for (const model::Event* event : EventsOf(job, {"smi-gpu-handle-lost"})) {
    Lost& gpu = lost[{event->by.host, std::string(event->Field("bus"))}];
    gpu.host = event->by.host;
    gpu.bus_id = model::ParseBusId(event->Field("bus"));
    gpu.index = static_cast<int>(event->Number("gpu").value_or(-1));
    gpu.name = absl::StrCat("GPU ", gpu.bus_id ? model::BusIdText(*gpu.bus_id) : std::string(event->Field("bus")));
    gpu.events.push_back(event);
  }
  for (const GpuView& view : GpuViews(job)) {
    for (const GpuView::At& at : view.readings) {
      if (!at.gpu->lost) continue;
      Lost& gpu = lost[{view.host, view.bus_id ? model::BusIdText(*view.bus_id) : absl::StrCat(view.index)}];
      gpu.host = view.host;
      gpu.bus_id = view.bus_id;
      gpu.index = view.index;
      gpu.name =
          view.index >= 0 && view.bus_id ? absl::StrCat(view.Name(), " (", model::BusIdText(*view.bus_id), ")") : view.Name();
      gpu.lines.emplace_back(at.gpu->where, at.gpu->quote);
      break;
    }
  }
  std::vector<Candidate> found;
  for (const auto& [key, gpu] : lost) {
    if (found.size() >= 8) break;
    std::vector<const model::Event*> pcie;
    for (const model::Event& event : job.evidence.events) {
      const bool same_host = gpu.host.empty() || event.by.host.empty() || event.by.host == gpu.host;
      if (same_host && SpeaksOfPcie(event)) pcie.push_back(&event);
    }
    Candidate c = Say(Kind::error_reported, pcie.empty() ? Confidence::probable : Confidence::established, Layer::kHardware,
                      absl::StrCat(gpu.name, gpu.host.empty() ? "" : absl::StrCat(" on ", gpu.host),
                                   " is lost: the driver cannot reach it over PCIe any more",
                                   pcie.empty() ? "" : ", and the kernel reports PCIe errors (AER)"),
                      "HW-05", "smi-gpu-handle-lost");
    c.stops_job = true;
    c.state = State::crashed;
    Finding& f = c.finding;
    f.mutable_who()->add_gpus(gpu.name);
    if (!gpu.host.empty()) f.mutable_who()->add_hosts(gpu.host);
    int rank = gpu.bus_id ? model::RankOfGpu(job.evidence, gpu.host, *gpu.bus_id) : -1;
    if (rank < 0 && gpu.index >= 0) rank = model::RankOfDevice(job.evidence, gpu.host, gpu.index);
    if (rank >= 0) f.mutable_who()->add_ranks(rank);
    CiteAll(job, gpu.events, 3, &f);
    for (size_t i = 0; i < gpu.lines.size() && i < 3; ++i) Cite(job, gpu.lines[i].first, gpu.lines[i].second, &f);
    std::set<std::string> said;
    for (const model::Event* event : pcie) {
      if (said.size() < 4 && said.insert(event->signature).second) Cite(job, *event, &f);
    }
    f.set_refuted_by("nvidia-smi answers for that GPU again without a reset; then the driver was busy, not the GPU gone");
    SetNext(
        "Xid 79 or PCIe errors of its slot in the kernel log, Xid 119/120 for its firmware. Drain the node, power-cycle it, "
        "reseat the "
        "GPU or its riser; look at link speed and width afterwards.",
        "dmesg -T | grep -E 'Xid|NVRM|AER|PCIe Bus Error'; lspci -d 10de: -vv | grep -E 'LnkSta:|controller'", &f);
    found.push_back(std::move(c));
  }
  if (!found.empty()) return found;
  if (const model::Event* none = FirstEvent(job, {"smi-no-devices"}); none != nullptr) {
    Candidate c = Say(Kind::undetermined, Confidence::possible, Layer::kDriver,
                      absl::StrCat("nvidia-smi finds no GPU", none->by.host.empty() ? "" : absl::StrCat(" on ", none->by.host)),
                      "", "smi-no-devices");
    Cite(job, *none, &c.finding);
    c.finding.set_refuted_by("a host or container that is meant to have no GPU");
    found.push_back(std::move(c));
  }
  return found;
}

const Register kRegister("gpu lost", FindLost);

}  // namespace
}  // namespace ringscope::reasoning
