#include "supervisor/nvml.h"

#include <absl/strings/str_cat.h>
#include <dlfcn.h>

#include "supervisor/collector.h"

namespace ringscope::supervisor {
namespace {

template <typename... Calls>
void Load(void* library, Calls*... calls) {
  ((calls->call = reinterpret_cast<decltype(calls->call)>(dlsym(library, calls->name))), ...);
}

}  // namespace

absl::StatusOr<Nvml> Nvml::Open(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return absl::NotFoundError(absl::StrCat("no NVIDIA driver here (", dlerror(), ")"));
  Nvml n;
  Load(handle, &n.init, &n.driver_version, &n.count, &n.by_index, &n.name, &n.uuid, &n.minor_number, &n.pci_info, &n.link_state,
       &n.link_errors, &n.field_values, &n.p2p_status, &n.fabric_info, &n.ecc_errors, &n.remapped_rows, &n.retired_pending,
       &n.compute_processes, &n.cuda_version, &n.event_reasons, &n.throttle_reasons, &n.pcie_width, &n.pcie_width_max,
       &n.pcie_generation, &n.pcie_generation_max, &n.pcie_replays, &n.performance_state, &n.temperature, &n.power, &n.memory,
       &n.utilization);
  n.error_string_ = reinterpret_cast<const char* (*)(int)>(dlsym(handle, "nvmlErrorString"));
  if (const int result = n.init(); result != kNvmlSuccess) return absl::FailedPreconditionError(n.Words(result));
  return n;
}

std::string Nvml::Words(int result) const {
  if (result == kNvmlFunctionNotFound) return "Function Not Found";
  const char* words = error_string_ == nullptr ? nullptr : error_string_(result);
  return words == nullptr ? absl::StrCat("NVML error ", result) : words;
}

NvmlGpu LookAtGpu(const Nvml& nvml, unsigned index, const std::string& procfs) {
  NvmlGpu gpu;
  gpu.index = index;
  unsigned count = 0;
  nvml.count(&count);
  // NVML counts GPUs in the order of their bus ids.
  const std::vector<std::string> listed = Names(procfs + "/driver/nvidia/gpus");
  if (listed.size() == count && index < count) gpu.bus_id = listed[index];
  gpu.result = nvml.by_index(index, &gpu.device);
  if (gpu.result != kNvmlSuccess) return gpu;
  char text[128] = "";
  NvmlPciInfo pci = {};
  if (nvml.pci_info(gpu.device, &pci) == kNvmlSuccess && pci.bus_id[0] != 0)
    gpu.bus_id.assign(pci.bus_id, strnlen(pci.bus_id, sizeof(pci.bus_id)));
  gpu.result = nvml.name(gpu.device, text, sizeof(text) - 1);
  if (gpu.result == kNvmlSuccess) gpu.name = text;
  if (nvml.uuid(gpu.device, text, sizeof(text) - 1) == kNvmlSuccess) gpu.uuid = text;
  return gpu;
}

std::string LostLine(const Nvml& nvml, const NvmlGpu& gpu) {
  return absl::StrCat("Unable to determine the device handle for GPU", gpu.index, ": ", gpu.bus_id,
                      gpu.bus_id.empty() ? "" : ": ", nvml.Words(gpu.result), "\n");
}

}  // namespace ringscope::supervisor
