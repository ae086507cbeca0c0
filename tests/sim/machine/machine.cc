#include "tests/sim/machine/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "tests/sim/setup/number.h"

namespace ringscope::sim {
namespace {

std::pair<int, int> Ordered(int a, int b) { return {std::min(a, b), std::max(a, b)}; }

constexpr size_t kMostGpus = 64, kMostNics = 64, kMostPairedGpus = 16;
constexpr off_t kMostBytes = 1 << 20;

class Reader {
 public:
  explicit Reader(Machine* machine) : machine_(machine) {}
  const std::string& error() const { return error_; }

  void File(const std::string& path, int depth = 0) {
    struct stat about;
    if (stat(path.c_str(), &about) != 0) return Fault(path, 0, std::string("cannot be read: ") + strerror(errno));
    if (!S_ISREG(about.st_mode)) return Fault(path, 0, "is not a file");
    if (about.st_size > kMostBytes) return Fault(path, 0, "is larger than 1 MiB; a machine is a short text");
    std::ifstream file(path);
    if (!file) return Fault(path, 0, std::string("cannot be read: ") + strerror(errno));
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      std::istringstream all(line.substr(0, line.find('#')));
      Words words;
      for (std::string word; all >> word;) words.push_back(word);
      if (words.empty()) continue;
      if (words[0] == "include") {
        if (words.size() != 2 || words[1].find('/') != std::string::npos)
          return Fault(path, number, "\"" + Shown(line) + "\": include takes the name of one machine beside this one");
        if (depth == 8) return Fault(path, number, "it includes itself, or machines are included too deep");
        File(path.substr(0, path.rfind('/') + 1) + words[1] + ".machine", depth + 1);
      } else if (const std::string wrong = Line(words); !wrong.empty()) {
        return Fault(path, number, "\"" + Shown(line) + "\": " + wrong);
      }
      if (!error_.empty()) return;
    }
    if (depth == 0 && file.bad()) Fault(path, 0, "cannot be read to its end");
  }

  // What no single line shows.
  void Whole(const std::string& path) {
    if (!error_.empty()) return;
    if (machine_->gpus.empty()) return Fault(path, 0, "it has no GPU; a line such as \"gpu 0 bus 1b pci 1a cpu 0\" makes one");
    for (size_t gpu = 0; gpu < machine_->gpus.size(); ++gpu) {
      if (machine_->gpus[gpu].bus != 0) continue;
      return Fault(path, 0,
                   "it has " + std::to_string(machine_->gpus.size()) + " GPUs, but no line \"gpu " + std::to_string(gpu) +
                       " bus ...\"; GPUs are counted from 0 without a gap");
    }
  }

 private:
  using Words = std::vector<std::string>;

  void Fault(const std::string& path, int line, const std::string& what) {
    if (error_.empty()) error_ = path + (line > 0 ? ":" + std::to_string(line) : "") + ": " + what;
  }

  MachineNic* Nic(const std::string& name) {
    for (MachineNic& nic : machine_->nics) {
      if (nic.name == name) return &nic;
    }
    return nullptr;
  }
  // The GPU of a line about it; nullptr, and what is wrong.
  MachineGpu* Gpu(const std::string& word, std::string* wrong) {
    const auto index = ringscope::sim::Whole(word, 0, kMostGpus - 1);
    if (!index || static_cast<size_t>(*index) >= machine_->gpus.size()) {
      *wrong = Shown(word) + ": no GPU of this machine. It has " + std::to_string(machine_->gpus.size()) + ", counted from 0";
      return nullptr;
    }
    return &machine_->gpus[static_cast<size_t>(*index)];
  }
  std::string Pair(const std::string& word, std::pair<int, int>* pair) {
    const size_t dash = word.find('-');
    std::string wrong;
    if (dash == word.npos) return Shown(word) + ": not a pair of GPUs such as 0-1";
    const MachineGpu *a = Gpu(word.substr(0, dash), &wrong), *b = Gpu(word.substr(dash + 1), &wrong);
    if (a == nullptr || b == nullptr) return wrong;
    if (a == b) return Shown(word) + ": a pair is of two GPUs";
    if (static_cast<size_t>(std::max(a, b) - machine_->gpus.data()) >= kMostPairedGpus)
      return Shown(word) + ": pairs are of GPUs 0 to " + std::to_string(kMostPairedGpus - 1);
    *pair = Ordered(static_cast<int>(a - machine_->gpus.data()), static_cast<int>(b - machine_->gpus.data()));
    return "";
  }

