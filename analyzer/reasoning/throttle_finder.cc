// GPUs that run slower than they should by what tools show of them: held down by heat or power, or with a lower power limit than
// their siblings. Where step times name a rank as well, logged_straggler_finder joins the two.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>

#include "analyzer/reasoning/gpu_view.h"
#include "analyzer/reasoning/step_view.h"
#include "analyzer/reasoning/text_evidence.h"
#include "analyzer/reasoning/thresholds.h"

namespace ringscope::reasoning {
namespace {

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

bool Busy(const GpuView& view) { return view.Number("utilization.gpu", 100) >= thresholds::kBusyPercent; }

Candidate Throttled(const model::Job& job, const GpuView& view, const std::vector<const model::Reading*>& reasons,
                    double usual_clock) {
  const double clock = view.Number("clocks.sm", -1), top = view.Number("clocks.max.sm", usual_clock);
  const double reference = std::max(usual_clock, top);
  const bool slow_clock = clock > 0 && reference > 0 && clock < thresholds::kClockRatio * reference && Busy(view);
  std::string title = absl::StrCat(view.NameOnHost(), " is held down by ", QuoteReason(*reasons[0]));
  if (slow_clock) absl::StrAppend(&title, absl::StrFormat(": %.0f MHz instead of %.0f", clock, reference));
  Candidate c =
      Say(Kind::gpu_slow, slow_clock ? Confidence::probable : Confidence::possible, Layer::kHardware, std::move(title), "HW-08");
  for (const model::Reading* reason : reasons) CiteReading(job, *reason, &c.finding);
  for (const char* key : {"temperature.gpu", "clocks.sm", "clocks.max.sm", "power.draw"}) {
    if (const model::Reading* reading = view.Latest(key); reading != nullptr) CiteReading(job, *reading, &c.finding);
  }
  return c;
}

std::vector<Candidate> FindThrottled(const model::Job& job) {
  // A straggler of the log that computes longer takes the slowed GPU as its reason.
  const std::vector<LateRank> late = LateRanks(job);
  const auto straggler = [&](const GpuView& view) {
    const int owner = RankOfView(job, view);
    return std::any_of(late.begin(), late.end(), [&](const LateRank& r) {
      const bool computes = r.part == model::StepTime::Part::kCompute || r.part == model::StepTime::Part::kTotal;
      return r.persistent && computes && (owner < 0 || owner == r.rank);
    });
  };
  std::vector<Candidate> found;
  const std::vector<GpuView> views = GpuViews(job);
  std::vector<double> clocks, limits;
  size_t slowed = 0;
  for (const GpuView& view : views) {
    if (view.Number("clocks.sm", -1) > 0 && Busy(view)) clocks.push_back(view.Number("clocks.sm", 0));
    if (view.Number("power.limit", -1) > 0) limits.push_back(view.Number("power.limit", 0));
    slowed += !ForcedSlowdowns(view).empty();
  }
  const double usual_clock = clocks.size() >= 3 ? MedianOf(clocks) : 0, usual_limit = limits.size() >= 3 ? MedianOf(limits) : 0;
  for (const GpuView& view : views) {
    if (found.size() >= 8) break;
    const auto reasons = ForcedSlowdowns(view);
    const double clock = view.Number("clocks.sm", -1), limit = view.Number("power.limit", -1);
    Candidate c;
    if (!reasons.empty()) {
      if (slowed == 1 && straggler(view)) continue;
      c = Throttled(job, view, reasons, usual_clock);
    } else if (clock > 0 && Busy(view) && clock < thresholds::kClockRatio * usual_clock) {
      c = Say(Kind::gpu_slow, Confidence::possible, Layer::kHardware,
              absl::StrFormat("%s runs at %.0f MHz, its siblings at %.0f", view.NameOnHost(), clock, usual_clock), "HW-08");
      CiteReading(job, *view.Latest("clocks.sm"), &c.finding);
    } else if (limit > 0 && limit < thresholds::kPowerLimitRatio * usual_limit) {
      c = Say(Kind::gpu_slow, Confidence::possible, Layer::kHardware,
              absl::StrFormat("%s has a power limit of %.0f W, its siblings %.0f W", view.NameOnHost(), limit, usual_limit),
              "HW-08");
      CiteReading(job, *view.Latest("power.limit"), &c.finding);
    } else {
      continue;
    }
    c.order = Class::kSlow;
    c.state = State::slow;
    NameGpu(job, view, &c.finding);
    c.finding.set_refuted_by(
        "the job's ranks take equally long on this GPU and on its siblings: then the reading was of a moment without load");
    SetNext(
        "Clocks and clock event reasons of all GPUs of that host a few times while the job runs; then cooling, power supply and "
        "power limits.",
        "nvidia-smi --query-gpu=index,clocks.sm,temperature.gpu,power.draw,power.limit,clocks_event_reasons.active --format=csv "
        "-l 5",
        &c.finding);
    found.push_back(std::move(c));
  }
  return found;
}

const Register kRegister("gpu throttle", FindThrottled);

}  // namespace
}  // namespace ringscope::reasoning
