// Runs all finders and puts what they found into causal order: the initiating finding first, what
// it explains behind it.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analyzer/model/safe_math.h"
#include "analyzer/reasoning/case_commands.h"
#include "analyzer/reasoning/checks.h"
#include "analyzer/reasoning/finder.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/quiet.h"
#include "analyzer/reasoning/rivals.h"
#include "analyzer/reasoning/young.h"

namespace ringscope::reasoning {
namespace {

struct Entry {
  const char* name;
  FindFn find;
};
std::vector<Entry>& Finders() {
  static auto& finders = *new std::vector<Entry>;
  return finders;
}

bool ProcessKind(Kind::Value kind) {
  return kind == Kind::process_exited || kind == Kind::process_stopped;
}

std::set<int> Ranks(const Finding& f) { return {f.who().ranks().begin(), f.who().ranks().end()}; }
std::set<std::pair<int, int>> Edges(const Finding& f) {
  std::set<std::pair<int, int>> edges;
  for (const EdgeName& e : f.who().edges()) edges.insert({e.from(), e.to()});
  return edges;
}
std::set<std::string> Hosts(const Finding& f) {
  return {f.who().hosts().begin(), f.who().hosts().end()};
}
std::set<std::string> Communicators(const Finding& f) {
  return {f.who().communicators().begin(), f.who().communicators().end()};
}

// ---- duplicates
bool Same(const Candidate& a, const Candidate& b) {
  const Finding &x = a.finding, &y = b.finding;
  if (x.kind() != y.kind() || x.past() != y.past()) return false;
  // Two finders see an unmatched message from two sides: the counts, and where the waiting ends.
  if (x.kind() == Kind::p2p_unmatched && a.communicator == b.communicator && a.stops_job &&
      b.stops_job)
    return true;
  if (x.kind() == Kind::undetermined)
    return a.communicator == b.communicator && x.title() == y.title();
  // What text says of one kind can be several things: two settings that are wrong, two harmless lines.
  if (x.kind() == Kind::none) return x.title() == y.title();
  if ((a.layer != Layer::kUnset || b.layer != Layer::kUnset) && x.cause().id() != y.cause().id()) return false;
  if (Ranks(x) != Ranks(y) || Edges(x) != Edges(y) || Hosts(x) != Hosts(y)) return false;
  if (Ranks(x).empty() && Edges(x).empty() && Hosts(x).empty())
    return Communicators(x) == Communicators(y);
  // One rank can be slow, or its calls differ, in several communicators: each is a statement of its
  // own.
  return a.communicator == b.communicator || a.communicator < 0 || b.communicator < 0 ||
         ProcessKind(x.kind());
}

void Absorb(Candidate* kept, const Candidate& other) {
  Finding& f = kept->finding;
  const Finding& o = other.finding;
  if (f.who().ranks().empty()) *f.mutable_who()->mutable_ranks() = o.who().ranks();
  if (f.who().edges().empty()) *f.mutable_who()->mutable_edges() = o.who().edges();
  for (const std::string& name : o.who().communicators()) {
    if (Communicators(f).count(name) == 0) f.mutable_who()->add_communicators(name);
  }
  const std::set<int> named = Ranks(f);
  std::set<int> collateral(f.collateral().ranks().begin(), f.collateral().ranks().end());
  collateral.insert(o.collateral().ranks().begin(), o.collateral().ranks().end());
  for (int rank : named) collateral.erase(rank);
  f.mutable_collateral()->clear_ranks();
  AddRanks(collateral, f.mutable_collateral()->mutable_ranks());
  for (const Evidence& e : o.evidence()) {
    const bool known = std::any_of(
        f.evidence().begin(), f.evidence().end(),
        [&](const Evidence& have) { return have.text() == e.text() && have.rank() == e.rank(); });
    if (!known) *f.add_evidence() = e;
  }
  kept->stops_job |= other.stops_job;
}

std::vector<Candidate> DropDuplicates(std::vector<Candidate> candidates) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) {
                     return std::make_pair(a.order, -static_cast<int>(a.finding.confidence())) <
                            std::make_pair(b.order, -static_cast<int>(b.finding.confidence()));
                   });
  std::vector<Candidate> kept;
  for (Candidate& c : candidates) {
    auto it =
        std::find_if(kept.begin(), kept.end(), [&](const Candidate& k) { return Same(k, c); });
    if (it == kept.end()) {
      kept.push_back(std::move(c));
    } else {
      Absorb(&*it, c);
    }
  }
  return kept;
}

