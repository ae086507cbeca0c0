// RDMA ports as `ibstatus` shows them, and their counters as `grep . /sys/class/infiniband/*/ports/*/counters/*` does.
#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "supervisor/collector.h"

namespace ringscope::supervisor {
namespace {

constexpr char kRoot[] = "/class/infiniband";

bool IsNumber(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); });
}

std::string Status(const std::string& device_folder, const std::string& device, const std::string& port) {
  const std::string folder = absl::StrCat(device_folder, "/ports/", port);
  std::string text = absl::StrCat("Infiniband device '", device, "' port ", port, " status:\n");
  const struct {
    const char* file;
    const char* name;
  } lines[] = {{"gids/0", "default gid:\t "},   {"lid", "base lid:\t "},          {"sm_lid", "sm lid:\t\t "},
               {"state", "state:\t\t "},        {"phys_state", "phys state:\t "}, {"rate", "rate:\t\t "},
               {"link_layer", "link_layer:\t "}};
  for (const auto& line : lines) {
    const std::string value = FirstLine(absl::StrCat(folder, "/", line.file));
    if (!value.empty()) absl::StrAppend(&text, "\t", line.name, value, "\n");
  }
  // Not of ibstatus; for RoCE the interface is what everybody knows it by.
  const std::vector<std::string> interfaces = Names(device_folder + "/device/net");
  if (interfaces.size() == 1) absl::StrAppend(&text, "\tnetdev:\t\t ", interfaces[0], "\n");
  return text + "\n";
}

void Counters(const CollectOptions& options, const std::string& within, const std::vector<std::string>& names, Output* out) {
  std::string text;
  for (const std::string& name : names) {
    const std::string path = absl::StrCat(within, "/", name);
    const std::string value = FirstLine(options.sysfs + path);
    if (IsNumber(value)) absl::StrAppend(&text, "/sys", path, ":", value, "\n");
  }
  out->Write(text);
}

absl::Status InfiniBand(const CollectOptions& options, Output* out) {
  const std::string root = options.sysfs + kRoot;
  const std::vector<std::string> devices = Names(root);
  if (devices.empty()) return absl::NotFoundError("no RDMA adapter is visible here (/sys/class/infiniband)");
  out->Write(Prompt(options, "ibstatus"));
  for (const std::string& device : devices) {
    for (const std::string& port : Names(absl::StrCat(root, "/", device, "/ports")))
      out->Write(Status(absl::StrCat(root, "/", device), device, port));
  }
  // States first: they come from the driver's memory, counters may be asked of a firmware that does not answer.
  out->Write(Prompt(options, "grep . /sys/class/infiniband/*/ports/*/*counters/*"));
  for (const std::string& device : devices) {
    for (const std::string& port : Names(absl::StrCat(root, "/", device, "/ports"))) {
      for (const char* kind : {"counters", "hw_counters"}) {
        const std::string within = absl::StrCat(kRoot, "/", device, "/ports/", port, "/", kind);
        Counters(options, within, Names(options.sysfs + within), out);
      }
    }
    for (const std::string& interface : Names(absl::StrCat(root, "/", device, "/device/net")))
      Counters(options, absl::StrCat("/class/net/", interface), {"carrier_changes", "carrier_down_count", "carrier_up_count"},
               out);
  }
  return out->status();
}

const RegisterCollector kRegister({"infiniband", WantedOfHost, InfiniBand});

}  // namespace
}  // namespace ringscope::supervisor
