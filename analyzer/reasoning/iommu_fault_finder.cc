// The IOMMU refused accesses of a GPU or an adapter: peer-to-peer traffic is sent through it and lost.
#include <absl/strings/str_cat.h>

#include <set>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/gpu_faults.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

std::vector<Candidate> FindIommuFault(const model::Job& job) {
  const auto faults = EventsOf(job, {"kernel-iommu-fault"});
  if (faults.empty()) return {};
  std::set<std::string> devices, hosts;
  bool gpu_or_nic = false;
  for (const model::Event* e : faults) {
    const std::string pci(e->Field("pci"));
    if (!pci.empty()) devices.insert(pci);
    if (!e->by.host.empty()) hosts.insert(e->by.host);
    const auto bus = model::ParseBusId(pci);
    for (const model::LogRank& r : job.evidence.log_ranks) gpu_or_nic |= bus.has_value() && r.bus_id == bus;
    gpu_or_nic |= e->text.find("nvidia ") != e->text.npos || e->text.find("mlx5_core ") != e->text.npos;
  }
  std::string names;
  for (const std::string& d : devices) absl::StrAppend(&names, names.empty() ? "" : ", ", d);
  Candidate c =
      Say(Kind::error_reported, gpu_or_nic ? Confidence::probable : Confidence::possible, Layer::kConfiguration,
          absl::StrCat("The IOMMU refuses direct accesses of ", names.empty() ? "a device" : names,
                       ": peer-to-peer traffic between GPUs, or GPU and adapter, is redirected into it (ACS, IOMMU) and lost"),
          "FB-05", "kernel-iommu-fault");
  for (const std::string& host : hosts) c.finding.mutable_who()->add_hosts(host);
  CiteAll(job, faults, 4, &c.finding);
  c.stops_job = gpu_or_nic;
  c.state = gpu_or_nic ? State::hang : State::unknown;
  c.when = faults[0]->time;
  c.finding.set_refuted_by(
      "the device is neither GPU nor adapter of the job, or peer-to-peer works with the IOMMU as it is "
      "(p2pBandwidthLatencyTest)");
  SetNext(
      "Boot with iommu=pt (or the IOMMU off) and with ACS off on the PCIe switches, or pass the devices through as one group; "
      "until then NCCL_P2P_DISABLE=1 avoids the path at a cost.",
      "cat /proc/cmdline; lspci -vvv | grep -E '^[0-9a-f]|ACSCtl'", &c.finding);
  return {c};
}

const Register kRegister("iommu_fault", FindIommuFault);

}  // namespace
}  // namespace ringscope::reasoning
