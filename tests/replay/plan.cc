#include "tests/replay/plan.h"

#include <signal.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/replay/operations.h"

namespace ringscope::replay {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

// Where in the list of calls a signal comes. A process that is killed, or stopped for good, does
// nothing afterwards: what the recording still shows are callbacks that ran while the signal was on
// its way.
void InsertSignal(const SentSignal& signal, const AppEnd& end, ProcessPlan& plan) {
  Action action;
  action.kind = signal.number == SIGKILL ? Action::kKillSelf : Action::kStopSelf;
  action.t = signal.t;
  action.tid = signal.tid;
  auto place = plan.actions.end();
  if (signal.number == SIGSTOP) {
    constexpr uint64_t kOnItsWay = 5'000'000;
    place = std::find_if(plan.actions.begin(), plan.actions.end(),
                         [&](const Action& other) { return other.t > signal.t + kOnItsWay; });
    if (place != plan.actions.end()) action.continued_t = place->t;
    for (uint64_t t : end.line_times) {
      if (t > signal.t && (action.continued_t == 0 || t < action.continued_t))
        action.continued_t = t;
    }
  }
  if (place != plan.actions.begin()) action.t = std::max(action.t, (place - 1)->t);
  plan.actions.insert(place, action);
}

}  // namespace

uint64_t EndedFromOutside(const Capture& capture) {
  uint64_t first = 0;
  for (const Process& process : capture.processes) {
    const uint64_t t = process.end.outside_t;
    if (t != 0 && (first == 0 || t < first)) first = t;
  }
  return first;
}

std::vector<ProcessPlan> MakePlans(const Capture& capture, uint64_t until) {
  const uint64_t outside = EndedFromOutside(capture);
  const uint64_t limit = until == 0 ? outside : outside == 0 ? until : std::min(until, outside);
  std::vector<ProcessPlan> plans;
  for (const Process& process : capture.processes) {
    ProcessPlan plan;
    for (size_t i = 0; i < process.events.size(); ++i) {
      const Event& event = process.events[i];
      if (limit == 0 || event.t <= limit)
        plan.actions.push_back({Action::kCall, i, event.t, event.tid, 0});
    }
    for (const SentSignal& signal : process.end.signals) {
      if (limit == 0 || signal.t <= limit) InsertSignal(signal, process.end, plan);
    }
    plan.exits = process.end.how == AppEnd::kExits && (limit == 0 || process.end.exit_t <= limit);
    plan.exit_code = process.end.exit_code;
    plan.exit_t = process.end.exit_t;
    for (const Action& action : plan.actions) plan.last_t = std::max(plan.last_t, action.t);
    const std::vector<Operation> operations = OperationsOf(process, limit);
    plan.open_operations =
        std::any_of(operations.begin(), operations.end(),
                    [](const Operation& operation) { return !operation.finished; });
    plan.long_stall = NothingEverCompleted(process, limit);
    plans.push_back(std::move(plan));
  }
  return plans;
}

absl::Status EndEarly(const Capture& capture, int process, Options::End how,
                      std::vector<ProcessPlan>* plans) {
  const uint64_t entered = HungOperationEntered(capture, EndedFromOutside(capture));
  if (process >= static_cast<int>(plans->size()) || entered == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--end ", process, ": this capture has no such process, or no hung operation"));
  }
  ProcessPlan& plan = (*plans)[static_cast<size_t>(process)];
  std::erase_if(plan.actions, [&](const Action& action) { return action.t >= entered; });
  plan.exits = false;
  plan.last_t = 0;
  for (const Action& action : plan.actions) plan.last_t = std::max(plan.last_t, action.t);
  const bool ended = !plan.actions.empty() && plan.actions.back().kind != Action::kCall;
  if (how != Options::kIdle && !plan.actions.empty() && !ended) {
    const Action last = plan.actions.back();
    const auto kind = how == Options::kKilled ? Action::kKillSelf : Action::kStopSelf;
    plan.actions.push_back({kind, 0, last.t, last.tid, 0});
  }
  const std::vector<Operation> operations =
      OperationsOf(capture.processes[static_cast<size_t>(process)], entered - 1);
  plan.open_operations =
      std::any_of(operations.begin(), operations.end(),
                  [](const Operation& operation) { return !operation.finished; });
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> CutInstant(const Capture& capture, absl::string_view text) {
  double number = 0;
  if (absl::StartsWith(text, "hang:")) {
    if (!absl::SimpleAtod(text.substr(5), &number) || !(number >= 0 && number <= 1)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--cut ", text, ": after \"hang:\" comes a fraction from 0 to 1, as in --cut hang:0.5"));
    }
    const uint64_t limit = EndedFromOutside(capture);
    const uint64_t entered = HungOperationEntered(capture, limit);
    if (entered == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--cut ", text, ": no operation in this capture; give seconds instead"));
    }
    uint64_t last = entered;
    for (const ProcessPlan& plan : MakePlans(capture, 0)) last = std::max(last, plan.last_t);
    return entered + static_cast<uint64_t>(number * static_cast<double>(last - entered));
  }
  if (!absl::SimpleAtod(text, &number) || !(number >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--cut ", text,
                     ": give seconds after the job's first callback (12.5), a captured clock value "
                     "in ns, or hang:F"));
  }
  if (number >= 1e9) {
    uint64_t ns;
    return absl::SimpleAtoi(text, &ns) ? ns : static_cast<uint64_t>(number);
  }
  return capture.first_t + static_cast<uint64_t>(number * static_cast<double>(kSecond));
}

}  // namespace ringscope::replay
