// Settings of the processes: NCCL_*, CUDA_* and what changes what a job does. What only names a run (ports, ids, hosts) is left
// out.
#include <absl/strings/match.h>

#include <set>
#include <string_view>

#include "analyzer/compare/compare.h"

namespace ringscope::compare {
namespace {

bool Matters(std::string_view name) {
  for (std::string_view own : {"NCCL_COMM_ID", "NCCL_HOSTID", "NCCL_DEBUG_FILE", "NCCL_TOPO_DUMP_FILE", "NCCL_GRAPH_DUMP_FILE"}) {
    if (name == own) return false;
  }
  for (std::string_view prefix :
       {"NCCL_", "TORCH_NCCL_", "CUDA_", "UCX_", "FI_", "OMP_NUM_THREADS", "SHARP_", "MLX5_", "PYTORCH_CUDA_ALLOC_CONF"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

// Of these it is known that they choose another path or switch something off.
bool ChangesThePath(std::string_view name) {
  for (std::string_view part : {"DISABLE",
                                "P2P",
                                "SHM",
                                "NVLS",
                                "ALGO",
                                "PROTO",
                                "IB_HCA",
                                "IFNAME",
                                "NET",
                                "GDR",
                                "NCHANNELS",
                                "NTHREADS",
                                "BUFFSIZE",
                                "CROSS_NIC",
                                "TOPO_FILE",
                                "GRAPH_FILE",
                                "COLLNET",
                                "PXN",
                                "GID",
                                "TC",
                                "SL",
                                "LAUNCH_BLOCKING",
                                "DEVICE_MAX_CONNECTIONS",
                                "QPS"}) {
    if (name.find(part) != name.npos) return true;
  }
  return false;
}

void Add(std::string_view name, const std::string& value, std::string subject, std::string source, std::vector<Fact>* facts) {
  if (!Matters(name)) return;
  Fact f;
  f.name = std::string(name);
  f.subject = std::move(subject);
  f.value = value;
  f.source = std::move(source);
  f.weight = ChangesThePath(name) ? Change::can_explain : Change::worth_a_look;
  f.explains = ChangesThePath(name) ? "It chooses another path, algorithm or resource." : "It may change what NCCL or CUDA does.";
  f.confirm = "The bad run with the good value, nothing else changed.";
  facts->push_back(std::move(f));
}

std::vector<Fact> Facts(const model::Job& job) {
  std::vector<Fact> facts;
  for (const model::Process& p : job.processes) {
    if (p.job_rank < 0) continue;
    Fact seen;  // the rank's environment is known, also when it sets nothing
    seen.name = "settings";
    seen.subject = RankSubject(p.job_rank);
    seen.value = "recorded";
    facts.push_back(std::move(seen));
    for (const auto& [name, value] : p.trace.process().environment())
      Add(name, value, RankSubject(p.job_rank), RecordSource(p), &facts);
  }
  if (!job.processes.empty()) return facts;
  std::set<std::string> names;
  for (const model::Setting& s : job.evidence.settings) {
    if (names.insert(s.name).second) Add(s.name, s.value, "", job.evidence.PlaceText(s.where), &facts);
  }
  return facts;
}

const RegisterFacts kRegister({Change::environment, "environment",
                               "give its traces, or a log with NCCL_DEBUG=INFO (subsystem ENV)", Facts});

}  // namespace
}  // namespace ringscope::compare
