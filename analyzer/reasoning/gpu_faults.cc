#include "analyzer/reasoning/gpu_faults.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/stamp_order.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

using catalog::XidEntry;
using model::XidFact;

constexpr int64_t kSecond = 1'000'000'000;
// Faults of one moment: what one broken link or switch makes several GPUs report (log sheet: "within about 1 s").
constexpr int64_t kMoment = 3 * kSecond / 2;
// A GPU that leaves the bus takes its links with it: either may be told first.
constexpr int64_t kBusFirst = 2 * kSecond;
// Faults further apart belong to different stories; longer than the longest usual timeout (30 min) would join jobs.
constexpr int64_t kOtherStory = 30 * 60 * kSecond;
// A fault this long after the job's own end was made by the end. Clocks of kernel and log differ by less.
constexpr int64_t kAfterEnd = 5 * kSecond;
constexpr int64_t kLongestTeardown = 3600 * kSecond;
// A fatal fault stops the job at once: an operation that began this much later shows that the job lived on.
constexpr int64_t kSameFault = 30 * 60 * kSecond;

GpuFault Classified(const model::Job& job, const XidFact& fact) {
  GpuFault fault;
  fault.fact = &fact;
  fault.number = fact.number;
  if (fact.nvswitch) {
    fault.part = XidEntry::nvlink;
    const catalog::SxidEntry* entry = catalog::FindSxid(fact.number);
    const bool fatal = fact.severity == XidFact::Severity::kFatal;
    fault.role = entry != nullptr && entry->role() == XidEntry::collateral           ? XidEntry::collateral
                 : fatal                                                             ? XidEntry::initiating
                 : fact.severity == XidFact::Severity::kNonfatal || entry == nullptr ? XidEntry::precursor
                                                                                     : entry->role();
    return fault;
  }
  fault.rank = RankOfFault(job, fact);
  fault.entry = catalog::FindXid(fact.number);
  if (fault.entry != nullptr && fault.entry->role() == XidEntry::collateral && fact.caused_by > 0) {
    if (const XidEntry* before = catalog::FindXid(fact.caused_by); before != nullptr) {
      // The line of the fault itself may have left the ring buffer.
      const auto& all = job.evidence.kernel.xids;
      const bool told = std::any_of(all.begin(), all.end(), [&](const XidFact& other) {
        return !other.nvswitch && other.number == fact.caused_by && other.bus_id == fact.bus_id && other.by.host == fact.by.host;
      });
      if (!told) {
        fault.implied = true;
        fault.number = fact.caused_by;
        fault.entry = before;
      }
    }
  }
  if (fault.entry == nullptr) {
    fault.role = XidEntry::initiating;
    return fault;
  }
  fault.role = fault.entry->role();
  fault.part = fault.entry->part();
  // NVLink 5 errors say themselves whether they end anything.
  if (fault.part == XidEntry::nvlink && fact.severity == XidFact::Severity::kNonfatal) fault.role = XidEntry::precursor;
  return fault;
}

bool Begins(const GpuFault& f) { return f.role == XidEntry::initiating; }
bool OwnStory(const GpuFault& f) {
  return f.role == XidEntry::initiating || f.role == XidEntry::secondary || f.role == XidEntry::application;
}
bool SameHost(const GpuFault& a, const GpuFault& b) {
  return a.fact->by.host == b.fact->by.host && (!a.fact->by.host.empty() || a.fact->where.file == b.fact->where.file);
}
bool SameDevice(const GpuFault& a, const GpuFault& b) {
  if (!SameHost(a, b) || a.fact->nvswitch != b.fact->nvswitch) return false;
  // "0000:97:00" and "0000:97:00.0".
  if (a.fact->bus_id.has_value() && b.fact->bus_id.has_value()) return (*a.fact->bus_id | 0xf) == (*b.fact->bus_id | 0xf);
  return a.fact->pci == b.fact->pci;
}
std::optional<int64_t> Between(const GpuFault& a, const GpuFault& b) {
  return NsBetween(a.fact->time, b.fact->time, SameHost(a, b));
}
// Within `span` of each other; lines without times stand together in one log.
bool Near(const GpuFault& a, const GpuFault& b, int64_t span) {
  const auto ns = Between(a, b);
  if (ns.has_value()) return std::abs(*ns) <= span;
  return a.fact->where.file == b.fact->where.file && !a.fact->time.known() && !b.fact->time.known();
}

