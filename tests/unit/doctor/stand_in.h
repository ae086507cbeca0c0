// Stand-in nodes: a directory in the shape of /sys, /proc and /dev, and a machine of tests/sim for NVML.
#ifndef RINGSCOPE_TESTS_UNIT_DOCTOR_STAND_IN_H_
#define RINGSCOPE_TESTS_UNIT_DOCTOR_STAND_IN_H_

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "doctor/check.h"
#include "doctor/doctor.h"
#include "doctor/place.h"
#include "tests/unit/ingest/temp_dir.h"
#include "tests/unit/supervisor/collecting.h"

namespace ringscope::testing {

// What statvfs and adjtimex of a stand-in answer.
inline doctor::Space g_space = {uint64_t{64} << 30, uint64_t{60} << 30};
inline int g_clock = 1;

class StandIn {
 public:
  StandIn() {
    g_space = {uint64_t{64} << 30, uint64_t{60} << 30};
    g_clock = 1;
    place_.host = "node7";
    place_.sysfs = dir_ / "sys";
    place_.procfs = dir_ / "proc";
    place_.dev = dir_ / "dev";
    place_.root = dir_ / "root";
    place_.nvml = "libringscope-no-such-library.so.1";
    place_.space = [](const std::string&, doctor::Space* space) {
      *space = g_space;
      return g_space.bytes > 0;
    };
    place_.clock_state = [] { return g_clock; };
    Limits("unlimited", "1048576");
    Write("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/nvme0n1p2 iommu=pt\n");
    Write("dev/kmsg", "6,1,1000000,-;nvidia 0000:1b:00.0: enabling device\n");
    Interface("lo", 1, "unknown", false);
    Interface("eno1", 2, "up", true);
  }

  // An eight-GPU NVSwitch machine, an adapter beside each GPU.
  void Hgx(const std::string& link_layer = "InfiniBand") {
    Driver("hgx_h100");
    const char* buses[] = {"1b", "43", "52", "61", "9d", "c3", "d1", "df"};
    const char* nics[] = {"1c", "44", "53", "62", "9e", "c4", "d2", "e0"};
    for (int i = 0; i < 8; ++i) {
      Gpu(absl::StrCat("0000:", buses[i], ":00.0"), "0x2330");
      Nic(absl::StrCat("mlx5_", i), absl::StrCat("0000:", nics[i], ":00.0"), link_layer,
          absl::StrCat(link_layer == "Ethernet" ? "eth" : "ib", i));
    }
    Nccl("/usr/lib/x86_64-linux-gnu", "2.27.7", "12.9");
  }
  // Four cards without NVLink.
  void Cards() {
    std::string machine = "sm 80\nproduct 0\n";
    for (int i = 0; i < 4; ++i) absl::StrAppend(&machine, "gpu ", i, " bus ", i + 1, "1 pci ", i + 1, "0 cpu 0\n");
    Driver("", Write("cards.machine", machine));
    for (int i = 0; i < 4; ++i) Gpu(absl::StrCat("0000:", i + 1, "1:00.0"), "0x20b5");
    Nccl("/usr/lib/x86_64-linux-gnu", "2.27.7", "12.9");
  }

  void Driver(const std::string& name, const std::string& file = "") {
    place_.nvml = RINGSCOPE_BINARY_DIR "/sim/libnvidia-ml.so.1";
    machine_ = file.empty() ? absl::StrCat(RINGSCOPE_SOURCE_DIR, "/tests/sim/machines/", name, ".machine") : file;
    Write("proc/driver/nvidia/version",
          "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.10  Wed Jan 15 2025\nGCC version: 12\n");
    Write("sys/module/nvidia_peermem/refcnt", "0\n");
  }
  // Under a switch of its own, behind a root port.
  void Gpu(const std::string& address, const std::string& device) {
    const std::string folder = Device(address, "0x10de", device, "0x030200");
    Write("sys/bus/pci/drivers/nvidia/bind", "");
    Link("sys/bus/pci/drivers/nvidia", folder + "/driver");
  }
  void Nic(const std::string& name, const std::string& address, const std::string& link_layer, const std::string& interface) {
    const std::string folder = Device(address, "0x15b3", "0x1021", link_layer == "Ethernet" ? "0x020000" : "0x020700");
    const std::string at = absl::StrCat("sys/class/infiniband/", name);
    Write(at + "/board_id", "MT_0000000838\n");
    Link(folder, at + "/device");
    Write(folder + "/net/" + interface + "/x", "");
    const std::string port = at + "/ports/1/";
    Write(port + "state", "4: ACTIVE\n");
    Write(port + "phys_state", "5: LinkUp\n");
    Write(port + "rate", "400 Gb/sec (4X NDR)\n");
    Write(port + "link_layer", link_layer + "\n");
    const bool roce = link_layer == "Ethernet";
    Gid(name, 0, "fe80:0000:0000:0000:0c42:a103:0000:0001", "IB/RoCE v1", interface);
    if (roce) {
      Gid(name, 1, "fe80:0000:0000:0000:0c42:a103:0000:0001", "RoCE v2", interface);
      Gid(name, 2, "0000:0000:0000:0000:0000:ffff:0a00:0001", "IB/RoCE v1", interface);
      Gid(name, 3, "0000:0000:0000:0000:0000:ffff:0a00:0001", "RoCE v2", interface);
    }
    for (int i = roce ? 4 : 1; i < 8; ++i) Gid(name, i, "0000:0000:0000:0000:0000:0000:0000:0000", "", "");
    Interface(interface, 10 + static_cast<int>(interface.back() - '0'), "up", true);
  }
  void Gid(const std::string& name, int index, const std::string& gid, const std::string& type, const std::string& interface) {
    const std::string port = absl::StrCat("sys/class/infiniband/", name, "/ports/1/");
    Write(absl::StrCat(port, "gids/", index), gid + "\n");
    if (!type.empty()) Write(absl::StrCat(port, "gid_attrs/types/", index), type + "\n");
    if (!interface.empty()) Write(absl::StrCat(port, "gid_attrs/ndevs/", index), interface + "\n");
  }
  void Interface(const std::string& name, int index, const std::string& state, bool physical) {
    const std::string at = absl::StrCat("sys/class/net/", name);
    Write(at + "/ifindex", absl::StrCat(index, "\n"));
    Write(at + "/operstate", state + "\n");
    if (physical) Write(at + "/device/vendor", "0x15b3\n");
  }
  void Nccl(const std::string& folder, const std::string& version, const std::string& cuda) {
    Write(absl::StrCat("root", folder, "/libnccl.so.2"),
          absl::StrCat("\x7f", "ELF NCCL version %d.%d.%d", std::string(1, '\0'), "NCCL version ", version, "+cuda", cuda,
                       std::string(1, '\0')));
  }
  void Limits(const std::string& memlock, const std::string& files) {
    Write("proc/self/limits", absl::StrFormat("Limit                     Soft Limit           Hard Limit           Units     \n"
                                              "Max open files            %-20s %-20s files     \n"
                                              "Max locked memory         %-20s %-20s bytes     \n",
                                              files, files, memlock, memlock));
  }
  // ACS control of the switch port above that device.
  void Acs(const std::string& address, int control) { Port(Above(address) + "/config", 6, control); }

