#include "analyzer/reasoning/node_trials.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "analyzer/reasoning/thresholds.h"

namespace ringscope::reasoning {
namespace {

// Larger is worse.
double Cost(const model::NodeTrial& trial) { return trial.more_is_better ? -trial.value : trial.value; }

std::optional<SlowNodes> Of(const std::vector<const model::NodeTrial*>& trials) {
  if (trials.size() < 2 * thresholds::kTrialsOfEachKind) return std::nullopt;
  std::map<std::string, std::vector<size_t>> members;
  for (size_t i = 0; i < trials.size(); ++i) {
    for (const std::string& node : trials[i]->nodes) members[node].push_back(i);
  }
  std::optional<SlowNodes> found;
  std::vector<size_t> found_in;
  for (const auto& [node, in] : members) {
    if (in.size() < thresholds::kTrialsOfEachKind || trials.size() - in.size() < thresholds::kTrialsOfEachKind) continue;
    if (found && in == found_in) {
      found->nodes.push_back(node);
      continue;
    }
    const std::set<size_t> with(in.begin(), in.end());
    constexpr double kFar = std::numeric_limits<double>::infinity();
    double with_low = kFar, with_high = -kFar, without_low = kFar, without_high = -kFar;
    for (size_t i = 0; i < trials.size(); ++i) {
      const double cost = Cost(*trials[i]);
      double& low = with.count(i) ? with_low : without_low;
      double& high = with.count(i) ? with_high : without_high;
      low = std::min(low, cost);
      high = std::max(high, cost);
    }
    const double gap = with_low - without_high;
    const double spread = std::max(with_high - with_low, without_high - without_low);
    if (gap <= spread || gap < thresholds::kTrialGap * std::abs(without_high)) continue;
    // Two different groups that both separate: the trials do not decide.
    if (found) return std::nullopt;
    found.emplace();
    found->nodes = {node};
    found_in = in;
    for (size_t i = 0; i < trials.size(); ++i) (with.count(i) ? found->with : found->without).push_back(trials[i]);
    found->best_with = std::abs(with_low);
    found->worst_without = std::abs(without_high);
  }
  if (found && found->nodes.size() > thresholds::kNodesTogether) return std::nullopt;
  return found;
}

}  // namespace

std::optional<SlowNodes> NodesThatSlow(const model::Job& job) {
  // Columns of one name in one file are comparable.
  std::map<std::pair<int, std::string>, std::vector<const model::NodeTrial*>> tables;
  for (const model::NodeTrial& trial : job.evidence.hardware.speed.trials)
    tables[{trial.where.file, trial.unit}].push_back(&trial);
  for (const auto& [table, trials] : tables) {
    if (auto found = Of(trials)) return found;
  }
  return std::nullopt;
}

}  // namespace ringscope::reasoning
