// NVML, loaded by name when it is there. The declarations are ours, from NVML's public documentation (NVML API reference, r570):
// no header of NVIDIA's is needed to build, and a driver that lacks a function costs that function only.
#ifndef RINGSCOPE_SUPERVISOR_NVML_H_
#define RINGSCOPE_SUPERVISOR_NVML_H_

#include <absl/status/statusor.h>

#include <string>

namespace ringscope::supervisor {

using NvmlDevice = struct NvmlOpaque*;

// nvmlReturn_t, as far as it matters here.
inline constexpr int kNvmlSuccess = 0, kNvmlInvalidArgument = 2, kNvmlNotSupported = 3, kNvmlInsufficientSize = 7,
                     kNvmlFunctionNotFound = 13, kNvmlGpuIsLost = 15, kNvmlResetRequired = 16, kNvmlVersionMismatch = 18,
                     kNvmlUnknown = 999;
// nvmlNvLinkErrorCounter_t: CRC errors in flits are what nvidia-smi calls CRC errors.
inline constexpr unsigned kNvmlReplay = 0, kNvmlRecovery = 1, kNvmlCrc = 2;
// nvmlGpuP2PCapsIndex_t.
inline constexpr unsigned kNvmlP2pRead = 0, kNvmlP2pNvlink = 2;
// nvmlMemoryErrorType_t, nvmlEccCounterType_t.
inline constexpr unsigned kNvmlCorrected = 0, kNvmlUncorrected = 1, kNvmlVolatile = 0, kNvmlAggregate = 1;
// Fields of nvmlDeviceGetFieldValues: the speed of the link in scopeId (MB/s, drivers from 2021 on), of all links alike (older).
inline constexpr unsigned kNvmlNvlinkGetSpeed = 164, kNvmlNvlinkSpeedCommon = 90;

struct NvmlPciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct NvmlFabricInfo {
  unsigned char cluster_uuid[16];
  int status;  // nvmlReturn_t
  unsigned clique_id;
  unsigned char state;  // 0 not supported, 1 not started, 2 in progress, 3 completed
};
struct NvmlFieldValue {
  unsigned field, scope;
  long long timestamp, latency;
  int type, result;
  union {
    double d;
    unsigned ui;
    unsigned long long ull;
  } value;
};
struct NvmlMemory {
  unsigned long long total, free, used;
};
struct NvmlUtilization {
  unsigned gpu, memory;
};

static_assert(sizeof(NvmlPciInfo) == 68 && sizeof(NvmlFabricInfo) == 28 && sizeof(NvmlFieldValue) == 40, "the library's layout");

// One function of the library; one that is missing answers "function not found".
template <typename... Args>
struct NvmlCall {
  const char* name;
  int (*call)(Args...) = nullptr;
  int operator()(Args... args) const { return call == nullptr ? kNvmlFunctionNotFound : call(args...); }
};

struct Nvml {
  // Loads `library` and initialises it. NotFound: no such library (no NVIDIA driver here); FailedPrecondition: it does not start,
  // the message is NVML's ("Driver/library version mismatch").
  static absl::StatusOr<Nvml> Open(const std::string& library);
  // NVML's own words for a result.
  std::string Words(int result) const;

