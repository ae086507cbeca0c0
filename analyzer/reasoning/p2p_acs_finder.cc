// GPUs that talk over PCIe peer-to-peer while access control (ACS) sends such writes up to the root complex, or the IOMMU loses
// them: the first operation never ends, or its data are wrong, on every run.
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/network_text.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/pcie_access.h"

namespace ringscope::reasoning {
namespace {

// Releases before the plan's details tell NVLink from PCIe nowhere in this line; links that show say so elsewhere.
const model::TransportLine* PcieP2p(const model::Job& job) {
  for (const model::TransportLine& t : job.evidence.plan.transports) {
    if (t.via.starts_with("P2P/") && !Contains(t.via, "indirect") && !Contains(t.via, "MNNVL")) return &t;
  }
  return nullptr;
}

// What shows that peer-to-peer does not work. One that proves it by itself, or one that only fits.
struct Symptom {
  const model::Event* event = nullptr;
  model::Where where;  // of a measurement
  std::string text;    // the end of a sentence
  bool proof = false;
  State::Value state = State::hang;
};

// Far above any path that works: with peer access over PCIe a few microseconds, through host memory some tens.
constexpr double kLatencyOfNoPathUs = 1000;
constexpr uint64_t kFirstOperations = 2;

Symptom SymptomOf(const model::Job& job) {
  if (const model::Event* e = FirstEvent(job, {"cuda-p2p-verification-failed"}))
    return {e, e->where, "a copy between two GPUs arrives with other data", true, State::wrong_data};
  for (const model::PeerMeasurement& m : job.evidence.network.peer_measurements) {
    if (m.peer_access && m.latency && m.value >= kLatencyOfNoPathUs)
      return {nullptr, m.where, absl::StrCat("a peer write from GPU ", m.from, " to GPU ", m.to, " takes ", m.value, " us"),
              true, State::hang};
  }
  for (const model::NcclTestRow& row : job.evidence.hardware.speed.nccl_tests) {
    if (row.wrong > 0)
      return {nullptr, row.where, absl::StrCat(row.wrong, " elements of a result of ", row.bytes, " bytes are wrong"), false,
              State::wrong_data};
  }
  if (const model::Event* e = FirstEvent(job, {"nccl-tests-wrong"}))
    return {e, e->where, "results are wrong", false, State::wrong_data};
  if (Worked(job)) return {};
  // Calls without an end: only the first operations were called.
  const model::LoggedCall* last = nullptr;
  for (const model::CallHistory& h : job.evidence.calls.histories) {
    for (const model::LoggedCall& call : h.calls) {
      if (call.number > kFirstOperations || call.op_count > kFirstOperations) return {};
      last = &call;
    }
  }
  if (last != nullptr) return {nullptr, last->where, "the first operation over P2P does not end", false, State::hang};
  for (const model::WorkTimeout& t : job.evidence.work.timeouts) {
    if (t.seq && *t.seq <= static_cast<int64_t>(kFirstOperations))
      return {nullptr, t.where, "the first operation over P2P does not end", false, State::hang};
  }
  return {};
}

// The GPUs are joined by NVLink alone, as far as anything shows: PCIe's access control does not touch that traffic.
bool AllNvlink(const model::Job& job) {
  bool nvlink = false, pcie = false;
  for (const model::TopologyMatrix& m : job.evidence.plan.matrices) {
    if (m.kind != model::TopologyMatrix::Kind::kTopology) continue;
    for (const auto& row : m.rows) {
      for (size_t i = 0; i < row.cells.size() && i < m.columns.size(); ++i) {
        if (!row.name.starts_with("GPU") || !m.columns[i].starts_with("GPU") || row.name == m.columns[i]) continue;
        (row.cells[i].starts_with("NV") ? nvlink : pcie) = true;
      }
    }
  }
  for (const model::TopologySystem& s : job.evidence.plan.systems) {
    for (const model::TopologyGpu& gpu : s.gpus) nvlink |= !gpu.links.empty();
  }
  return nvlink && !pcie;
}

std::vector<Candidate> FindP2pAcs(const model::Job& job) {
  const auto acs = AcsRedirects(job);
  const model::TransportLine* p2p = PcieP2p(job);
  const model::Event* fault = FirstEvent(job, {"kernel-iommu-fault"});
  const model::Event* iommu = FirstEvent(job, {"kernel-iommu-passthrough"}) != nullptr
                                  ? nullptr
                                  : FirstEvent(job, {"kernel-iommu-translates", "rccl-iommu-not-passthrough"});
  const Symptom symptom = SymptomOf(job);
  const bool seen = !symptom.text.empty();
  // Access control or the IOMMU being on is the normal state of many hosts that work.
  if (acs.empty() && iommu == nullptr && fault == nullptr && !symptom.proof) return {};
  if (!symptom.proof && fault == nullptr && (p2p == nullptr || AllNvlink(job))) return {};
  if (!seen && fault == nullptr && Worked(job)) return {};
  // A network's error has its own reasons, and an explanation of its own (gdr_path_finder).
  if (!Completions(job).empty()) return {};
  const model::Setting* off = SettingOf(job, "NCCL_P2P_DISABLE");
  if (off != nullptr && off->value == "1" && !symptom.proof) return {};
  const bool reason = !acs.empty() || fault != nullptr;
  const Confidence::Value confidence = reason && symptom.proof                                   ? Confidence::established
                                       : symptom.proof || (reason && (seen || fault != nullptr)) ? Confidence::probable
                                                                                                 : Confidence::possible;
  Candidate c =
      Say(Kind::misconfigured, confidence, Layer::kConfiguration,
          absl::StrCat(!acs.empty() ? "PCIe access control (ACS) is on above the GPUs: peer-to-peer (P2P) writes between them "
                                      "are redirected through the root complex and the IOMMU"
                       : reason || iommu != nullptr ? "The IOMMU stands in the way of peer-to-peer (P2P) writes between GPUs"
                                                    : "Peer-to-peer (P2P) between GPUs over PCIe is offered and does not work: "
                                                      "access control (ACS), the IOMMU or virtualisation",
                       seen ? absl::StrCat("; ", symptom.text) : ""),
          "FB-05", "cuda-p2p-verification-failed");
  // Nothing shows that the job suffers from it: a remark, which explains nothing else.
  c.stops_job = seen || fault != nullptr;
  if (!c.stops_job) c.order = Class::kPlan;
  c.state = seen ? symptom.state : State::hang;
  Finding& finding = c.finding;
  CiteAcs(job, 4, &finding);
  if (p2p != nullptr) Cite(job, p2p->where, absl::StrCat("rank ", p2p->from, " -> ", p2p->to, " via ", p2p->via), &finding);
  if (symptom.event != nullptr) {
    Cite(job, *symptom.event, &finding);
  } else if (seen) {
    Cite(job, symptom.where, symptom.text, &finding);
  }
  if (seen && symptom.state == State::hang) {
    std::set<int> waiting;
    for (const model::CallHistory& h : job.evidence.calls.histories) {
      if (h.by.rank >= 0) waiting.insert(h.by.rank);
    }
    AddRanks(waiting, finding.mutable_collateral()->mutable_ranks());
  }
  if (fault != nullptr) Cite(job, *fault, &finding);
  if (iommu != nullptr) Cite(job, *iommu, &finding);
  finding.set_refuted_by("the job fails in the same way with NCCL_P2P_DISABLE=1, or with ACS and the IOMMU off");
  SetNext(absl::StrCat(kAcsRemedy, " NCCL_P2P_DISABLE=1 avoids the path meanwhile, and confirms the reason."), kAcsCommand,
          &finding);
  return {c};
}

const Register kRegister("p2p_acs", FindP2pAcs);

}  // namespace
}  // namespace ringscope::reasoning
