// Before NCCL: processes that do not find each other (rendezvous store, ports, names, Gloo's addresses).
#include <absl/strings/str_cat.h>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/nccl_text.h"

namespace ringscope::reasoning {
namespace {

Candidate Say(const model::Job& job, const std::vector<const model::Event*>& events, Kind::Value kind,
              Confidence::Value confidence, Layer layer, std::string title, std::string_view cause, const char* refuted_by) {
  Candidate candidate = reasoning::Say(kind, confidence, layer, std::move(title), cause, events.front()->signature);
  candidate.stops_job = true;
  candidate.state = State::init_failure;
  CiteAll(job, events, 4, &candidate.finding);
  OnlyWaited(events, &candidate.finding);
  candidate.finding.set_refuted_by(refuted_by);
  return candidate;
}

std::vector<Candidate> FindRendezvous(const model::Job& job) {
  std::vector<Candidate> found;
  if (const auto used = EventsOf(job, {"address-in-use"}); !used.empty()) {
    found.push_back(Say(job, used, Kind::misconfigured, Confidence::probable, Layer::kConfiguration,
                        "The rendezvous port is already in use: an earlier run or another job holds it", "FW-08",
                        "nobody listens on that port of that host when the job starts"));
  }
  if (const auto names = EventsOf(job, {"name-not-resolved"}); !names.empty()) {
    found.push_back(Say(job, names, Kind::init_incomplete, Confidence::probable, Layer::kConfiguration,
                        "A host name or interface that the job uses is not known where it runs", "NC-05",
                        "the name resolves in that container"));
  }
  if (const auto gloo = EventsOf(job, {"gloo-connect-failed"}); !gloo.empty()) {
    const std::string peer(gloo.front()->Field("peer"));
    const bool loopback = peer.starts_with("127.");
    Candidate candidate =
        Say(job, gloo, loopback ? Kind::misconfigured : Kind::init_incomplete,
            loopback ? Confidence::probable : Confidence::possible, loopback ? Layer::kConfiguration : Layer::kNetwork,
            loopback ? absl::StrCat("A rank announced the loopback address ", peer,
                                    " to others: its host name resolves to it; GLOO_SOCKET_IFNAME has to name "
                                    "the interface")
                     : absl::StrCat("Gloo could not connect ranks: ", peer, " was not reached"),
            "NET-07", "all ranks run on one host");
    for (const model::Setting* s : SettingsOf(job, {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "MASTER_ADDR"}))
      CiteSetting(job, *s, &candidate.finding);
    found.push_back(std::move(candidate));
  }
  if (const auto store = EventsOf(job, {"torch-store-connect-failed"}); !store.empty()) {
    std::string error, peer;
    for (const model::Event* event : store) {
      if (error.empty()) error = event->Field("error");
      if (peer.empty()) peer = event->Field("peer");
    }
    const bool route = Contains(error, "route") || Contains(error, "unreachable");
    found.push_back(Say(job, store, Kind::init_incomplete, Confidence::possible, Layer::kReport,
                        absl::StrCat("The rendezvous store", peer.empty() ? "" : absl::StrCat(" at ", peer), " was not reached",
                                     error.empty() ? "" : absl::StrCat(": ", error),
                                     "; the process that offers it is not there, or the way to it is closed"),
                        route ? "NET-07" : "NC-05", "other processes of the same host reached the store at that time"));
  }
  return found;
}

const Register kRegister("rendezvous", FindRendezvous);

}  // namespace
}  // namespace ringscope::reasoning
