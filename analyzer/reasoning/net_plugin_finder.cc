// Network plugins: one that goes on using RDMA although NCCL_IB_DISABLE is set, and errors of plugins and libraries with
// networks of their own (libfabric, UCX, NVSHMEM).
#include <absl/strings/str_cat.h>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/network_text.h"

namespace ringscope::reasoning {
namespace {

// NCCL_IB_DISABLE belongs to NCCL's own transport; the plugin that Mellanox's HPC-X and NVIDIA's containers bring has a switch
// of its own.
std::vector<Candidate> FindPluginSwitch(const model::Job& job) {
  const model::Setting* disabled = nullptr;
  for (const model::Setting& s : job.evidence.settings) {
    if (s.name == "NCCL_IB_DISABLE" && s.value == "1") disabled = &s;
    if (s.name == "NCCL_IBEXT_DISABLE" && s.value == "1") return {};
  }
  const model::NetworkChoice* plugin = nullptr;
  for (const model::NetworkChoice& n : job.evidence.network.choices) {
    if (n.network.starts_with("IBext") && plugin == nullptr) plugin = &n;
  }
  if (disabled == nullptr || plugin == nullptr) return {};
  const auto failed = EventsOf(
      job, {"nccl-ibv-modify-qp", "nccl-ib-completion", "nccl-ibv-open-device", "nccl-ibv-create", "nccl-ib-async-fatal"});
  Candidate c = Say(Kind::misconfigured, failed.empty() ? Confidence::possible : Confidence::probable, Layer::kConfiguration,
                    absl::StrCat("NCCL_IB_DISABLE=1 does not reach the external plugin ", plugin->network,
                                 ": it goes on using RDMA; its own switch is NCCL_IBEXT_DISABLE"),
                    "NET-03", "nccl-ibv-modify-qp");
  c.stops_job = !failed.empty();
  if (failed.empty()) c.order = Class::kPlan;
  c.state = failed.empty() ? State::unknown : State::init_failure;
  Finding& finding = c.finding;
  Cite(job, disabled->where, absl::StrCat("NCCL_IB_DISABLE=", disabled->value), &finding);
  Cite(job, plugin->where, absl::StrCat("Using network ", plugin->network), &finding);
  CiteAll(job, failed, 3, &finding);
  OnlyReported(failed, &finding);
  for (const model::AdapterUse& a : job.evidence.network.adapters) {
    Cite(job, a.where, absl::StrCat("adapter ", a.device, ":", a.port, a.roce ? "/RoCE" : "/IB"), &finding);
    break;
  }
  finding.set_refuted_by("the same failure with NCCL_IBEXT_DISABLE=1");
  SetNext(
      "Set NCCL_IBEXT_DISABLE=1 as well (or take the plugin out of the library path, NCCL_NET_PLUGIN=none), or make the RDMA "
      "network work.",
      "NCCL_IBEXT_DISABLE=1 NCCL_DEBUG=INFO <the same command>  # then: Using network Socket", &finding);
  return {c};
}

std::vector<Candidate> FindPluginErrors(const model::Job& job) {
  const auto errors = EventsOf(job, {"nccl-ofi-request-error", "ucx-endpoint-error", "nvshmem-transport-error"});
  if (errors.empty()) return {};
  const model::Event& first = *errors.front();
  Candidate c = Say(Kind::undetermined, Confidence::possible, Layer::kNetwork,
                    absl::StrCat(first.signature == "nccl-ofi-request-error" ? "A transfer of the libfabric plugin failed"
                                 : first.signature == "ucx-endpoint-error"   ? "UCX lost or could not reach a peer"
                                                                             : "A transport call of NVSHMEM failed",
                                 first.Field("what").empty() ? "" : absl::StrCat(" (", Absl(first.Field("what")), ")"),
                                 "; what made it fail is not in this input"),
                    "", first.signature);
  c.stops_job = true;
  c.state = State::crashed;
  c.when = first.time;
  CiteAll(job, errors, 4, &c.finding);
  OnlyReported(errors, &c.finding);
  c.finding.set_refuted_by("a witness of the reason at the peer or on the link");
  return {c};
}

const Register kRegisterSwitch("net_plugin_switch", FindPluginSwitch);
const Register kRegisterErrors("net_plugin_errors", FindPluginErrors);

}  // namespace
}  // namespace ringscope::reasoning
