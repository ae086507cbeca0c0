#include "tests/replay/permute.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace ringscope::replay {
namespace {

uint64_t SplitMix(uint64_t& state) {
  uint64_t z = (state += 0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

bool Rooted(const char* func) {
  if (func == nullptr) return false;
  const absl::string_view name = func;
  return name == "Broadcast" || name == "Reduce" || name == "Gather" || name == "Scatter";
}

// For each communicator, the job rank of each member; -1 where no process of the capture told.
std::map<uint64_t, std::vector<int>> Members(const Capture& capture) {
  std::map<uint64_t, std::vector<int>> members;
  for (const Process& process : capture.processes) {
    for (const Context& context : process.contexts) {
      auto& list = members[context.comm_id];
      list.resize(static_cast<size_t>(std::max(context.n_ranks, context.rank + 1)), -1);
      const bool spanning = context.n_ranks == capture.job_size;
      list[static_cast<size_t>(context.rank)] = spanning ? context.rank : process.ranks.front();
      if (spanning) std::iota(list.begin(), list.end(), 0);
    }
  }
  return members;
}

Permutation FromJob(const Capture& capture, std::vector<int> job) {
  Permutation permutation;
  permutation.job = std::move(job);
  for (const auto& [id, members] : Members(capture)) {
    std::vector<int> order(members.size());
    std::iota(order.begin(), order.end(), 0);
    const bool known =
        std::none_of(members.begin(), members.end(), [](int rank) { return rank < 0; });
    std::vector<int> distinct = members;
    std::sort(distinct.begin(), distinct.end());
    const bool unique = std::adjacent_find(distinct.begin(), distinct.end()) == distinct.end();
    std::vector<int> renamed = order;
    if (known && unique) {
      std::sort(order.begin(), order.end(), [&](int a, int b) {
        return permutation.Job(members[static_cast<size_t>(a)]) <
               permutation.Job(members[static_cast<size_t>(b)]);
      });
      for (size_t place = 0; place < order.size(); ++place) {
        renamed[static_cast<size_t>(order[place])] = static_cast<int>(place);
      }
    }
    permutation.comm[id] = renamed;
  }
  return permutation;
}

}  // namespace

int Permutation::Job(int rank) const {
  return rank >= 0 && static_cast<size_t>(rank) < job.size() ? job[static_cast<size_t>(rank)]
                                                             : rank;
}

int Permutation::InComm(uint64_t comm_id, int rank) const {
  const auto found = comm.find(comm_id);
  if (found == comm.end() || rank < 0 || static_cast<size_t>(rank) >= found->second.size())
    return rank;
  return found->second[static_cast<size_t>(rank)];
}

Permutation Identity(const Capture& capture) {
  std::vector<int> job(static_cast<size_t>(capture.job_size));
  std::iota(job.begin(), job.end(), 0);
  Permutation permutation;
  permutation.job = job;
  return permutation;
}

Permutation MakePermutation(const Capture& capture, uint64_t seed) {
  std::vector<int> job(static_cast<size_t>(capture.job_size));
  std::iota(job.begin(), job.end(), 0);
  for (size_t i = job.size(); i > 1; --i) std::swap(job[i - 1], job[SplitMix(seed) % i]);
  return FromJob(capture, std::move(job));
}

void Permute(Capture& capture, const Permutation& permutation) {
  for (Process& process : capture.processes) {
    for (int& rank : process.ranks) rank = permutation.Job(rank);
    std::sort(process.ranks.begin(), process.ranks.end());
    for (Event& event : process.events) {
      if (event.callback != Callback::kStart) continue;
      uint64_t comm = 0;
      if (event.owner_process != kNone && event.owner_context != kNone) {
        const Process& owner = capture.processes[static_cast<size_t>(event.owner_process)];
        comm = owner.contexts[static_cast<size_t>(event.owner_context)].comm_id;
      } else if (event.context != kNone) {
        comm = process.contexts[static_cast<size_t>(event.context)].comm_id;
      }
      switch (event.type) {
        case kColl:
        case kP2p:
        case kProxyOp:
        case kProxyStep:
        case kNetPlugin:
        case kCollApi:
          // CollApi leaves its rank at 0: only its root is a rank.
          if (event.type != kCollApi) event.rank = permutation.InComm(comm, event.rank);
          if (event.type == kP2p || event.type == kProxyOp)
            event.peer = permutation.InComm(comm, event.peer);
          if (Rooted(event.func)) event.root = permutation.InComm(comm, event.root);
          break;
        default:
          break;
      }
    }
  }
  for (Process& process : capture.processes) {
    for (Context& context : process.contexts)
      context.rank = permutation.InComm(context.comm_id, context.rank);
  }
}

std::string ToJson(const Permutation& permutation) {
  std::string text = "{";
  for (size_t rank = 0; rank < permutation.job.size(); ++rank) {
    absl::StrAppend(&text, rank == 0 ? "" : ", ", "\"", rank, "\": ", permutation.job[rank]);
  }
  return text + "}\n";
}

}  // namespace ringscope::replay
