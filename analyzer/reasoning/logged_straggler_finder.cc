// A rank that is late step after step by the log's own times, and steps that wait for their input.
//
// The part of the step decides: input is the data pipeline, saving the checkpoint, computing the GPU or the host. Hardware is
// named only where a tool shows that GPU held down at the same time.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <set>

#include "analyzer/reasoning/gpu_view.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/step_view.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

using Part = model::StepTime::Part;

void CiteSteps(const model::Job& job, const std::vector<const model::StepTime*>& steps, size_t most, Finding* finding) {
  size_t cited = 0;
  for (const model::StepTime* step : steps) {
    const bool known = std::any_of(finding->evidence().begin(), finding->evidence().end(), [&](const Evidence& e) {
      return e.line() == step->where.line && e.text() == step->quote;
    });
    if (!known && cited++ < most) Cite(job, step->where, step->quote, finding);
  }
}

void CitePlaces(const model::Job& job, int rank, Finding* finding) {
  for (const model::RankPlace& place : job.evidence.hardware.places) {
    if (place.rank == rank) {
      Cite(job, place.where, place.quote, finding);
      return;
    }
  }
}

// The GPU that is held down and is this rank's, or the only one held down where nothing says whose it is.
const GpuView* SlowedGpuOf(const model::Job& job, const std::vector<GpuView>& views, int rank, bool* sure) {
  const GpuView* only = nullptr;
  size_t slowed = 0;
  for (const GpuView& view : views) {
    if (ForcedSlowdowns(view).empty()) continue;
    const int owner = RankOfView(job, view);
    if (owner == rank) {
      *sure = true;
      return &view;
    }
    if (owner < 0) {
      only = &view;
      ++slowed;
    }
  }
  *sure = false;
  return slowed == 1 ? only : nullptr;
}

Candidate Slow(Kind::Value kind, Confidence::Value confidence, Layer layer, std::string title, std::string_view cause) {
  Candidate c = Say(kind, confidence, layer, std::move(title), cause);
  c.order = Class::kSlow;
  c.state = State::slow;
  return c;
}

std::string PartText(const LateRank& late) { return late.name.empty() ? "" : absl::StrCat(" in ", late.name); }

Candidate ComputeLate(const model::Job& job, const LateRank& late, const std::vector<GpuView>& views) {
  const std::string how =
      absl::StrFormat("Rank %d is the straggler: %.3g s%s against %.3g s of the other ranks, in %d of %d compared steps",
                      late.rank, late.seconds, PartText(late), late.others, late.slow.size(), late.compared);
  bool sure = false;
  const GpuView* gpu = SlowedGpuOf(job, views, late.rank, &sure);
  if (gpu == nullptr) {
    Candidate c = Slow(Kind::rank_slow, Confidence::probable, Layer::kProgram, how, "");
    c.finding.mutable_who()->add_ranks(late.rank);
    CiteSteps(job, late.slow, 4, &c.finding);
    CitePlaces(job, late.rank, &c.finding);
    c.finding.set_refuted_by(
        "the rank has more work by design (pipeline stage, experts, longer sequences), or another rank is late after a restart "
        "elsewhere");
    SetNext(
        "Clocks, temperature and clock event reasons of that rank's GPU while it is slow, beside a sibling's; the others only "
        "wait.",
        "nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE,POWER", &c.finding);
    return c;
  }
  const auto reasons = ForcedSlowdowns(*gpu);
  Candidate c = Slow(Kind::gpu_slow, sure ? Confidence::established : Confidence::probable, Layer::kHardware,
                     absl::StrCat(how, "; its ", gpu->NameOnHost(), " is held down by ", QuoteReason(*reasons[0])), "HW-08");
  Finding& f = c.finding;
  f.mutable_who()->add_ranks(late.rank);
  NameGpu(job, *gpu, &f);
  CiteSteps(job, late.slow, 3, &f);
  for (const model::Reading* reason : reasons) CiteReading(job, *reason, &f);
  for (const char* key : {"temperature.gpu", "clocks.sm", "power.draw"}) {
    if (const model::Reading* reading = gpu->Latest(key); reading != nullptr) CiteReading(job, *reading, &f);
  }
  CitePlaces(job, late.rank, &f);
  f.set_refuted_by("the rank stays late with full clocks, or moves to another rank with the GPU exchanged");
  SetNext(
      "Take that GPU out of the job (drain the node), check cooling and power, and compare its clocks under load with its "
      "siblings'.",
      absl::StrCat("nvidia-smi ", gpu->index >= 0 ? absl::StrCat("-i ", gpu->index, " ") : "",
                   "-q -d PERFORMANCE,CLOCK,TEMPERATURE"),
      &f);
  return c;
}

