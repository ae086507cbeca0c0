// What NVML says of GPUs and NVLinks, in the shapes of nvidia-smi (`nvlink -s`, `nvlink -e`, `topo -p2p n`, `-q`), which the
// analyzer reads wherever it comes from. Declarations are our own, from NVML's reference (r570); a function that a driver does
// not have costs its lines.
#include <dlfcn.h>
#include <string.h>

#include <string>

#include "supervisor/collect.h"

namespace ringscope::supervisor {
namespace {

using Device = void*;
constexpr unsigned kMostLinks = 18;

struct Nvml {
  void* library = nullptr;
  int (*init)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*by_index)(unsigned, Device*) = nullptr;
  const char* (*error)(int) = nullptr;
  template <typename Function>
  Function Get(const char* name) const {
    return reinterpret_cast<Function>(dlsym(library, name));
  }
  // "" or why not.
  std::string Open() {
    library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return "no NVML on this machine (libnvidia-ml.so.1)";
    init = Get<int (*)()>("nvmlInit_v2");
    count = Get<int (*)(unsigned*)>("nvmlDeviceGetCount_v2");
    by_index = Get<int (*)(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2");
    error = Get<const char* (*)(int)>("nvmlErrorString");
    if (init == nullptr || count == nullptr || by_index == nullptr) return "an NVML without nvmlInit_v2";
    const int result = init();
    return result == 0 ? "" : std::string("NVML: ") + (error == nullptr ? std::to_string(result) : error(result));
  }
};

void Head(const Nvml& nvml, unsigned index, Device device, FILE* out) {
  char name[96] = "", uuid[96] = "";
  using Text = int (*)(Device, char*, unsigned);
  if (auto* get = nvml.Get<Text>("nvmlDeviceGetName")) get(device, name, sizeof(name));
  if (auto* get = nvml.Get<Text>("nvmlDeviceGetUUID")) get(device, uuid, sizeof(uuid));
  fprintf(out, "GPU %u: %s (UUID: %s)\n", index, name, uuid);
}

// Runs `body` for each GPU; one that the driver has lost gets nvidia-smi's line.
template <typename Body>
std::string ForEach(FILE* out, Body body) {
  Nvml nvml;
  if (std::string why = nvml.Open(); !why.empty()) return why;
  unsigned n = 0;
  if (nvml.count(&n) != 0 || n == 0) return "NVML knows no GPU";
  for (unsigned i = 0; i < n; ++i) {
    Device device = nullptr;
    if (const int result = nvml.by_index(i, &device); result != 0) {
      fprintf(out, "Unable to determine the device handle for GPU%u: %s\n", i, nvml.error == nullptr ? "" : nvml.error(result));
      continue;
    }
    body(nvml, i, device, n);
    fflush(out);
  }
  return "";
}

// GB/s of one active link, by the generation that NVML tells (nvidia-smi nvlink -s on V100, A100, H100, B200).
const char* RateOf(unsigned version) {
  return version <= 1   ? "19.531 GB/s"
         : version == 2 ? "25.781 GB/s"
         : version == 3 ? "25 GB/s"
         : version == 4 ? "26.562 GB/s"
                        : "53.125 GB/s";
}

std::string LinkStates(const CollectOptions&, FILE* out) {
  return ForEach(out, [out](const Nvml& nvml, unsigned i, Device device, unsigned) {
    Head(nvml, i, device, out);
    using Of = int (*)(Device, unsigned, unsigned*);
    const auto state = nvml.Get<Of>("nvmlDeviceGetNvLinkState"), version_of = nvml.Get<Of>("nvmlDeviceGetNvLinkVersion");
    for (unsigned link = 0; state != nullptr && link < kMostLinks; ++link) {
      unsigned active = 0, version = 3;
      if (state(device, link, &active) != 0) break;
      if (version_of != nullptr) version_of(device, link, &version);
      fprintf(out, "\t Link %u: %s\n", link, active != 0 ? RateOf(version) : "<inactive>");
    }
  });
}

std::string LinkErrors(const CollectOptions&, FILE* out) {
  return ForEach(out, [out](const Nvml& nvml, unsigned i, Device device, unsigned) {
    Head(nvml, i, device, out);
    const auto counter = nvml.Get<int (*)(Device, unsigned, unsigned, unsigned long long*)>("nvmlDeviceGetNvLinkErrorCounter");
    static constexpr const char* kNames[] = {"Replay", "Recovery", "CRC"};
    for (unsigned link = 0; counter != nullptr && link < kMostLinks; ++link) {
      for (unsigned c = 0; c < 3; ++c) {
        unsigned long long value = 0;
        if (counter(device, link, c, &value) == 0) fprintf(out, "\t Link %u: %s Errors: %llu\n", link, kNames[c], value);
      }
    }
  });
}

std::string PeerAccess(const CollectOptions&, FILE* out) {
  bool head = false;
  return ForEach(out, [&](const Nvml& nvml, unsigned i, Device device, unsigned n) {
    const auto status_of = nvml.Get<int (*)(Device, Device, unsigned, unsigned*)>("nvmlDeviceGetP2PStatus");
    if (status_of == nullptr) return;
    if (!head) {
      fprintf(out, "$ nvidia-smi topo -p2p n\n");
      for (unsigned k = 0; k < n; ++k) fprintf(out, "\tGPU%u", k);
      fprintf(out, "\n");
      head = true;
    }
    fprintf(out, " GPU%u", i);
    for (unsigned k = 0; k < n; ++k) {
      Device other = nullptr;
      unsigned status = 0;
      constexpr unsigned kNvlink = 2;  // NVML_P2P_CAPS_INDEX_NVLINK
      const bool known = nvml.by_index(k, &other) == 0 && status_of(device, other, kNvlink, &status) == 0;
      fprintf(out, "\t%s",
              k == i        ? "X"
              : !known      ? "U"
              : status == 0 ? "OK"
              : status == 1 ? "CNS"
              : status == 2 ? "GNS"
              : status == 3 ? "TNS"
              : status == 4 ? "DR"
                            : "NS");
    }
    fprintf(out, "\n");
  });
}

struct FabricInfo {  // nvmlGpuFabricInfo_t
  unsigned char cluster[16];
  int status;
  unsigned clique;
  unsigned char state;
};

std::string Query(const CollectOptions&, FILE* out) {
  return ForEach(out, [out](const Nvml& nvml, unsigned i, Device device, unsigned) {
    struct Pci {
      char legacy[16];
      unsigned domain, bus, device, id, subsystem;
      char bus_id[32];
    } pci = {};
    if (auto* get = nvml.Get<int (*)(Device, Pci*)>("nvmlDeviceGetPciInfo_v3")) get(device, &pci);
    pci.bus_id[sizeof(pci.bus_id) - 1] = 0;
    fprintf(out, "%sGPU %s\n", i == 0 ? "==============NVSMI LOG==============\n\n" : "", pci.bus_id);
    char name[96] = "", uuid[96] = "";
    using Text = int (*)(Device, char*, unsigned);
    if (auto* get = nvml.Get<Text>("nvmlDeviceGetName"); get != nullptr && get(device, name, sizeof(name)) == 0)
      fprintf(out, "    Product Name                          : %s\n", name);
    if (auto* get = nvml.Get<Text>("nvmlDeviceGetUUID"); get != nullptr && get(device, uuid, sizeof(uuid)) == 0)
      fprintf(out, "    GPU UUID                              : %s\n", uuid);
    using Number = int (*)(Device, unsigned*);
    const auto number = [&](const char* function, unsigned* value) {
      auto* get = nvml.Get<Number>(function);
      return get != nullptr && get(device, value) == 0;
    };
    unsigned most = 0, now = 0;
    fprintf(out, "    PCI\n        GPU Link Info\n");
    if (number("nvmlDeviceGetMaxPcieLinkGeneration", &most) && number("nvmlDeviceGetCurrPcieLinkGeneration", &now))
      fprintf(out,
              "            PCIe Generation\n                Max                       : %u\n                Current              "
              "     : %u\n",
              most, now);
    if (number("nvmlDeviceGetMaxPcieLinkWidth", &most) && number("nvmlDeviceGetCurrPcieLinkWidth", &now))
      fprintf(out,
              "            Link Width\n                Max                       : %ux\n                Current                  "
              " : %ux\n",
              most, now);
    unsigned long long reasons = 0;
    auto* why = nvml.Get<int (*)(Device, unsigned long long*)>("nvmlDeviceGetCurrentClocksEventReasons");
    if (why == nullptr) why = nvml.Get<int (*)(Device, unsigned long long*)>("nvmlDeviceGetCurrentClocksThrottleReasons");
    if (why != nullptr && why(device, &reasons) == 0) {
      static constexpr struct {
        unsigned long long bit;
        const char* name;
      } kReasons[] = {{1, "Idle"},
                      {4, "SW Power Cap"},
                      {8, "HW Slowdown"},
                      {0x40, "HW Thermal Slowdown"},
                      {0x80, "HW Power Brake Slowdown"},
                      {0x20, "SW Thermal Slowdown"}};
      fprintf(out, "    Clocks Event Reasons\n");
      for (const auto& r : kReasons)
        fprintf(out, "        %-34s: %s\n", r.name, (reasons & r.bit) != 0 ? "Active" : "Not Active");
    }
    unsigned long long corrected = 0, uncorrected = 0;
    auto* ecc = nvml.Get<int (*)(Device, unsigned, unsigned, unsigned long long*)>("nvmlDeviceGetTotalEccErrors");
    if (ecc != nullptr && ecc(device, 0, 0, &corrected) == 0 && ecc(device, 1, 0, &uncorrected) == 0)
      fprintf(out,
              "    ECC Errors\n        Volatile\n            DRAM Correctable              : %llu\n            DRAM "
              "Uncorrectable            : %llu\n",
              corrected, uncorrected);
    FabricInfo fabric = {};
    auto* info = nvml.Get<int (*)(Device, FabricInfo*)>("nvmlDeviceGetGpuFabricInfo");
    if (info != nullptr && info(device, &fabric) == 0) {
      static constexpr const char* kStates[] = {"N/A", "Not Started", "In Progress", "Completed"};
      const char* status = fabric.status == 0 ? "Success" : nvml.error != nullptr ? nvml.error(fabric.status) : "Unknown Error";
      fprintf(out, "    Fabric\n        State                             : %s\n        Status                            : %s\n",
              fabric.state < 4 ? kStates[fabric.state] : "N/A", status);
    }
    fprintf(out, "\n");
  });
}

const RegisterCollector kStates({"NVLink states", "nvlink-s.txt", false, Collector::kMachine, LinkStates});
const RegisterCollector kErrors({"NVLink errors", "nvlink-e.txt", false, Collector::kMachine, LinkErrors});
const RegisterCollector kPeers({"peer access", "topo-p2p.txt", false, Collector::kMachine, PeerAccess});
const RegisterCollector kQuery({"GPU state", "smi-q.txt", false, Collector::kMachine, Query});

}  // namespace
}  // namespace ringscope::supervisor