  std::string Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(dir_ / path).parent_path());
    return dir_.Write(path, text);
  }
  void Remove(const std::string& path) { std::filesystem::remove_all(dir_ / path); }
  doctor::Place& place() { return place_; }

  // `state`: what happened to the machine, in the words of tests/sim/machine/README.md.
  node::Node Look(const std::string& state = "") {
    const Variable machine("RINGSCOPE_SIM_MACHINE", machine_);
    const Variable since("RINGSCOPE_SIM_MACHINE_STATE", Write("state", state));
    return doctor::LookAtNode(place_, 30);
  }

 private:
  static std::string Folder(const std::string& address) {
    const std::string bus = address.substr(5, 2);
    return absl::StrCat("sys/devices/pci0000:", bus, "/00", bus, ":00:01.0/00", bus, ":01:00.0/00", bus, ":02:00.0/", address);
  }
  static std::string Above(const std::string& address) {
    const std::string folder = Folder(address);
    return folder.substr(0, folder.rfind('/'));
  }
  std::string Device(const std::string& address, const std::string& vendor, const std::string& device, const std::string& kind) {
    const std::string folder = Folder(address);
    for (const auto& [file, text] : std::vector<std::pair<std::string, std::string>>{{"vendor", vendor},
                                                                                     {"device", device},
                                                                                     {"class", kind},
                                                                                     {"current_link_width", "16"},
                                                                                     {"max_link_width", "16"},
                                                                                     {"current_link_speed", "32.0 GT/s PCIe"},
                                                                                     {"max_link_speed", "32.0 GT/s PCIe"}})
      Write(folder + "/" + file, text + "\n");
    Link(folder, "sys/bus/pci/devices/" + address);
    std::string above = folder;
    for (const int type : {6, 5, 4}) {
      above = above.substr(0, above.rfind('/'));
      Port(above + "/config", type, 0);
      Link(above, "sys/bus/pci/devices/" + above.substr(above.rfind('/') + 1));
    }
    return folder;
  }
  void Port(const std::string& file, int type, int acs) {
    std::string bytes(4096, '\0');
    bytes[6] = 0x10;
    bytes[0x34] = 0x40;
    bytes[0x40] = 0x10;
    bytes[0x42] = static_cast<char>(type << 4 | 2);
    bytes[0x100] = 0x0d;
    bytes[0x102] = 0x01;
    bytes[0x106] = static_cast<char>(acs);
    Write(file, bytes);
  }
  void Link(const std::string& to, const std::string& path) {
    std::filesystem::create_directories(std::filesystem::path(dir_ / path).parent_path());
    std::error_code there;
    std::filesystem::create_symlink(dir_ / to, dir_ / path, there);
  }

  TempDir dir_;
  doctor::Place place_;
  std::string machine_;
};

inline const node::Check& Named(const node::Report& report, const std::string& name) {
  static const node::Check none;
  for (const node::Check& check : report.checks()) {
    if (check.name() == name) return check;
  }
  return none;
}

// "failed fabric: GPU 0 …" for each problem, in the order of the report; what could not be told is left out.
inline std::vector<std::string> Problems(const node::Report& report) {
  std::vector<std::string> all;
  for (const node::Check& check : report.checks()) {
    for (const node::Problem& problem : check.problems()) {
      if (problem.status() < node::Report::warning) continue;
      all.push_back(absl::StrCat(problem.status() == node::Report::failed ? "failed " : "warning ", check.name(), ": ",
                                 problem.seen(), problem.baseline().empty() ? "" : absl::StrCat(" [", problem.baseline(), "]")));
    }
  }
  return all;
}

}  // namespace ringscope::testing

#endif  // RINGSCOPE_TESTS_UNIT_DOCTOR_STAND_IN_H_