// Whether a kernel log of this host can be about the ranks of the log. Containers have names of their own, so another name alone
// is no contradiction; it is one when ranks are missing from the log: they may be the ones on this host.
bool HostFits(const model::Evidence& evidence, std::string_view host) {
  if (host.empty()) return true;
  std::set<int> ranks;
  int total = 0;
  for (const model::LogRank& r : evidence.log_ranks) {
    if (r.split) continue;
    const std::string_view name(r.by.host);
    if (name.empty() || name.substr(0, name.find('.')) == host.substr(0, host.find('.'))) return true;
    if (r.n_ranks == 0) return true;  // a person's note
    total = std::max(total, r.n_ranks);
    ranks.insert(r.rank);
  }
  return static_cast<int>(ranks.size()) >= total;
}

// Puts faults of several files into one order where all of their clocks allow it.
void SortByTime(std::vector<GpuFault>* faults, bool* unknown) {
  bool comparable = true, several = false;
  for (const GpuFault& f : *faults) {
    comparable &= Between(faults->front(), f).has_value();
    several |= f.fact->where.file != faults->front().fact->where.file;
  }
  if (!several) return;  // one kernel log is in order
  *unknown = !comparable;
  if (!comparable) return;
  const model::Stamp start = faults->front().fact->time;
  std::stable_sort(faults->begin(), faults->end(), [&](const GpuFault& a, const GpuFault& b) {
    return NsBetween(start, a.fact->time, true).value_or(0) < NsBetween(start, b.fact->time, true).value_or(0);
  });
}

// First and last index of the faults that belong to the story to tell: the last one, for a log reaches back over earlier jobs.
std::pair<size_t, size_t> LastStory(const std::vector<GpuFault>& faults) {
  size_t begin = 0, previous = faults.size();
  for (size_t i = 0; i < faults.size(); ++i) {
    if (!OwnStory(faults[i])) continue;
    if (previous < faults.size()) {
      const GpuFault& p = faults[previous];
      const auto gap = NsBetween(p.fact->last_time, faults[i].fact->time, SameHost(p, faults[i]));
      if (gap.has_value() && *gap > kOtherStory) begin = i;
    }
    previous = i;
  }
  return {begin, faults.size()};
}

int Root(const std::vector<GpuFault>& faults, size_t begin, size_t end) {
  const auto first = [&](auto is) {
    for (size_t i = begin; i < end; ++i) {
      if (is(faults[i])) return static_cast<int>(i);
    }
    return -1;
  };
  int root = first(Begins);
  if (root >= 0) {
    const GpuFault& earliest = faults[root];
    const auto better = [&](auto is) {
      for (size_t i = begin; i < end; ++i) {
        if (Begins(faults[i]) && Near(earliest, faults[i], kBusFirst) && is(faults[i])) return static_cast<int>(i);
      }
      return -1;
    };
    if (earliest.part == XidEntry::nvlink) {
      if (const int lost = better([](const GpuFault& f) { return f.part == XidEntry::bus && f.number == 79; }); lost >= 0)
        return lost;
      // Of NVLink 5's many reports 149 is the one that names the link that broke.
      if (earliest.number != 149 && earliest.number != 74) {
        if (const int named = better([](const GpuFault& f) { return f.number == 149; }); named >= 0) return named;
      }
      // A line of its own tells more than "caused by previous Xid".
      if (earliest.implied) {
        if (const int own = better([&](const GpuFault& f) { return f.part == XidEntry::nvlink && !f.implied; }); own >= 0)
          return own;
      }
    }
    return root;
  }
  root = first([](const GpuFault& f) { return f.role == XidEntry::secondary && f.part == XidEntry::nvlink; });
  if (root >= 0) return root;
  root = first([](const GpuFault& f) { return f.role == XidEntry::application; });
  return root >= 0 ? root : first(OwnStory);
}

void PlaceInJob(const model::Job& job, Incident* incident) {
  const GpuFault& root = incident->faults[incident->root];
  // The first timeout ends the wait; what comes after it is the job being torn down. An error that CUDA reported is no end.
  int64_t after = 0;
  bool long_before = false;
  for (const Complaint& c : Complaints(job)) {
    const auto ns = NsBetween(c.time, root.fact->time, root.fact->by.host == c.by.host);
    if (!ns.has_value()) continue;
    if (!c.timeout) {
      incident->before_stall |= std::abs(*ns) <= kSameFault;
    } else if (*ns > kAfterEnd) {
      // Beyond an hour clocks of two zones are likelier than a teardown that long.
      if (*ns <= kLongestTeardown && *ns > after) {
        after = *ns;
        incident->end = c.where;
      }
    } else if (*ns >= -c.stalled_since_ns - kSameFault) {
      incident->before_stall = true;
    } else {
      long_before = true;
    }
  }
  if (after > 0) {
    incident->after_end_s = static_cast<double>(after) / kSecond;
    incident->before_stall = false;
  }
  incident->long_before = long_before && !incident->before_stall && after == 0;
}

}  // namespace

