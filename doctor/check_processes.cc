// Programs that compute on the GPUs before the job has begun.
#include <absl/strings/str_cat.h>

#include "doctor/check.h"

namespace ringscope::doctor {
namespace {

void Look(const Question& question, Verdict* verdict) {
  if (!GpusTold(question, verdict)) return;
  size_t told = 0, processes = 0;
  std::string where;
  for (const node::Gpu& gpu : question.now.gpus()) {
    if (!gpu.trouble().empty() || !gpu.has_processes()) continue;
    ++told;
    processes += gpu.processes();
    if (gpu.processes() > 0) absl::StrAppend(&where, where.empty() ? "" : ", ", gpu.index());
  }
  if (told == 0) return verdict->CouldNotTell("the driver does not tell who computes");
  if (processes > 0)
    verdict->Warning(absl::StrCat(Count(processes, "program"), " on GPU ", where, " already"),
                     {"Remains of the last job take memory and GPU time, and may hold its ports. On a shared node it is normal.",
                      "nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv", "FW-08"});
  verdict->Seen(absl::StrCat("nothing computes on ", Count(told, "GPU")));
}

const RegisterCheck kRegister({"processes", "nothing computes on the GPUs yet", Look});

}  // namespace
}  // namespace ringscope::doctor
