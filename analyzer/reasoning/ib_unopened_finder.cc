// RDMA adapters that the process could not open: NCCL goes on over TCP, slowly. Mostly containers that were not given
// /dev/infiniband.
#include <absl/strings/str_cat.h>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/network_text.h"

namespace ringscope::reasoning {
namespace {

std::vector<Candidate> FindUnopened(const model::Job& job) {
  const auto refused = EventsOf(job, {"nccl-ibv-open-device", "no-dev-infiniband"});
  if (FirstEvent(job, {"nccl-ibv-open-device"}) == nullptr) return {};
  const model::NetworkChoice* socket = nullptr;
  for (const model::NetworkChoice& n : job.evidence.network.choices) {
    if (n.network.starts_with("Socket") && socket == nullptr) socket = &n;
  }
  // One adapter of several may be for others; NCCL then uses the rest.
  if (socket == nullptr && !job.evidence.network.choices.empty()) return {};
  const bool missing = FirstEvent(job, {"no-dev-infiniband"}) != nullptr;
  Candidate c = Say(Kind::fallback_path,
                    missing && socket != nullptr ? Confidence::established
                    : socket != nullptr          ? Confidence::probable
                                                 : Confidence::possible,
                    Layer::kConfiguration,
                    absl::StrCat("RDMA adapters are there but could not be opened (ibv_open_device failed)",
                                 socket != nullptr ? ": NCCL fell back to TCP (network Socket)" : "",
                                 missing ? "; /dev/infiniband is missing in the container" : ""),
                    "NET-08", "nccl-ibv-open-device");
  c.order = Class::kPlan;
  c.state = State::slow;
  Finding& finding = c.finding;
  std::set<std::string> hosts;
  for (const model::Event* e : refused) {
    if (!e->by.host.empty() && hosts.insert(e->by.host).second) finding.mutable_who()->add_hosts(e->by.host);
  }
  CiteAll(job, refused, 4, &finding);
  CiteAll(job, EventsOf(job, {"nccl-ib-no-device"}), 1, &finding);
  if (socket != nullptr) Cite(job, socket->where, absl::StrCat("Using network ", socket->network), &finding);
  for (const model::RdmaPort& p : job.evidence.network.ports) {
    if (p.Down() || p.state.empty()) continue;
    Cite(job, p.where, absl::StrCat(p.device, ":", p.port, " is ", p.state, p.rate.empty() ? "" : absl::StrCat(", ", p.rate)),
         &finding);
    break;
  }
  finding.set_refuted_by("ibv_devinfo inside the same container opens the device");
  SetNext(
      "Start the container with --device=/dev/infiniband (or --privileged) and --ulimit memlock=-1 (Kubernetes: the RDMA "
      "device plugin), then look for \"Using network IB\".",
      "ls -l /dev/infiniband; ibv_devinfo  # inside the container", &finding);
  return {c};
}

const Register kRegister("ib_unopened", FindUnopened);

}  // namespace
}  // namespace ringscope::reasoning