// ---- order
bool NotLater(const Candidate& a, const Candidate& b) {
  return a.communicator != b.communicator || a.position == 0 || b.position == 0 ||
         a.position <= b.position;
}

// The rank that a stall finding names is why the message has no partner (yet).
bool MessageAwaitsNamedRank(const Candidate& message, const Candidate& stall) {
  if (message.finding.kind() != Kind::p2p_unmatched || stall.finding.kind() == Kind::p2p_unmatched)
    return false;
  if (stall.finding.kind() != Kind::missing_rank && !ProcessKind(stall.finding.kind()))
    return false;
  const std::set<int> named = Ranks(stall.finding);
  for (int rank : message.finding.who().ranks()) {
    if (named.count(rank)) return true;
  }
  for (const EdgeName& e : message.finding.who().edges()) {
    if (named.count(e.from()) || named.count(e.to())) return true;
  }
  return false;
}

// Ranks that only waited in the stall, and ended later: by a timeout, by hand, by the launcher. (A
// process whose end stops others is no collateral: liveness findings say so themselves.)
bool DiedWaiting(const Candidate& stall, const Candidate& death) {
  if (stall.order != Class::kStall || !stall.stops_job) return false;
  if (death.stops_job || death.finding.kind() != Kind::process_exited) return false;
  const auto& waited = stall.finding.collateral().ranks();
  const auto& dead = death.finding.who().ranks();
  return !dead.empty() && std::all_of(dead.begin(), dead.end(), [&](int rank) {
    return std::count(waited.begin(), waited.end(), rank) > 0;
  });
}

// Where a finding from records stands among the layers that findings from text name.
Layer LayerOf(const Candidate& c) {
  if (c.layer != Layer::kUnset) return c.layer;
  switch (c.order) {
    case Class::kMismatch:
      return Layer::kProgram;
    case Class::kLiveness:
      return Layer::kHost;
    case Class::kError:
      return Layer::kNetwork;
    default:
      return Layer::kReport;
  }
}

bool Definite(const Candidate& c) {
  return c.finding.kind() != Kind::undetermined && c.finding.kind() != Kind::none;
}

// Both name ranks, and none in common: two faults, unless one of them only waits.
bool OfOtherRanks(const Candidate& a, const Candidate& b) {
  const std::set<int> x = Ranks(a.finding), y = Ranks(b.finding);
  return !x.empty() && !y.empty() && LayerOf(b) < Layer::kNetwork &&
         std::none_of(x.begin(), x.end(), [&](int rank) { return y.count(rank) > 0; });
}

// One fault and what it leaves behind, told by different witnesses: the driver's line about a GPU's NVLink, and that GPU's error
// counters, its inactive links, edges that NCCL plans around them.
bool LeftBehind(const Candidate& a, const Candidate& b) {
  const std::string &cause = a.finding.cause().id(), &trace = b.finding.cause().id();
  // A link that lacks lanes is what the GPUs at its two ends lack.
  if (cause == "HW-02" && trace == "HW-02") {
    std::set<int> ends;
    for (const auto& [from, to] : Edges(a.finding)) ends.insert({from, to});
    const std::set<int> end = Ranks(b.finding);
    return ends.size() == 2 && end.size() == 1 && ends.count(*end.begin()) > 0 && Edges(b.finding).empty();
  }
  if (cause != "HW-01" || (trace != "HW-02" && trace != "HW-03")) return false;
  if (!Ranks(a.finding).empty() || !Ranks(b.finding).empty()) return Ranks(a.finding) == Ranks(b.finding);
  const auto same = [](const auto& x, const auto& y) { return x.size() == 1 && y.size() == 1 && x[0] == y[0]; };
  return same(a.finding.who().hosts(), b.finding.who().hosts()) && same(a.finding.who().gpus(), b.finding.who().gpus());
}

// A program that leaves in order after its own error or its GPU's: the error is why it left.
bool WhyItLeft(const Candidate& a, const Candidate& b) {
  if (!b.left_in_order || a.layer == Layer::kUnset || a.layer > Layer::kProgram || !a.stops_job || !Definite(a)) return false;
  const std::set<int> failed = Ranks(a.finding), left = Ranks(b.finding);
  return std::any_of(left.begin(), left.end(), [&](int rank) { return failed.count(rank) > 0; });
}

