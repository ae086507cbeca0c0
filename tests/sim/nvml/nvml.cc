#include "tests/sim/nvml/nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "tests/sim/machine/machine.h"
#include "tests/sim/setup/settings.h"

using ringscope::sim::Machine;
using ringscope::sim::MachineGpu;

namespace {

bool initialised = false;

// The machine may have changed since the last question. One that cannot be read has no GPU: whoever asks NVML lives on.
Machine Now() {
  std::string error;
  Machine machine = ringscope::sim::ThisMachine(ringscope::sim::DevicesAsked(), &error);
  return error.empty() ? machine : Machine();
}

// Handles are indices, moved away from zero.
nvmlDevice_t Handle(size_t index) { return reinterpret_cast<nvmlDevice_t>(index + 1); }

struct Gpu {
  Machine machine;
  size_t index = 0;
  nvmlReturn_t result = NVML_SUCCESS;
  const MachineGpu& operator*() const { return machine.gpus[index]; }
  const MachineGpu* operator->() const { return &machine.gpus[index]; }
};
Gpu Of(nvmlDevice_t device) {
  Gpu gpu;
  // A driver that does not come back, for whoever must survive that.
  if (const char* hang = getenv("RINGSCOPE_SIM_NVML_HANGS"); hang != nullptr && atoi(hang) != 0) {
    while (true) pause();
  }
  if (!initialised) {
    gpu.result = NVML_ERROR_UNINITIALIZED;
    return gpu;
  }
  gpu.machine = Now();
  gpu.index = reinterpret_cast<size_t>(device) - 1;
  if (gpu.index >= gpu.machine.gpus.size()) {
    gpu.result = NVML_ERROR_INVALID_ARGUMENT;
  } else if (gpu.machine.gpus[gpu.index].lost) {
    gpu.result = NVML_ERROR_GPU_IS_LOST;
  }
  return gpu;
}

nvmlReturn_t Text(const std::string& text, char* into, unsigned length) {
  if (into == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (text.size() >= length) return NVML_ERROR_INSUFFICIENT_SIZE;
  memcpy(into, text.c_str(), text.size() + 1);
  return NVML_SUCCESS;
}
template <typename T, typename V>
nvmlReturn_t Answer(const Gpu& gpu, T* into, V value) {
  if (gpu.result != NVML_SUCCESS) return gpu.result;
  if (into == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *into = static_cast<T>(value);
  return NVML_SUCCESS;
}

void Fill(int bus, nvmlPciInfo_t* pci) {
  memset(pci, 0, sizeof(*pci));
  pci->bus = static_cast<unsigned>(bus);
  snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "0000:%02X:00.0", bus & 0xff);
  snprintf(pci->busId, sizeof(pci->busId), "00000000:%02X:00.0", bus & 0xff);
}

// The other end of a link, -1: inactive. Links with errors go first when some are down, then the last ones.
int Remote(const Gpu& gpu, unsigned link) {
  const int all = gpu.machine.product_lanes, active = gpu.machine.LanesOf(static_cast<int>(gpu.index));
  std::vector<int> order;
  for (int l = 0; l < all; ++l) {
    if (gpu->replays.count(l) == 0) order.push_back(l);
  }
  for (const auto& [l, count] : gpu->replays) {
    if (l >= 0 && l < all) order.push_back(l);
  }
  const auto at = std::find(order.begin(), order.end(), static_cast<int>(link)) - order.begin();
  if (at >= active) return -1;
  if (gpu.machine.nvswitch) return 0;
  int left = static_cast<int>(at);
  for (int other = 0; other < static_cast<int>(gpu.machine.gpus.size()); ++other) {
    left -= gpu.machine.LanesBetween(static_cast<int>(gpu.index), other);
    if (left < 0) return other;
  }
  return -1;
}
bool HasLink(const Gpu& gpu, unsigned link) { return link < static_cast<unsigned>(gpu.machine.product_lanes); }

}  // namespace

extern "C" {

nvmlReturn_t nvmlInit_v2() {
  // A library and a kernel module of two releases, after an upgrade without a restart.
  if (const char* mismatch = getenv("RINGSCOPE_SIM_NVML_MISMATCH"); mismatch != nullptr && atoi(mismatch) != 0)
    return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
  if (const ringscope::sim::Mistake mistake = ringscope::sim::CheckSettings(); !mistake.text.empty()) {
    fprintf(stderr, "libnvidia-ml (simulated): %s\n", mistake.text.c_str());
    return NVML_ERROR_UNKNOWN;
  }
  initialised = true;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlShutdown() {
  initialised = false;
  return NVML_SUCCESS;
}
const char* nvmlErrorString(nvmlReturn_t result) {
  switch (result) {
    case NVML_SUCCESS:
      return "Success";
    case NVML_ERROR_UNINITIALIZED:
      return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT:
      return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED:
      return "Not Supported";
    case NVML_ERROR_NOT_FOUND:
      return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
      return "Insufficient Size";
    case NVML_ERROR_GPU_IS_LOST:
      return "GPU is lost";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
      return "Driver/library version mismatch";
    case NVML_ERROR_UNKNOWN:
      break;
  }
  return "Unknown Error";
}
nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned length) { return Text("570.86.10", version, length); }

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count) {
  if (!initialised) return NVML_ERROR_UNINITIALIZED;
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = static_cast<unsigned>(Now().gpus.size());
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* device) {
  return Answer(Of(Handle(index)), device, Handle(index));
}
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, nvmlDevice_t* device) {
  if (!initialised) return NVML_ERROR_UNINITIALIZED;
  unsigned domain = 0, bus = 0;
  if (bus_id == nullptr || device == nullptr || sscanf(bus_id, "%x:%x", &domain, &bus) != 2) return NVML_ERROR_INVALID_ARGUMENT;
  const Machine machine = Now();
  for (size_t i = 0; i < machine.gpus.size(); ++i) {
    if (machine.gpus[i].bus == static_cast<int>(bus)) return nvmlDeviceGetHandleByIndex_v2(static_cast<unsigned>(i), device);
  }
  return NVML_ERROR_NOT_FOUND;
}
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned* index) {
  const Gpu gpu = Of(device);
  return Answer(gpu, index, gpu.index);
}
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned length) {
  const Gpu gpu = Of(device);
  if (gpu.result != NVML_SUCCESS) return gpu.result;
  return Text(gpu.machine.sm >= 90   ? "NVIDIA H100 80GB HBM3"
              : gpu.machine.sm >= 80 ? "NVIDIA A100-SXM4-80GB"
                                     : "Tesla V100-SXM2-32GB",
              name, length);
}
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned length) {
  const Gpu gpu = Of(device);
  if (gpu.result != NVML_SUCCESS) return gpu.result;
  const char* host = getenv("RINGSCOPE_SIM_HOST");
  char text[64];
  snprintf(text, sizeof(text), "GPU-%08x-0000-4000-8000-0000000000%02x",
           static_cast<unsigned>(std::hash<std::string>()(host == nullptr ? "" : host)), gpu->bus & 0xff);
  return Text(text, uuid, length);
}
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned* minor) { return nvmlDeviceGetIndex(device, minor); }
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  const Gpu gpu = Of(device);
  if (gpu.result != NVML_SUCCESS) return gpu.result;
  if (pci == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  Fill(gpu->bus, pci);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link, unsigned* active) {
  const Gpu gpu = Of(device);
  if (gpu.result == NVML_SUCCESS && !HasLink(gpu, link)) return NVML_ERROR_INVALID_ARGUMENT;
  return Answer(gpu, active, gpu.result == NVML_SUCCESS && Remote(gpu, link) >= 0);
}
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned link, nvmlPciInfo_t* pci) {
  const Gpu gpu = Of(device);
  if (gpu.result != NVML_SUCCESS) return gpu.result;
  if (pci == nullptr || !HasLink(gpu, link)) return NVML_ERROR_INVALID_ARGUMENT;
  const int remote = Remote(gpu, link);
  if (remote < 0) return NVML_ERROR_NOT_SUPPORTED;
  Fill(gpu.machine.nvswitch ? 6 : gpu.machine.gpus[static_cast<size_t>(remote)].bus, pci);
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned link, unsigned* type) {
  const Gpu gpu = Of(device);
  if (gpu.result == NVML_SUCCESS && !HasLink(gpu, link)) return NVML_ERROR_INVALID_ARGUMENT;
  if (gpu.result == NVML_SUCCESS && Remote(gpu, link) < 0) return NVML_ERROR_NOT_SUPPORTED;
  return Answer(gpu, type, gpu.machine.nvswitch ? 2 : 0);
}
nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned link, unsigned counter, unsigned long long* count) {
  const Gpu gpu = Of(device);
  if (gpu.result != NVML_SUCCESS) return gpu.result;
  if (!HasLink(gpu, link) || counter > 3) return NVML_ERROR_INVALID_ARGUMENT;
  const auto found = gpu->replays.find(static_cast<int>(link));
  const int replays = found == gpu->replays.end() ? 0 : found->second;
  return Answer(gpu, count, counter == 0 ? replays : counter == 1 ? replays / 100 : 0);
}
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t* values) {
  const Gpu gpu = Of(device);
  if (gpu.result != NVML_SUCCESS) return gpu.result;
  if (values == nullptr || count <= 0) return NVML_ERROR_INVALID_ARGUMENT;
  for (int i = 0; i < count; ++i) {
    nvmlFieldValue_t& value = values[i];
    const bool told = value.fieldId == 164 && HasLink(gpu, value.scopeId) && Remote(gpu, value.scopeId) >= 0;
    value.nvmlReturn = told ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
    value.valueType = 1;
    value.value.uiVal = !told ? 0 : gpu.machine.sm >= 90 ? 26562 : gpu.machine.sm >= 80 ? 25000 : 25781;
  }
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t a, nvmlDevice_t b, unsigned index, unsigned* status) {
  const Gpu gpu = Of(a), other = Of(b);
  if (other.result != NVML_SUCCESS) return other.result;
  const int x = static_cast<int>(gpu.index), y = static_cast<int>(other.index);
  const bool refused = gpu.machine.refused.count({std::min(x, y), std::max(x, y)}) != 0;
  const bool no_link = index == 2 && gpu.result == NVML_SUCCESS && gpu.machine.LanesBetween(x, y) == 0;
  return Answer(gpu, status, refused || no_link ? 5 : 0);
}
nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t* info) {
  const Gpu gpu = Of(device);
  if (gpu.result != NVML_SUCCESS) return gpu.result;
  if (info == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (!gpu.machine.nvswitch) return NVML_ERROR_NOT_SUPPORTED;
  memset(info, 0, sizeof(*info));
  info->state = static_cast<unsigned char>(gpu->fabric);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned type, unsigned, unsigned long long* count) {
  const Gpu gpu = Of(device);
  return Answer(gpu, count, type == 1 && gpu.result == NVML_SUCCESS ? gpu->uncorrected : 0);
}
nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long* reasons) {
  const Gpu gpu = Of(device);
  return Answer(gpu, reasons, gpu.result == NVML_SUCCESS ? gpu->clock_reasons : 0);
}
// Counts only: whoever wants to know who they are finds none.
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned* count, void*) {
  const Gpu gpu = Of(device);
  if (gpu.result != NVML_SUCCESS) return gpu.result;
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const unsigned room = *count;
  *count = static_cast<unsigned>(gpu->processes);
  return room < *count ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long* reasons) {
  return nvmlDeviceGetCurrentClocksThrottleReasons(device, reasons);
}
nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned* width) {
  const Gpu gpu = Of(device);
  return Answer(gpu, width, gpu.result == NVML_SUCCESS ? gpu->pcie_width : 0);
}
nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned* width) { return Answer(Of(device), width, 16); }
nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned* generation) {
  return nvmlDeviceGetMaxPcieLinkGeneration(device, generation);
}
nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned* generation) {
  const Gpu gpu = Of(device);
  return Answer(gpu, generation, gpu.machine.sm >= 90 ? 5 : gpu.machine.sm >= 80 ? 4 : 3);
}
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned, unsigned* celsius) {
  return Answer(Of(device), celsius, 41);
}
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned* milliwatts) { return Answer(Of(device), milliwatts, 118000); }
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  return Answer(Of(device), memory, nvmlMemory_t{85899345920, 84000000000, 1899345920});
}
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* utilization) {
  return Answer(Of(device), utilization, nvmlUtilization_t{100, 0});
}
}
