// CUDA errors that programs print, where no kernel log names the fault: what they prove, which is little, and what to collect.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <re2/re2.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "analyzer/reasoning/gpu_faults.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/stamp_order.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kMoment = 5 * kSecond;  // members of one NVLink domain report within about a second
constexpr size_t kDomain = 3;
constexpr size_t kMostCited = 8;

// Who says so: rank, else what the line itself calls its writer ("task=162"), else process, else the file.
std::string Member(const model::Event& e) {
  if (e.by.rank >= 0) return absl::StrCat("rank ", e.by.rank);
  static const RE2& task = *new RE2(R"(\b(?:task|worker|process|rank)[=: ](\d{1,7})\b)");
  std::string number;
  if (RE2::PartialMatch(e.text, task, &number)) return absl::StrCat("task ", number);
  if (e.by.pid >= 0) return absl::StrCat("pid ", e.by.pid, " ", e.by.host);
  return absl::StrCat(e.by.host, "#", e.where.file);
}

// The first line of each member.
std::vector<const model::Event*> Members(const std::vector<const model::Event*>& events) {
  std::map<std::string, const model::Event*> first;
  std::vector<const model::Event*> members;
  for (const model::Event* e : events) {
    if (first.emplace(Member(*e), e).second) members.push_back(e);
  }
  return members;
}

// Whether these lines fall into one moment; lines without comparable times do not tell.
bool AtOnce(const std::vector<const model::Event*>& members) {
  size_t near = 0;
  for (const model::Event* e : members) {
    const auto ns = NsBetween(members[0]->time, e->time, members[0]->by.host == e->by.host);
    near += ns.has_value() && std::abs(*ns) <= kMoment;
  }
  return near >= kDomain;
}

void CiteContext(const model::Job& job, Finding* finding) {
  CiteAll(job, EventsOf(job, {"note-nvlink-domain"}), 2, finding);
  CiteAll(job, EventsOf(job, {"kernel-log-unreadable"}), 1, finding);
  for (const model::ToolVerdict& verdict : job.evidence.hardware.verdicts) {
    if (verdict.test == "counters compared") Cite(job, verdict.where, verdict.quote, finding);
  }
}

// The member that spoke clearly before all others: a second on one host, more than the clocks may differ between two.
const model::Event* FirstOf(const model::Job& job, const std::vector<const model::Event*>& members) {
  if (members.size() == 1) return members[0];
  const model::Event* first = nullptr;
  for (const model::Event* e : members) {
    bool earliest = true;
    for (const model::Event* other : members) {
      if (other == e) continue;
      const auto ns = NsBetween(e->time, other->time, e->by.host == other->by.host);
      const bool one_log = e->where.file == other->where.file && e->by.host == other->by.host;
      earliest &= ns.has_value() && *ns > kSecond && SurelyBefore(job, {e->time, e->by.host}, {other->time, other->by.host}, one_log);
    }
    if (earliest) first = e;
  }
  return first;
}

Candidate Make(const model::Job& job, Kind::Value kind, Confidence::Value confidence, Layer layer, std::string title,
               std::string_view cause, const std::vector<const model::Event*>& members) {
  Candidate candidate = Say(kind, confidence, layer, std::move(title), cause, members[0]->signature);
  CiteAll(job, members, kMostCited, &candidate.finding);
  candidate.when = members[0]->time;
  candidate.stops_job = true;
  candidate.state = State::crashed;
  return candidate;
}

