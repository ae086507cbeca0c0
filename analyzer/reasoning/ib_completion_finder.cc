// A transfer over InfiniBand or RoCE ended with an error and nothing in this input says why: who reported it only noticed; the
// peer that is named is where to look. Mechanisms with a witness of their own have finders of their own.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/network_text.h"

namespace ringscope::reasoning {
namespace {

// The one end that all failing connections have in common, when at least three differ in the other end; empty: none.
std::string CommonEnd(const std::vector<Completion>& errors) {
  std::set<std::pair<std::string, std::string>> pairs;
  for (const Completion& c : errors) {
    const std::string peer = c.peer_host.empty() ? c.peer : c.peer_host;
    if (peer.empty() || c.event->by.host.empty()) return {};
    pairs.insert(std::minmax(c.event->by.host, peer));
  }
  if (pairs.size() < 3) return {};
  for (const std::string& end : {pairs.begin()->first, pairs.begin()->second}) {
    if (std::all_of(pairs.begin(), pairs.end(), [&](const auto& p) { return p.first == end || p.second == end; })) return end;
  }
  return {};
}

// The host itself reports the same of several others: its processes live, so it is its port or the way to it.
bool ReportsItself(const std::vector<Completion>& errors, const std::string& host) {
  std::set<std::string> others;
  for (const Completion& c : errors) {
    if (c.event->by.host == host) others.insert(c.peer);
  }
  return others.size() > 1;
}

std::vector<Candidate> FindCompletions(const model::Job& job) {
  const std::vector<Completion> all = Completions(job);
  if (all.empty()) return {};
  std::vector<Completion> errors;
  std::vector<const model::Event*> events;
  std::set<std::string> peers;
  for (const Completion& c : all) {
    events.push_back(c.event);
    if (c.status == kFlushed) continue;
    errors.push_back(c);
    if (!c.peer.empty() && peers.size() < 8) peers.insert(PeerText(job, c.peer));
  }
  const Completion& first = errors.empty() ? all.front() : errors.front();
  if (first.status == kLocalProtection) return {};  // a fault of this host's own memory path: gdr_acs_finder

  const std::string common = CommonEnd(errors);
  const bool port = !common.empty() && ReportsItself(errors, common);
  std::string title;
  if (errors.empty()) {
    title =
        "Only flushed transfers (status 5) are in this input: they follow an earlier error of the same connection that is not "
        "here";
  } else if (port) {
    title = absl::StrCat("Every failing connection has one end on ", common,
                         ", whose processes live: its port, or the way to it, does not carry traffic");
  } else {
    title = absl::StrCat("A network transfer failed (status ", first.status, ", ", Absl(WcStatusText(first.status)), ")",
                         peers.empty() ? "" : absl::StrCat("; the peer to look at is ", absl::StrJoin(peers, ", ")),
                         common.empty() ? "" : absl::StrCat(", which all failing connections have in common"),
                         ". Whether it died, lost its link or was never reachable is not in this input");
  }
  Candidate candidate = Say(port ? Kind::edge_failed : Kind::undetermined, Confidence::possible, Layer::kNetwork, title,
                            port ? "NET-01" : "", "nccl-ib-completion");
  candidate.stops_job = true;
  candidate.state = State::crashed;
  candidate.when = first.event->time;
  Finding& finding = candidate.finding;
  if (port) finding.mutable_who()->add_hosts(common);
  CiteCompletions(job, all, 5, &finding);
  OnlyReported(events, &finding);
  finding.set_refuted_by(
      "a witness of the reason: an exit, an Xid or a killed process at the peer, a port event, counters that rise");
  std::string where = peers.empty() ? "the other end of the connection" : *peers.begin();
  const std::string peer_word = first.peer_host.empty() ? first.peer : first.peer_host;
  SetNext(absl::StrCat(
              "The log of ", where,
              " (did its process end first?), the kernel log there, and the port counters of both hosts: which of them comes ",
              "before the first status ", first.status, "."),
          absl::StrCat("ssh ", ShellWord(peer_word.empty() ? "" : peer_word),
                       " 'dmesg -T | grep -iE \"xid|oom|killed|mlx|link\"; ibstat; perfquery -x'"),
          &finding);
  return {candidate};
}

const Register kRegister("ib_completion", FindCompletions);

}  // namespace
}  // namespace ringscope::reasoning