// a is the reason of b, or of what b says.
bool Explains(const Candidate& a, const Candidate& b) {
  if (a.finding.kind() == Kind::none || b.finding.kind() == Kind::none) return false;
  if (LeftBehind(a, b) || WhyItLeft(a, b)) return true;
  if (WhyItLeft(b, a)) return false;
  if (a.layer != Layer::kUnset || b.layer != Layer::kUnset) {
    return a.stops_job && Definite(a) && b.order < Class::kPlan && LayerOf(a) < LayerOf(b) && !OfOtherRanks(a, b);
  }
  if (a.order == Class::kPast || b.order == Class::kPlan || b.order == Class::kPast ||
      a.order == Class::kPlan)
    return false;
  if (MessageAwaitsNamedRank(b, a)) return true;
  if (MessageAwaitsNamedRank(a, b)) return false;
  if (DiedWaiting(a, b)) return true;
  if (a.order >= b.order) return false;
  switch (a.order) {
    case Class::kMismatch:
      return a.stops_job && (b.stops_job || b.order == Class::kSlow) && NotLater(a, b);
    case Class::kLiveness:
    case Class::kError:
    case Class::kStall:
      return a.stops_job;
    default:
      return false;
  }
}

// Every rank has a record, and all of them say that it finished its operations, gave its communicators back and ended.
bool EndedInOrder(const model::Job& job) {
  if (job.processes.empty() || job.communicators.empty() || !job.missing_job_ranks.empty()) return false;
  const bool left = std::all_of(job.processes.begin(), job.processes.end(), [](const model::Process& p) {
    return p.life == model::Life::kExited && !p.torn;
  });
  return left && std::all_of(job.communicators.begin(), job.communicators.end(), [](const model::Communicator& c) {
           return std::all_of(c.members.begin(), c.members.end(), [](const model::Member& m) {
             return m.has_record() && m.finalized && !m.finalized_open && std::none_of(m.ops.begin(), m.ops.end(), Open);
           });
         });
}

// Every rank has a record, none has ended, and all of them went on calling until the records end: whatever was reported, the job
// does not stand.
bool StillMoves(const model::Job& job) {
  if (job.processes.empty() || job.communicators.empty() || !job.missing_job_ranks.empty()) return false;
  const bool calls = std::all_of(job.processes.begin(), job.processes.end(), [](const model::Process& p) {
    const trace::Liveness& live = p.trace.liveness();
    const double stall = p.trace.settings().stall_seconds() * 1e9;
    return p.life == model::Life::kRunning && !p.torn && live.last_callback_ns() > 0 && live.heartbeat_ns() > 0 &&
           static_cast<double>(model::SatSub(live.heartbeat_ns(), live.last_callback_ns())) < stall;
  });
  return calls && std::all_of(job.communicators.begin(), job.communicators.end(), [&](const model::Communicator& c) {
           return std::all_of(c.members.begin(), c.members.end(), [&](const model::Member& m) {
             return m.has_record() && !m.finalized_open &&
                    std::none_of(m.ops.begin(), m.ops.end(), [&](const model::Op& op) { return Open(op) && Stuck(job, c, m, op); });
           });
         });
}

// What the kernel or NCCL reported on the way did happen, and the job went on all the same.
void GotOverIt(std::vector<Candidate>* candidates) {
  for (Candidate& c : *candidates) {
    if (c.layer == Layer::kUnset || (!c.stops_job && c.order != Class::kError && c.order != Class::kStall)) continue;
    c.stops_job = false;
    c.order = Class::kPast;
    c.finding.set_past(true);
    c.finding.clear_collateral();
  }
}

// What an independent witness saw too is more than one line of evidence.
void Corroborate(std::vector<Candidate>* candidates) {
  for (Candidate& a : *candidates) {
    bool agrees = false;
    for (const Candidate& b : *candidates) {
      if (a.finding.cause().id() != "HW-01" || !LeftBehind(a, b)) continue;
      if (b.finding.confidence() < Confidence::probable || b.finding.evidence().empty()) continue;
      agrees = true;
      Evidence& evidence = *a.finding.add_evidence();
      evidence = b.finding.evidence(0);
      evidence.set_text(b.finding.title());
    }
    if (!agrees || a.finding.confidence() != Confidence::probable) continue;
    a.finding.set_confidence(Confidence::established);
    a.finding.mutable_cause()->set_confidence(Confidence::established);
  }
}

