// Job ranks: RANK and the like where every process has its own; else the rank in the communicator
// that spans the job.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "analyzer/model/build.h"

namespace ringscope::model {
namespace {

class JobRanks {
 public:
  explicit JobRanks(Job* job) : job_(*job) {}

  void Run() {
    for (const Process& p : job_.processes) {
      if (p.trace.has_process())
        job_.world_size = std::max(job_.world_size, p.trace.process().world_size());
    }
    for (const Communicator& c : job_.communicators)
      job_.world_size = std::max(job_.world_size, c.n_ranks);
    FindSpanning();
    if (LauncherRanksUsable()) {
      for (Communicator& c : job_.communicators) {
        for (Member& m : c.members) {
          if (m.has_record()) m.job_rank = ProcessOf(m).job_rank;
        }
      }
      if (spanning_ != nullptr) FillFrom(*spanning_);
    } else {
      for (Process& p : job_.processes) p.job_rank = -1;
      if (spanning_ != nullptr) RanksOfSpanning();
    }
    for (Communicator& c : job_.communicators) TellMembers(&c);
    FindMissing();
    for (Communicator& c : job_.communicators) GuessAbsentMembers(&c);
  }

 private:
  Process& ProcessOf(const Member& m) { return job_.processes[static_cast<size_t>(m.process)]; }

  // False when a rank is missing or given twice, or when a process holds several ranks of one
  // communicator.
  bool LauncherRanksUsable() {
    std::set<int> seen;
    for (const Process& p : job_.processes) {
      if (p.job_rank < 0) {
        if (p.trace.communicators_size() > 0) return false;
        continue;
      }
      if (!seen.insert(p.job_rank).second) return false;
    }
    for (const Communicator& c : job_.communicators) {
      std::set<int> holders;
      for (const Member& m : c.members) {
        if (m.has_record() && !holders.insert(m.process).second) return false;
      }
    }
    return true;
  }

  // The largest communicator, the first of equals, if it is as large as the job or every process
  // has a part in it.
  void FindSpanning() {
    for (Communicator& c : job_.communicators) {
      if (spanning_ == nullptr || c.n_ranks > spanning_->n_ranks) spanning_ = &c;
    }
    if (spanning_ == nullptr || spanning_->n_ranks == job_.world_size) return;
    std::set<int> holders;
    for (const Member& m : spanning_->members) {
      if (m.has_record()) holders.insert(m.process);
    }
    for (const Process& p : job_.processes) {
      if (p.trace.communicators_size() > 0 && holders.count(p.index) == 0) spanning_ = nullptr;
      if (spanning_ == nullptr) return;
    }
  }

  // Launchers give the ranks of the spanning communicator in nearly every job. Where all known
  // members agree on that, the unknown ones have their own number too.
  void FillFrom(Communicator& spanning) {
    bool any = false;
    for (const Member& m : spanning.members) {
      if (m.job_rank < 0) continue;
      if (m.job_rank != m.rank) return;
      any = true;
    }
    if (!any || spanning.n_ranks != job_.world_size) return;
    for (Member& m : spanning.members) m.job_rank = m.rank;
  }

  void RanksOfSpanning() {
    std::vector<std::vector<Member*>> of_process(job_.processes.size());
    for (Member& m : spanning_->members) {
      m.job_rank = m.rank;
      if (m.has_record()) of_process[static_cast<size_t>(m.process)].push_back(&m);
    }
    for (size_t i = 0; i < of_process.size(); ++i) {
      if (of_process[i].size() == 1) job_.processes[i].job_rank = of_process[i][0]->rank;
    }
    for (Communicator& c : job_.communicators) {
      if (&c == spanning_) continue;
      std::vector<std::vector<Member*>> parts(job_.processes.size());
      for (Member& m : c.members) {
        if (m.has_record()) parts[static_cast<size_t>(m.process)].push_back(&m);
      }
      for (size_t i = 0; i < parts.size(); ++i) MatchPart(of_process[i], parts[i]);
    }
  }