  NvmlCall<> init{"nvmlInit_v2"};
  NvmlCall<char*, unsigned> driver_version{"nvmlSystemGetDriverVersion"};
  NvmlCall<unsigned*> count{"nvmlDeviceGetCount_v2"};
  NvmlCall<unsigned, NvmlDevice*> by_index{"nvmlDeviceGetHandleByIndex_v2"};
  NvmlCall<NvmlDevice, char*, unsigned> name{"nvmlDeviceGetName"};
  NvmlCall<NvmlDevice, char*, unsigned> uuid{"nvmlDeviceGetUUID"};
  NvmlCall<NvmlDevice, unsigned*> minor_number{"nvmlDeviceGetMinorNumber"};
  NvmlCall<NvmlDevice, NvmlPciInfo*> pci_info{"nvmlDeviceGetPciInfo_v3"};
  NvmlCall<NvmlDevice, unsigned, unsigned*> link_state{"nvmlDeviceGetNvLinkState"};
  NvmlCall<NvmlDevice, unsigned, unsigned, unsigned long long*> link_errors{"nvmlDeviceGetNvLinkErrorCounter"};
  NvmlCall<NvmlDevice, int, NvmlFieldValue*> field_values{"nvmlDeviceGetFieldValues"};
  NvmlCall<NvmlDevice, NvmlDevice, unsigned, unsigned*> p2p_status{"nvmlDeviceGetP2PStatus"};
  NvmlCall<NvmlDevice, NvmlFabricInfo*> fabric_info{"nvmlDeviceGetGpuFabricInfo"};
  NvmlCall<NvmlDevice, unsigned, unsigned, unsigned long long*> ecc_errors{"nvmlDeviceGetTotalEccErrors"};
  NvmlCall<NvmlDevice, unsigned*, unsigned*, unsigned*, unsigned*> remapped_rows{"nvmlDeviceGetRemappedRows"};
  NvmlCall<NvmlDevice, unsigned*> retired_pending{"nvmlDeviceGetRetiredPagesPendingStatus"};  // before Ampere
  // (device, *count, infos): with 0 and nullptr it answers "insufficient size" and how many there are.
  NvmlCall<NvmlDevice, unsigned*, void*> compute_processes{"nvmlDeviceGetComputeRunningProcesses_v3"};
  NvmlCall<int*> cuda_version{"nvmlSystemGetCudaDriverVersion_v2"};  // 12080 is 12.8
  NvmlCall<NvmlDevice, unsigned long long*> event_reasons{"nvmlDeviceGetCurrentClocksEventReasons"};
  NvmlCall<NvmlDevice, unsigned long long*> throttle_reasons{
      "nvmlDeviceGetCurrentClocksThrottleReasons"};  // its name before r535
  NvmlCall<NvmlDevice, unsigned*> pcie_width{"nvmlDeviceGetCurrPcieLinkWidth"};
  NvmlCall<NvmlDevice, unsigned*> pcie_width_max{"nvmlDeviceGetMaxPcieLinkWidth"};
  NvmlCall<NvmlDevice, unsigned*> pcie_generation{"nvmlDeviceGetCurrPcieLinkGeneration"};
  NvmlCall<NvmlDevice, unsigned*> pcie_generation_max{"nvmlDeviceGetMaxPcieLinkGeneration"};
  NvmlCall<NvmlDevice, unsigned*> pcie_replays{"nvmlDeviceGetPcieReplayCounter"};
  NvmlCall<NvmlDevice, unsigned*> performance_state{"nvmlDeviceGetPerformanceState"};
  NvmlCall<NvmlDevice, unsigned, unsigned*> temperature{"nvmlDeviceGetTemperature"};
  NvmlCall<NvmlDevice, unsigned*> power{"nvmlDeviceGetPowerUsage"};  // mW
  NvmlCall<NvmlDevice, NvmlMemory*> memory{"nvmlDeviceGetMemoryInfo"};
  NvmlCall<NvmlDevice, NvmlUtilization*> utilization{"nvmlDeviceGetUtilizationRates"};

 private:
  const char* (*error_string_)(int) = nullptr;
};

// One GPU in NVML's order, which is nvidia-smi's.
struct NvmlGpu {
  unsigned index = 0;
  NvmlDevice device = nullptr;
  int result = kNvmlSuccess;       // anything else: there is no handle, or not even its name can be had
  std::string name, uuid, bus_id;  // "00000000:1B:00.0"; empty: not told
};
// `procfs`: the driver lists the bus ids of its GPUs there, also of one that NVML gives no handle for.
NvmlGpu LookAtGpu(const Nvml& nvml, unsigned index, const std::string& procfs);
// "Unable to determine the device handle for GPU1: 0000:43:00.0: GPU is lost", as nvidia-smi says it.
std::string LostLine(const Nvml& nvml, const NvmlGpu& gpu);

}  // namespace ringscope::supervisor

#endif  // RINGSCOPE_SUPERVISOR_NVML_H_
