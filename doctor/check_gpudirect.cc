// What lets an RDMA adapter read and write GPU memory: nvidia-peermem, or DMA-BUF with NVIDIA's open kernel modules.
#include <absl/strings/str_cat.h>

#include "doctor/adapters.h"
#include "doctor/check.h"

namespace ringscope::doctor {
namespace {

void Look(const Question& question, Verdict* verdict) {
  const node::Node& now = question.now;
  if (!HasGpu(now)) return verdict->NotPresent("no GPU here");
  if (UsedPorts(now).empty()) return verdict->NotPresent("no active RDMA port that NCCL would use");
  if (now.driver().kernel_version().empty()) return verdict->CouldNotTell("the driver's module does not show its version here");
  const bool peermem = now.driver().peermem(), dmabuf = now.driver().open_modules();
  if (!peermem && !dmabuf) {
    const bool had =
        question.before != nullptr && (question.before->driver().peermem() || question.before->driver().open_modules());
    const Advice advice = {"NCCL copies through host memory between GPU and adapter: slow, without a word.",
                           "modprobe nvidia-peermem (at boot: /etc/modules-load.d), or install the driver's open kernel modules",
                           "NET-06"};
    const std::string seen = "nvidia-peermem is not loaded, and the driver's modules are not the open ones that DMA-BUF needs";
    if (had)
      verdict->Failed(seen, advice, question.before->driver().peermem() ? "nvidia-peermem" : "open modules");
    else
      verdict->Warning(seen, advice);
    return;
  }
  verdict->Seen(peermem ? "nvidia-peermem is loaded" : "by DMA-BUF (open kernel modules)");
}

const RegisterCheck kRegister({"gpudirect", "RDMA adapters may reach GPU memory", Look});

}  // namespace
}  // namespace ringscope::doctor
