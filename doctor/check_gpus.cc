// Every GPU that is on the bus answers, and all that the baseline had are there.
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include "doctor/check.h"

namespace ringscope::doctor {
namespace {

const char* const kLostFix = "dmesg -T | grep -E 'Xid|NVRM'; drain the node, then reset the GPU or power-cycle the node";

// The driver's libraries may be installed on a node that has no GPU; NVML says "Driver Not Loaded" then.
bool HasAny(const node::Node& node, size_t on_bus) {
  return on_bus > 0 || !node.driver().kernel_version().empty() || !absl::StrContains(node.driver().nvml_error(), "Not Loaded");
}

void Look(const Question& question, Verdict* verdict) {
  const node::Node& now = question.now;
  const node::Asked* asked = AskedOf(now, "nvml");
  size_t on_bus = 0;
  for (const node::PciDevice& device : now.pci()) on_bus += device.kind() == node::PciDevice::gpu;
  if (asked != nullptr && !asked->answered()) {
    if (asked->late()) {
      verdict->Failed(absl::StrCat("the driver does not answer: NVML, ", asked->why_not()),
                      {"A driver that hangs on one GPU stops every CUDA program of the node at its start.", kLostFix, "HW-07"});
    } else if (!now.driver().nvml_error().empty()) {
      if (HasAny(now, on_bus))
        verdict->Failed(absl::StrCat("NVML does not start: ", now.driver().nvml_error()),
                        {"No CUDA program can start on this node.",
                         "systemctl reboot, or reload the nvidia modules with no job running", "FB-06"});
    } else if (on_bus > 0 && asked->absent() && now.driver().kernel_version().empty()) {
      verdict->Failed(absl::StrCat(Count(on_bus, "NVIDIA GPU"), " on the bus, and no driver"),
                      {"No CUDA program can start on this node.", "modprobe nvidia; nvidia-smi", "FB-06"});
    } else if (asked->absent() && !now.driver().kernel_version().empty()) {
      verdict->Failed(
          absl::StrCat("the driver's module ", now.driver().kernel_version(), " is loaded, and libnvidia-ml.so.1 is not there"),
          {"The driver's libraries are not installed, or not given to this container.",
           "nvidia-smi; in containers --gpus all and NVIDIA_DRIVER_CAPABILITIES=compute,utility", "FB-06"});
    } else if (!asked->absent()) {
      verdict->Failed(absl::StrCat("NVML: ", asked->why_not()),
                      {"Without it nothing is known of the GPUs.", "nvidia-smi", "HW-07"});
    }
  }
  for (const node::Gpu& gpu : now.gpus()) {
    if (!gpu.trouble().empty())
      verdict->Failed(absl::StrCat(Label(gpu), ": ", gpu.trouble()),
                      {"A job that uses all GPUs of the node fails when it starts, or hangs later.", kLostFix, "HW-05"});
  }
  if (now.gpus_size() > 0 && now.gpus_size() < now.driver().listed_gpus())
    verdict->Failed(absl::StrCat(Count(static_cast<size_t>(now.driver().listed_gpus()), "GPU"),
                                 " in the module's list, NVML gives ", now.gpus_size()),
                    {"The driver could not start a GPU: it is missing for the job.", kLostFix, "HW-05"});
  // Which GPUs of the bus a container was given cannot be seen; which ones no driver took can.
  for (const node::PciDevice& device : now.pci()) {
    if (device.kind() == node::PciDevice::gpu && device.driver().empty() && now.gpus_size() > 0)
      verdict->Warning(
          absl::StrCat("no driver is bound to the GPU at ", device.address()),
          {"It is missing for every job on this node.", "dmesg -T | grep NVRM; lspci -k -s " + device.address(), "HW-05"});
  }
  if (question.before != nullptr) {
    const bool silent = !now.driver().nvml_error().empty() || (asked != nullptr && asked->late());  // said already
    std::string missing;
    for (const node::Gpu& gpu : question.before->gpus()) {
      if (Same(&now, gpu) == nullptr) absl::StrAppend(&missing, missing.empty() ? "" : ", ", Label(gpu));
    }
    if (!missing.empty() && !silent)
      verdict->Failed(absl::StrCat(Count(static_cast<size_t>(now.gpus_size()), "GPU"), "; missing: ", missing),
                      {"A GPU that was there is gone.", kLostFix, "HW-05"},
                      Count(static_cast<size_t>(question.before->gpus_size()), "GPU"));
    for (const node::Gpu& gpu : now.gpus()) {
      const node::Gpu* before = Same(question.before, gpu);
      if (before != nullptr && OfThisNode(question) && !gpu.uuid().empty() && !before->uuid().empty() &&
          gpu.uuid() != before->uuid())
        verdict->Warning(absl::StrCat(Label(gpu), " is another one: ", gpu.uuid()),
                         {"It was replaced, or the GPUs are in another order; take a new baseline when that was meant.",
                          "ringscope doctor --save FILE", "HW-05"},
                         before->uuid());
    }
  }
  if (now.gpus_size() == 0) {
    if (on_bus == 0 && !HasGpu(now)) verdict->NotPresent("no NVIDIA GPU and no driver here");
    return verdict->Seen("no GPU answers");
  }
  std::string line = Count(static_cast<size_t>(now.gpus_size()), "GPU");
  if (!now.gpus(0).name().empty()) absl::StrAppend(&line, ", ", now.gpus(0).name());
  verdict->Seen(absl::StrCat(line, "; all answer"));
}

const RegisterCheck kRegister({"gpus", "GPUs are seen by the driver, answer, and none is missing", Look});

}  // namespace
}  // namespace ringscope::doctor
