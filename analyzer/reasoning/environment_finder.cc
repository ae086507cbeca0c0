// NCCL_* settings that differ between hosts or ranks, where ranks then disagree on what to send.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <map>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/nccl_text.h"

namespace ringscope::reasoning {
namespace {

// Names that may differ without harm: where to log, which device or interface is whose.
bool MayDiffer(std::string_view name) {
  for (const char* part : {"NCCL_DEBUG", "_IFNAME", "NCCL_IB_HCA", "NCCL_COMM_ID", "_FILE", "NCCL_IB_GID_INDEX", "NCCL_HOSTID",
                           "PLUGIN", "_RAS_", "NCCL_LOCAL"}) {
    if (Contains(name, part)) return true;
  }
  return !name.starts_with("NCCL_");
}

// Who speaks: a process, else a rank, else a host.
std::string Voice(const model::Speaker& by) {
  if (by.host.empty() && by.pid < 0 && by.rank < 0) return "";
  return by.pid >= 0 ? absl::StrCat(by.host, ":", by.pid) : by.rank >= 0 ? absl::StrCat("rank ", by.rank) : by.host;
}

struct Difference {
  std::string name;
  std::map<std::string, const model::Setting*> values;  // value -> one that has it
  std::set<std::string> without;                        // hosts that speak and do not name it
};

// Ranks print what is set for them once; several processes of one host have the same environment unless somebody means it.
std::vector<Difference> Differences(const model::Job& job) {
  std::map<std::string, std::map<std::string, const model::Setting*>> by_name;
  std::map<std::string, std::set<std::string>> hosts_of;
  std::set<std::string> hosts;
  for (const model::Setting& s : job.evidence.settings) {
    if (MayDiffer(s.name) || Voice(s.by).empty()) continue;
    by_name[s.name].emplace(s.value, &s);
    hosts_of[s.name].insert(s.by.host);
  }
  // Only a host whose start was logged would have named its settings: it printed its NCCL version or its bootstrap line.
  for (const model::Version& v : job.evidence.versions) {
    if (v.component == "nccl" && v.by.pid >= 0 && !v.by.host.empty()) hosts.insert(v.by.host);
  }
  for (const model::Event* event : EventsOf(job, {"nccl-bootstrap-using"})) {
    if (!event->by.host.empty()) hosts.insert(event->by.host);
  }
  std::vector<Difference> found;
  for (const auto& [name, values] : by_name) {
    Difference d;
    d.name = name;
    d.values = values;
    std::set_difference(hosts.begin(), hosts.end(), hosts_of[name].begin(), hosts_of[name].end(),
                        std::inserter(d.without, d.without.end()));
    if (d.values.size() > 1 || !d.without.empty()) found.push_back(std::move(d));
  }
  return found;
}

std::vector<Candidate> FindEnvironment(const model::Job& job) {
  const std::vector<Difference> differences = Differences(job);
  if (differences.empty()) return {};
  const auto errors = EventsOf(job, {"nccl-ib-collective-mismatch", "nccl-ib-incorrect-receive", "nccl-message-truncated",
                                     "nccl-socket-truncated", "nccl-internal-inconsistency", "nccl-wrong-magic"});
  if (errors.empty()) return {};  // a difference alone is no reason of anything
  std::vector<std::string> names;
  for (const Difference& d : differences) names.push_back(d.name);
  Candidate candidate = Say(Kind::misconfigured, Confidence::probable, Layer::kConfiguration,
                            absl::StrCat("The environment differs between ranks: ", absl::StrJoin(names, ", "),
                                         "; ranks that plan differently disagree on the sizes they exchange"),
                            "NC-04");
  candidate.stops_job = true;
  candidate.state = State::crashed;
  Finding& finding = candidate.finding;
  for (const Difference& d : differences) {
    for (const auto& [value, setting] : d.values) CiteSetting(job, *setting, &finding);
    if (!d.without.empty() && !d.values.empty()) {
      Cite(job, d.values.begin()->second->where,
           absl::StrCat(d.name, " is not set on ", absl::StrJoin(d.without, ", "), ", whose start was logged too"), &finding);
    }
  }
  CiteAll(job, errors, 3, &finding);
  for (const model::Version* v : VersionsOf(job, "nccl")) CiteVersion(job, *v, &finding);
  OnlyWaited(errors, &finding);
  finding.set_refuted_by("the same error with one environment on all ranks; then the program's own sizes differ");
  SetNext(
      "Give all ranks one environment and one NCCL (mpirun -x, DeepSpeed's .deepspeed_env, srun --export) and compare what each "
      "process has.",
      "tr '\\0' '\\n' < /proc/PID/environ | grep NCCL | sort  # on every host", &finding);
  return {candidate};
}

const Register kRegister("environment", FindEnvironment);

}  // namespace
}  // namespace ringscope::reasoning
