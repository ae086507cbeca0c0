// A machine of the simulated cluster as it is now: README.md of this folder.
#ifndef RINGSCOPE_TESTS_SIM_MACHINE_MACHINE_H_
#define RINGSCOPE_TESTS_SIM_MACHINE_MACHINE_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ringscope::sim {

struct MachineGpu {
  int bus = 0, pci = 0, cpu = 0;  // bus number; the PCIe switch and socket above it
  int lanes = 0;                  // active, to NVSwitches
  bool multicast = true, lost = false;
  std::map<int, int> replays;  // of a link
  int fabric = 3, pcie_width = 16, clock_reasons = 1, uncorrected = 0, processes = 0;  // what NVML answers
};
struct MachineNic {
  std::string name;
  int bus = 0, pci = 0, cpu = 0, gbps = 0;
  bool up = true;
};

struct Machine {
  int sm = 90, product_lanes = 18;
  double lane_gbytes = 20.6;
  bool nvswitch = false, gdr = true, nvls = false;
  std::vector<MachineGpu> gpus;
  std::vector<MachineNic> nics;
  std::map<std::pair<int, int>, int> pair_lanes;  // a < b
  std::set<std::pair<int, int>> refused;          // a < b

  // Active lanes that lead out of the GPU.
  int LanesOf(int gpu) const;
  // Lanes of the narrowest part of a direct way between two GPUs.
  int LanesBetween(int a, int b) const;
};

// The machine of a file, and what was appended to `state` (may be empty). The first mistake comes back in `*error`, with file,
// line and what would be right; what was understood before it is kept.
Machine ReadMachine(const std::string& file, const std::string& state, std::string* error);
// Of RINGSCOPE_SIM_MACHINE and RINGSCOPE_SIM_MACHINE_STATE; unless set, `gpus` GPUs whose lanes all lead to NVSwitches, and no
// NICs. A mistake in them ends the process with status 65, after a line on stderr.
Machine ThisMachine(int gpus);
// The same, with the mistake in `*error`.
Machine ThisMachine(int gpus, std::string* error);
// Appends a line to the file that an environment variable names, if it is set.
void AppendLine(const char* variable, const std::string& line);
// Tells all that read the machine from now on. Needs RINGSCOPE_SIM_MACHINE_STATE.
void AppendState(const std::string& line);

// One line of the kernel's log, as `journalctl -k -o short-iso-precise` prints it, appended to RINGSCOPE_SIM_KERNEL_LOG.
void KernelLog(const std::string& host, const std::string& text);

}  // namespace ringscope::sim

#endif  // RINGSCOPE_TESTS_SIM_MACHINE_MACHINE_H_
