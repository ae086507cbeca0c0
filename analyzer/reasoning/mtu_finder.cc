// The two ends of a connection use different MTUs: requests larger than the smaller one are rejected, or vanish on the way.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <map>
#include <utility>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/network_text.h"

namespace ringscope::reasoning {
namespace {

struct Reading {
  int mtu = 0;
  std::string host;
  std::string text;
  model::Where where;
};

// Readings of one thing (an adapter, an interface) on the hosts; empty when all agree or only one host is seen.
std::vector<Reading> Disagreement(const std::vector<Reading>& all) {
  std::map<int, std::vector<const Reading*>> by_mtu;
  for (const Reading& r : all) by_mtu[r.mtu].push_back(&r);
  if (by_mtu.size() < 2) return {};
  // One host that shows two values (before and after a change) is no disagreement between hosts.
  std::vector<Reading> chosen;
  for (const auto& [mtu, readings] : by_mtu) chosen.push_back(*readings.front());
  const bool two_hosts =
      std::any_of(chosen.begin(), chosen.end(), [&](const Reading& r) { return r.host != chosen.front().host; });
  return two_hosts ? chosen : std::vector<Reading>{};
}

std::vector<Candidate> FindMtu(const model::Job& job) {
  const auto completions = Completions(job);
  const Completion* error = FirstError(completions);
  const auto fatal = EventsOf(job, {"nccl-ib-async-fatal"});
  const bool rdma_failed = error != nullptr || !fatal.empty();
  const auto closed = EventsOf(job, {"nccl-socket-closed", "nccl-socket-failed", "nccl-connect-failed"});

  std::map<std::string, std::vector<Reading>> ports, pairs, interfaces;
  for (const model::RdmaPort& p : job.evidence.network.ports) {
    if (p.active_mtu > 0)
      ports[absl::StrCat(p.device, ":", p.port)].push_back(
          {p.active_mtu, p.by.host, absl::StrCat(p.by.host, " ", p.device, ":", p.port, " active_mtu ", p.active_mtu),
           p.mtu_where});
  }
  for (const model::QueuePair& qp : job.evidence.network.queue_pairs) {
    if (const int mtu = model::MtuOfCode(qp.mtu_code))
      pairs[absl::StrCat("adapter ", qp.device)].push_back(
          {mtu, qp.by.host, absl::StrCat(qp.by.host, " NCCL: mtu ", qp.mtu_code, " (", mtu, ")"), qp.where});
  }
  std::set<std::string> used;  // interfaces that NCCL names
  for (const model::ProcessAddress& a : job.evidence.network.addresses) used.insert(a.interface);
  for (const model::NetworkInterface& i : job.evidence.network.interfaces) {
    if (i.mtu > 0 && used.count(i.name) > 0)
      interfaces[i.name].push_back({i.mtu, i.by.host, absl::StrCat(i.by.host, " ", i.name, " mtu ", i.mtu), i.where});
  }
  std::vector<Reading> evidence;
  std::string what;
  int sources = 0;
  const auto look = [&](const std::map<std::string, std::vector<Reading>>& tables) {
    bool any = false;
    for (const auto& [name, readings] : tables) {
      for (Reading& r : Disagreement(readings)) {
        if (what.empty()) what = name;
        evidence.push_back(std::move(r));
        any = true;
      }
    }
    sources += any;
  };
  if (rdma_failed) {
    look(ports);
    look(pairs);
  }
  const bool rdma = !evidence.empty();
  if (rdma_failed || !closed.empty()) look(interfaces);
  if (evidence.empty()) return {};
  std::vector<std::string> words;
  for (const Reading& r : evidence) {
    if (words.size() < 4) words.push_back(absl::StrCat(r.host.empty() ? "one end" : r.host, " ", r.mtu));
  }
  const Confidence::Value confidence = sources > 1 && rdma ? Confidence::established
                                       : rdma              ? Confidence::probable
                                                           : Confidence::possible;
  Candidate candidate = Say(Kind::misconfigured, confidence, Layer::kConfiguration,
                            absl::StrCat("The MTU differs between the hosts (", what, ": ", absl::StrJoin(words, ", "),
                                         "): the smaller end rejects or loses what the larger sends"),
                            "NET-03", "nccl-ib-async-fatal");
  candidate.stops_job = true;
  candidate.state = State::crashed;
  Finding& finding = candidate.finding;
  for (size_t i = 0; i < evidence.size() && i < 6; ++i) Cite(job, evidence[i].where, evidence[i].text, &finding);
  CiteAll(job, fatal, 2, &finding);
  CiteCompletions(job, completions, 3, &finding);
  if (!rdma) CiteAll(job, closed, 2, &finding);
  std::vector<const model::Event*> reporters = fatal;
  for (const Completion& c : completions) reporters.push_back(c.event);
  OnlyReported(reporters, &finding);
  finding.set_refuted_by("the same error after both ends were given the same MTU");
  SetNext(
      "Give the interfaces of both hosts, and the switch ports between them, the same MTU (active_mtu must agree), then run "
      "again.",
      "ibv_devinfo | grep -E 'hca_id|active_mtu'; ip link show; ping -M do -s 8972 <other host>", &finding);
  return {candidate};
}

const Register kRegister("mtu", FindMtu);

}  // namespace
}  // namespace ringscope::reasoning
