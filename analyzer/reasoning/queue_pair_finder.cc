// Queue pairs that could not be created or connected, and adapters on the two sides that do not fit together.
#include <absl/strings/str_cat.h>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/network_text.h"

namespace ringscope::reasoning {
namespace {

void Common(const model::Job& job, const std::vector<const model::Event*>& events, Candidate* candidate) {
  candidate->stops_job = true;
  candidate->state = State::init_failure;
  candidate->when = events.front()->time;
  CiteAll(job, events, 4, &candidate->finding);
  OnlyReported(events, &candidate->finding);
}

std::vector<Candidate> FindQueuePairs(const model::Job& job) {
  std::vector<Candidate> found;
  if (const auto refused = EventsOf(job, {"nccl-ibv-modify-qp"}); !refused.empty()) {
    const model::Event& first = *refused.front();
    const std::string error(first.Field("error"));
    const bool resolve = error.starts_with("Connection timed out");
    const bool route = resolve || error.starts_with("No route") || error.starts_with("Network is unreach") ||
                       error.starts_with("No such device") || error.starts_with("Invalid argument");
    Candidate c = Say(Kind::error_reported, Confidence::possible, Layer::kNetwork,
                      absl::StrCat("A queue pair could not be connected (ibv_modify_qp: ", error, ")",
                                   resolve ? ": the peer's GID could not be resolved on the network of that adapter"
                                   : route ? ": GID, interface or route of that adapter do not fit the peer's"
                                           : ""),
                      "NET-03", "nccl-ibv-modify-qp");
    Common(job, refused, &c);
    CiteSettings(job, "NCCL_IB_GID_INDEX", 2, &c.finding);
    CiteSettings(job, "NCCL_IB_HCA", 2, &c.finding);
    CiteSettings(job, "NCCL_CROSS_NIC", 1, &c.finding);
    for (const model::NetworkChoice& n : job.evidence.network.choices) {
      Cite(job, n.where, absl::StrCat("Using network ", n.network), &c.finding);
      break;
    }
    c.finding.set_refuted_by("ib_write_bw between the same two adapters works with the same GID index");
    SetNext(
        "Whether the two adapters reach each other: the GID tables of both hosts, a ping between the RoCE addresses, "
        "ib_write_bw with the GID index that NCCL used. "
        "Rails that are not connected with each other need NCCL_CROSS_NIC=0; leave NCCL_IB_GID_INDEX unset on NCCL 2.21 and "
        "later; NCCL_IB_HCA picks adapters.",
        "show_gids; ibv_devinfo; ib_write_bw -d <device> -x <gid index> <other host>", &c.finding);
    found.push_back(std::move(c));
  }
  if (const auto differ = EventsOf(job, {"nccl-ib-devices-differ"}); !differ.empty()) {
    Candidate c =
        Say(Kind::misconfigured, Confidence::probable, Layer::kConfiguration,
            "Adapters of different kinds were connected with each other (InfiniBand with RoCE, or another number of ports)",
            "NET-08", "nccl-ib-devices-differ");
    Common(job, differ, &c);
    CiteSettings(job, "NCCL_IB_HCA", 4, &c.finding);
    c.finding.set_refuted_by("ibv_devinfo shows the same adapters with the same link layer on all hosts");
    found.push_back(std::move(c));
  }
  return found;
}

const Register kRegister("queue_pair", FindQueuePairs);

}  // namespace
}  // namespace ringscope::reasoning