std::optional<Candidate> Nvlink(const model::Job& job) {
  const auto contained = Members(EventsOf(job, {"cuda-contained"}));
  const auto uncorrectable = Members(EventsOf(job, {"cuda-nvlink-uncorrectable"}));
  if (contained.empty() && uncorrectable.empty()) return std::nullopt;
  std::vector<const model::Event*> all = contained;
  all.insert(all.end(), uncorrectable.begin(), uncorrectable.end());
  const auto members = Members(all);
  const auto domains = EventsOf(job, {"note-nvlink-domain"});
  if (AtOnce(members)) {
    Candidate c = Make(
        job, Kind::error_reported, Confidence::possible, Layer::kHardware,
        absl::StrCat(members.size(), contained.empty() ? " members" : " members report CUDA_ERROR_CONTAINED and",
                     contained.empty() ? " of the job report an uncorrectable NVLink error" : " lost peer memory over NVLink",
                     " within a moment: a fault of the NVLink domain they share, not of one rank"),
        "HW-04", members);
    CiteContext(job, &c.finding);
    c.finding.set_refuted_by(
        "an Xid 13 or 31 of the first member before it (an access of the program to memory that is not there), or one GPU's Xid "
        "74, 94, 149 before all others");
    SetNext(
        "Kernel logs of all hosts of that NVLink domain (Xid, SXid) and the logs of its NVSwitches; the container often cannot "
        "read them, the host can. "
        "Keep jobs off the domain until then.",
        "dmesg -T | grep -E 'Xid|SXid'; nvidia-smi nvlink -e; nvidia-smi -q | grep -A8 Fabric", &c.finding);
    return c;
  }
  const bool only_contained = uncorrectable.empty();
  Candidate c = Make(job, only_contained ? Kind::undetermined : Kind::error_reported, Confidence::possible, Layer::kHardware,
                     only_contained ? "CUDA_ERROR_CONTAINED: a peer's memory could not be reached over NVLink, or a GPU has an "
                                      "error; the program can cause it too"
                                    : "CUDA reports an uncorrectable NVLink error; which link, GPU or switch, and whether the "
                                      "hardware is at fault, is not established",
                     only_contained ? "" : "HW-01", members);
  CiteContext(job, &c.finding);
  c.finding.set_refuted_by("a kernel log of that time without Xid 74, 144-150 and SXid, and link counters that did not move");
  SetNext(
      "The kernel log of that node: Xid 74 (Hopper and earlier) or Xid 144-150 (Blackwell) names GPU and link; `nvidia-smi "
      "nvlink -e` and `-s` show which link moved; "
      "then test that pair with nccl-tests.",
      "dmesg -T | grep -E 'Xid|SXid'; nvidia-smi nvlink -e; nvidia-smi nvlink -s", &c.finding);
  return c;
}

std::optional<Candidate> Ecc(const model::Job& job) {
  const auto members = Members(EventsOf(job, {"cuda-ecc-uncorrectable"}));
  if (members.empty()) return std::nullopt;
  const model::Event* first = FirstOf(job, members);
  const std::string who = first == nullptr ? "" : SpeakerText(first->by);
  Candidate c = Make(job, Kind::error_reported, Confidence::probable, Layer::kHardware,
                     absl::StrCat("Uncorrectable memory error on the GPU of ", who.empty() ? "a process of the job" : who),
                     "HW-06", members);
  if (first != nullptr && first->by.rank >= 0) c.finding.mutable_who()->add_ranks(first->by.rank);
  if (first != nullptr && !first->by.host.empty()) c.finding.mutable_who()->add_hosts(first->by.host);
  c.finding.set_refuted_by("no uncorrectable error in `nvidia-smi -q -d ECC` of that GPU");
  OthersWaited(job, &c.finding);
  return c;
}

std::optional<Candidate> Program(const model::Job& job) {
  auto members = Members(EventsOf(job, {"cuda-device-assert"}));
  const bool assertion = !members.empty();
  if (!assertion) members = Members(EventsOf(job, {"cuda-illegal-access", "cuda-launch-failure"}));
  if (members.empty()) return std::nullopt;
  const model::Event* first = FirstOf(job, members);
  const std::string who = first == nullptr ? "" : SpeakerText(first->by);
  Candidate c = Make(
      job, Kind::error_reported, assertion ? Confidence::probable : Confidence::possible, Layer::kProgram,
      assertion ? absl::StrCat("An assertion in a kernel of the program failed", who.empty() ? "" : absl::StrCat(" on ", who))
                : absl::StrCat("A kernel of the program died on the GPU", who.empty() ? "" : absl::StrCat(" of ", who),
                               " (illegal access or launch failure); whether program or GPU is at fault needs the kernel log"),
      "UC-10", members);
  if (first != nullptr && first->by.rank >= 0) c.finding.mutable_who()->add_ranks(first->by.rank);
  c.finding.set_refuted_by(
      "a fault of that GPU in the kernel log before it (Xid 48, 74, 79, 94), or a peer that ended earlier and took shared memory "
      "with it");
  OthersWaited(job, &c.finding);
  return c;
}

std::vector<Candidate> FindCudaError(const model::Job& job) {
  // Where the kernel log names the fault these lines only agree with it.
  if (const Incident incident = FindIncident(job); incident.root >= 0 && incident.after_end_s == 0) return {};
  for (const auto find : {Nvlink, Ecc, Program}) {
    if (auto candidate = find(job)) return {*std::move(candidate)};
  }
  return {};
}

const Register kRegister("cuda_error", FindCudaError);

}  // namespace
}  // namespace ringscope::reasoning
