#include "tests/sim/machine/machine.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace ringscope::sim {
namespace {

std::pair<int, int> Ordered(int a, int b) { return {std::min(a, b), std::max(a, b)}; }

// "bus 1b pci 1a cpu 0": key and value in turn; bus and pci are hexadecimal.
std::map<std::string, std::string> Pairs(std::istream* words) {
  std::map<std::string, std::string> pairs;
  for (std::string key, value; *words >> key >> value;) pairs[key] = value;
  return pairs;
}
int Hex(const std::string& text) { return static_cast<int>(strtol(text.c_str(), nullptr, 16)); }

class Reader {
 public:
  explicit Reader(Machine* machine) : machine_(machine) {}
  const std::string& error() const { return error_; }

  void File(const std::string& path, int depth = 0) {
    std::ifstream file(path);
    if (!file || depth > 8) {
      Fault(path, 0, depth > 8 ? "includes itself" : "cannot be read");
      return;
    }
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      std::istringstream words(line.substr(0, line.find('#')));
      std::string key;
      if (!(words >> key)) continue;
      if (key == "include") {
        std::string name;
        words >> name;
        File(path.substr(0, path.rfind('/') + 1) + name + ".machine", depth + 1);
      } else if (!Line(key, &words)) {
        Fault(path, number, "not understood: " + line);
      }
    }
  }

 private:
  void Fault(const std::string& path, int line, const std::string& what) {
    if (error_.empty()) error_ = path + (line > 0 ? ":" + std::to_string(line) : "") + ": " + what;
  }
  MachineGpu* Gpu(int index) {
    if (index < 0 || index > 63) return nullptr;
    if (static_cast<size_t>(index) >= machine_->gpus.size()) machine_->gpus.resize(static_cast<size_t>(index) + 1);
    return &machine_->gpus[static_cast<size_t>(index)];
  }
  MachineNic* Nic(const std::string& name) {
    for (MachineNic& nic : machine_->nics) {
      if (nic.name == name) return &nic;
    }
    machine_->nics.push_back({});
    machine_->nics.back().name = name;
    return &machine_->nics.back();
  }

  bool Line(const std::string& key, std::istream* words) {
    Machine& m = *machine_;
    if (key == "switch") return m.nvswitch = true;
    if (key == "sm") return static_cast<bool>(*words >> m.sm);
    if (key == "lane") return static_cast<bool>(*words >> m.lane_gbytes);
    if (key == "product") return static_cast<bool>(*words >> m.product_lanes);
    if (key == "gdr") return static_cast<bool>(*words >> m.gdr);
    if (key == "nvls") return static_cast<bool>(*words >> m.nvls);
    std::string name;
    if (!(*words >> name)) return false;
    if (key == "nic" || key == "nic_state") {
      MachineNic* nic = Nic(name);
      if (key == "nic_state") {
        std::string state;
        if (!(*words >> state)) return false;
        nic->up = state != "DOWN";
        return true;
      }
      auto of = Pairs(words);
      nic->bus = Hex(of["bus"]);
      nic->pci = Hex(of["pci"]);
      nic->cpu = atoi(of["cpu"].c_str());
      nic->gbps = atoi(of["gbps"].c_str());
      return nic->bus != 0;
    }
    int a = -1, b = -1;
    const int numbers = sscanf(name.c_str(), "%d-%d", &a, &b);
    MachineGpu* gpu = Gpu(a);
    if (numbers < 1 || gpu == nullptr || (numbers == 2 && Gpu(b) == nullptr)) return false;
    gpu = Gpu(a);  // the other one may have made room
    if (key == "gpu") {
      auto of = Pairs(words);
      gpu->bus = Hex(of["bus"]);
      gpu->pci = Hex(of["pci"]);
      gpu->cpu = atoi(of["cpu"].c_str());
      return gpu->bus != 0;
    }
    if (key == "lanes" && numbers == 2) return static_cast<bool>(*words >> m.pair_lanes[Ordered(a, b)]);
    if (key == "lanes") return static_cast<bool>(*words >> gpu->lanes);
    if (key == "refuse" && numbers == 2) return m.refused.insert(Ordered(a, b)).second || true;
    if (key == "multicast") return static_cast<bool>(*words >> gpu->multicast);
    if (key == "lost") return gpu->lost = true;
    if (key == "errors") {
      int link = 0, count = 0;
      if (!(*words >> link >> count)) return false;
      gpu->replays[link] += count;
      return true;
    }
    return false;
  }

  Machine* machine_;
  std::string error_;
};

void Append(const char* variable, const std::string& line) {
  const char* path = getenv(variable);
  if (path == nullptr || path[0] == 0) return;
  // One write with O_APPEND: lines of several processes do not mix.
  const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t n = write(fd, line.data(), line.size());
  close(fd);
}

}  // namespace

int Machine::LanesBetween(int a, int b) const {
  if (a < 0 || b < 0 || a == b || static_cast<size_t>(std::max(a, b)) >= gpus.size()) return 0;
  if (nvswitch) return std::min(gpus[static_cast<size_t>(a)].lanes, gpus[static_cast<size_t>(b)].lanes);
  const auto found = pair_lanes.find(Ordered(a, b));
  return found == pair_lanes.end() ? 0 : found->second;
}
int Machine::LanesOf(int gpu) const {
  if (gpu < 0 || static_cast<size_t>(gpu) >= gpus.size()) return 0;
  if (nvswitch) return gpus[static_cast<size_t>(gpu)].lanes;
  int lanes = 0;
  for (int other = 0; other < static_cast<int>(gpus.size()); ++other) lanes += LanesBetween(gpu, other);
  return lanes;
}

Machine ReadMachine(const std::string& file, const std::string& state, std::string* error) {
  Machine machine;
  Reader reader(&machine);
  reader.File(file);
  if (!state.empty() && access(state.c_str(), F_OK) == 0) reader.File(state);
  *error = reader.error();
  return machine;
}

Machine ThisMachine(int gpus) {
  const char* file = getenv("RINGSCOPE_SIM_MACHINE");
  if (file != nullptr && file[0] != 0) {
    const char* state = getenv("RINGSCOPE_SIM_MACHINE_STATE");
    std::string error;
    Machine machine = ReadMachine(file, state == nullptr ? "" : state, &error);
    if (!error.empty()) fprintf(stderr, "machine: %s\n", error.c_str());
    return machine;
  }
  Machine machine;
  machine.nvswitch = true;
  machine.gpus.resize(static_cast<size_t>(std::max(gpus, 0)));
  for (size_t i = 0; i < machine.gpus.size(); ++i) {
    MachineGpu& gpu = machine.gpus[i];
    gpu.bus = (0x1b + 0x10 * static_cast<int>(i)) & 0xff;
    gpu.pci = gpu.bus - 1;
    gpu.cpu = i < machine.gpus.size() / 2 ? 0 : 1;
    gpu.lanes = machine.product_lanes;
  }
  return machine;
}

void AppendState(const std::string& line) { Append("RINGSCOPE_SIM_MACHINE_STATE", line + "\n"); }

void KernelLog(const std::string& host, const std::string& text) {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  tm utc;
  gmtime_r(&now.tv_sec, &utc);
  char when[64];
  strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &utc);
  char head[192];
  snprintf(head, sizeof(head), "%s.%06ld+0000 %s kernel: ", when, now.tv_nsec / 1000, host.c_str());
  Append("RINGSCOPE_SIM_KERNEL_LOG", head + text + "\n");
}

}  // namespace ringscope::sim
