// What redirects peer traffic on PCIe: ACS on the switches above GPUs and adapters, an IOMMU that translates.
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <set>

#include "doctor/check.h"

namespace ringscope::doctor {
namespace {

constexpr uint32_t kRequestRedirect = 0x4, kCompletionRedirect = 0x8;  // ACS control register

std::string Some(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < 3; ++i) absl::StrAppend(&text, i == 0 ? "" : ", ", names[i]);
  if (names.size() > 3) absl::StrAppend(&text, " and ", names.size() - 3, " more");
  return text;
}

std::string IommuWords(const std::string& command_line) {
  std::string words;
  for (const absl::string_view word : absl::StrSplit(command_line, ' ', absl::SkipEmpty())) {
    if (absl::StrContains(word, "iommu")) absl::StrAppend(&words, words.empty() ? "" : " ", word);
  }
  return words;
}

void Look(const Question& question, Verdict* verdict) {
  std::vector<std::string> redirecting, translated;
  std::set<std::string> types;
  size_t devices = 0, ports = 0, unread = 0;
  for (const node::PciDevice& device : question.now.pci()) {
    if (device.kind() == node::PciDevice::gpu || device.kind() == node::PciDevice::rdma) {
      ++devices;
      if (!device.iommu().empty()) types.insert(device.iommu());
      if (absl::StartsWith(device.iommu(), "DMA")) translated.push_back(device.address());
      continue;
    }
    ++ports;
    unread += device.acs_unread();
    // Traffic between two root ports goes through the host anyway; below a switch ACS makes it do so.
    if (device.kind() == node::PciDevice::downstream_port &&
        (device.acs_control() & (kRequestRedirect | kCompletionRedirect)) != 0)
      redirecting.push_back(device.address());
  }
  if (devices == 0) return verdict->NotPresent("no GPU and no RDMA adapter on the bus");
  if (!redirecting.empty())
    verdict->Warning(
        absl::StrCat("ACS redirects peer traffic on ", Count(redirecting.size(), "PCIe switch port"), ": ", Some(redirecting)),
        {"What a GPU and an adapter send each other goes through the host: slow, and on some platforms it hangs.",
         absl::StrCat("setpci -s ", redirecting[0], " ECAP_ACS+6.w=0000 (each port, at every boot), or off in the firmware"),
         "FB-05"});
  // On Arm systems translation is part of the design.
  if (!translated.empty() && question.now.architecture() == "x86_64") {
    const std::string words = IommuWords(question.now.limits().kernel_command_line());
    verdict->Warning(absl::StrCat("an IOMMU translates what ", Count(translated.size(), "device"),
                                  " reads and writes: ", Some(translated), words.empty() ? "" : absl::StrCat(" (", words, ")")),
                     {"Peer access between GPUs and GPUDirect RDMA are slow or hang behind a translating IOMMU.",
                      "iommu=pt on the kernel's command line, or the IOMMU off in the firmware", "FB-05"});
  }
  if (question.before != nullptr) {
    const std::string now = IommuWords(question.now.limits().kernel_command_line());
    const std::string before = IommuWords(question.before->limits().kernel_command_line());
    if (now != before)
      verdict->Warning(absl::StrCat("kernel command line: ", now.empty() ? "no word on the IOMMU" : now),
                       {"The platform was set up differently when the baseline was taken.", "cat /proc/cmdline", "FB-05"},
                       before.empty() ? "no word on the IOMMU" : before);
  }
  // The register is beyond what everybody may read.
  if (unread > 0 && redirecting.empty())
    verdict->CouldNotTell(absl::StrCat("ACS of ", Count(unread, "PCIe port"), " can be read by root only"));
  std::string line = types.empty() ? "no IOMMU" : absl::StrCat("IOMMU: ", *types.begin());
  verdict->Seen(absl::StrCat(line, "; ACS redirects nothing on ", Count(ports, "port")));
}

const RegisterCheck kRegister({"platform", "neither ACS nor an IOMMU redirects traffic between GPUs and adapters", Look});

}  // namespace
}  // namespace ringscope::doctor