  // Which of a process's job ranks a member of a smaller communicator is: the one that uses the
  // same stream; else the one whose calls come from the same thread, where each has its own; else
  // by order, where the process takes part with all.
  void MatchPart(const std::vector<Member*>& whole, const std::vector<Member*>& part) {
    if (whole.size() == 1) {
      for (Member* m : part) m->job_rank = whole[0]->job_rank;
      return;
    }
    for (Member* m : part) {
      const auto by_stream =
          Unique(whole, *m, [](const trace::Operation& op) { return op.stream(); });
      const auto by_thread =
          Unique(whole, *m, [](const trace::Operation& op) { return uint64_t{op.thread()} + 1; });
      if (by_stream) {
        m->job_rank = *by_stream;
      } else if (by_thread) {
        m->job_rank = *by_thread;
      }
    }
    const bool none =
        std::all_of(part.begin(), part.end(), [](auto* m) { return m->job_rank < 0; });
    if (none && part.size() == whole.size()) {
      for (size_t k = 0; k < part.size(); ++k) part[k]->job_rank = whole[k]->job_rank;
    }
  }

  template <typename Attribute>
  static std::optional<int> Unique(const std::vector<Member*>& whole, const Member& m,
                                   Attribute attribute) {
    const auto values = [&](const Member& member) {
      std::set<uint64_t> out;
      for (const auto& op : member.raw->operations()) {
        if (attribute(op) != 0) out.insert(attribute(op));
      }
      return out;
    };
    const std::set<uint64_t> mine = values(m);
    std::optional<int> found;
    for (const Member* w : whole) {
      const std::set<uint64_t> theirs = values(*w);
      const bool common =
          std::any_of(mine.begin(), mine.end(), [&](uint64_t v) { return theirs.count(v) > 0; });
      if (!common) continue;
      if (found) return std::nullopt;
      found = w->job_rank;
    }
    return found;
  }

  // PyTorch tells the ranks of a group's members.
  static void TellMembers(Communicator* c) {
    for (const Member& m : c->members) {
      if (m.raw == nullptr || m.raw->job_ranks_size() != c->n_ranks) continue;
      for (Member& other : c->members) {
        const int rank = m.raw->job_ranks(other.rank);
        if (other.job_rank < 0 && rank >= 0 && rank < kMaxWorld) other.job_rank = rank;
      }
      return;
    }
  }

  void FindMissing() {
    std::vector<bool> have(static_cast<size_t>(std::clamp(job_.world_size, 0, kMaxWorld)), false);
    bool any = false;
    const auto mark = [&](int rank) {
      if (rank < 0 || rank >= static_cast<int>(have.size())) return;
      have[static_cast<size_t>(rank)] = true;
      any = true;
    };
    for (const Process& p : job_.processes) mark(p.job_rank);
    for (const Communicator& c : job_.communicators) {
      for (const Member& m : c.members) {
        if (m.has_record()) mark(m.job_rank);
      }
    }
    if (!any) return;
    for (size_t r = 0; r < have.size(); ++r) {
      if (!have[r]) job_.missing_job_ranks.push_back(static_cast<int>(r));
    }
  }

  // A member without a record is one of the ranks without a record: the only one, or the one that
  // continues an even spacing which all the known members share (groups are nearly always cut that
  // way).
  void GuessAbsentMembers(Communicator* c) {
    const std::vector<int>& missing = job_.missing_job_ranks;
    if (missing.empty()) return;
    const Member* first = nullptr;
    const Member* second = nullptr;
    for (const Member& m : c->members) {
      if (m.job_rank < 0) continue;
      (first == nullptr ? first : second) = &m;
      if (second != nullptr) break;
    }
    int step = 0;
    if (second != nullptr &&
        (second->job_rank - first->job_rank) % (second->rank - first->rank) == 0) {
      step = (second->job_rank - first->job_rank) / (second->rank - first->rank);
      for (const Member& m : c->members) {
        if (m.job_rank >= 0 && m.job_rank != first->job_rank + (m.rank - first->rank) * step)
          step = 0;
      }
    }
    for (Member& m : c->members) {
      if (m.job_rank >= 0 || m.has_record()) continue;
      if (missing.size() == 1) {
        m.job_rank = missing[0];
      } else if (step > 0) {
        const int64_t rank = first->job_rank + int64_t{m.rank - first->rank} * step;
        if (rank >= 0 &&
            std::binary_search(missing.begin(), missing.end(), static_cast<int>(rank))) {
          m.job_rank = static_cast<int>(rank);
        }
      }
    }
  }

  Job& job_;
  Communicator* spanning_ = nullptr;
};

}  // namespace

void AssignJobRanks(Job* job, Notes*) { JobRanks(job).Run(); }

}  // namespace ringscope::model
