// A port of an RDMA adapter lost its link: the driver's own event, counters of the link that rose between two snapshots, or a
// port that is down while the job's transfers fail.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <map>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/network_text.h"
#include "analyzer/reasoning/stamp_order.h"

namespace ringscope::reasoning {
namespace {

// A port's life since it was last reset holds a few of each; more than this in a single snapshot is worth a look.
constexpr uint64_t kManyDowns = 3;
constexpr uint64_t kManyErrors = 100;

bool LinkCounter(std::string_view name) {
  for (const char* known :
       {"link_downed", "link_error_recovery", "symbol_error", "port_rcv_errors", "local_link_integrity_errors",
        "carrier_down_count", "link_down_events_phy", "rx_symbol_err_phy", "rx_pcs_symbol_err_phy", "rx_crc_errors_phy"}) {
    if (name == known) return true;
  }
  return false;
}
bool DownCounter(std::string_view name) {
  return name == "link_downed" || name == "carrier_down_count" || name == "link_down_events_phy";
}

std::string Device(const std::string& host, const std::string& device, int port) {
  std::string text = device.empty() ? "a port" : port > 0 ? absl::StrCat(device, ":", port) : device;
  return host.empty() ? text : absl::StrCat(text, " on ", host);
}

// NCCL uses this adapter, as far as its log tells which; without such a log every one counts.
bool Used(const model::Job& job, const std::string& device) {
  const auto& adapters = job.evidence.network.adapters;
  return adapters.empty() || device.empty() ||
         std::any_of(adapters.begin(), adapters.end(), [&](const model::AdapterUse& a) { return a.device == device; });
}

bool BeforeIn(const model::Job& job, const model::Event& a, const model::Event& b) {
  if (a.time.known() && a.time.clock == b.time.clock && a.time.clock == model::Stamp::Clock::kRealtime) {
    // A failure that follows at once may bear an earlier stamp where it is another host's: then the two are one story.
    if (a.where.file == b.where.file || SameHostName(a.by.host, b.by.host)) return a.time.ns <= b.time.ns;
    return !SurelyBefore(job, {b.time, b.by.host}, {a.time, a.by.host});
  }
  return a.where.file != b.where.file || a.where.line < b.where.line;
}

struct Suspects {
  std::map<std::string, int> hosts;  // how many signs
  std::set<std::string> links;
  void Add(const std::string& host, const std::string& link, int weight) {
    if (!host.empty()) hosts[host] += weight;
    if (!link.empty() && links.size() < 16) links.insert(link);
  }
  std::vector<std::string> Most() const {
    std::vector<std::pair<int, std::string>> order;
    for (const auto& [host, n] : hosts) order.emplace_back(-n, host);
    std::sort(order.begin(), order.end());
    std::vector<std::string> names;
    for (const auto& [n, host] : order) names.push_back(host);
    return names;
  }
};

std::vector<Candidate> FindPorts(const model::Job& job) {
  const auto down_events = EventsOf(job, {"nccl-ib-port-error"});
  const auto completions = Completions(job);
  const Completion* error = FirstError(completions);
  Suspects suspects;
  for (const model::Event* e : down_events) {
    const std::string hca(e->Field("hca"));
    suspects.Add(e->by.host, hca.empty() ? "" : Device(e->by.host, hca, static_cast<int>(e->Number("port").value_or(0))), 1);
  }
  std::vector<model::CounterChange> rises;
  for (const model::CounterChange& c : model::CounterChanges(job.evidence)) {
    if (c.delta == 0 || !LinkCounter(c.after->name) || !Used(job, c.after->device)) continue;
    if (!DownCounter(c.after->name) && c.delta < kManyErrors) continue;
    rises.push_back(c);
    suspects.Add(c.after->by.host, Device(c.after->by.host, c.after->device, c.after->port), 2);
  }
  std::vector<const model::RdmaPort*> down;
  for (const model::RdmaPort& p : job.evidence.network.ports) {
    // Only a port that NCCL's log names, or one whose siblings of the same name are up elsewhere, was meant to be used.
    if (!p.Down() || !Used(job, p.device)) continue;
    const bool named = !job.evidence.network.adapters.empty();
    const bool up_elsewhere =
        std::any_of(job.evidence.network.ports.begin(), job.evidence.network.ports.end(), [&](const model::RdmaPort& q) {
          return q.device == p.device && q.port == p.port && q.by.host != p.by.host && !q.Down();
        });
    if (named || up_elsewhere) down.push_back(&p);
  }
  if (error != nullptr) {
    for (const model::RdmaPort* p : down) suspects.Add(p->by.host, Device(p->by.host, p->device, p->port), 2);
  }
  // Totals of one snapshot: a hint, and only where transfers fail.
  std::vector<const model::NetworkCounter*> totals;
  if (rises.empty() && error != nullptr) {
    for (const model::NetworkCounter& c : job.evidence.network.counters) {
      if (LinkCounter(c.name) && Used(job, c.device) && c.value >= (DownCounter(c.name) ? kManyDowns : kManyErrors))
        totals.push_back(&c);
    }
  }
  const bool witness = !down_events.empty() || !rises.empty() || (error != nullptr && !down.empty());
  if (!witness && totals.empty()) return {};
  if (!witness) {
    for (const model::NetworkCounter* c : totals) suspects.Add(c->by.host, Device(c->by.host, c->device, c->port), 1);
  }

  // The event must come before the transfer that failed.
  const bool before = error != nullptr && std::any_of(down_events.begin(), down_events.end(),
                                                      [&](const model::Event* e) { return BeforeIn(job, *e, *error->event); });
  const int kinds = !down_events.empty() + !rises.empty() + !down.empty() +
                    (FirstEvent(job, {"kernel-nic-link-down", "kernel-nic-module"}) != nullptr);
  const Confidence::Value confidence = !witness                                    ? Confidence::possible
                                       : kinds > 1 && (before || error != nullptr) ? Confidence::established
                                       : before || (error != nullptr && !rises.empty()) || down_events.size() > 1
                                           ? Confidence::probable
                                           : Confidence::possible;
  const std::vector<std::string> hosts = suspects.Most();
  std::vector<std::string> top(hosts.begin(), hosts.begin() + std::min<size_t>(hosts.size(), 4));
  const std::string on =
      top.empty() ? "" : absl::StrCat(" on ", absl::StrJoin(top, ", "), hosts.size() > top.size() ? " and others" : "");
  std::string title;
  if (!down_events.empty()) {
    title = absl::StrCat("Network link lost: the driver reported a port error", on, " (", down_events.size(),
                         down_events.size() == 1 ? " time" : " times", before ? ", before the first transfer failed)" : ")");
  } else if (!rises.empty()) {
    title = absl::StrCat("Network link faulty", on, ": ", rises.front().after->name, " rose by ", rises.front().delta,
                         " between two snapshots");
  } else if (!down.empty()) {
    title = absl::StrCat("Network port ", *suspects.links.begin(), " is down while transfers fail");
  } else {
    title = absl::StrCat("Transfers fail and link error counters are not zero", on,
                         ": the link may be faulty; the totals do not say when they rose");
  }
  const bool errors_only = down_events.empty() && down.empty() &&
                           std::none_of(rises.begin(), rises.end(), [](const auto& c) { return DownCounter(c.after->name); }) &&
                           !rises.empty();
  Candidate candidate =
      Say(Kind::edge_failed, confidence, Layer::kHardware, title, errors_only ? "NET-09" : "NET-01", "nccl-ib-port-error");
  candidate.stops_job = witness;
  if (!witness) candidate.layer = Layer::kNetwork;
  if (error == nullptr && down_events.empty()) candidate.order = Class::kSlow;
  candidate.state = error != nullptr ? State::crashed : State::unknown;
  if (!down_events.empty()) candidate.when = down_events.front()->time;
  Finding& finding = candidate.finding;
  for (const std::string& host : top) finding.mutable_who()->add_hosts(host);
  for (const std::string& link : suspects.links) finding.mutable_who()->add_links(link);
  CiteAll(job, down_events, 4, &finding);
  for (size_t i = 0; i < rises.size() && i < 6; ++i) {
    const auto& c = rises[i];
    Cite(job, c.after->where,
         absl::StrCat(Device(c.after->by.host, c.after->device, c.after->port), " ", c.after->name, ": ", c.before->value,
                      " -> ", c.after->value, " (", job.evidence.PlaceText(c.before->where), ")"),
         &finding);
  }
  for (size_t i = 0; i < down.size() && i < 4; ++i)
    Cite(job, down[i]->where,
         absl::StrCat(Device(down[i]->by.host, down[i]->device, down[i]->port), " state ", down[i]->state, " ",
                      down[i]->physical_state),
         &finding);
  for (size_t i = 0; i < totals.size() && i < 4; ++i)
    Cite(job, totals[i]->where,
         absl::StrCat(Device(totals[i]->by.host, totals[i]->device, totals[i]->port), " ", totals[i]->name, " ",
                      totals[i]->value),
         &finding);
  CiteAll(job, EventsOf(job, {"nccl-ib-port-active", "nccl-ib-gid-change"}), 2, &finding);
  CiteAll(job, EventsOf(job, {"kernel-nic-link-down", "kernel-nic-module"}), 2, &finding);
  CiteCompletions(job, completions, 3, &finding);
  std::vector<const model::Event*> reporters;
  for (const Completion& c : completions) reporters.push_back(c.event);
  OnlyReported(reporters, &finding);
  finding.set_refuted_by("the failing connections do not use that port, or its counters stay flat while they fail");
  SetNext(absl::StrCat("Cable, optic and switch port of the link", on,
                       ": counters of both ends (ibqueryerrors, UFM), twice some minutes apart."),
          absl::StrCat("ibqueryerrors; ", top.empty() ? "" : absl::StrCat("ssh ", ShellWord(top.front()), " "),
                       "'ibstat; perfquery -x; mlxlink -d <device> -c -e'"),
          &finding);
  return {candidate};
}

const Register kRegister("ib_port", FindPorts);

}  // namespace
}  // namespace ringscope::reasoning
