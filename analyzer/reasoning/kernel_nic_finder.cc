// A network adapter or its link failed by the kernel log: the witness that a transport error alone is not.
#include <absl/strings/str_cat.h>

#include <map>
#include <set>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/gpu_faults.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

std::string Adapter(const model::Event& e) {
  std::string name(e.Field("netdev"));
  if (const std::string pci(e.Field("pci")); !pci.empty()) absl::StrAppend(&name, name.empty() ? "" : " at ", pci);
  return name.empty() ? "an adapter" : name;
}

std::vector<Candidate> FindKernelNic(const model::Job& job) {
  const auto dead = EventsOf(job, {"kernel-mlx5-health", "kernel-mlx5-command-timeout"});
  const auto down = EventsOf(job, {"kernel-nic-link-down"});
  const auto cable = EventsOf(job, {"kernel-nic-module"});
  const std::vector<const model::Event*>& events = !dead.empty() ? dead : !down.empty() ? down : cable;
  if (events.empty()) return {};
  const model::Event& first = *events[0];
  const std::string where = first.by.host.empty() ? "" : absl::StrCat(" on ", first.by.host);
  const std::string title =
      !dead.empty()   ? absl::StrCat("Network adapter ", Adapter(first), where, " stopped working (firmware or PCIe)")
      : !down.empty() ? absl::StrCat("The link of network adapter ", Adapter(first), where, " went down",
                                     events.size() > 1 ? absl::StrCat(" (", events.size(), " times)") : "")
                      : absl::StrCat("Cable or optic of network adapter ", Adapter(first), where, " reports an error");
  // Without a complaint about the network a link that went down need not concern the job.
  const bool complains = FirstEvent(job, {"nccl-ib-completion", "nccl-ib-cqe", "nccl-ib-port-error", "nccl-ib-async-fatal",
                                          "nccl-socket-failed", "nccl-socket-progress"}) != nullptr;
  Candidate c = Say(Kind::edge_failed, complains || !dead.empty() ? Confidence::probable : Confidence::possible, Layer::kHardware,
                    title, "NET-01", first.signature);
  Finding& finding = c.finding;
  std::set<std::string> hosts, links;
  for (const model::Event* e : events) {
    if (!e->by.host.empty() && hosts.insert(e->by.host).second) finding.mutable_who()->add_hosts(e->by.host);
    if (links.insert(Adapter(*e)).second && links.size() < 9) finding.mutable_who()->add_links(Adapter(*e));
  }
  CiteAll(job, events, 5, &finding);
  if (&events != &cable) CiteAll(job, cable, 2, &finding);
  CiteAll(job, EventsOf(job, {"kernel-nic-link-up"}), 2, &finding);
  c.stops_job = complains || !dead.empty();
  if (!c.stops_job) c.order = Class::kPlan;
  c.when = first.time;
  finding.set_refuted_by("the adapter is not one that NCCL uses, or its link went down after the job had failed (or at boot)");
  return {c};
}

const Register kRegister("kernel_nic", FindKernelNic);

}  // namespace
}  // namespace ringscope::reasoning
