// Two ranks on one GPU.
#include <absl/strings/str_cat.h>

#include <map>
#include <set>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/nccl_text.h"

namespace ringscope::reasoning {
namespace {

constexpr const char* kRemedy =
    "Give every rank its own GPU: torch.cuda.set_device(int(os.environ['LOCAL_RANK'])) before the first communicator, or one "
    "device a process in "
    "CUDA_VISIBLE_DEVICES; no more processes on a host than it has GPUs.";
constexpr const char* kCommand = "env | grep -E 'CUDA_VISIBLE_DEVICES|LOCAL_RANK|SLURM_LOCALID'; nvidia-smi -L";

// Containers and cloned images share host names. Two machines under one name look like a machine each of whose GPUs is used
// twice; a wrong mapping puts several ranks on one GPU and leaves others idle, or has NCCL_HOSTID tell the machines apart.
bool OneNameForSeveralMachines(const model::Job& job) {
  std::set<std::string> ids;
  for (const model::Setting& s : job.evidence.settings) {
    if (s.name == "NCCL_HOSTID") ids.insert(s.value);
  }
  if (ids.size() > 1) return true;
  std::map<std::pair<std::string, model::BusId>, std::set<int>> users;
  std::map<std::string, std::pair<int, int>> shared;  // host -> GPUs, those of them with several ranks
  for (const model::LogRank& r : job.evidence.log_ranks) {
    if (!r.noted && !r.split && r.bus_id) users[{r.by.host, *r.bus_id}].insert(r.rank);
  }
  for (const auto& [gpu, ranks] : users) {
    ++shared[gpu.first].first;
    shared[gpu.first].second += ranks.size() > 1;
  }
  for (const auto& [host, counts] : shared) {
    if (counts.first > 1 && counts.second == counts.first) return true;
  }
  return false;
}

std::vector<Candidate> FindDuplicate(const model::Job& job) {
  const auto refused = EventsOf(job, {"nccl-duplicate-gpu"});
  if (!refused.empty()) {
    Candidate candidate = Say(Kind::misconfigured, Confidence::established, Layer::kProgram, "Two ranks use the same GPU",
                              "UC-09", "nccl-duplicate-gpu");
    Finding& finding = candidate.finding;
    std::set<int> ranks;
    for (const model::Event* event : refused) {
      for (const char* side : {"a", "b"}) {
        if (const int rank = RankField(*event, side); rank >= 0) ranks.insert(rank);
      }
    }
    if (const std::string_view bus = refused.front()->Field("bus"); !bus.empty()) {
      std::string text(bus);
      if (const auto id = model::ParseNcclBusId(bus)) text = absl::StrCat(model::BusIdText(*id), " (busId ", text, ")");
      finding.set_title(absl::StrCat("Duplicate GPU: ranks ", RankField(*refused.front(), "a"), " and ",
                                     RankField(*refused.front(), "b"), " both use GPU ", text));
    }
    for (const int rank : ranks) finding.mutable_who()->add_ranks(rank);
    candidate.stops_job = true;
    candidate.state = State::init_failure;
    CiteAll(job, refused, 3, &finding);
    CiteAll(job, EventsOf(job, {"hard-coded-device"}), 2, &finding);
    finding.set_refuted_by("the ranks named print different bus ids in NCCL's init lines");
    SetNext(kRemedy, kCommand, &finding);
    return {candidate};
  }
  if (OneNameForSeveralMachines(job)) return {};
  // From 2.30 on NCCL may accept it: then it only shows in the init lines.
  std::map<std::pair<std::string, model::BusId>, const model::LogRank*> users;
  const int world = WorldSize(job);
  for (const model::LogRank& r : job.evidence.log_ranks) {
    if (r.noted || r.split || r.n_ranks != world || !r.bus_id || r.by.host.empty()) continue;
    const auto [it, fresh] = users.emplace(std::make_pair(r.by.host, *r.bus_id), &r);
    const model::LogRank& first = *it->second;
    if (!first.completed.known() || !r.completed.known()) continue;  // not accepted yet
    if (fresh || first.rank == r.rank || first.communicator != r.communicator || !r.has_comm_id) continue;
    Candidate candidate = Say(
        Kind::misconfigured, Confidence::probable, Layer::kProgram,
        absl::StrCat("Ranks ", first.rank, " and ", r.rank, " use the same GPU ", model::BusIdText(*r.bus_id), " on ", r.by.host),
        "UC-09");
    candidate.order = Class::kPlan;  // NCCL took it: slow, not broken
    candidate.finding.mutable_who()->add_ranks(first.rank);
    candidate.finding.mutable_who()->add_ranks(r.rank);
    for (const model::LogRank* one : {&first, &r}) {
      Cite(job, one->started.known() ? one->started : one->completed,
           absl::StrCat("rank ", one->rank, " busId ", model::BusIdText(*one->bus_id)), &candidate.finding);
    }
    candidate.finding.set_refuted_by("the GPU is partitioned (MIG) and the ranks have a partition each");
    SetNext(kRemedy, kCommand, &candidate.finding);
    return {candidate};
  }
  return {};
}

const Register kRegister("duplicate_gpu", FindDuplicate);

}  // namespace
}  // namespace ringscope::reasoning
