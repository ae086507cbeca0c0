// Where the job ran: hosts differ between any two allocations.
#include <set>

#include "analyzer/compare/compare.h"

namespace ringscope::compare {
namespace {

std::vector<Fact> Facts(const model::Job& job) {
  std::vector<Fact> facts;
  std::set<int> told;
  for (const model::Process& p : job.processes) {
    if (p.job_rank >= 0 && told.insert(p.job_rank).second)
      facts.push_back({"host", RankSubject(p.job_rank), p.host, p.source, 0, Change::harmless, "", ""});
  }
  for (const model::LogRank& r : job.evidence.log_ranks) {
    if (r.split || r.noted || r.rank < 0 || r.by.host.empty() || !told.insert(r.rank).second) continue;
    facts.push_back({"host", RankSubject(r.rank), r.by.host, job.evidence.PlaceText(r.started), 0, Change::harmless, "", ""});
  }
  return facts;
}

const RegisterFacts kRegister({Change::place, "hosts", "give its traces or NCCL log", Facts, /*absence_counts=*/false});

}  // namespace
}  // namespace ringscope::compare
