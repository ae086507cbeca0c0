// Edges inside a host that run over the network, by the proxy steps in the records.
#include <absl/strings/str_cat.h>

#include <map>
#include <set>

#include "analyzer/compare/compare.h"

namespace ringscope::compare {
namespace {

std::vector<Fact> Facts(const model::Job& job) {
  std::vector<Fact> facts;
  std::map<std::pair<int, int>, int> pairs;  // in one host: process of the sender
  for (const model::Edge& e : job.edges) {
    const auto& members = job.communicators[static_cast<size_t>(e.communicator)].members;
    const model::Member &from = members[static_cast<size_t>(e.from)], &to = members[static_cast<size_t>(e.to)];
    if (!from.has_record() || !to.has_record() || from.job_rank < 0 || to.job_rank < 0) continue;
    if (job.processes[static_cast<size_t>(from.process)].host == job.processes[static_cast<size_t>(to.process)].host)
      pairs.emplace(std::make_pair(from.job_rank, to.job_rank), from.process);
  }
  for (const model::Process& p : job.processes) {
    if (p.job_rank < 0 || p.trace.communicators().empty()) continue;
    Fact f;
    f.name = "network edges inside the host";
    f.subject = RankSubject(p.job_rank);
    std::string to;
    for (const auto& [pair, process] : pairs) {
      if (pair.first == p.job_rank) absl::StrAppend(&to, to.empty() ? "to rank " : ", ", pair.second);
    }
    f.value = to.empty() ? "none" : to;
    f.source = RecordSource(p);
    f.weight = Change::can_explain;
    f.explains = "Ranks of one host that talk over the network use neither NVLink nor shared memory.";
    f.confirm =
        "NCCL_DEBUG=INFO: \"via NET\" between ranks of one host; NCCL_P2P_DISABLE, NCCL_SHM_DISABLE, /dev/shm, container "
        "namespaces.";
    facts.push_back(std::move(f));
  }
  return facts;
}

const RegisterFacts kRegister({Change::transport, "network edges inside hosts", "give its traces or flight files", Facts});

}  // namespace
}  // namespace ringscope::compare
