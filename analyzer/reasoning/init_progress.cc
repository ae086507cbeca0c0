#include "analyzer/reasoning/init_progress.h"

#include "analyzer/reasoning/nccl_text.h"

namespace ringscope::reasoning {

std::set<int> InitProgress::StartedRanks() const {
  std::set<int> ranks;
  for (const auto& [rank, entry] : started) ranks.insert(rank);
  return ranks;
}

bool InitProgress::Uneven() const {
  for (const auto& [host, count] : per_host) {
    if (count != per_host.begin()->second) return true;
  }
  return false;
}

InitProgress LookAtInit(const model::Job& job) {
  InitProgress p;
  const int world = WorldSize(job);
  // The last communicator of the job's size whose start was seen: an earlier run's came up and ended.
  std::string communicator;
  for (const model::LogRank& r : job.evidence.log_ranks) {
    if (!r.split && !r.noted && r.n_ranks == world && r.started.known()) communicator = r.has_comm_id ? r.communicator : "";
  }
  std::map<int32_t, std::set<int>> in_file;
  for (const model::LogRank& r : job.evidence.log_ranks) {
    if (r.split || r.noted || r.n_ranks != world) continue;
    if (!communicator.empty() && r.communicator != communicator) continue;
    if (r.started.known()) {
      p.n_ranks = world;
      if (p.started.emplace(r.rank, &r).second && !r.by.host.empty()) ++p.per_host[r.by.host];
      in_file[r.started.file].insert(r.rank);
      if (p.function.empty()) p.function = r.name;
    }
    if (r.completed.known()) p.completed.emplace(r.rank, &r);
    p.aborted |= r.aborted;
  }
  for (const auto& [file, ranks] : in_file) p.ranks_in_one_file = std::max(p.ranks_in_one_file, ranks.size());
  return p;
}

}  // namespace ringscope::reasoning
