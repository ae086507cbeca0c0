// Ranks that run the same call in different ways: by different algorithms or protocols.
//
// NCCL does not choose at run time what ranks have to agree on: each rank computes the choice from what all told each other when
// the communicator was made, and takes it for granted that the others come to the same. Where a rank differs (it alone fell back
// from NVLS, 2.27.3 to 2.29.1; another topology, environment, CPU), the ranks wait for data that nobody sends: all have started,
// nothing moves, and where it stands still is no sign of who differs. The host called the same everywhere: this is no mismatch of
// calls.
//
// Only operations that did not finish are looked at: one that ended everywhere was run alike, whatever the records say.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/reasoning/finder.h"
#include "analyzer/reasoning/nccl_text.h"
#include "analyzer/reasoning/op_text.h"

namespace ringscope::reasoning {
namespace {

using model::Communicator;
using model::Member;
using model::Op;

using Way = std::pair<trace::Algo, trace::Proto>;
struct Runner {
  const Member* member;
  const Op* op;
};
using Camps = std::map<Way, std::vector<Runner>>;

constexpr int kSilentFallbackSince = 22703, kSilentFallbackUntil = 22902;  // NCCL_NVLS_ENABLE in NCCL's documentation

std::string WayText(const Way& way) {
  return absl::StrCat(trace::Algo_Name(way.first), way.second == trace::PROTO_UNKNOWN ? "" : "/",
                      way.second == trace::PROTO_UNKNOWN ? "" : trace::Proto_Name(way.second));
}
bool OfSwitches(const Way& way) { return way.first == trace::NVLS || way.first == trace::NVLS_TREE; }

// The lowest position at which ranks differ; empty: none. `*position` is it.
Camps FirstDifference(const Communicator& communicator, uint64_t* position) {
  std::map<uint64_t, std::vector<Runner>> at;
  for (const Member& member : communicator.members) {
    for (const Op& op : member.ops) {
      if (op.p2p() || op.finished == model::Truth::kYes || op.raw.algo() == trace::ALGO_UNKNOWN) continue;
      at[op.position()].push_back({&member, &op});
    }
  }
  for (const auto& [where, runners] : at) {
    Camps camps;
    const auto& first = runners[0].op->raw;
    bool same_call = true;
    for (const Runner& r : runners) {
      camps[{r.op->raw.algo(), r.op->raw.proto()}].push_back(r);
      same_call &=
          r.op->raw.func() == first.func() && r.op->raw.count() == first.count() && r.op->raw.datatype() == first.datatype();
    }
    if (camps.size() < 2) continue;
    // Other calls are run in other ways: mismatch_finder's business.
    if (!same_call) return {};
    *position = where;
    return camps;
  }
  return {};
}

std::set<int> JobRanks(const std::vector<Runner>& runners) {
  std::set<int> ranks;
  for (const Runner& r : runners) {
    if (r.member->job_rank >= 0) ranks.insert(r.member->job_rank);
  }
  return ranks;
}

// A release that falls back rank by rank, if one is known to run.
const model::Version* SilentRelease(const model::Job& job) {
  for (const model::Version* version : NcclVersions(job)) {
    const int release = NcclRelease(version->version);
    if (release >= kSilentFallbackSince && release < kSilentFallbackUntil) return version;
  }
  return nullptr;
}

Candidate Describe(const model::Job& job, const Communicator& communicator, uint64_t position, const Camps& camps) {
  size_t all = 0;
  const Camps::value_type* most = nullptr;
  for (const auto& camp : camps) {
    all += camp.second.size();
    if (most == nullptr || camp.second.size() > most->second.size()) most = &camp;
  }
  // NVLS needs all ranks: whoever does without it is the one that differs, be it alone or not.
  const bool nvls = std::any_of(camps.begin(), camps.end(), [](const auto& camp) { return OfSwitches(camp.first); });
  const bool majority = nvls || 2 * most->second.size() > all;
  std::set<int> odd;
  std::string odd_way, usual_way;
  for (const auto& [way, runners] : camps) {
    const bool usual = nvls ? OfSwitches(way) : way == most->first;
    (usual ? usual_way : odd_way) = WayText(way);
    if (!usual || !majority) odd.merge(JobRanks(runners));
  }
  const model::Version* release = nvls ? SilentRelease(job) : nullptr;
  Candidate candidate;
  candidate.order = Class::kMismatch;
  candidate.communicator = communicator.index;
  candidate.position = position;
  candidate.stops_job = true;
  Finding& finding = candidate.finding;
  finding.set_kind(Kind::collective_mismatch);
  finding.set_confidence(majority ? Confidence::established : Confidence::probable);
  const Runner& example = most->second[0];
  finding.set_title(
      absl::StrCat("Ranks run ", OpText(example.op->raw), " (", PlaceText(communicator, position), ") by different algorithms: ",
                   majority && !odd.empty() ? absl::StrCat(RanksText(odd), " by ", odd_way, ", the others by ", usual_way)
                                            : absl::StrCat("some by ", odd_way, ", some by ", usual_way),
                   nvls ? "; NVLink SHARP is not set up on all of them" : "; they planned the communicator differently"));
  finding.mutable_cause()->set_id(nvls ? "FB-04" : "NC-04");
  finding.mutable_cause()->set_confidence(release != nullptr || !nvls ? finding.confidence() : Confidence::probable);
  if (majority) AddRanks(odd, finding.mutable_who()->mutable_ranks());
  finding.mutable_who()->add_communicators(communicator.Label());
  for (const auto& [way, runners] : camps) {
    for (size_t i = 0; i < runners.size() && i < 2; ++i) {
      *finding.add_evidence() =
          MemberEvidence(job, *runners[i].member, runners[i].op->raw.row(),
                         absl::StrCat("operation ", position, ": ", OpText(runners[i].op->raw), " by ", WayText(way)));
    }
  }
  if (release != nullptr) CiteVersion(job, *release, &finding);
  std::set<int> waiting;
  for (const Member& member : communicator.members) {
    if (member.job_rank >= 0 && odd.count(member.job_rank) == 0) waiting.insert(member.job_rank);
  }
  if (majority) AddRanks(waiting, finding.mutable_collateral()->mutable_ranks());
  finding.set_refuted_by("the same algorithm and protocol for this operation in the records of all ranks");
  if (nvls) {
    finding.mutable_next()->set_text(
        "See why NVLS was refused there (the fabric's state and the NVLinks of that GPU), and repair it; until then "
        "NCCL_NVLS_ENABLE=0 on all ranks, or NCCL 2.29.2 and later, which fails with a message instead of hanging.");
    finding.mutable_next()->set_command(
        "nvidia-smi -q | grep -A4 Fabric; nvidia-smi nvlink -s; grep -h 'nvls channels' <NCCL logs>");
  } else {
    finding.mutable_next()->set_text(
        "Compare what the ranks planned from: NCCL's version, environment and topology file, CPU type, number of adapters "
        "(NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH,TUNING).");
    finding.mutable_next()->set_command("grep -hE 'NCCL version|set by environment|coll channels' <NCCL logs> | sort | uniq -c");
  }
  return candidate;
}

std::vector<Candidate> Find(const model::Job& job) {
  std::vector<Candidate> found;
  for (const Communicator& communicator : job.communicators) {
    uint64_t position = 0;
    const Camps camps = FirstDifference(communicator, &position);
    if (!camps.empty()) found.push_back(Describe(job, communicator, position, camps));
  }
  return found;
}

const Register kRegister("algorithm", Find);

}  // namespace
}  // namespace ringscope::reasoning
