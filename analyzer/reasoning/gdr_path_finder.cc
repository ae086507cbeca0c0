// GPUDirect RDMA: the adapter cannot reach GPU memory. Local protection errors (status 4), memory that cannot be registered.
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/network_text.h"
#include "analyzer/reasoning/pcie_access.h"

namespace ringscope::reasoning {
namespace {

const model::TransportLine* GdrTransport(const model::Job& job) {
  for (const model::TransportLine& t : job.evidence.plan.transports) {
    if (Contains(t.via, "GDRDMA")) return &t;
  }
  return nullptr;
}

// Whether GPUDirect RDMA was off although its error appeared: then it is not the reason.
bool GdrOff(const model::Job& job) {
  const auto& transports = job.evidence.plan.transports;
  const bool any_net = std::any_of(transports.begin(), transports.end(),
                                   [](const model::TransportLine& t) { return t.via.starts_with("NET/"); });
  return any_net && GdrTransport(job) == nullptr;
}

Candidate Protection(const model::Job& job, const std::vector<Completion>& completions) {
  const auto acs = AcsRedirects(job);
  const model::TransportLine* gdr = GdrTransport(job);
  const bool iommu = FirstEvent(job, {"kernel-iommu-fault"}) != nullptr;
  const Confidence::Value confidence = !acs.empty() && gdr != nullptr ? Confidence::established
                                       : !acs.empty() || iommu        ? Confidence::probable
                                                                      : Confidence::possible;
  Candidate c =
      Say(acs.empty() && !iommu ? Kind::error_reported : Kind::misconfigured, confidence,
          acs.empty() && !iommu ? Layer::kNetwork : Layer::kConfiguration,
          absl::StrCat("The adapter could not reach local memory (status 4, local protection error) over GPUDirect RDMA (GDR)",
                       !acs.empty() ? ": PCIe access control (ACS) is on and redirects its requests"
                       : iommu      ? ": the IOMMU refuses them"
                               : "; PCIe access control (ACS) or the IOMMU are the usual reason, which nothing here shows"),
          "NET-06", "nccl-ib-completion");
  c.stops_job = true;
  c.state = State::crashed;
  Finding& finding = c.finding;
  CiteCompletions(job, completions, 3, &finding);
  CiteAcs(job, 3, &finding);
  if (gdr != nullptr) Cite(job, gdr->where, absl::StrCat("rank ", gdr->from, " -> ", gdr->to, " via ", gdr->via), &finding);
  CiteAll(job, EventsOf(job, {"kernel-iommu-fault"}), 2, &finding);
  CiteAll(job, EventsOf(job, {"nccl-ib-hint-acs"}), 1, &finding);
  std::vector<const model::Event*> reporters;
  for (const Completion& e : completions) reporters.push_back(e.event);
  OnlyReported(reporters, &finding);
  finding.set_refuted_by("the same error with NCCL_NET_GDR_LEVEL=LOC (no GPUDirect RDMA)");
  SetNext(absl::StrCat(kAcsRemedy, " To confirm: the job with NCCL_NET_GDR_LEVEL=LOC runs, slower."), kAcsCommand, &finding);
  return c;
}

std::vector<Candidate> FindGdrPath(const model::Job& job) {
  std::vector<Candidate> found;
  const auto completions = Completions(job);
  const Completion* first = FirstError(completions);
  if (first != nullptr && first->status == kLocalProtection && !GdrOff(job)) found.push_back(Protection(job, completions));
  if (first != nullptr && first->status == kLocalProtection && GdrOff(job)) {
    Candidate c = Say(Kind::undetermined, Confidence::possible, Layer::kNetwork,
                      "The adapter could not reach local memory (status 4, local protection error), without GPUDirect RDMA: "
                      "the memory was freed or its registration is gone",
                      "", "nccl-ib-completion");
    c.stops_job = true;
    c.state = State::crashed;
    CiteCompletions(job, completions, 3, &c.finding);
    c.finding.set_refuted_by("a log of that process that shows its buffers alive");
    SetNext("Whether the program frees or reuses buffers of operations that still run; the kernel log for IOMMU faults.",
            "dmesg -T | grep -iE 'dmar|amd-vi|iommu'", &c.finding);
    found.push_back(std::move(c));
  }
  const auto refused = EventsOf(job, {"nccl-ibv-reg-gpu"});
  // Old releases print no errno; libibverbs' own warning then says that the limit of locked memory is why (limits_finder).
  const bool limit =
      !refused.empty() && refused.front()->Field("error").empty() && FirstEvent(job, {"libibverbs-memlock"}) != nullptr;
  if (!refused.empty() && !limit) {
    const std::string error(refused.front()->Field("error"));
    Candidate c =
        Say(Kind::error_reported, error == "Bad address" ? Confidence::probable : Confidence::possible, Layer::kDriver,
            absl::StrCat("Memory could not be registered with the adapter (", Absl(refused.front()->Field("call")),
                         error.empty() ? "" : ": ", error, "): GPU memory needs nvidia-peermem or DMA-BUF"),
            "NET-06", "nccl-ibv-reg-gpu");
    c.stops_job = true;
    c.state = State::init_failure;
    for (const int rank : RanksOf(refused)) c.finding.mutable_who()->add_ranks(rank);
    CiteAll(job, refused, 4, &c.finding);
    c.finding.set_refuted_by("the same error with NCCL_NET_GDR_LEVEL=LOC (no GPUDirect RDMA)");
    found.push_back(std::move(c));
  }
  return found;
}

const Register kRegister("gdr_path", FindGdrPath);

}  // namespace
}  // namespace ringscope::reasoning