Candidate InputLate(const model::Job& job, const LateRank& late, const InputStall* stall) {
  Candidate c =
      Slow(Kind::rank_slow, late.persistent || stall != nullptr ? Confidence::probable : Confidence::possible, Layer::kProgram,
           absl::StrFormat("Rank %d waits for its input (storage or data loader): %.3g s%s against %.3g s of the others%s",
                           late.rank, late.seconds, PartText(late), late.others,
                           late.persistent ? absl::StrFormat(", in %d of %d compared steps", late.slow.size(), late.compared)
                                           : absl::StrCat(" in step ", absl::StrJoin(late.steps, ", "))),
           "UC-06");
  c.finding.mutable_who()->add_ranks(late.rank);
  CiteSteps(job, late.slow, 3, &c.finding);
  return c;
}

void FinishInput(const model::Job& job, const InputStall* stall, Finding* finding) {
  if (stall != nullptr) {
    CiteSteps(job, stall->slow, 3, finding);
    if (stall->usual != nullptr) Cite(job, stall->usual->where, stall->usual->quote, finding);
    if (stall->collectives_unchanged)
      finding->set_title(absl::StrCat(finding->title(),
                                      "; the collectives took no longer than in other steps, so the network is not the reason"));
  }
  finding->set_refuted_by("the same slow steps with the data set in local memory or with synthetic input");
  SetNext(
      "Stacks of the data loader's workers and the I/O wait of that host during a slow step; then cache or prefetch the data set "
      "on local "
      "storage, or raise the number of workers.",
      "py-spy dump --pid <data loader worker>; iostat -x 5 3", finding);
}

std::vector<Candidate> FindLogged(const model::Job& job) {
  std::vector<Candidate> found;
  const std::vector<LateRank> late = LateRanks(job);
  InputStall stall;
  const bool stalled = FindInputStall(job, &stall);
  std::set<int> named;
  std::vector<GpuView> views;
  for (const LateRank& rank : late) {
    if (!named.insert(rank.rank).second || found.size() >= 4) continue;
    if (rank.part == Part::kInput) {
      // One slow step of one rank is said only while it explains a slow step of the job or nothing else is wrong.
      found.push_back(InputLate(job, rank, stalled ? &stall : nullptr));
      FinishInput(job, stalled ? &stall : nullptr, &found.back().finding);
    } else if (rank.part == Part::kSave && rank.persistent) {
      Candidate c = Slow(Kind::rank_slow, Confidence::probable, Layer::kProgram,
                         absl::StrFormat("Rank %d spends %.3g s%s while the others spend %.3g s and wait", rank.rank,
                                         rank.seconds, PartText(rank), rank.others),
                         "FW-07");
      c.finding.mutable_who()->add_ranks(rank.rank);
      CiteSteps(job, rank.slow, 3, &c.finding);
      c.finding.set_refuted_by("the same waiting with saving switched off");
      SetNext("Where the time goes while it saves; asynchronous or sharded checkpoints keep the others from waiting.",
              "py-spy dump --pid <rank>", &c.finding);
      found.push_back(std::move(c));
    } else if ((rank.part == Part::kCompute || rank.part == Part::kTotal) && rank.persistent) {
      if (views.empty()) views = GpuViews(job);
      found.push_back(ComputeLate(job, rank, views));
    }
  }
  if (found.empty() && stalled) {
    Candidate c =
        Slow(Kind::rank_slow, Confidence::probable, Layer::kProgram,
             stall.always
                 ? absl::StrFormat("Steps wait for their input (storage or data loader): %.3g of %.3g s are input",
                                   stall.input_seconds, stall.step_seconds)
                 : absl::StrFormat(
                       "Slow steps wait for their input (storage or data loader): the worst took %.3g s, %.3g s of it input; the "
                       "usual step takes %.3g s",
                       stall.step_seconds, stall.input_seconds, stall.usual_seconds),
             "UC-06");
    FinishInput(job, &stall, &c.finding);
    found.push_back(std::move(c));
  }
  // Another rank late each time, by computing: pauses of hosts, nobody's fault in particular.
  std::set<int> once;
  std::vector<const model::StepTime*> slow;
  for (const LateRank& rank : late) {
    if (rank.persistent || (rank.part != Part::kCompute && rank.part != Part::kTotal)) continue;
    once.insert(rank.rank);
    slow.insert(slow.end(), rank.slow.begin(), rank.slow.end());
  }
  if (found.empty() && once.size() >= 3) {
    Candidate c = Slow(Kind::rank_slow, Confidence::possible, Layer::kProgram,
                       absl::StrCat("Another rank is late each time (", RanksText(once),
                                    "): pauses on the hosts, such as garbage collection or noise"),
                       "UC-07");
    CiteSteps(job, slow, 4, &c.finding);
    c.finding.set_refuted_by("one rank that is late in most steps of a longer log");
    SetNext(
        "Whether the pauses fall together with garbage collection or with other processes on the host; a longer log of step "
        "times by rank.",
        "pidstat -u -w 1 30", &c.finding);
    found.push_back(std::move(c));
  }
  return found;
}

const Register kRegister("logged straggler", FindLogged);

}  // namespace
}  // namespace ringscope::reasoning
