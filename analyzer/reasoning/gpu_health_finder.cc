// Memory errors and PCIe links of GPUs as tools show them, and what DCGM's own diagnosis failed.
#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/gpu_view.h"
#include "analyzer/reasoning/text_evidence.h"
#include "analyzer/reasoning/thresholds.h"

namespace ringscope::reasoning {
namespace {

bool Yes(const GpuView& view, const char* key) {
  const std::string value = absl::AsciiStrToLower(Absl(view.Value(key)));
  return value == "yes" || value == "1" || value == "active" || value == "true";
}

// Counters since the driver was loaded that should be zero.
std::vector<const model::Reading*> Uncorrected(const GpuView& view) {
  std::vector<const model::Reading*> found;
  if (view.readings.empty()) return found;
  for (const auto& [key, reading] : view.readings.back().gpu->values) {
    double count = 0;
    if (key.starts_with("ecc.errors.uncorrected.volatile") && absl::SimpleAtod(reading.value, &count) && count > 0)
      found.push_back(&reading);
  }
  return found;
}

void Memory(const model::Job& job, const GpuView& view, std::vector<Candidate>* found) {
  std::vector<const model::Reading*> signs = Uncorrected(view);
  const bool counted = !signs.empty();
  for (const char* key :
       {"remapped_rows.pending", "remapped_rows.failure", "retired_pages.pending", "ecc.sram_threshold_exceeded"}) {
    if (Yes(view, key)) signs.push_back(view.Latest(key));
  }
  if (signs.empty()) return;
  const bool failure = Yes(view, "remapped_rows.failure");
  Candidate c =
      Say(Kind::error_reported, counted || failure ? Confidence::probable : Confidence::possible, Layer::kHardware,
          absl::StrCat(view.NameOnHost(), counted   ? " counted uncorrectable memory errors (ECC) since the driver was loaded"
                                          : failure ? " could not remap a faulty row of its memory"
                                                    : " has a memory repair pending that only a reset completes"),
          "HW-06");
  NameGpu(job, view, &c.finding);
  for (const model::Reading* sign : signs) {
    if (c.finding.evidence_size() < 6) CiteReading(job, *sign, &c.finding);
  }
  if (const model::Reading* action = view.Latest("recovery_action"); action != nullptr && action->value != "None")
    CiteReading(job, *action, &c.finding);
  c.finding.set_refuted_by("no Xid 48, 63, 64, 94 or 95 of that GPU in the time of the job: then the errors are older");
  SetNext(
      "The kernel's log for Xid 48, 63, 64, 94, 95 of that GPU and their times; then reset the GPU, and replace it where "
      "remapping failed.",
      "dmesg -T | grep -E 'Xid.*: (48|63|64|92|94|95|171|172),'; nvidia-smi -q -d ECC,ROW_REMAPPER", &c.finding);
  found->push_back(std::move(c));
}

void Pcie(const model::Job& job, const GpuView& view, bool all_alike, std::vector<Candidate>* found) {
  const double width = view.Number("pcie.link.width.current", -1), width_max = view.Number("pcie.link.width.max", -1);
  const double gen = view.Number("pcie.link.gen.current", -1), gen_max = view.Number("pcie.link.gen.max", -1);
  // At rest the driver lowers the speed, and some drivers the width.
  const bool loaded = view.Value("pstate") == "P0" || view.Number("utilization.gpu", 0) >= thresholds::kBusyPercent;
  const bool narrow = width > 0 && width<width_max, slow = gen> 0 && gen < gen_max && loaded;
  if ((!narrow && !slow) || (all_alike && !slow)) return;
  Candidate c = Say(
      Kind::degraded_plan, loaded ? Confidence::probable : Confidence::possible, Layer::kHardware,
      narrow
          ? absl::StrFormat("%s has a PCIe link of width x%.0f instead of x%.0f", view.NameOnHost(), width, width_max)
          : absl::StrFormat("%s has a PCIe link of generation %.0f instead of %.0f under load", view.NameOnHost(), gen, gen_max),
      "HW-09");
  c.order = Class::kPlan;
  c.state = State::slow;
  NameGpu(job, view, &c.finding);
  for (const char* key : {"pcie.link.width.current", "pcie.link.width.max", "pcie.link.gen.current", "pcie.link.gen.max",
                          "pstate", "pcie.replay"}) {
    if (const model::Reading* reading = view.Latest(key); reading != nullptr) CiteReading(job, *reading, &c.finding);
  }
  c.finding.set_refuted_by("full width and speed under load, or a slot that offers no more");
  SetNext(
      "The link of the GPU and of every bridge above it while the GPU works, and AER errors of that slot; then reseat the card "
      "or its riser.",
      "lspci -d 10de: -vv | grep -E 'LnkCap:|LnkSta:'; dmesg -T | grep -E 'AER|PCIe Bus Error'", &c.finding);
  found->push_back(std::move(c));
}

std::string CauseOfTest(const std::string& test) {
  const std::string low = absl::AsciiStrToLower(test);
  if (Contains(low, "nvlink") || Contains(low, "nvbandwidth")) return "HW-02";
  if (Contains(low, "pcie")) return "HW-09";
  if (Contains(low, "mem") || Contains(low, "retirement") || Contains(low, "remap")) return "HW-06";
  if (Contains(low, "thermal") || Contains(low, "power") || Contains(low, "stress")) return "HW-08";
  if (Contains(low, "diagnostic") || Contains(low, "sm ") || Contains(low, "eud")) return "";
  return "none";  // libraries, permissions, other processes: nothing of the GPU
}

void Diag(const model::Job& job, std::vector<Candidate>* found) {
  for (const model::ToolVerdict& verdict : job.evidence.hardware.verdicts) {
    if (verdict.tool != "dcgmi diag" || verdict.result != "Fail" || found->size() >= 8) continue;
    const std::string cause = CauseOfTest(verdict.test);
    if (cause == "none") continue;
    Candidate c = Say(Kind::error_reported, Confidence::probable, Layer::kHardware,
                      absl::StrCat("DCGM's diagnosis failed its test \"", verdict.test, "\"",
                                   verdict.gpus.size() == 1 ? absl::StrCat(" on GPU ", verdict.gpus[0]) : ""),
                      cause);
    for (const int gpu : verdict.gpus) c.finding.mutable_who()->add_gpus(absl::StrCat("GPU ", gpu));
    if (!verdict.by.host.empty()) c.finding.mutable_who()->add_hosts(verdict.by.host);
    Cite(job, verdict.where, absl::StrCat(verdict.quote, verdict.detail.empty() ? "" : absl::StrCat(" (", verdict.detail, ")")),
         &c.finding);
    c.finding.set_refuted_by("the test passes when nothing else runs on the GPU");
    SetNext("The same test again on the idle node, with the kernel's log beside it.",
            "dcgmi diag -r 3; dmesg -T | grep -E 'Xid|AER'", &c.finding);
    found->push_back(std::move(c));
  }
}

std::vector<Candidate> FindHealth(const model::Job& job) {
  std::vector<Candidate> found;
  const std::vector<GpuView> views = GpuViews(job);
  size_t with_link = 0, narrow = 0;
  for (const GpuView& view : views) {
    const double width = view.Number("pcie.link.width.current", -1), most = view.Number("pcie.link.width.max", -1);
    with_link += width > 0 && most > 0;
    narrow += width > 0 && width < most;
  }
  // Every card in half a slot: the board is built so.
  const bool all_alike = with_link > 1 && narrow == with_link;
  for (const GpuView& view : views) {
    if (found.size() >= 8) break;
    Memory(job, view, &found);
    Pcie(job, view, all_alike, &found);
  }
  Diag(job, &found);
  return found;
}

const Register kRegister("gpu health", FindHealth);

}  // namespace
}  // namespace ringscope::reasoning
