// GPU memory: uncorrectable errors since the driver was loaded, rows that wait for a reset, rows that could not be remapped.
#include <absl/strings/str_cat.h>

#include "doctor/check.h"

namespace ringscope::doctor {
namespace {

void Look(const Question& question, Verdict* verdict) {
  if (!GpusTold(question, verdict)) return;
  size_t told = 0;
  for (const node::Gpu& gpu : question.now.gpus()) {
    if (!gpu.trouble().empty()) continue;
    told += gpu.has_uncorrected_now() || gpu.has_remap_pending();
    const node::Gpu* before = Same(question.before, gpu);
    const std::string reset = absl::StrCat("nvidia-smi -q -d ECC,ROW_REMAPPER -i ", gpu.index(),
                                           "; with no job running: nvidia-smi -r -i ", gpu.index());
    if (gpu.remap_failed())
      verdict->Failed(
          absl::StrCat(Label(gpu), ": a memory row could not be remapped"),
          {"There is no spare row left for it: the GPU is due for replacement.", "drain the node; replace the GPU", "HW-06"});
    if (gpu.uncorrected_now() > 0)
      verdict->Failed(absl::StrCat(Label(gpu), ": ", Count(gpu.uncorrected_now(), "uncorrectable memory error"),
                                   " since the driver was loaded"),
                      {"The next process that touches that memory dies (Xid 48, 94, 95).", reset, "HW-06"});
    else if (gpu.remap_pending())
      verdict->Warning(absl::StrCat(Label(gpu), ": memory waits to be remapped at the next reset"),
                       {"Until then the bad row stays in use or is offline.", reset, "HW-06"});
    if (before != nullptr && before->has_uncorrected_ever() && gpu.uncorrected_ever() > before->uncorrected_ever() &&
        gpu.uncorrected_now() == 0)
      verdict->Warning(absl::StrCat(Label(gpu), ": ", gpu.uncorrected_ever(), " uncorrectable memory errors in its life"),
                       {"New ones since the baseline: watch it, replace it when they go on.", reset, "HW-06"},
                       absl::StrCat(before->uncorrected_ever()));
  }
  if (told == 0) return verdict->NotPresent("no GPU with ECC");
  verdict->Seen(absl::StrCat("no uncorrectable error and nothing to be remapped on ", Count(told, "GPU")));
}

const RegisterCheck kRegister({"memory", "GPU memory has no uncorrectable errors and no row that waits for a reset", Look});

}  // namespace
}  // namespace ringscope::doctor