// Among findings that do not explain each other: what stops the job before what does not, then by
// class.
std::vector<Candidate> Order(std::vector<Candidate> candidates) {
  const auto key = [](const Candidate& c) {
    const bool definite = c.finding.kind() != Kind::undetermined;
    const int stage = c.order >= Class::kSlow ? 2 : c.stops_job && definite ? 0 : 1;
    return std::make_tuple(c.finding.kind() == Kind::none, stage, c.order, c.layer,
                           -static_cast<int>(c.finding.confidence()));
  };
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const Candidate& a, const Candidate& b) { return key(a) < key(b); });
  // A reason goes before what it explains. (Explains() has no cycles: it follows the classes, but
  // for messages that await a named rank and for who died waiting.)
  std::vector<Candidate> ordered;
  std::vector<bool> taken(candidates.size(), false);
  for (size_t round = 0; round < candidates.size(); ++round) {
    size_t pick = candidates.size();
    for (size_t i = 0; i < candidates.size() && pick == candidates.size(); ++i) {
      if (taken[i]) continue;
      bool waits = false;
      for (size_t j = 0; j < candidates.size() && !waits; ++j) {
        waits = !taken[j] && j != i && Explains(candidates[j], candidates[i]);
      }
      if (!waits) pick = i;
    }
    if (pick == candidates.size())
      pick = std::find(taken.begin(), taken.end(), false) - taken.begin();
    taken[pick] = true;
    ordered.push_back(candidates[pick]);
  }
  return ordered;
}

// ---- summary
bool AnyOperation(const model::Job& job) {
  for (const model::Communicator& c : job.communicators) {
    for (const model::Member& m : c.members) {
      if (m.raw != nullptr && (m.raw->collectives() > 0 || m.raw->p2ps() > 0 || !m.ops.empty()))
        return true;
    }
  }
  return false;
}

// Without records the findings say what became of the job; that no finding was made says nothing.
State::Value StateOfText(const std::vector<Candidate>& candidates) {
  if (candidates.empty()) return State::unknown;
  const Candidate& first = candidates.front();
  if (first.state != State::unknown) return first.state;
  // A finder that saw nothing wrong, but could not have seen much, says so by its class.
  if (first.finding.kind() == Kind::none) return first.order == Class::kUndetermined ? State::unknown : State::healthy;
  if (first.order == Class::kSlow || first.order == Class::kPlan) return State::slow;
  if (first.order == Class::kPast) return State::recovered;
  if (ProcessKind(first.finding.kind())) return State::crashed;
  return State::unknown;
}

State::Value StateOf(const model::Job& job, const std::vector<Candidate>& candidates) {
  if (job.processes.empty()) return StateOfText(candidates);
  const auto any = [&](auto what) {
    return std::any_of(candidates.begin(), candidates.end(), what);
  };
  if (any([](const Candidate& c) { return c.stops_job && !c.finding.past(); })) {
    if (AnyOperation(job)) return State::hang;
    return candidates.front().state == State::init_failure ? State::init_failure : State::init_hang;
  }
  for (const Candidate& c : candidates) {
    if (c.finding.past() || c.finding.kind() == Kind::none) continue;
    switch (c.order) {
      case Class::kMismatch:
        return State::wrong_data;
      case Class::kLiveness:
        return State::crashed;
      case Class::kError:
        return State::unknown;
      case Class::kStall:
        return State::hang;
      case Class::kUndetermined:
        return State::unknown;
      case Class::kSlow:
        return State::slow;
      default:
        break;
    }
  }
  if (any([](const Candidate& c) { return c.finding.past() || c.order == Class::kPast; }))
    return State::recovered;
  // Nothing stands still and nobody is late; what NCCL said of its plan may still be a slow one.
  if (any([](const Candidate& c) {
        return c.order == Class::kPlan && c.state == State::slow && c.finding.confidence() >= Confidence::probable;
      }))
    return State::slow;
  return State::healthy;
}

