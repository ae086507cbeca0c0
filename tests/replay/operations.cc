#include "tests/replay/operations.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace ringscope::replay {
namespace {

struct Progress {
  bool launched = false;  // a Coll or P2p was started
  bool api_open = false;
  bool to_self = false;
  int n_channels = 0;
  int kernels = 0;
  int open = 0;  // kernels and proxy operations started and not stopped
};

struct Tracker {
  std::vector<Operation> operations;
  std::vector<Progress> progress;
  std::map<int32_t, size_t>
      of_slot;  // API, Coll, P2p, KernelCh and ProxyOp slots to their operation
  std::set<int32_t> open_children;
  std::map<std::pair<int32_t, bool>, int> counts;
  std::set<int32_t> completed_contexts;
  bool kernels_seen = false;

  size_t Enter(const Process& process, const Event& event, bool point_to_point) {
    Operation operation;
    operation.context = event.context;
    if (event.context != kNone)
      operation.comm_id = process.contexts[static_cast<size_t>(event.context)].comm_id;
    operation.point_to_point = point_to_point;
    operation.index = counts[{event.context, point_to_point}]++;
    operation.entered_t = event.t;
    operations.push_back(operation);
    progress.emplace_back();
    return operations.size() - 1;
  }

  void Start(const Process& process, const Event& event) {
    const auto parent = of_slot.find(event.parent);
    switch (event.type) {
      case kCollApi:
      case kP2pApi: {
        const size_t at = Enter(process, event, event.type == kP2pApi);
        progress[at].api_open = true;
        of_slot[event.slot] = at;
        break;
      }
      case kColl:
      case kP2p: {
        const bool by_api = parent != of_slot.end() && !progress[parent->second].launched;
        const size_t at = by_api ? parent->second : Enter(process, event, event.type == kP2p);
        progress[at].launched = true;
        progress[at].n_channels = event.n_channels;
        progress[at].to_self = event.type == kP2p && event.peer == event.rank;
        of_slot[event.slot] = at;
        break;
      }
      case kKernelCh:
      case kProxyOp:
        kernels_seen = kernels_seen || event.type == kKernelCh;
        if (parent == of_slot.end()) break;
        of_slot[event.slot] = parent->second;
        progress[parent->second].kernels += event.type == kKernelCh;
        ++progress[parent->second].open;
        open_children.insert(event.slot);
        break;
      default:
        break;
    }
  }

  void Stop(const Event& event) {
    const auto found = of_slot.find(event.slot);
    if (found == of_slot.end()) return;
    if (event.type == kCollApi || event.type == kP2pApi) progress[found->second].api_open = false;
    if (open_children.erase(event.slot) == 0) return;
    --progress[found->second].open;
    if (event.type == kKernelCh || !kernels_seen)
      completed_contexts.insert(operations[found->second].context);
  }

  void Judge() {
    for (size_t i = 0; i < operations.size(); ++i) {
      const Progress& p = progress[i];
      if (!p.launched) {
        // Some calls never show a launch (broadcasts of newer releases): returned is all that can
        // be said.
        operations[i].finished = !p.api_open;
      } else if (p.to_self || !kernels_seen) {
        operations[i].finished = p.open == 0;
      } else {
        operations[i].finished = p.open == 0 && p.kernels > 0 && p.kernels >= p.n_channels;
      }
    }
  }
};

Tracker Track(const Process& process, uint64_t until) {
  Tracker tracker;
  for (const Event& event : process.events) {
    if (until != 0 && event.t > until) continue;
    if (event.callback == Callback::kStart) tracker.Start(process, event);
    if (event.callback == Callback::kStop) tracker.Stop(event);
  }
  tracker.Judge();
  return tracker;
}

}  // namespace

std::vector<Operation> OperationsOf(const Process& process, uint64_t until) {
  return Track(process, until).operations;
}

bool NothingEverCompleted(const Process& process, uint64_t until) {
  const Tracker tracker = Track(process, until);
  return std::any_of(
      tracker.operations.begin(), tracker.operations.end(), [&](const Operation& operation) {
        return !operation.finished && tracker.completed_contexts.count(operation.context) == 0;
      });
}

uint64_t HungOperationEntered(const Capture& capture, uint64_t until) {
  using Key = std::tuple<uint64_t, bool, int>;
  std::map<Key, uint64_t> first_entry;
  std::set<Key> unfinished;
  uint64_t last_entry = 0;
  for (const Process& process : capture.processes) {
    for (const Operation& operation : OperationsOf(process, until)) {
      const Key key{operation.comm_id, operation.point_to_point, operation.index};
      const auto [at, fresh] = first_entry.try_emplace(key, operation.entered_t);
      // The n-th point-to-point calls of two ranks are different operations.
      if (!fresh && !operation.point_to_point)
        at->second = std::min(at->second, operation.entered_t);
      if (operation.point_to_point && !operation.finished) at->second = operation.entered_t;
      if (!operation.finished) unfinished.insert(key);
      last_entry = std::max(last_entry, operation.entered_t);
    }
  }
  uint64_t hung = 0;
  for (const Key& key : unfinished) {
    if (hung == 0 || first_entry[key] < hung) hung = first_entry[key];
  }
  return hung != 0 ? hung : last_entry;
}

}  // namespace ringscope::replay