  // One number behind the words before it.
  static std::string One(const Words& words, size_t at, int least, int most, int* into) {
    if (words.size() != at + 1) return words.size() <= at ? "a number is missing at its end" : "too much at its end";
    const auto number = ringscope::sim::Whole(words[at], least, most);
    if (!number) return Shown(words[at]) + ": not a number from " + std::to_string(least) + " to " + std::to_string(most);
    *into = static_cast<int>(*number);
    return "";
  }
  static std::string YesNo(const Words& words, size_t at, bool* into) {
    int number = 0;
    const std::string wrong = One(words, at, 0, 1, &number);
    if (wrong.empty()) *into = number != 0;
    return wrong;
  }

  // "bus 1b pci 1a cpu 0": key and value in turn, each once and all of them; bus and pci are hexadecimal.
  struct Place {
    int bus = 0, pci = 0, cpu = 0, gbps = 0;
  };
  static std::string Read(const Words& words, bool nic, Place* place) {
    struct Key {
      const char* name;
      int* into;
      int least, most;
      bool hexadecimal;
    };
    std::vector<Key> keys = {
        {"bus", &place->bus, 1, 0xff, true}, {"pci", &place->pci, 0, 0xff, true}, {"cpu", &place->cpu, 0, 63, false}};
    if (nic) keys.push_back({"gbps", &place->gbps, 1, 10000, false});
    std::string all;
    for (const Key& key : keys) all += std::string(all.empty() ? "" : ", ") + key.name;
    std::set<std::string> given;
    for (size_t i = 2; i < words.size(); i += 2) {
      const auto key = std::find_if(keys.begin(), keys.end(), [&](const Key& k) { return words[i] == k.name; });
      if (key == keys.end()) return Shown(words[i]) + ": not one of " + all;
      if (!given.insert(key->name).second) return words[i] + " is given twice";
      if (i + 1 == words.size()) return words[i] + " has no value";
      const auto value = key->hexadecimal ? Hexadecimal(words[i + 1], key->least, key->most)
                                          : ringscope::sim::Whole(words[i + 1], key->least, key->most);
      if (!value) {
        return words[i] + " " + Shown(words[i + 1]) + ": not a " + (key->hexadecimal ? "hexadecimal " : "") + "number up to " +
               (key->hexadecimal ? "ff" : std::to_string(key->most));
      }
      *key->into = static_cast<int>(*value);
    }
    return given.size() == keys.size() ? "" : "it must say " + all;
  }

  // What is wrong with a line, or "".
  std::string Line(const Words& words) {
    Machine& m = *machine_;
    const std::string& key = words[0];
    if (key == "switch") {
      m.nvswitch = true;
      return words.size() == 1 ? "" : "too much at its end";
    }
    if (key == "sm") return One(words, 1, 10, 999, &m.sm);
    if (key == "product") return One(words, 1, 0, kMostLanes, &m.product_lanes);
    if (key == "gdr") return YesNo(words, 1, &m.gdr);
    if (key == "nvls") return YesNo(words, 1, &m.nvls);
    if (key == "lane") {
      const auto rate = words.size() == 2 ? Decimal(words[1], 0, 1000) : std::nullopt;
      if (!rate) return "lane takes one number of GB/s above 0, up to 1000";
      m.lane_gbytes = *rate;
      return "";
    }
    static constexpr const char* kNamed[] = {"gpu",  "nic",    "nic_state", "lanes", "refuse", "multicast",
                                             "lost", "errors", "fabric",    "pcie",  "clocks", "uncorrected", "processes"};
    if (std::none_of(std::begin(kNamed), std::end(kNamed), [&](const char* name) { return key == name; })) {
      return "there is no \"" + Shown(key) +
             "\"; lines begin with include, sm, lane, switch, product, gdr, nvls, gpu, nic, lanes, refuse, multicast, errors, "
             "nic_state, "
             "lost, fabric, pcie, clocks, uncorrected, processes (tests/sim/machine/README.md)";
    }
    if (words.size() < 2) return "it does not say of what";
    return Named(words);
  }