std::string StateText(State::Value state) {
  switch (state) {
    case State::healthy:
      return "Nothing wrong was found.";
    case State::slow:
      return "The job runs slowly.";
    case State::hang:
      return "The job hangs.";
    case State::init_hang:
      return "The job hangs while it sets up its communicators.";
    case State::init_failure:
      return "The job failed while it set up its communicators.";
    case State::crashed:
      return "The job lost a process.";
    case State::wrong_data:
      return "The job computes with wrong data.";
    case State::recovered:
      return "The job stood still for a while and went on.";
    default:
      return "What the job does cannot be told.";
  }
}

std::string Summary(const Diagnosis& d) {
  std::string text = StateText(d.state());
  if (!d.findings().empty()) {
    const Finding& first = d.findings(0);
    absl::StrAppend(&text, " ", first.title());
    if (!first.title().empty() && first.title().back() != '.') text += ".";
    if (!first.collateral().ranks().empty()) {
      const std::set<int> waiting(first.collateral().ranks().begin(),
                                  first.collateral().ranks().end());
      absl::StrAppend(&text, " Only waiting: ", RanksText(waiting), ".");
    }
    // That something is normal is no further fault.
    const auto faults = std::count_if(d.findings().begin(), d.findings().end(),
                                      [](const Finding& f) { return f.kind() != Kind::none; });
    const int others = static_cast<int>(faults) - (first.kind() != Kind::none) - first.explains_size();
    if (others > 0)
      absl::StrAppend(&text, " ", others,
                      others == 1 ? " further finding does" : " further findings do",
                      " not follow from this one.");
  }
  if (d.ranks_total() > d.ranks_seen()) {
    absl::StrAppend(&text, " Records of ", d.ranks_seen(), " of ", d.ranks_total(),
                    " ranks were read.");
  }
  return text;
}

// What was not seen of the job, in words; empty when all of it was. Nothing wrong in what was read
// is not "nothing wrong" while a rank is unseen or a record is damaged: the reason may lie there.
std::string Unseen(const model::Job& job) {
  std::vector<std::string> parts;
  if (!job.missing_job_ranks.empty()) {
    parts.push_back(absl::StrCat(
        "there is no record of ",
        RanksText(std::set<int>(job.missing_job_ranks.begin(), job.missing_job_ranks.end()))));
  }
  std::set<int> torn;
  size_t torn_processes = 0;
  for (const model::Process& p : job.processes) {
    if (!p.torn) continue;
    ++torn_processes;
    if (p.job_rank >= 0) torn.insert(p.job_rank);
  }
  if (torn_processes > 0) {
    parts.push_back(absl::StrCat(
        torn.size() == torn_processes
            ? absl::StrCat(torn.size() == 1 ? "the record of " : "the records of ", RanksText(torn))
        : torn_processes == 1 ? "the record of one process"
                              : absl::StrCat("the records of ", torn_processes, " processes"),
        torn_processes == 1 ? " is" : " are", " damaged or cut short"));
  }
  int unplaced = 0;
  for (const model::Process& p : job.processes) unplaced += p.trace.communicators_size();
  if (unplaced > 0 && job.communicators.empty()) {
    parts.push_back(
        absl::StrCat(unplaced == 1 ? "the one communicator" : "none of the communicators",
                     " in the records could ", unplaced == 1 ? "not " : "",
                     "be placed, so nothing is known of any progress"));
  }
  return absl::StrJoin(parts, ", and ");
}

Candidate UnseenRecords(const model::Job& job, const std::string& what) {
  Candidate candidate;
  candidate.order = Class::kUndetermined;
  Finding& f = candidate.finding;
  f.set_kind(Kind::undetermined);
  f.set_confidence(Confidence::possible);
  f.set_title(absl::StrCat("Nothing is wrong in what could be read of the records, but ", what));
  f.mutable_cause()->set_id("not established");
  Evidence& evidence = *f.add_evidence();
  evidence.set_text(
      absl::StrCat("records of ", job.processes.size(), " processes were read; ", what));
  evidence.set_rank(-1);
  f.set_refuted_by("whole records of those ranks, if nothing is wrong in them either");
  f.mutable_next()->set_text(
      "Collect the missing or damaged records again: traces (RINGSCOPE_DIR), and the flight files "
      "of each host "
      "(RINGSCOPE_FLIGHT_DIR).");
  f.mutable_next()->set_command("ls -l /dev/shm/ringscope-$(id -u)/  # on each rank's host");
  return candidate;
}

