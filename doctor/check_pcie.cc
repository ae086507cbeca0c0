// Width and speed of the PCIe links of GPUs and RDMA adapters.
#include <absl/strings/str_cat.h>

#include <map>

#include "doctor/check.h"

namespace ringscope::doctor {
namespace {

const char* const kWhy = "Everything that goes through this link is slower, and with it every rank that waits for this one.";
const char* const kFix =
    "lspci -vv -s ADDRESS | grep -E 'LnkCap|LnkSta'; reseat or replace the device; look at the slot's settings";

std::string Fix(const std::string& address) {
  std::string text = kFix;
  return text.replace(text.find("ADDRESS"), 7, address);
}

void OfGpu(const node::Gpu& gpu, const node::Gpu* before, Verdict* verdict) {
  if (gpu.has_pcie_width() && gpu.pcie_width() < gpu.pcie_width_max())
    verdict->Failed(absl::StrCat(Label(gpu), ": x", gpu.pcie_width(), " of x", gpu.pcie_width_max()),
                    {kWhy, Fix(gpu.bus_id()), "HW-09"},
                    before != nullptr && before->pcie_width() > gpu.pcie_width() ? absl::StrCat("x", before->pcie_width()) : "");
  else if (before != nullptr && gpu.has_pcie_width() && before->pcie_width_max() > gpu.pcie_width_max())
    verdict->Failed(absl::StrCat(Label(gpu), ": x", gpu.pcie_width(), ", and no more is possible here"),
                    {kWhy, Fix(gpu.bus_id()), "HW-09"}, absl::StrCat("x", before->pcie_width_max()));
  // A GPU at rest lowers its speed to save power: only in P0 it says something.
  if (gpu.has_pcie_generation() && gpu.has_performance_state() && gpu.performance_state() == 0 &&
      gpu.pcie_generation() < gpu.pcie_generation_max())
    verdict->Warning(
        absl::StrCat(Label(gpu), ": generation ", gpu.pcie_generation(), " of ", gpu.pcie_generation_max(), " in P0"),
        {kWhy, Fix(gpu.bus_id()), "HW-09"});
  if (before != nullptr && gpu.has_pcie_generation_max() && before->pcie_generation_max() > gpu.pcie_generation_max())
    verdict->Failed(absl::StrCat(Label(gpu), ": at most generation ", gpu.pcie_generation_max()),
                    {kWhy, Fix(gpu.bus_id()), "HW-09"}, absl::StrCat("generation ", before->pcie_generation_max()));
}

void OfAdapter(const node::PciDevice& device, const node::Node& now, const node::Node* before, Verdict* verdict) {
  const std::string label = absl::StrCat(device.name(), " (", device.address(), ")");
  const node::PciDevice* old = nullptr;
  for (int i = 0; before != nullptr && i < before->pci_size(); ++i) {
    if (before->pci(i).address() == device.address()) old = &before->pci(i);
  }
  if (old != nullptr && device.has_width() && old->width() > device.width()) {
    verdict->Failed(absl::StrCat(label, ": x", device.width()), {kWhy, Fix(device.address()), "HW-09"},
                    absl::StrCat("x", old->width()));
  } else if (old != nullptr && !device.speed().empty() && !old->speed().empty() && device.speed() != old->speed()) {
    verdict->Warning(absl::StrCat(label, ": ", device.speed()), {kWhy, Fix(device.address()), "HW-09"}, old->speed());
  } else if (old == nullptr && device.width() > 0 && device.width() < device.width_max()) {
    // A slot may be narrower than its card by design; the same card in other slots of this node tells.
    bool sibling_wider = false, sibling = false;
    for (const node::PciDevice& other : now.pci()) {
      if (other.address() == device.address() || other.vendor() != device.vendor() || other.device() != device.device()) continue;
      sibling = true;
      sibling_wider |= other.width() > device.width();
    }
    if (sibling_wider)
      verdict->Failed(absl::StrCat(label, ": x", device.width(), " of x", device.width_max(), ", its like have more"),
                      {kWhy, Fix(device.address()), "HW-09"});
    else if (!sibling)
      verdict->Warning(absl::StrCat(label, ": x", device.width(), " of x", device.width_max()),
                       {"A narrow slot by design, or a fault: the adapter cannot carry its full rate either way.",
                        Fix(device.address()), "HW-09"});
  }
}

void Look(const Question& question, Verdict* verdict) {
  size_t gpus = 0, adapters = 0;
  for (const node::Gpu& gpu : question.now.gpus()) {
    if (!gpu.trouble().empty() || !gpu.has_pcie_width()) continue;
    ++gpus;
    OfGpu(gpu, Same(question.before, gpu), verdict);
  }
  for (const node::PciDevice& device : question.now.pci()) {
    if (device.kind() != node::PciDevice::rdma || !device.has_width()) continue;
    ++adapters;
    OfAdapter(device, question.now, question.before, verdict);
  }
  if (gpus + adapters == 0) {
    if (HasGpu(question.now)) return verdict->CouldNotTell("the width of no PCIe link can be read");
    return verdict->NotPresent("no GPU and no RDMA adapter on the bus");
  }
  verdict->Seen(absl::StrCat("full width on ", Count(gpus, "GPU"), " and ", Count(adapters, "RDMA adapter")));
}

const RegisterCheck kRegister({"pcie", "PCIe links of GPUs and RDMA adapters have their full width and speed", Look});

}  // namespace
}  // namespace ringscope::doctor