Incident FindIncident(const model::Job& job) {
  Incident incident;
  for (const XidFact& fact : job.evidence.kernel.xids) incident.faults.push_back(Classified(job, fact));
  if (incident.faults.empty()) return incident;
  SortByTime(&incident.faults, &incident.order_unknown);
  const auto [begin, end] = LastStory(incident.faults);
  incident.root = Root(incident.faults, begin, end);
  if (incident.root < 0) return incident;
  const GpuFault& root = incident.faults[incident.root];
  // "First" across hosts needs clocks that tell; faults that are one moment apart are told together.
  for (size_t i = begin; i < end; ++i) {
    const GpuFault& other = incident.faults[i];
    if (!Begins(root) || !Begins(other) || SameHost(root, other) || Near(root, other, kMoment)) continue;
    incident.order_unknown |= !SurelyBefore(job, {root.fact->time, root.fact->by.host}, {other.fact->time, other.fact->by.host});
  }
  incident.together.push_back(incident.root);
  for (size_t i = begin; i < end; ++i) {
    const GpuFault& other = incident.faults[i];
    if (other.role != root.role || other.part != root.part || !Near(root, other, kMoment)) continue;
    const bool known = std::any_of(incident.together.begin(), incident.together.end(),
                                   [&](int k) { return SameDevice(incident.faults[k], other); });
    if (!known) incident.together.push_back(static_cast<int>(i));
  }
  for (const GpuFault& f : incident.faults) {
    if (f.role == XidEntry::instruction && SameDevice(f, root) && !f.fact->action.empty() && f.fact->action != "None")
      incident.action = f.fact->action;
  }
  PlaceInJob(job, &incident);
  return incident;
}

int RankOfProcess(const model::Job& job, std::string_view host, int64_t pid) {
  if (pid < 0) return -1;
  int found = -1;
  bool several = false;
  const auto offer = [&](const model::Speaker& by, int rank) {
    if (by.pid != pid || rank < 0) return;
    if (!host.empty() && !by.host.empty() &&
        host.substr(0, host.find('.')) != std::string_view(by.host).substr(0, by.host.find('.')))
      return;
    several |= found >= 0 && found != rank;
    found = rank;
  };
  for (const model::LogRank& r : job.evidence.log_ranks) {
    if (!r.split) offer(r.by, r.rank);
  }
  for (const model::Event& e : job.evidence.events) offer(e.by, e.by.rank);
  for (const model::ProcessEnd& e : job.evidence.work.ends) offer(e.by, e.ranks.size() == 1 ? e.ranks[0] : -1);
  return several ? -1 : found;
}

int RankOfFault(const model::Job& job, const XidFact& fact) {
  if (fact.nvswitch) return -1;
  const model::Evidence& evidence = job.evidence;
  if (fact.bus_id.has_value()) {
    const int told = model::RankOfGpu(evidence, fact.by.host, *fact.bus_id);
    if (told >= 0 && HostFits(evidence, fact.by.host)) return told;
    // "Channel 00 : 2[3b000] -> 3[5e000]": up to 2.18 the brackets hold bus ids, from 2.18.3 on indices of one or two digits.
    int found = -1;
    bool several = false;
    const auto offer = [&](const std::string& bracket, int rank) {
      if (bracket.size() < 4 || model::ParseNcclBusId(bracket) != fact.bus_id) return;
      several |= found >= 0 && found != rank;
      found = rank;
    };
    for (const model::TransportLine& t : evidence.plan.transports) {
      if (!fact.by.host.empty() && !t.by.host.empty() && fact.by.host != t.by.host) continue;
      offer(t.from_bracket, t.from);
      offer(t.to_bracket, t.to);
    }
    if (found >= 0 && !several) return found;
  }
  return RankOfProcess(job, fact.by.host, fact.pid);
}

std::string NumberText(const GpuFault& fault) { return absl::StrCat(fault.fact->nvswitch ? "SXid " : "Xid ", fault.number); }

