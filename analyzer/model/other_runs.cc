// Runs without a job id that lie in one directory (step 1 of build.h).
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "analyzer/model/build.h"
#include "analyzer/model/ranks_text.h"

namespace ringscope::model {

// Processes that hold different ranks of one communicator are of one run. Two such groups that both
// hold the same rank of a job are two runs: a job has each rank once. Whatever cannot be proven so
// stays.
void DropOtherRuns(std::vector<Process>* processes, Notes* notes) {
  const size_t n = processes->size();
  std::vector<size_t> root(n);
  for (size_t i = 0; i < n; ++i) root[i] = i;
  const auto find = [&](size_t i) {
    while (root[i] != i) i = root[i] = root[root[i]];
    return i;
  };
  const auto nameless = [](const Process& p) {
    return p.trace.has_process() && p.trace.process().job_id().empty();
  };
  std::map<std::pair<uint64_t, uint32_t>, std::map<uint32_t, size_t>> holders;
  for (size_t i = 0; i < n; ++i) {
    if (!nameless((*processes)[i])) continue;
    for (const auto& c : (*processes)[i].trace.communicators()) {
      if (c.comm_id() == 0 || c.n_ranks() < 2) continue;
      auto& ranks = holders[{c.comm_id(), c.n_ranks()}];
      // The same rank of it a second time: an id that repeats, which proves nothing.
      if (!ranks.emplace(c.rank(), i).second) continue;
      root[find(i)] = find(ranks.begin()->second);
    }
  }
  struct Run {
    std::set<int> ranks;
    std::vector<size_t> members;
    int64_t newest = 0;
  };
  std::map<size_t, Run> runs;
  for (size_t i = 0; i < n; ++i) {
    const Process& p = (*processes)[i];
    if (!nameless(p)) continue;
    Run& run = runs[find(i)];
    run.members.push_back(i);
    run.newest = std::max(run.newest, p.last_sign_ns);
    if (p.job_rank >= 0) run.ranks.insert(p.job_rank);
  }
  std::vector<const Run*> order;
  for (const auto& [first, run] : runs) {
    if (run.members.size() > 1) order.push_back(&run);  // a process alone proves nothing
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Run* a, const Run* b) { return a->newest > b->newest; });
  std::set<int> held;
  std::set<size_t> drop;
  for (const Run* run : order) {
    const bool again = std::any_of(run->ranks.begin(), run->ranks.end(),
                                   [&](int rank) { return held.count(rank) > 0; });
    if (!again) {
      held.insert(run->ranks.begin(), run->ranks.end());
      continue;
    }
    drop.insert(run->members.begin(), run->members.end());
    notes->Add(absl::StrCat(
        "records of another run without a job id were left out (",
        RanksText(std::vector<int>(run->ranks.begin(), run->ranks.end())),
        "): it shares no communicator with the newest one and holds the same ranks. Set "
        "RINGSCOPE_JOB to keep runs apart"));
  }
  if (drop.empty()) return;
  std::vector<Process> kept;
  for (size_t i = 0; i < n; ++i) {
    if (drop.count(i) == 0) kept.push_back(std::move((*processes)[i]));
  }
  *processes = std::move(kept);
}

}  // namespace ringscope::model
