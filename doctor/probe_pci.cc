// GPUs, RDMA adapters and the PCIe ports above them, from sysfs. The driver of none of them is asked.
#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "doctor/probe.h"
#include "supervisor/collector.h"

namespace ringscope::doctor {
namespace {

using supervisor::FirstLine;
using supervisor::Names;

uint32_t Hex(const std::string& text) {
  uint32_t value = 0;
  return absl::SimpleHexAtoi(text, &value) ? value : 0;
}

bool IsAddress(const std::string& name) { return name.size() == 12 && name[4] == ':' && name[7] == ':' && name[10] == '.'; }

// What stands in configuration space about a port: its type (PCI Express capability, 7.5.3.2 of the base specification) and its
// ACS control register (extended capability 000dh). Beyond 64 bytes only root may read.
struct Config {
  int port_type = -1;  // 4 root port, 5 upstream, 6 downstream of a switch
  bool whole = false;
  int acs = -1;
};
Config ReadConfig(const std::string& path) {
  Config config;
  const std::string bytes = supervisor::SmallFile(path, 4096);
  const auto at = [&](size_t i) { return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U; };
  config.whole = bytes.size() > 256;
  if (bytes.size() < 64 || (at(6) & 0x10) == 0) return config;
  size_t next = at(0x34) & 0xfc;
  for (int i = 0; next >= 0x40 && next + 4 <= bytes.size() && i < 48; ++i) {
    if (at(next) == 0x10) config.port_type = static_cast<int>(at(next + 2) >> 4);
    next = at(next + 1) & 0xfc;
  }
  for (size_t extended = 0x100, i = 0; extended >= 0x100 && extended + 8 <= bytes.size() && i < 96; ++i) {
    const unsigned id = at(extended) | at(extended + 1) << 8;
    if (id == 0x000d) config.acs = static_cast<int>(at(extended + 6) | at(extended + 7) << 8);
    extended = (at(extended + 2) >> 4 | at(extended + 3) << 4) & 0xffc;
  }
  return config;
}

void Fill(const std::string& folder, const std::string& address, node::PciDevice* device) {
  device->set_address(address);
  device->set_vendor(Hex(FirstLine(folder + "/vendor")));
  device->set_device(Hex(FirstLine(folder + "/device")));
  uint32_t width = 0;
  if (absl::SimpleAtoi(FirstLine(folder + "/current_link_width"), &width) && width > 0) device->set_width(width);
  if (absl::SimpleAtoi(FirstLine(folder + "/max_link_width"), &width) && width > 0 && width < 255) device->set_width_max(width);
  device->set_speed(FirstLine(folder + "/current_link_speed"));
  device->set_speed_max(FirstLine(folder + "/max_link_speed"));
  std::error_code error;
  const std::filesystem::path driver = std::filesystem::canonical(folder + "/driver", error);
  if (!error) device->set_driver(driver.filename().string());
  device->set_iommu(FirstLine(folder + "/iommu_group/type"));
}

// The devices above `folder`, nearest first, as its whole path names them.
std::vector<std::string> Above(const std::string& folder) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::canonical(folder, error);
  std::vector<std::string> above;
  while (!error && path.has_parent_path() && path != path.parent_path()) {
    path = path.parent_path();
    if (!IsAddress(path.filename().string())) break;
    above.push_back(path.filename().string());
  }
  return above;
}

absl::Status Pci(const Place& place, node::Node* node) {
  const std::string root = place.sysfs + "/bus/pci/devices";
  std::map<std::string, std::string> adapters;  // address -> name
  for (const std::string& name : Names(place.sysfs + "/class/infiniband")) {
    std::error_code error;
    const auto device = std::filesystem::canonical(absl::StrCat(place.sysfs, "/class/infiniband/", name, "/device"), error);
    if (!error) adapters[device.filename().string()] = name;
  }
  std::set<std::string> ports;
  const std::vector<std::string> names = Names(root);
  if (names.empty()) return absl::NotFoundError("no PCI bus is visible here");
  for (const std::string& name : names) {
    const std::string folder = absl::StrCat(root, "/", name);
    // 0300 is a display adapter: only of NVIDIA, only when it computes is it of interest; 0302 a 3D controller.
    const uint32_t kind = Hex(FirstLine(folder + "/class")) >> 8;
    const bool gpu = (kind == 0x0302 || kind == 0x0300) && Hex(FirstLine(folder + "/vendor")) == 0x10de;
    const auto adapter = adapters.find(name);
    if (!gpu && adapter == adapters.end()) continue;
    node::PciDevice* device = node->add_pci();
    Fill(folder, name, device);
    device->set_kind(gpu ? node::PciDevice::gpu : node::PciDevice::rdma);
    if (!gpu) device->set_name(adapter->second);
    for (const std::string& above : Above(folder)) ports.insert(above);
  }
  for (const std::string& name : ports) {
    const std::string folder = absl::StrCat(root, "/", name);
    const Config config = ReadConfig(folder + "/config");
    node::PciDevice* device = node->add_pci();
    Fill(folder, name, device);
    device->set_kind(config.port_type == 6   ? node::PciDevice::downstream_port
                     : config.port_type == 4 ? node::PciDevice::root_port
                                             : node::PciDevice::other);
    device->set_acs_unread(!config.whole);
    if (config.acs >= 0) device->set_acs_control(static_cast<uint32_t>(config.acs));
  }
  return absl::OkStatus();
}

const RegisterProbe kRegister({"pci", Pci});

}  // namespace
}  // namespace ringscope::doctor
