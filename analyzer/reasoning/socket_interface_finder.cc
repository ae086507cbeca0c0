// The network interface of NCCL's control connections: none found, or one by which the other hosts do not reach this one.
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <map>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/nccl_text.h"
#include "analyzer/reasoning/op_text.h"

namespace ringscope::reasoning {
namespace {

constexpr const char* kRemedy =
    "Set NCCL_SOCKET_IFNAME on every host to the interface whose address the other hosts reach (=name means exactly that one, "
    "^name leaves names out; "
    "lo only on a single host), then look at the \"Bootstrap: Using\" lines again.";
constexpr const char* kCommand = "ip -br addr; ip route; env | grep -E 'NCCL_(SOCKET|OOB_NET)_IFNAME'";

std::vector<const model::Setting*> InterfaceSettings(const model::Job& job) {
  return SettingsOf(job, {"NCCL_SOCKET_IFNAME", "NCCL_OOB_NET_IFNAME", "NCCL_COMM_ID", "GLOO_SOCKET_IFNAME"});
}

std::string WhoText(const std::vector<const model::Event*>& events) {
  const std::set<int> ranks = RanksOf(events);
  if (!ranks.empty()) return RanksText(ranks);
  const std::string text = SpeakerText(events.front()->by);
  return text.empty() ? "NCCL" : text;
}

Candidate NoneFound(const model::Job& job, const std::vector<const model::Event*>& none) {
  const auto settings = InterfaceSettings(job);
  std::string title = absl::StrCat(WhoText(none), " found no socket interface for NCCL's control connections");
  bool chosen = false;
  for (const model::Setting* s : settings) {
    if (s->name.ends_with("_IFNAME")) {
      absl::StrAppend(&title, "; ", s->name, "=", s->value, " leaves none that is up with an address");
      chosen = true;
      break;
    }
  }
  if (!chosen) title += " (no interface up with an address besides lo, or NCCL_SOCKET_IFNAME leaves none)";
  Candidate candidate = Say(Kind::misconfigured, chosen ? Confidence::established : Confidence::probable, Layer::kConfiguration,
                            title, "NET-07", "nccl-no-socket-interface");
  candidate.stops_job = true;
  candidate.state = State::init_failure;
  Finding& finding = candidate.finding;
  Accuse(none, &finding);
  CiteAll(job, none, 3, &finding);
  for (const model::Setting* s : settings) CiteSetting(job, *s, &finding);
  OnlyWaited(EventsOf(job, {"torch-store-nccl-id", "torch-store-clients", "nccl-connect-failed", "nccl-connect-retry"}),
             &finding);
  finding.set_refuted_by("an interface that NCCL_SOCKET_IFNAME admits is up with an address on that host");
  return candidate;
}

bool LinkLocal(std::string_view address) {
  return address.starts_with("169.254.") || absl::StartsWithIgnoreCase(Absl(address), "fe80:");
}
bool Loopback(std::string_view address) { return address.starts_with("127.") || address == "::1"; }
// Interfaces that containers and virtual machines make for traffic inside their host. NCCL itself leaves out only lo and docker*.
bool InsideHost(std::string_view name) {
  for (const char* prefix : {"veth", "docker", "br-", "virbr", "cni", "flannel", "cali", "cilium", "lxc", "lxd", "vnet", "kube-",
                             "podman", "tap", "dummy", "nodelocal"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

std::string_view AddressOf(std::string_view peer) {
  if (const size_t port = peer.find('<'); port != peer.npos) peer = peer.substr(0, port);
  if (const size_t zone = peer.find('%'); zone != peer.npos) peer = peer.substr(0, zone);
  return peer;
}

struct Odd {
  std::vector<const model::Event*> choices;
  std::string why;
};

Odd OddChoices(const std::vector<const model::Event*>& choices) {
  Odd odd;
  std::map<std::string, std::set<std::string>, std::less<>> hosts_of;
  for (const model::Event* event : choices) {
    if (!event->by.host.empty()) hosts_of[std::string(event->Field("address"))].insert(event->by.host);
  }
  for (const model::Event* event : choices) {
    const std::string_view name = event->Field("interface"), address = event->Field("address");
    std::string why;
    if (LinkLocal(address))
      why = absl::StrCat(std::string(name), " has a link-local address (", std::string(address),
                         "), which other hosts do not reach");
    if (InsideHost(name))
      why = absl::StrCat(std::string(name), " (", std::string(address), ") is an interface for traffic inside its host");
    if (Loopback(address)) why = absl::StrCat(std::string(name), " (", std::string(address), ") is the loopback");
    if (why.empty() && hosts_of[std::string(address)].size() > 1)
      why = absl::StrCat("two hosts use the same address ", std::string(address), " (", std::string(name), ")");
    if (why.empty()) continue;
    if (odd.why.empty()) odd.why = why;
    odd.choices.push_back(event);
  }
  return odd;
}

std::vector<Candidate> FindInterface(const model::Job& job) {
  if (const auto none = EventsOf(job, {"nccl-no-socket-interface"}); !none.empty()) return {NoneFound(job, none)};
  // Releases that do not check what they found fail one step later, at an address that is none.
  if (const auto bad = EventsOf(job, {"nccl-address-family"}); !bad.empty() && !InterfaceSettings(job).empty())
    return {NoneFound(job, bad)};

  const auto choices = EventsOf(job, {"nccl-bootstrap-using"});
  if (choices.empty()) return {};
  const Odd odd = OddChoices(choices);
  if (odd.choices.empty() || LogHosts(job).size() < 2) return {};
  // A job that came up did so over these addresses.
  if (AnyInitComplete(job) || FirstEvent(job, {"nccl-tests-ok"}) != nullptr) return {};
  std::vector<const model::Event*> failures;
  for (const model::Event* event : EventsOf(job, {"nccl-connect-failed", "nccl-connect-retry"})) {
    for (const model::Event* choice : odd.choices) {
      if (!event->Field("peer").empty() && AddressOf(event->Field("peer")) == choice->Field("address")) {
        failures.push_back(event);
        break;
      }
    }
  }
  // A connection over one of these addresses that was closed had been made: they do reach each other by it.
  for (const model::Event* event : EventsOf(job, {"nccl-socket-closed"})) {
    const std::string_view peer = AddressOf(event->Field("peer"));
    for (const model::Event* choice : odd.choices) {
      if (failures.empty() && !peer.empty() &&
          (peer == choice->Field("address") || (peer == "localhost" && Loopback(choice->Field("address")))))
        return {};
    }
  }
  const bool some = odd.choices.size() < choices.size();
  const Confidence::Value confidence = !failures.empty() ? Confidence::established
                                       : some            ? Confidence::probable
                                                         : Confidence::possible;
  std::string title = absl::StrCat(some ? absl::StrCat(WhoText(odd.choices), " uses") : "NCCL uses",
                                   " a network interface by which the other hosts do not reach it: ", odd.why,
                                   "; NCCL_SOCKET_IFNAME has to name the right one");
  Candidate candidate = Say(Kind::misconfigured, confidence, Layer::kConfiguration, title, "NET-07", "nccl-no-socket-interface");
  candidate.stops_job = true;
  candidate.state = failures.empty() ? State::init_hang : State::init_failure;
  Finding& finding = candidate.finding;
  if (some) {
    Accuse(odd.choices, &finding);
  } else {
    for (const std::string& host : LogHosts(job)) finding.mutable_who()->add_hosts(host);
  }
  CiteAll(job, choices, 4, &finding);
  CiteAll(job, failures, 3, &finding);
  for (const model::Setting* s : InterfaceSettings(job)) CiteSetting(job, *s, &finding);
  OnlyWaited(choices, &finding);
  OnlyWaited(failures, &finding);
  finding.set_refuted_by("a process on another host can connect to that address");
  SetNext(kRemedy, kCommand, &finding);
  return {candidate};
}

const Register kRegister("socket_interface", FindInterface);

}  // namespace
}  // namespace ringscope::reasoning
