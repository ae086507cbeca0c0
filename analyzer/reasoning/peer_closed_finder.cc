// A socket to a peer ended. Whoever says so only lost its peer: nothing is wrong with him, and the reason is with the peer.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/network_text.h"

namespace ringscope::reasoning {
namespace {

// "[10.9.1.9]:50261" of Gloo without brackets and port.
std::string Address(std::string_view peer) {
  if (peer.starts_with("[")) peer = peer.substr(1, peer.find(']') == peer.npos ? peer.npos : peer.find(']') - 1);
  return std::string(peer);
}

std::vector<Candidate> FindPeerClosed(const model::Job& job) {
  const auto events = EventsOf(job, {"nccl-socket-closed", "nccl-socket-failed", "gloo-peer-closed"});
  if (events.empty()) return {};
  std::set<std::string> peers;
  std::string first_peer;
  for (const model::Event* e : events) {
    const std::string peer = Address(e->Field("peer"));
    if (peer.empty()) continue;
    if (first_peer.empty()) first_peer = peer;
    if (peers.size() < 8) peers.insert(PeerText(job, peer));
  }
  const auto routes = [](const model::Event* e) {
    const std::string_view error = e->Field("error");
    return error == "No route to host" || error == "Network is unreachable" || error == "Connection timed out";
  };
  const bool route = std::any_of(events.begin(), events.end(), routes);
  const std::string whom = peers.empty() ? "its peer" : absl::StrJoin(peers, ", ");
  Candidate candidate =
      Say(route ? Kind::edge_failed : Kind::undetermined, Confidence::possible, route ? Layer::kNetwork : Layer::kReport,
          absl::StrCat("The connection to ", whom, route ? " was lost (its host or the way to it)" : " was closed from there",
                       ": the process at that address ended or its network failed, and who reports it only noticed"),
          route ? "NET-07" : "", events.front()->signature);
  candidate.stops_job = true;
  candidate.state = State::crashed;
  candidate.when = events.front()->time;
  Finding& finding = candidate.finding;
  CiteAll(job, events, 4, &finding);
  OnlyReported(events, &finding);
  finding.set_refuted_by("the log of that peer shows that it lived on and closed nothing");
  SetNext(absl::StrCat("The log and exit status of the process at ", whom,
                       ", and the health of its host (ibstat, ibqueryerrors, dmesg)."),
          absl::StrCat("ssh ", ShellWord(first_peer), " 'dmesg -T | grep -iE \"xid|oom|killed|segfault|link\"; ibstat'"),
          &finding);
  return {candidate};
}

const Register kRegister("peer_closed", FindPeerClosed);

}  // namespace
}  // namespace ringscope::reasoning
