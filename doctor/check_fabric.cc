// GPUs on NVSwitches must have registered with the fabric manager before CUDA works on them.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <set>

#include "doctor/check.h"

namespace ringscope::doctor {
namespace {

constexpr uint32_t kCompleted = 3;

const char* const kFix = "systemctl restart nvidia-fabricmanager; nvidia-smi -q | grep -A4 Fabric";

std::string State(uint32_t state) {
  static const char* const kStates[] = {"not supported", "not started", "in progress", "completed"};
  return state < std::size(kStates) ? kStates[state] : absl::StrCat("state ", state);
}

void Look(const Question& question, Verdict* verdict) {
  if (!GpusTold(question, verdict)) return;
  int with = 0, answering = 0;
  std::set<std::string> memberships;
  for (const node::Gpu& gpu : question.now.gpus()) {
    if (!gpu.trouble().empty()) continue;
    ++answering;
    const node::Gpu* before = Same(question.before, gpu);
    if (!gpu.has_fabric()) {
      if (before != nullptr && before->has_fabric())
        verdict->Failed(absl::StrCat(Label(gpu), ": the driver reports no fabric"),
                        {"It was part of an NVSwitch fabric.", kFix, "FB-01"}, State(before->fabric().state()));
      continue;
    }
    ++with;
    const node::Gpu::Fabric& fabric = gpu.fabric();
    memberships.insert(absl::StrCat(fabric.cluster(), "/", fabric.clique()));
    if (fabric.state() != kCompleted) {
      verdict->Failed(
          absl::StrCat(Label(gpu), ": fabric registration ", State(fabric.state())),
          {"CUDA fails on it (error 802, system not ready) until the fabric manager has registered it.", kFix, "FB-01"},
          before != nullptr && before->has_fabric() && before->fabric().state() == kCompleted ? "completed" : "");
    } else if (fabric.status() != 0) {
      verdict->Failed(absl::StrCat(Label(gpu), ": fabric registration ended with: ", fabric.status_words()),
                      {"Its links are up and yet carry no traffic between GPUs: NCCL goes over PCIe, or fails.", kFix, "FB-02"});
    } else if (before != nullptr && OfThisNode(question) && before->has_fabric() &&
               (before->fabric().cluster() != fabric.cluster() || before->fabric().clique() != fabric.clique())) {
      verdict->Warning(absl::StrCat(Label(gpu), ": clique ", fabric.clique(), " of ", fabric.cluster()),
                       {"In another NVLink domain or partition than before, it does not reach the GPUs that it reached.",
                        "nvidia-imex-ctl -N; nvidia-smi -q | grep -A6 Fabric", "FB-03"},
                       absl::StrCat("clique ", before->fabric().clique(), " of ", before->fabric().cluster()));
    }
  }
  if (with == 0) {
    if (answering == 0) return verdict->CouldNotTell("no GPU answers");
    return verdict->NotPresent("no NVSwitch fabric that GPUs register with");
  }
  if (with < answering)
    verdict->Failed(absl::StrCat("only ", with, " of ", Count(static_cast<size_t>(answering), "GPU"), " report a fabric"),
                    {"The others do not take part in it.", kFix, "FB-01"});
  if (memberships.size() > 1)
    verdict->Failed(absl::StrCat("the GPUs of this node are in ", memberships.size(), " different cliques"),
                    {"GPUs of different cliques have no NVLink between them.", kFix, "FB-03"});
  verdict->Seen(absl::StrCat("completed on ", Count(static_cast<size_t>(with), "GPU")));
}

const RegisterCheck kRegister({"fabric", "GPUs on NVSwitches have registered with the fabric", Look});

}  // namespace
}  // namespace ringscope::doctor