void CountRanks(const model::Job& job, Diagnosis* d) {
  std::set<int> ranks;
  uint32_t unnamed = 0;
  for (const model::Communicator& c : job.communicators) {
    for (const model::Member& m : c.members) {
      if (m.has_record() && m.job_rank >= 0) ranks.insert(m.job_rank);
    }
  }
  for (const model::Process& p : job.processes) {
    if (p.job_rank >= 0) {
      ranks.insert(p.job_rank);
      continue;
    }
    // A process whose ranks have no number in the job counts once.
    bool named = false;
    for (const model::Communicator& c : job.communicators) {
      for (const model::Member& m : c.members) named |= m.process == p.index && m.job_rank >= 0;
    }
    unnamed += !named && p.trace.communicators_size() > 0;
  }
  d->set_ranks_seen(static_cast<uint32_t>(ranks.size()) + unnamed);
  d->set_ranks_total(
      std::max<uint32_t>(d->ranks_seen(), static_cast<uint32_t>(std::max(job.world_size, 0))));
}

}  // namespace

Register::Register(const char* name, FindFn find) { Finders().push_back({name, find}); }

Diagnosis Diagnose(const model::Job& job) {
  // By name, so that the order of linking changes nothing.
  std::vector<Entry> finders = Finders();
  std::sort(finders.begin(), finders.end(),
            [](const Entry& a, const Entry& b) { return std::string_view(a.name) < b.name; });
  std::vector<Candidate> candidates;
  for (const Entry& finder : finders) {
    for (Candidate& c : finder.find(job)) {
      if (c.order == Class::kPast) c.finding.set_past(true);
      if (c.finding.cause().id().empty()) c.finding.mutable_cause()->set_id("not established");
      candidates.push_back(std::move(c));
    }
  }
  if (EndedInOrder(job) || StillMoves(job)) GotOverIt(&candidates);
  candidates = DropDuplicates(std::move(candidates));
  Corroborate(&candidates);
  for (Candidate& c : candidates) AddChecks(job, &c);
  candidates = Order(std::move(candidates));
  const auto says_more = [](const Candidate& c) {
    return c.order < Class::kPlan && c.finding.kind() != Kind::none;
  };
  const std::string unseen = Unseen(job);
  if (!unseen.empty() && std::none_of(candidates.begin(), candidates.end(), says_more)) {
    candidates.insert(candidates.begin(), UnseenRecords(job, unseen));
  }

  Diagnosis d;
  d.set_state(StateOf(job, candidates));
  for (size_t i = 0; i < candidates.size(); ++i) {
    Finding& f = *d.add_findings();
    f = candidates[i].finding;
    f.clear_explains();
    // Readers of the JSON rely on these objects, empty or not.
    f.mutable_who();
    f.mutable_cause();
    f.mutable_collateral();
    f.mutable_next();
    for (size_t j = 0; j < candidates.size(); ++j) {
      if (i != j && Explains(candidates[i], candidates[j]))
        f.add_explains(static_cast<uint32_t>(j));
    }
  }
  AddRivals(&d);
  FillCommands(job, &d);
  for (const model::HostClock& clock : job.clocks) {
    HostClock& out = *d.add_clocks();
    out.set_host(clock.host);
    out.set_ahead_ms(static_cast<double>(clock.ahead_ns) / 1e6);
    out.set_error_ms(clock.error_ns < 0 ? -1 : static_cast<double>(clock.error_ns) / 1e6);
    out.set_drift_ppm(clock.drift_ppm);
    out.set_drift_error_ppm(clock.has_drift ? clock.drift_error_ppm : -1);
    out.set_reference(clock.reference);
    out.set_doubt(clock.doubt);
  }
  d.set_job(job.name);
  CountRanks(job, &d);
  for (const std::string& s : job.not_seen) d.add_not_seen(s);
  for (const std::string& s : job.inputs) d.add_inputs(s);
  if (job.processes.empty()) d.add_not_seen("no record (trace or flight file) was read: what is said rests on text alone");
  std::string summary = Summary(d);
  if (d.state() == State::healthy) {
    if (const std::string young = YoungWaits(job); !young.empty())
      absl::StrAppend(&summary, " ", young);
  }
  d.set_summary(summary);
  return d;
}

}  // namespace ringscope::reasoning
