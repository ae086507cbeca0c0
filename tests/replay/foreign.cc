#include "tests/replay/foreign.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/string_view.h"

namespace ringscope::replay {
namespace {

struct Candidate {  // a Coll or P2p of the owner
  int32_t slot = kNone;
  int32_t context = kNone;
  uint64_t t = 0;
  bool coll = false;
  bool send = false;
  int peer = 0;
  int n_channels = 0;
  int rank = 0;
  std::set<int> channels;  // seen in its children
  std::set<std::tuple<int, int, bool>>
      own_edges;  // (channel, peer, is_send) of its own proxy operations
};

std::vector<Candidate> CandidatesOf(const Process& process) {
  std::vector<Candidate> list;
  std::map<int32_t, size_t> by_slot;
  for (const Event& event : process.events) {
    if (event.callback != Callback::kStart) continue;
    if (event.type == kColl || event.type == kP2p) {
      Candidate candidate;
      candidate.slot = event.slot;
      candidate.context = event.context;
      candidate.t = event.t;
      candidate.coll = event.type == kColl;
      candidate.send = event.func != nullptr && absl::string_view(event.func) == "Send";
      candidate.peer = event.peer;
      candidate.n_channels = event.n_channels;
      candidate.rank = event.rank;
      by_slot[event.slot] = list.size();
      list.push_back(candidate);
    } else if (event.type == kKernelCh || event.type == kProxyOp) {
      const auto parent = by_slot.find(event.parent);
      if (parent == by_slot.end()) continue;
      Candidate& candidate = list[parent->second];
      candidate.channels.insert(event.channel);
      if (event.type == kProxyOp)
        candidate.own_edges.insert({event.channel, event.peer, event.is_send});
    }
  }
  return list;
}

bool CanOwn(const Candidate& candidate, const Event& op) {
  if (candidate.rank != op.rank) return false;
  if (candidate.own_edges.count({op.channel, op.peer, op.is_send}) != 0) return false;
  if (!candidate.coll && (candidate.send != op.is_send || candidate.peer != op.peer)) return false;
  if (!candidate.channels.empty()) return candidate.channels.count(op.channel) != 0;
  return candidate.n_channels == 0 || candidate.coll == false || op.channel < candidate.n_channels;
}

constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max() / 4;

// Pairs ops with candidates, both in order, with the least sum of delays; an op that finds none
// costs more than any delay. Returns for each op the index of its candidate, or -1.
std::vector<int> Align(const std::vector<const Event*>& ops,
                       const std::vector<const Candidate*>& candidates) {
  const size_t n = ops.size(), m = candidates.size();
  std::vector<int> result(n, -1);
  if (n == m) {
    bool possible = true;
    for (size_t i = 0; i < n; ++i) possible = possible && candidates[i]->t <= ops[i]->t;
    if (possible) {
      for (size_t i = 0; i < n; ++i) result[i] = static_cast<int>(i);
      return result;
    }
  }
  constexpr uint64_t kUnpaired = uint64_t{1} << 45;  // 9 hours in ns: worse than any real delay
  enum Choice : uint8_t { kSkipCandidate, kSkipOp, kPair };
  std::vector<uint64_t> before(m + 1, 0), now(m + 1);
  std::vector<uint8_t> choice((n + 1) * (m + 1), kSkipCandidate);
  for (size_t i = 1; i <= n; ++i) {
    for (size_t j = 0; j <= m; ++j) {
      uint64_t best = before[j] + kUnpaired;
      uint8_t how = kSkipOp;
      if (j > 0 && now[j - 1] < best) {
        best = now[j - 1];
        how = kSkipCandidate;
      }
      if (j > 0 && candidates[j - 1]->t <= ops[i - 1]->t) {
        const uint64_t cost = before[j - 1] + (ops[i - 1]->t - candidates[j - 1]->t);
        if (cost <= best) {
          best = cost;
          how = kPair;
        }
      }
      now[j] = std::min(best, kNever);
      choice[i * (m + 1) + j] = how;
    }
    std::swap(before, now);
  }
  size_t i = n, j = m;
  while (i > 0) {
    const uint8_t how = choice[i * (m + 1) + j];
    if (how == kPair) {
      result[--i] = static_cast<int>(--j);
    } else if (how == kSkipOp) {
      --i;
    } else {
      --j;
    }
  }
  return result;
}

}  // namespace

void MapForeign(Capture& capture) {
  std::map<uint32_t, size_t> process_of_pid;
  for (size_t p = 0; p < capture.processes.size(); ++p) {
    if (capture.processes[p].has_events) process_of_pid[capture.processes[p].pid] = p;
  }
  std::map<size_t, std::vector<Candidate>> candidates;
  for (Process& process : capture.processes) {
    using Key = std::tuple<size_t, uint64_t, int, int, int,
                           bool>;  // owner, its context, rank, channel, peer, direction
    std::map<Key, std::vector<Event*>> groups;
    for (Event& event : process.events) {
      if (event.callback != Callback::kStart || event.type != kProxyOp || event.own_pid) continue;
      const auto owner = process_of_pid.find(static_cast<uint32_t>(event.pid));
      if (owner == process_of_pid.end()) continue;
      event.owner_process = static_cast<int32_t>(owner->second);
      groups[{owner->second, event.foreign_context, event.rank, event.channel, event.peer,
              event.is_send}]
          .push_back(&event);
    }
    std::map<std::pair<size_t, uint64_t>, int32_t> context_of_pointer;
    for (auto& [key, ops] : groups) {
      const size_t owner = std::get<0>(key);
      if (candidates.count(owner) == 0) candidates[owner] = CandidatesOf(capture.processes[owner]);
      std::vector<const Candidate*> fitting;
      for (const Candidate& candidate : candidates[owner]) {
        if (CanOwn(candidate, *ops.front())) fitting.push_back(&candidate);
      }
      const std::vector<int> pairs = Align({ops.begin(), ops.end()}, fitting);
      for (size_t i = 0; i < ops.size(); ++i) {
        if (pairs[i] < 0) continue;
        const Candidate& candidate = *fitting[static_cast<size_t>(pairs[i])];
        ops[i]->owner_slot = candidate.slot;
        ops[i]->owner_context = candidate.context;
        context_of_pointer[{owner, std::get<1>(key)}] = candidate.context;
      }
    }
    // An operation that found no parent may still have a known context: by its pointer, or the
    // owner's only one.
    for (auto& [key, ops] : groups) {
      const size_t owner = std::get<0>(key);
      for (Event* op : ops) {
        if (op->owner_context != kNone) continue;
        const auto known = context_of_pointer.find({owner, std::get<1>(key)});
        if (known != context_of_pointer.end()) op->owner_context = known->second;
        if (capture.processes[owner].contexts.size() == 1) op->owner_context = 0;
      }
    }
    for (Event& event : process.events) {
      if (event.callback != Callback::kStart) continue;
      Slot& slot = process.slots[static_cast<size_t>(event.slot)];
      // Steps carry the foreign context too, but neither pid nor a foreign parent.
      if (event.type != kProxyOp && event.foreign_context != 0 && event.parent != kNone) {
        const Slot& parent = process.slots[static_cast<size_t>(event.parent)];
        event.owner_process = parent.owner_process;
        event.owner_context = parent.owner_context;
      }
      slot.owner_process = event.owner_process;
      slot.owner_context = event.owner_context;
    }
  }
}

}  // namespace ringscope::replay
