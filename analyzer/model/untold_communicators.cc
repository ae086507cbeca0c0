// Communicators of the profiler tables v1 to v3 (NCCL 2.23-2.26). Their init tells nothing: rank
// and hash come with the first operation, the size from NCCL 2.23-2.25 with the first all-gather or
// reduce-scatter, else not at all. Then the largest rank that anybody names is what is known.
//
// NCCL 2.23 gives every split of one color the same hash, so the n-th communicator with a hash in
// which a rank appears belongs to the n-th of the others, by time of creation. NCCL >= 2.27 passes
// these tables no hash: there only the order of creation is left, and only where it is unambiguous.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "analyzer/model/instances.h"

namespace ringscope::model {
namespace {

constexpr uint32_t kUntoldRank = std::numeric_limits<uint32_t>::max();

void Raise(uint32_t rank, uint32_t* size) {
  if (rank < kMaxCommRanks && rank >= *size) *size = rank + 1;
}

class Joiner {
 public:
  Joiner(const Job& job, Notes* notes) : job_(job), notes_(*notes) {}

  std::vector<UntoldCommunicator> Run(const std::vector<Entry>& entries) {
    std::map<uint64_t, std::map<uint32_t, Sequence>> by_id;
    std::map<uint32_t, Sequence> by_ordinal;  // without an id
    Sequence silent;                          // without any operation
    for (const Entry& e : entries) {
      if (e.raw->rank() == kUntoldRank) {
        silent.push_back(e);
      } else if (e.raw->rank() >= kMaxCommRanks) {
        LeaveOut(e, absl::StrCat("says rank ", e.raw->rank()));
      } else if (e.raw->comm_id() != 0) {
        by_id[e.raw->comm_id()][e.raw->rank()].push_back(e);
      } else {
        by_ordinal[e.raw->ordinal()].push_back(e);
      }
    }
    for (auto& [id, sequences] : by_id) JoinId(id, &sequences);
    JoinWithoutId(by_ordinal);
    for (UntoldCommunicator& u : made_) MeasureSize(&u);
    for (const Entry& e : silent) Adopt(e);
    return std::move(made_);
  }

 private:
  const Process& ProcessOf(const Entry& e) const {
    return job_.processes[static_cast<size_t>(e.process)];
  }

  void LeaveOut(const Entry& e, const std::string& why) {
    notes_.AddFor(ProcessOf(e),
                  absl::StrCat("communicator in row ", e.raw->row(), " ", why, "; it is left out"));
  }

  void JoinId(uint64_t id, std::map<uint32_t, Sequence>* sequences) {
    std::vector<Sequence*> longest_first;
    for (auto& [rank, sequence] : *sequences) {
      std::stable_sort(sequence.begin(), sequence.end(),
                       [](const Entry& a, const Entry& b) { return a.created < b.created; });
      longest_first.push_back(&sequence);
    }
    std::stable_sort(longest_first.begin(), longest_first.end(),
                     [](auto* a, auto* b) { return a->size() > b->size(); });
    std::vector<Instance> instances;
    for (const Sequence* sequence : longest_first) Place(*sequence, &instances);
    for (size_t i = 0; i < instances.size(); ++i) {
      made_.push_back({std::move(instances[i]), id, static_cast<int>(i), 0, false});
    }
  }

  // If every process takes part and the ranks are exactly 0 to n - 1, they are one communicator:
  // all of them together, or those that the processes made in the same place of their order.
  void JoinWithoutId(const std::map<uint32_t, Sequence>& by_ordinal) {
    Sequence all;
    for (const auto& [ordinal, same] : by_ordinal) all.insert(all.end(), same.begin(), same.end());
    if (all.empty() || MakeOne(all)) return;
    for (const auto& [ordinal, same] : by_ordinal) {
      if (same.size() == job_.processes.size() && MakeOne(same)) continue;
      for (const Entry& e : same) {
        LeaveOut(e, "cannot be told from others (this NCCL gives the profiler table no id)");
      }
    }
  }

  bool MakeOne(const Sequence& entries) {
    Instance instance;
    std::set<int> processes;
    for (const Entry& e : entries) {
      instance.by_rank[e.raw->rank()] = e;
      processes.insert(e.process);
    }
    if (instance.by_rank.size() != entries.size() || processes.size() != job_.processes.size() ||
        instance.by_rank.rbegin()->first + 1 != entries.size()) {
      return false;
    }
    instance.created = entries.front().created;
    made_.push_back({std::move(instance), 0, static_cast<int>(made_.size()), 0, false});
    return true;
  }

  // What one member's record names: its own rank, roots, peers of messages and of connections.
  void Named(const Entry& e, uint32_t* size) const {
    Raise(e.raw->rank(), size);
    for (const auto& op : e.raw->operations()) {
      if (op.peer() >= 0) Raise(static_cast<uint32_t>(op.peer()), size);
      if (op.root() >= 0) Raise(static_cast<uint32_t>(op.root()), size);
    }
    for (const auto& edge : ProcessOf(e).trace.edges()) {
      if (edge.foreign() || edge.communicator() != e.raw->row()) continue;
      Raise(edge.rank(), size);
      Raise(edge.peer(), size);
    }
  }

  void MeasureSize(UntoldCommunicator* u) const {
    uint32_t told = 0, named = 0;
    for (const auto& [rank, e] : u->instance.by_rank) {
      told = std::max(told, std::min(e.raw->n_ranks(), kMaxCommRanks));
      Named(e, &named);
    }
    u->size_known = told >= named && told != 0;
    u->n_ranks = std::max(told, named);
  }

  // A communicator in which the process has not had an operation yet: it tells nothing of itself.
  // It is the one that the others made in the same place of their order, if they are there under
  // their launcher's ranks, name this process's rank, and nobody else has it.
  void Adopt(const Entry& e) {
    const int rank = ProcessOf(e).job_rank;
    UntoldCommunicator* found = nullptr;
    for (UntoldCommunicator& u : made_) {
      bool fits = rank >= 0 && static_cast<uint32_t>(rank) < u.n_ranks &&
                  u.instance.by_rank.count(static_cast<uint32_t>(rank)) == 0;
      for (const auto& [other_rank, other] : u.instance.by_rank) {
        fits &= other.raw->ordinal() == e.raw->ordinal() && other.process != e.process &&
                ProcessOf(other).job_rank == static_cast<int>(other_rank);
      }
      if (!fits) continue;
      if (found != nullptr) return;
      found = &u;
    }
    if (found == nullptr) return;
    found->instance.by_rank[static_cast<uint32_t>(rank)] = e;
    notes_.AddFor(ProcessOf(e),
                  "has had no operation in its communicator, so its rank there is the launcher's");
  }

  const Job& job_;
  Notes& notes_;
  std::vector<UntoldCommunicator> made_;
};

}  // namespace

std::vector<UntoldCommunicator> JoinUntold(const Job& job, const std::vector<Entry>& entries,
                                           Notes* notes) {
  return Joiner(job, notes).Run(entries);
}

}  // namespace ringscope::model
