// What the driver says of an adapter or a queue without a completion to it: the adapter's own failure, or a queue in error.
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/network_text.h"

namespace ringscope::reasoning {
namespace {

std::vector<Candidate> FindAdapterFaults(const model::Job& job) {
  std::vector<const model::Event*> device, queue;
  for (const model::Event* e : EventsOf(job, {"nccl-ib-async-fatal"})) {
    // IBV_EVENT_DEVICE_FATAL; all others are about one queue.
    (e->Field("object").empty() && Contains(e->Field("what"), "catastrophic error") && !Contains(e->Field("what"), "queue")
         ? device
         : queue)
        .push_back(e);
  }
  std::vector<Candidate> found;
  if (!device.empty()) {
    Candidate c =
        Say(Kind::error_reported, Confidence::probable, Layer::kHardware,
            absl::StrCat("Network adapter ",
                         device.front()->Field("hca").empty() ? "" : absl::StrCat(Absl(device.front()->Field("hca")), " "),
                         device.front()->by.host.empty() ? "" : absl::StrCat("on ", device.front()->by.host, " "), "failed (",
                         Absl(device.front()->Field("what")), ")"),
            "NET-01", "nccl-ib-async-fatal");
    c.stops_job = true;
    c.state = State::crashed;
    c.when = device.front()->time;
    std::set<std::string> hosts;
    for (const model::Event* e : device) {
      if (!e->by.host.empty() && hosts.insert(e->by.host).second) c.finding.mutable_who()->add_hosts(e->by.host);
    }
    CiteAll(job, device, 4, &c.finding);
    CiteAll(job, EventsOf(job, {"kernel-mlx5-health"}), 2, &c.finding);
    c.finding.set_refuted_by("the adapter was reset on purpose (firmware update, driver restart)");
    SetNext("The kernel log of that host for the adapter (health, firmware, PCIe), and its firmware's release.",
            "dmesg -T | grep -iE 'mlx5|aer'; ibv_devinfo | grep -E 'hca_id|fw_ver|state'", &c.finding);
    found.push_back(std::move(c));
  }
  if (!queue.empty() && Completions(job).empty()) {
    Candidate c = Say(Kind::undetermined, Confidence::possible, Layer::kNetwork,
                      absl::StrCat("A connection's queue went into error (", Absl(queue.front()->Field("what")),
                                   "); which request did it, and why, is not in this input"),
                      "", "nccl-ib-async-fatal");
    c.stops_job = true;
    c.state = State::crashed;
    c.when = queue.front()->time;
    CiteAll(job, queue, 4, &c.finding);
    OnlyReported(queue, &c.finding);
    c.finding.set_refuted_by("a completion error of the same connection that names a reason");
    found.push_back(std::move(c));
  }
  return found;
}

const Register kRegister("adapter_fault", FindAdapterFaults);

}  // namespace
}  // namespace ringscope::reasoning
