// GPUs as the driver has them.
#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_split.h>

#include <vector>

#include "doctor/probe.h"
#include "supervisor/collector.h"
#include "supervisor/nvml.h"

namespace ringscope::doctor {
namespace {

using supervisor::kNvmlSuccess;

constexpr unsigned kMostLinks = 72;  // NVML answers "invalid argument" behind the last one; 36 are the most so far

// Takes what a call of one argument answers, if it answers.
template <typename Value, typename Call, typename Set>
void Take(const Call& call, supervisor::NvmlDevice device, Set set) {
  Value value = 0;
  if (call(device, &value) == kNvmlSuccess) set(value);
}

bool Links(const supervisor::Nvml& nvml, supervisor::NvmlDevice device, node::Gpu* gpu) {
  for (unsigned link = 0; link < kMostLinks; ++link) {
    unsigned active = 0;
    const int result = nvml.link_state(device, link, &active);
    if (result == supervisor::kNvmlInvalidArgument || result == supervisor::kNvmlFunctionNotFound) break;
    if (result == supervisor::kNvmlNotSupported) continue;
    if (result != kNvmlSuccess) {
      gpu->clear_links();  // half of them would look like a GPU that has no more
      gpu->set_trouble(nvml.Words(result));
      return false;
    }
    node::Gpu::Link* l = gpu->add_links();
    l->set_index(static_cast<int>(link));
    l->set_active(active != 0);
    unsigned long long count = 0;
    if (nvml.link_errors(device, link, supervisor::kNvmlRecovery, &count) == kNvmlSuccess) l->set_recoveries(count);
    if (nvml.link_errors(device, link, supervisor::kNvmlReplay, &count) == kNvmlSuccess) l->set_replays(count);
  }
  return true;
}

void Memory(const supervisor::Nvml& nvml, supervisor::NvmlDevice device, node::Gpu* gpu) {
  unsigned long long errors = 0;
  if (nvml.ecc_errors(device, supervisor::kNvmlUncorrected, supervisor::kNvmlVolatile, &errors) == kNvmlSuccess)
    gpu->set_uncorrected_now(errors);
  if (nvml.ecc_errors(device, supervisor::kNvmlUncorrected, supervisor::kNvmlAggregate, &errors) == kNvmlSuccess)
    gpu->set_uncorrected_ever(errors);
  unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  if (nvml.remapped_rows(device, &corrected, &uncorrected, &pending, &failed) == kNvmlSuccess) {
    gpu->set_rows_remapped(uncorrected);
    gpu->set_remap_pending(pending != 0);
    gpu->set_remap_failed(failed != 0);
  } else if (nvml.retired_pending(device, &pending) == kNvmlSuccess) {
    gpu->set_remap_pending(pending != 0);
  }
}

void Fabric(const supervisor::Nvml& nvml, supervisor::NvmlDevice device, node::Gpu* gpu) {
  supervisor::NvmlFabricInfo info = {};
  if (nvml.fabric_info(device, &info) != kNvmlSuccess || info.state == 0) return;
  node::Gpu::Fabric* fabric = gpu->mutable_fabric();
  fabric->set_state(info.state);
  fabric->set_status(info.status);
  fabric->set_status_words(info.status == kNvmlSuccess ? "Success" : nvml.Words(info.status));
  fabric->set_clique(info.clique_id);
  std::string uuid;
  for (const unsigned char byte : info.cluster_uuid) absl::StrAppendFormat(&uuid, "%02x", byte);
  fabric->set_cluster(uuid);
}

void LookAt(const supervisor::Nvml& nvml, supervisor::NvmlDevice device, node::Gpu* gpu) {
  supervisor::NvmlPciInfo pci = {};
  if (nvml.pci_info(device, &pci) == kNvmlSuccess) gpu->set_product(pci.device_id);
  if (!Links(nvml, device, gpu)) return;
  Take<unsigned>(nvml.pcie_width, device, [&](unsigned v) { gpu->set_pcie_width(v); });
  Take<unsigned>(nvml.pcie_width_max, device, [&](unsigned v) { gpu->set_pcie_width_max(v); });
  Take<unsigned>(nvml.pcie_generation, device, [&](unsigned v) { gpu->set_pcie_generation(v); });
  Take<unsigned>(nvml.pcie_generation_max, device, [&](unsigned v) { gpu->set_pcie_generation_max(v); });
  Take<unsigned>(nvml.performance_state, device, [&](unsigned v) { gpu->set_performance_state(v); });
  Memory(nvml, device, gpu);
  unsigned long long reasons = 0;
  if (nvml.event_reasons(device, &reasons) == kNvmlSuccess || nvml.throttle_reasons(device, &reasons) == kNvmlSuccess)
    gpu->set_clock_reasons(reasons);
  unsigned processes = 0;
  const int result = nvml.compute_processes(device, &processes, nullptr);
  if (result == kNvmlSuccess || result == supervisor::kNvmlInsufficientSize) gpu->set_processes(processes);
  Fabric(nvml, device, gpu);
}

std::string Cell(const supervisor::Nvml& nvml, supervisor::NvmlDevice a, supervisor::NvmlDevice b, unsigned index) {
  static constexpr const char* kCells[] = {"OK", "CNS", "GNS", "TNS", "DR", "NS"};
  unsigned status = 0;
  return nvml.p2p_status(a, b, index, &status) == kNvmlSuccess && status < std::size(kCells) ? kCells[status] : "U";
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.10  …", "NVIDIA UNIX Open Kernel Module for x86_64  570.86.10  …".
void Module(const Place& place, node::Driver* driver) {
  const std::string line = supervisor::FirstLine(place.procfs + "/driver/nvidia/version");
  driver->set_listed_gpus(static_cast<int>(supervisor::Names(place.procfs + "/driver/nvidia/gpus").size()));
  driver->set_open_modules(absl::StrContains(line, "Open Kernel Module"));
  for (const absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
    if (!word.empty() && absl::ascii_isdigit(static_cast<unsigned char>(word[0])) && absl::StrContains(word, '.')) {
      driver->set_kernel_version(std::string(word));
      break;
    }
  }
  for (const char* module : {"nvidia_peermem", "nv_peer_mem"}) {
    if (!supervisor::Names(absl::StrCat(place.sysfs, "/module/", module)).empty()) driver->set_peermem(true);
  }
}

absl::Status Nvml(const Place& place, node::Node* node) {
  const absl::StatusOr<supervisor::Nvml> nvml = supervisor::Nvml::Open(place.nvml);
  if (absl::IsFailedPrecondition(nvml.status())) node->mutable_driver()->set_nvml_error(std::string(nvml.status().message()));
  if (!nvml.ok()) return nvml.status();
  char version[96] = "";
  if (nvml->driver_version(version, sizeof(version) - 1) == kNvmlSuccess) node->mutable_driver()->set_version(version);
  int cuda = 0;
  if (nvml->cuda_version(&cuda) == kNvmlSuccess) node->mutable_driver()->set_cuda(cuda);
  unsigned count = 0;
  if (const int result = nvml->count(&count); result != kNvmlSuccess) return absl::UnavailableError(nvml->Words(result));
  std::vector<supervisor::NvmlGpu> gpus;
  for (unsigned i = 0; i < count; ++i) {
    gpus.push_back(supervisor::LookAtGpu(*nvml, i, place.procfs));
    node::Gpu* gpu = node->add_gpus();
    gpu->set_index(static_cast<int>(i));
    gpu->set_bus_id(PciAddress(gpus[i].bus_id));
    gpu->set_name(gpus[i].name);
    gpu->set_uuid(gpus[i].uuid);
    if (gpus[i].result == kNvmlSuccess) {
      LookAt(*nvml, gpus[i].device, gpu);
    } else {
      gpu->set_trouble(nvml->Words(gpus[i].result));
    }
  }
  for (unsigned a = 0; a < count; ++a) {
    for (unsigned b = a + 1; b < count; ++b) {
      if (gpus[a].result != kNvmlSuccess || gpus[b].result != kNvmlSuccess) continue;
      node::PeerPair* pair = node->add_peers();
      pair->set_a(static_cast<int>(a));
      pair->set_b(static_cast<int>(b));
      pair->set_read(Cell(*nvml, gpus[a].device, gpus[b].device, supervisor::kNvmlP2pRead));
      pair->set_nvlink(Cell(*nvml, gpus[a].device, gpus[b].device, supervisor::kNvmlP2pNvlink));
    }
  }
  return absl::OkStatus();
}

absl::Status KernelModule(const Place& place, node::Node* node) {
  Module(place, node->mutable_driver());
  return node->driver().kernel_version().empty() ? absl::NotFoundError("no NVIDIA kernel module is loaded") : absl::OkStatus();
}

const RegisterProbe kNvml({"nvml", Nvml});
const RegisterProbe kModule({"module", KernelModule});

}  // namespace
}  // namespace ringscope::doctor
