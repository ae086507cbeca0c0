// InfiniBand and RoCE ports: state, rate and counters as sysfs has them, a line each (`grep . FILES`).
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "supervisor/collect.h"

namespace ringscope::supervisor {
namespace {

namespace fs = std::filesystem;

std::string Ports(const CollectOptions& options, FILE* out) {
  std::error_code error;
  const fs::path root = fs::path(options.sysfs) / "class" / "infiniband";
  std::vector<std::string> files;
  for (const auto& device : fs::directory_iterator(root, error)) {
    std::error_code inner;
    for (const auto& port : fs::directory_iterator(device.path() / "ports", inner)) {
      for (const char* name : {"state", "phys_state", "rate", "link_layer"}) files.push_back((port.path() / name).string());
      for (const char* folder : {"counters", "hw_counters"}) {
        std::error_code none;
        for (const auto& counter : fs::directory_iterator(port.path() / folder, none)) files.push_back(counter.path().string());
      }
    }
  }
  if (files.empty()) return "no InfiniBand or RoCE device";
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    std::ifstream in(file);
    std::string line;
    // (The path as users know it, whatever root was read.)
    if (std::getline(in, line)) fprintf(out, "/sys%s:%s\n", file.substr(options.sysfs.size()).c_str(), line.c_str());
  }
  return "";
}

const RegisterCollector kRegister({"network ports", "infiniband.txt", false, Collector::kMachine, Ports});

}  // namespace
}  // namespace ringscope::supervisor
