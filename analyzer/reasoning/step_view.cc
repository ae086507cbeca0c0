#include "analyzer/reasoning/step_view.h"

#include <absl/strings/ascii.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analyzer/reasoning/thresholds.h"

namespace ringscope::reasoning {
namespace {

using model::StepTime;

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + middle, values.end());
  return values[middle];
}

// One part of one step, of all ranks that told it.
struct Instance {
  std::map<int, const StepTime*> own;
  std::vector<double> rest;  // "others", "ranks 0..15"
};

struct Tally {
  std::vector<const StepTime*> slow;
  std::vector<double> seconds, others;
  std::set<int64_t> steps;
  size_t compared = 0;
  bool averages = false;
};

}  // namespace

std::vector<LateRank> LateRanks(const model::Job& job) {
  std::map<std::tuple<int64_t, StepTime::Part, std::string>, Instance> instances;
  for (const StepTime& time : job.evidence.hardware.speed.steps) {
    if (time.part == StepTime::Part::kWait || time.part == StepTime::Part::kOther) continue;
    Instance& instance = instances[{time.step, time.part, absl::AsciiStrToLower(time.name)}];
    if (time.scope == StepTime::Scope::kRank && time.rank >= 0) {
      instance.own[time.rank] = &time;
    } else if (time.scope == StepTime::Scope::kOthers || time.scope == StepTime::Scope::kAll) {
      instance.rest.push_back(time.seconds);
    }
  }
  std::map<std::pair<int, std::pair<StepTime::Part, std::string>>, Tally> tallies;
  for (const auto& [key, instance] : instances) {
    const auto& [step, part, name] = key;
    if (instance.own.size() + instance.rest.size() < 2) continue;
    std::vector<double> all = instance.rest;
    for (const auto& [rank, time] : instance.own) all.push_back(time->seconds);
    // With the rank itself among many, the median is that of the others.
    const double median = all.size() > 2 ? Median(all) : 0;
    for (const auto& [rank, time] : instance.own) {
      double others = median;
      if (all.size() == 2) others = all[0] == time->seconds ? all[1] : all[0];
      Tally& tally = tallies[{rank, {part, name}}];
      ++tally.compared;
      if (time->seconds < thresholds::kLoggedLateRatio * others || time->seconds - others < thresholds::kLoggedLateFloor)
        continue;
      tally.averages |= step == 0 && instance.own.size() >= thresholds::kAveragedRanks;
      tally.slow.push_back(time);
      tally.seconds.push_back(time->seconds);
      tally.others.push_back(others);
      tally.steps.insert(step);
    }
  }
  std::vector<LateRank> late;
  std::set<int> by_part;  // ranks whose parts are known
  for (const auto& [key, tally] : tallies) {
    if (key.second.first != StepTime::Part::kTotal) by_part.insert(key.first);
  }
  for (const auto& [key, tally] : tallies) {
    if (tally.slow.empty()) continue;
    if (key.second.first == StepTime::Part::kTotal && by_part.count(key.first) > 0) continue;
    LateRank rank;
    rank.rank = key.first;
    rank.part = key.second.first;
    rank.name = tally.slow[0]->name;
    rank.slow = tally.slow;
    rank.steps.assign(tally.steps.begin(), tally.steps.end());
    rank.seconds = Median(tally.seconds);
    rank.others = Median(tally.others);
    rank.compared = tally.compared;
    rank.persistent =
        (tally.steps.size() >= thresholds::kLoggedLateSteps &&
         static_cast<double>(tally.slow.size()) >= thresholds::kLoggedLateShare * static_cast<double>(tally.compared)) ||
        (tally.averages && tally.compared == 1);
    late.push_back(std::move(rank));
  }
  std::stable_sort(late.begin(), late.end(), [](const LateRank& a, const LateRank& b) {
    return a.persistent != b.persistent ? a.persistent : a.seconds - a.others > b.seconds - b.others;
  });
  return late;
}

bool FindInputStall(const model::Job& job, InputStall* stall) {
  struct Step {
    const StepTime* total = nullptr;
    const StepTime* input = nullptr;
    const StepTime* wait = nullptr;
  };
  // By file and speaker; a step number that falls begins another epoch, whose first step fills the pipeline.
  std::map<std::pair<int, int>, std::vector<Step>> logs;
  std::map<std::pair<int, int>, uint32_t> last_line;
  for (const StepTime& time : job.evidence.hardware.speed.steps) {
    const bool own =
        time.scope == StepTime::Scope::kUnnamed || (time.scope == StepTime::Scope::kRank && time.rank == time.by.rank);
    if (!own) continue;
    const std::pair<int, int> log{time.where.file, time.by.rank};
    std::vector<Step>& steps = logs[log];
    if (steps.empty() || last_line[log] != time.where.line) steps.emplace_back();
    last_line[log] = time.where.line;
    const StepTime*& slot = time.part == StepTime::Part::kTotal   ? steps.back().total
                            : time.part == StepTime::Part::kInput ? steps.back().input
                                                                  : steps.back().wait;
    if (slot == nullptr &&
        (time.part == StepTime::Part::kTotal || time.part == StepTime::Part::kInput || time.part == StepTime::Part::kWait))
      slot = &time;
  }
  for (auto& [log, all] : logs) {
    std::vector<Step> steps;
    int64_t last = INT64_MAX;
    for (const Step& step : all) {
      if (step.total == nullptr || step.input == nullptr) continue;
      const bool first = step.total->step <= last && last != INT64_MAX;
      last = step.total->step;
      if (!first) steps.push_back(step);
    }
    if (steps.size() < thresholds::kInputSteps) continue;
    std::vector<double> totals, inputs, waits;
    for (const Step& step : steps) {
      totals.push_back(step.total->seconds);
      inputs.push_back(step.input->seconds);
      if (step.wait != nullptr) waits.push_back(step.wait->seconds);
    }
    const double total = Median(totals), input = Median(inputs), wait = Median(waits);
    size_t slow = 0;
    InputStall here;
    here.usual_seconds = total;
    here.collectives_unchanged = !waits.empty();
    for (const Step& step : steps) {
      const double excess = step.total->seconds - total;
      if (step.total->seconds < thresholds::kSlowStepRatio * total || excess < thresholds::kLoggedLateFloor) {
        if (here.usual == nullptr) here.usual = step.input;
        continue;
      }
      ++slow;
      if (step.input->seconds - input < thresholds::kInputShareOfExcess * excess) continue;
      here.slow.push_back(step.input);
      if (step.wait != nullptr && step.wait->seconds > thresholds::kSlowStepRatio * wait) here.collectives_unchanged = false;
      if (step.total->seconds > here.step_seconds) {
        here.step_seconds = step.total->seconds;
        here.input_seconds = step.input->seconds;
      }
    }
    if (!here.slow.empty() && static_cast<double>(here.slow.size()) >= thresholds::kLoggedLateShare * static_cast<double>(slow)) {
      *stall = std::move(here);
      return true;
    }
    if (here.slow.empty() && total > 0 && input >= thresholds::kInputShareOfStep * total &&
        input >= thresholds::kLoggedLateFloor) {
      here.always = true;
      here.step_seconds = total;
      here.input_seconds = input;
      for (size_t i = 0; i < steps.size() && i < 3; ++i) here.slow.push_back(steps[i].input);
      *stall = std::move(here);
      return true;
    }
  }
  return false;
}

}  // namespace ringscope::reasoning
