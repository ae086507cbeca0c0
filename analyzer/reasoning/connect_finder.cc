// A control connection that could not be made, when nothing says that a wrong interface is why.
#include <absl/strings/str_cat.h>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/nccl_text.h"

namespace ringscope::reasoning {
namespace {

std::vector<Candidate> FindConnect(const model::Job& job) {
  auto failed = EventsOf(job, {"nccl-connect-failed", "nccl-no-subnet-interface", "nccl-address-family"});
  const bool gave_up = !failed.empty();
  // Without a setting of the interface it is not known why there is no address; with one the interface is the finding.
  if (!failed.empty() && failed.front()->signature == "nccl-address-family" && !SettingsOf(job, {"NCCL_SOCKET_IFNAME"}).empty())
    return {};
  if (failed.empty()) {
    // Retries alone are normal for a moment; twenty of them are none.
    const auto retries = EventsOf(job, {"nccl-connect-retry"});
    if (retries.size() < 20 || AnyInitComplete(job)) return {};
    failed = retries;
  }
  const std::string error(failed.back()->Field("error"));
  const std::string peer(failed.back()->Field("peer"));
  const bool route =
      Contains(error, "route") || Contains(error, "unreachable") || failed.front()->signature == "nccl-no-subnet-interface";
  const bool refused = Contains(error, "refused");
  std::string title = absl::StrCat("A control connection", peer.empty() ? "" : absl::StrCat(" to ", peer), " could not be made",
                                   error.empty() ? "" : absl::StrCat(": ", error));
  if (refused) title += "; nobody listens there: that process is gone, never came, or has this address on another host";
  Candidate candidate = Say(Kind::init_incomplete, route && gave_up ? Confidence::probable : Confidence::possible,
                            Layer::kNetwork, title, refused ? "NC-05" : "NET-07", "nccl-connect-failed");
  candidate.stops_job = true;
  candidate.state = AnyInitComplete(job) ? State::crashed : State::init_failure;
  CiteAll(job, failed, 4, &candidate.finding);
  CiteAll(job, EventsOf(job, {"nccl-bootstrap-using"}), 4, &candidate.finding);
  for (const model::Setting* s : SettingsOf(job, {"NCCL_SOCKET_IFNAME", "NCCL_COMM_ID"}))
    CiteSetting(job, *s, &candidate.finding);
  OnlyWaited(failed, &candidate.finding);
  candidate.finding.set_refuted_by("the peer's own log shows an error from before this line");
  return {candidate};
}

const Register kRegister("connect", FindConnect);

}  // namespace
}  // namespace ringscope::reasoning
