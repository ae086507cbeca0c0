// nvidia-smi of the simulated cluster: `nvlink -s`, `nvlink -e`, `topo -m`, `topo -p2p r`, `-L`, in the shapes of driver 570.
// What it tells of links comes from NVML's stand-in; the way between GPUs over PCIe, which only the real one's driver knows, from
// the machine.
#include <stdio.h>
#include <string.h>

#include <string>
#include <vector>

#include "tests/sim/machine/machine.h"
#include "tests/sim/nvml/nvml.h"
#include "tests/sim/setup/number.h"
#include "tests/sim/setup/settings.h"

namespace {

using ringscope::sim::Machine;

constexpr unsigned kMostLinks = 18;

nvmlDevice_t Device(unsigned index) {
  nvmlDevice_t device = nullptr;
  if (const nvmlReturn_t result = nvmlDeviceGetHandleByIndex_v2(index, &device); result != NVML_SUCCESS) {
    printf("Unable to determine the device handle for GPU%u: %s\n", index, nvmlErrorString(result));
    return nullptr;
  }
  return device;
}

void Head(unsigned index, nvmlDevice_t device) {
  char name[96] = "", uuid[96] = "";
  nvmlDeviceGetName(device, name, sizeof(name));
  nvmlDeviceGetUUID(device, uuid, sizeof(uuid));
  printf("GPU %u: %s (UUID: %s)\n", index, name, uuid);
}

void Links(unsigned count, bool errors) {
  for (unsigned g = 0; g < count; ++g) {
    nvmlDevice_t device = Device(g);
    if (device == nullptr) continue;
    Head(g, device);
    char name[96] = "";
    nvmlDeviceGetName(device, name, sizeof(name));
    const char* rate = strstr(name, "H100") != nullptr   ? "26.562 GB/s"
                       : strstr(name, "V100") != nullptr ? "25.781 GB/s"
                                                         : "25 GB/s";
    for (unsigned link = 0; link < kMostLinks; ++link) {
      unsigned active = 0;
      if (nvmlDeviceGetNvLinkState(device, link, &active) != NVML_SUCCESS) break;
      if (!errors) {
        printf("\t Link %u: %s\n", link, active ? rate : "<inactive>");
        continue;
      }
      const char* const counters[] = {"Replay", "Recovery", "CRC"};
      for (unsigned c = 0; c < 3; ++c) {
        unsigned long long value = 0;
        if (nvmlDeviceGetNvLinkErrorCounter(device, link, c, &value) == NVML_SUCCESS)
          printf("\t Link %u: %s Errors: %llu\n", link, counters[c], value);
      }
    }
  }
}

std::string Way(const Machine& machine, size_t a, size_t b) {
  if (a == b) return " X ";
  if (const int lanes = machine.LanesBetween(static_cast<int>(a), static_cast<int>(b)); lanes > 0)
    return "NV" + std::to_string(lanes);
  const auto &x = machine.gpus[a], &y = machine.gpus[b];
  return x.pci == y.pci ? "PIX" : x.cpu == y.cpu ? "NODE" : "SYS";
}

void Topology(const Machine& machine) {
  for (size_t g = 0; g < machine.gpus.size(); ++g) printf("\tGPU%zu", g);
  for (size_t n = 0; n < machine.nics.size(); ++n) printf("\tNIC%zu", n);
  printf("\tCPU Affinity\tNUMA Affinity\n");
  for (size_t a = 0; a < machine.gpus.size(); ++a) {
    printf("GPU%zu", a);
    for (size_t b = 0; b < machine.gpus.size(); ++b) printf("\t%s", Way(machine, a, b).c_str());
    for (const auto& nic : machine.nics)
      printf("\t%s", nic.pci == machine.gpus[a].pci ? "PIX" : nic.cpu == machine.gpus[a].cpu ? "NODE" : "SYS");
    printf("\t%d-%d\t%d\n", machine.gpus[a].cpu * 32, machine.gpus[a].cpu * 32 + 31, machine.gpus[a].cpu);
  }
  printf("\nNIC Legend:\n\n");
  for (size_t n = 0; n < machine.nics.size(); ++n) printf("  NIC%zu: %s\n", n, machine.nics[n].name.c_str());
}

void PeerAccess(unsigned count) {
  for (unsigned g = 0; g < count; ++g) printf("\tGPU%u", g);
  printf("\n");
  for (unsigned a = 0; a < count; ++a) {
    printf(" GPU%u", a);
    for (unsigned b = 0; b < count; ++b) {
      unsigned status = 0;
      nvmlDevice_t x = nullptr, y = nullptr;
      const bool known = nvmlDeviceGetHandleByIndex_v2(a, &x) == NVML_SUCCESS &&
                         nvmlDeviceGetHandleByIndex_v2(b, &y) == NVML_SUCCESS &&
                         nvmlDeviceGetP2PStatus(x, y, 0, &status) == NVML_SUCCESS;
      printf("\t%s", a == b ? "X" : !known ? "U" : status == 0 ? "OK" : "NS");
    }
    printf("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string asked;
  for (int i = 1; i < argc; ++i) asked += (i > 1 ? " " : "") + std::string(argv[i]);
  // The real one's exit statuses do not tell who made a mistake in the machine.
  ringscope::sim::DemandGoodSettings("nvidia-smi (simulated)");
  unsigned count = 0;
  nvmlReturn_t result = nvmlInit_v2();
  if (result == NVML_SUCCESS) result = nvmlDeviceGetCount_v2(&count);
  if (result != NVML_SUCCESS) {
    printf("Failed to initialize NVML: %s\n", nvmlErrorString(result));
    return 9;
  }
  if (asked == "nvlink -s" || asked == "nvlink -e") {
    Links(count, asked == "nvlink -e");
  } else if (asked == "topo -m") {
    Topology(ringscope::sim::ThisMachine(ringscope::sim::DevicesAsked()));
  } else if (asked == "topo -p2p r") {
    PeerAccess(count);
  } else if (asked == "-L") {
    for (unsigned g = 0; g < count; ++g) {
      if (nvmlDevice_t device = Device(g); device != nullptr) Head(g, device);
    }
  } else {
    fprintf(stderr, "nvidia-smi (simulated): knows nvlink -s, nvlink -e, topo -m, topo -p2p r, -L; not \"%s\"\n",
            ringscope::sim::Shown(asked).c_str());
    return 64;
  }
  return 0;
}
