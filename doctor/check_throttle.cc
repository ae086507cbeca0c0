// Reasons for low clocks that a GPU at rest must not have.
#include <absl/strings/str_cat.h>

#include "doctor/check.h"

namespace ringscope::doctor {
namespace {

constexpr uint64_t kHardware = 0x8, kSoftwareHeat = 0x20, kHardwareHeat = 0x40, kPowerBrake = 0x80;  // nvmlClocksEventReason…

void Look(const Question& question, Verdict* verdict) {
  if (!GpusTold(question, verdict)) return;
  size_t told = 0;
  for (const node::Gpu& gpu : question.now.gpus()) {
    if (!gpu.trouble().empty() || !gpu.has_clock_reasons()) continue;
    ++told;
    const uint64_t reasons = gpu.clock_reasons();
    const std::string look = absl::StrCat("nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER -i ", gpu.index());
    if ((reasons & kPowerBrake) != 0)
      verdict->Failed(absl::StrCat(Label(gpu), ": power brake (slowdown from outside)"),
                      {"The power supply holds the GPU back, to a fraction of its clock: the whole job waits for it.",
                       absl::StrCat(look, "; look at power supplies and the power cap of the rack"), "HW-08"});
    else if ((reasons & kHardwareHeat) != 0)
      verdict->Failed(absl::StrCat(Label(gpu), ": thermal slowdown by hardware"),
                      {"It is too hot before the job has begun.", absl::StrCat(look, "; look at fans and coolant"), "HW-08"});
    else if ((reasons & kHardware) != 0)
      verdict->Failed(absl::StrCat(Label(gpu), ": slowdown by hardware"),
                      {"Its clock is at most half of what it should be: the whole job waits for it.", look, "HW-08"});
    else if ((reasons & kSoftwareHeat) != 0)
      verdict->Warning(absl::StrCat(Label(gpu), ": thermal slowdown by the driver"),
                       {"It is warm before the job has begun, and will be slow under load.", look, "HW-08"});
  }
  if (told == 0) return verdict->CouldNotTell("no GPU tells why its clocks are what they are");
  verdict->Seen(absl::StrCat("no slowdown by heat or power on ", Count(told, "GPU")));
}

const RegisterCheck kRegister({"throttle", "no GPU is slowed down by heat or power", Look});

}  // namespace
}  // namespace ringscope::doctor