  std::string Named(const Words& words) {
    Machine& m = *machine_;
    const std::string &key = words[0], &name = words[1];
    std::string wrong;
    Place place;
    if (key == "gpu") {
      const auto index = ringscope::sim::Whole(name, 0, kMostGpus - 1);
      if (!index) return Shown(name) + ": GPUs are counted from 0 to " + std::to_string(kMostGpus - 1);
      if (wrong = Read(words, false, &place); !wrong.empty()) return wrong;
      if (static_cast<size_t>(*index) >= m.gpus.size()) m.gpus.resize(static_cast<size_t>(*index) + 1);
      MachineGpu& gpu = m.gpus[static_cast<size_t>(*index)];
      gpu.bus = place.bus, gpu.pci = place.pci, gpu.cpu = place.cpu;
      return "";
    }
    if (key == "nic") {
      if (wrong = Read(words, true, &place); !wrong.empty()) return wrong;
      if (Nic(name) == nullptr) {
        if (m.nics.size() >= kMostNics) return "more than " + std::to_string(kMostNics) + " adapters";
        m.nics.push_back({});
        m.nics.back().name = name;
      }
      MachineNic& nic = *Nic(name);
      nic.bus = place.bus, nic.pci = place.pci, nic.cpu = place.cpu, nic.gbps = place.gbps;
      return "";
    }
    if (key == "nic_state") {
      MachineNic* nic = Nic(name);
      if (nic == nullptr) return Shown(name) + ": no adapter of this machine";
      if (words.size() != 3 || (words[2] != "UP" && words[2] != "DOWN")) return "nic_state NAME takes UP or DOWN";
      nic->up = words[2] == "UP";
      return "";
    }
    if (key == "refuse" || (key == "lanes" && name.find('-') != name.npos)) {
      std::pair<int, int> pair;
      if (wrong = Pair(name, &pair); !wrong.empty()) return wrong;
      if (key == "refuse") {
        m.refused.insert(pair);
        return words.size() == 2 ? "" : "too much at its end";
      }
      if (m.nvswitch) return "lanes lead to the switches here: \"lanes N COUNT\", of one GPU";
      return One(words, 2, 0, kMostLanes, &m.pair_lanes[pair]);
    }
    MachineGpu* gpu = Gpu(name, &wrong);
    if (gpu == nullptr) return wrong;
    if (key == "lanes") {
      if (!m.nvswitch) return "without a line \"switch\" lanes join pairs: \"lanes A-B COUNT\"";
      return One(words, 2, 0, kMostLanes, &gpu->lanes);
    }
    if (key == "multicast") return YesNo(words, 2, &gpu->multicast);
    if (key == "lost") {
      gpu->lost = true;
      return words.size() == 2 ? "" : "too much at its end";
    }
    if (key == "fabric") return One(words, 2, 0, 3, &gpu->fabric);
    if (key == "pcie") return One(words, 2, 1, 16, &gpu->pcie_width);
    if (key == "clocks") return One(words, 2, 0, 0x1ff, &gpu->clock_reasons);
    if (key == "uncorrected") return One(words, 2, 0, 1000000, &gpu->uncorrected);
    if (key == "processes") return One(words, 2, 0, 1000, &gpu->processes);
    int link = 0, count = 0;
    if (words.size() != 4) return "errors takes a GPU, a link and a count";
    if (wrong = One({words[0], words[1], words[2]}, 2, 0, kMostLanes - 1, &link); !wrong.empty()) return wrong;
    if (wrong = One(words, 3, 0, 1000000, &count); !wrong.empty()) return wrong;
    gpu->replays[link] += count;
    return "";
  }

  static constexpr int kMostLanes = 18;
  Machine* machine_;
  std::string error_;
};

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
  if (reader.error().empty() && !state.empty() && access(state.c_str(), F_OK) == 0) reader.File(state);
  reader.Whole(file);
  *error = reader.error();
  return machine;
}

Machine ThisMachine(int gpus) {
  std::string error;
  Machine machine = ThisMachine(gpus, &error);
  if (!error.empty()) {
    fprintf(stderr, "RINGSCOPE_SIM_MACHINE: %s\n", error.c_str());
    _exit(65);
  }
  return machine;
}
Machine ThisMachine(int gpus, std::string* error) {
  error->clear();
  const char* file = getenv("RINGSCOPE_SIM_MACHINE");
  if (file != nullptr && file[0] != 0) {
    const char* state = getenv("RINGSCOPE_SIM_MACHINE_STATE");
    return ReadMachine(file, state == nullptr ? "" : state, error);
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

void AppendLine(const char* variable, const std::string& line) {
  const char* path = getenv(variable);
  if (path == nullptr || path[0] == 0) return;
  // One write with O_APPEND: lines of several processes do not mix.
  const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return;
  const std::string whole = line + "\n";
  [[maybe_unused]] const ssize_t n = write(fd, whole.data(), whole.size());
  close(fd);
}
void AppendState(const std::string& line) { AppendLine("RINGSCOPE_SIM_MACHINE_STATE", line); }

void KernelLog(const std::string& host, const std::string& text) {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  tm utc;
  gmtime_r(&now.tv_sec, &utc);
  char when[64];
  strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &utc);
  char head[192];
  snprintf(head, sizeof(head), "%s.%06ld+0000 %s kernel: ", when, now.tv_nsec / 1000, host.c_str());
  AppendLine("RINGSCOPE_SIM_KERNEL_LOG", head + text);
}

}  // namespace ringscope::sim