std::string DeviceText(const GpuFault& fault) {
  const XidFact& fact = *fault.fact;
  std::string text = fact.nvswitch ? "NVSwitch" : "GPU";
  if (fact.bus_id.has_value()) {
    absl::StrAppend(&text, " ", model::BusIdText(*fact.bus_id));
  } else if (!fact.pci.empty()) {
    absl::StrAppend(&text, " ", fact.pci);
  } else {
    text = fact.nvswitch ? "an NVSwitch" : "a GPU whose address the line does not tell";
  }
  if (fault.rank >= 0 && !fact.by.host.empty()) {
    absl::StrAppend(&text, " (rank ", fault.rank, " on ", fact.by.host, ")");
  } else if (fault.rank >= 0) {
    absl::StrAppend(&text, " (rank ", fault.rank, ")");
  } else if (!fact.by.host.empty()) {
    absl::StrAppend(&text, " on ", fact.by.host);
  }
  return text;
}

void CiteFault(const model::Job& job, const GpuFault& fault, Finding* finding) {
  std::string text = fault.fact->quote;
  if (fault.fact->repeats > 0) absl::StrAppend(&text, " (and ", fault.fact->repeats, " more such lines)");
  Cite(job, fault.fact->where, std::move(text), finding);
  if (fault.rank >= 0) finding->mutable_evidence(finding->evidence_size() - 1)->set_rank(fault.rank);
}

void CiteOthers(const model::Job& job, const Incident& incident, size_t most, Finding* finding) {
  size_t cited = 0, left = 0;
  for (size_t i = 0; i < incident.faults.size(); ++i) {
    if (std::count(incident.together.begin(), incident.together.end(), static_cast<int>(i)) > 0) continue;
    if (cited < most) {
      CiteFault(job, incident.faults[i], finding);
      ++cited;
    } else {
      ++left;
    }
  }
  if (left > 0) Cite(job, incident.faults.back().fact->where, absl::StrCat("… and ", left, " more lines of the driver"), finding);
}

void NameDevice(const GpuFault& fault, bool with_rank, Finding* finding) {
  Who& who = *finding->mutable_who();
  const XidFact& fact = *fault.fact;
  const std::string device = fact.bus_id.has_value() ? model::BusIdText(*fact.bus_id) : fact.pci;
  if (with_rank && fault.rank >= 0 && std::count(who.ranks().begin(), who.ranks().end(), fault.rank) == 0)
    who.add_ranks(fault.rank);
  if (!fact.by.host.empty() && std::count(who.hosts().begin(), who.hosts().end(), fact.by.host) == 0) who.add_hosts(fact.by.host);
  if (!fact.nvswitch && !device.empty() && std::count(who.gpus().begin(), who.gpus().end(), device) == 0) who.add_gpus(device);
  if (fact.link >= 0) who.add_links(absl::StrCat(fact.nvswitch ? "NVSwitch " : "GPU ", device, " link ", fact.link));
}

void OthersWaited(const model::Job& job, Finding* finding) {
  std::set<int> ranks;
  for (const model::LogRank& r : job.evidence.log_ranks) {
    if (!r.split && r.rank >= 0) ranks.insert(r.rank);
  }
  for (const model::Event& e : job.evidence.events) {
    if (e.by.rank >= 0) ranks.insert(e.by.rank);
  }
  for (const Complaint& c : Complaints(job)) {
    if (c.by.rank >= 0) ranks.insert(c.by.rank);
  }
  for (const int rank : finding->who().ranks()) ranks.erase(rank);
  AddRanks(ranks, finding->mutable_collateral()->mutable_ranks());
}

std::vector<Complaint> Complaints(const model::Job& job) {
  std::vector<Complaint> complaints;
  for (const model::Event& e : job.evidence.events) {
    if (!absl::StartsWith(e.signature, "cuda-") || e.signature == "cuda-capture-error") continue;
    complaints.push_back({e.where, e.text, e.time, e.by, false, 0});
  }
  for (const model::WorkTimeout& t : job.evidence.work.timeouts)
    complaints.push_back({t.where, t.text, t.time, t.by, true, t.ran_ms * 1'000'000});
  return complaints;
}

void CiteComplaints(const model::Job& job, const std::vector<Complaint>& complaints, size_t most, Finding* finding) {
  std::set<int> ranks;
  size_t cited = 0;
  for (const bool timeout : {false, true}) {
    for (const Complaint& c : complaints) {
      if (c.timeout != timeout || cited >= most) continue;
      if (!ranks.insert(c.by.rank).second && cited > 0) continue;
      Cite(job, c.where, c.text, finding);
      if (c.by.rank >= 0) finding->mutable_evidence(finding->evidence_size() - 1)->set_rank(c.by.rank);
      ++cited;
    }
  }
}

}  // namespace ringscope::reasoning
