// NVLinks of each GPU: against the baseline, the product, the other GPUs of the node; links that had to recover.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <set>

#include "catalog/gpu_products.h"
#include "doctor/check.h"

namespace ringscope::doctor {
namespace {

constexpr int kWholeBoard = 8;  // fewer GPUs may be what a virtual machine was given, without their links

int Active(const node::Gpu& gpu) {
  return static_cast<int>(std::count_if(gpu.links().begin(), gpu.links().end(), [](const auto& l) { return l.active(); }));
}

const catalog::GpuProduct* Product(const node::Gpu& gpu) {
  return catalog::BoardProduct(gpu.product() << 16 | gpu.product() >> 16);
}

std::string Down(const node::Gpu& gpu) {
  std::vector<int> down;
  for (const auto& link : gpu.links()) {
    if (!link.active()) down.push_back(link.index());
  }
  return down.empty() || down.size() > 6 ? "" : absl::StrCat(" (down: ", absl::StrJoin(down, ", "), ")");
}

std::string ByIndex(const node::Gpu& gpu) { return absl::StrCat("nvidia-smi nvlink -s -i ", gpu.index()); }

void Recoveries(const node::Gpu& gpu, const node::Gpu* before, Verdict* verdict) {
  for (const auto& link : gpu.links()) {
    uint64_t earlier = 0;
    if (before != nullptr) {
      for (const auto& old : before->links()) {
        if (old.index() == link.index()) earlier = old.recoveries();
      }
    }
    // Counters begin again when the driver is loaded.
    if (link.recoveries() == 0 || link.recoveries() == earlier) continue;
    verdict->Warning(
        absl::StrCat(Label(gpu), " link ", link.index(), ": ", link.recoveries(), " recoveries, ", link.replays(), " replays"),
        {"A link that has to be trained again while it carries data is slow, and may fail for good.",
         absl::StrCat("nvidia-smi nvlink -e -i ", gpu.index(), "; again after a load: does it rise?"), "HW-03"},
        before == nullptr ? "" : absl::StrCat(earlier, " recoveries"));
  }
}

void Look(const Question& question, Verdict* verdict) {
  if (!GpusTold(question, verdict)) return;
  const node::Node& now = question.now;
  int most = 0, told = 0;
  for (const node::Gpu& gpu : now.gpus()) {
    most = std::max(most, Active(gpu));
    told += gpu.trouble().empty();
  }
  bool any = false;
  std::set<int> counts;
  for (const node::Gpu& gpu : now.gpus()) {
    if (!gpu.trouble().empty()) continue;
    const int active = Active(gpu);
    counts.insert(active);
    const node::Gpu* before = Same(question.before, gpu);
    const catalog::GpuProduct* product = Product(gpu);
    any |= active > 0 || (before != nullptr && Active(*before) > 0) || (product != nullptr && told >= kWholeBoard);
    const char* why = "NCCL leaves a link that is down out without a word: every rank of the job then runs at this GPU's rate.";
    const std::string fix = absl::StrCat(ByIndex(gpu), "; drain the node and reset the GPU; replace it when it comes back");
    if (before != nullptr && active < Active(*before)) {
      verdict->Failed(absl::StrCat(Label(gpu), ": ", active, " NVLinks active", Down(gpu)), {why, fix, "HW-02"},
                      absl::StrCat(Active(*before)));
    } else if (product != nullptr && active < product->lanes && (active > 0 || most > 0 || told >= kWholeBoard)) {
      verdict->Failed(absl::StrCat(Label(gpu), ": ", active, " of ", product->lanes, " NVLinks active", Down(gpu)),
                      {why, fix, "HW-02"});
    } else if (active < most) {
      verdict->Failed(absl::StrCat(Label(gpu), ": ", active, " NVLinks active", Down(gpu), ", others have ", most),
                      {why, fix, "HW-02"});
    }
    Recoveries(gpu, before, verdict);
  }
  if (told == 0) return verdict->CouldNotTell("no GPU answers");
  if (!any && most == 0) return verdict->NotPresent("no NVLink on these GPUs");
  verdict->Seen(absl::StrCat(absl::StrJoin(counts, " or "), " NVLinks active on each GPU"));
}

const RegisterCheck kRegister({"nvlink", "NVLinks are active as the product, the baseline or the other GPUs have them", Look});

}  // namespace
}  // namespace ringscope::doctor
