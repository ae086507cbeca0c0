// What is over: a process that was frozen and went on, an operation that stood still and was
// resolved. The job went on, so this is never a hang, and at most `possible`: nobody can look at it
// any more.
//
// A freeze counts only if it delayed somebody: another rank was in an operation with this one while
// it lasted. A freeze that hit all processes at once was the machine's (suspend, live migration, a
// starved host) and accuses no process.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "analyzer/model/gpu_clock.h"
#include "analyzer/model/job_time.h"
#include "analyzer/model/safe_math.h"
#include "analyzer/reasoning/finders.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/thresholds.h"
#include "analyzer/reasoning/timeline.h"

namespace ringscope::reasoning {
namespace {

using model::Communicator;
using model::Job;
using model::JobTime;
using model::Member;
using model::Op;
using model::Process;

struct Span {
  int64_t begin = 0, end = 0;  // one clock
  int64_t length() const { return model::SatSub(end, begin); }
};

// In the job's time.
struct JobSpan {
  JobTime begin, end;
  int64_t length() const { return model::SatSub(end.ns, begin.ns); }
  int64_t Error(const JobSpan& other) const {
    return std::max(model::ErrorBetween(begin, other.begin), model::ErrorBetween(end, other.end));
  }
  int64_t Overlap(const JobSpan& other) const {
    return model::SatSub(std::min(end.ns, other.end.ns), std::max(begin.ns, other.begin.ns));
  }
  // What the two share whatever the clocks, and what they may share.
  int64_t SharedAtLeast(const JobSpan& other) const {
    return std::max<int64_t>(0, std::min({model::SatSub(Overlap(other), Error(other)), length(), other.length()}));
  }
  int64_t SharedAtMost(const JobSpan& other) const {
    return std::max<int64_t>(0, std::min({model::SatAdd(Overlap(other), Error(other)), length(), other.length()}));
  }
};

JobSpan InJobTime(const Process& process, const Span& span) {
  return {model::ToJobTime(process, span.begin), model::ToJobTime(process, span.end)};
}

// May they have been? What hit several machines at once accuses no process.
bool AtTheSameTime(const JobSpan& a, const JobSpan& b) {
  const int64_t shorter = std::min(a.length(), b.length());
  return shorter > 0 &&
         static_cast<double>(a.SharedAtMost(b)) >= thresholds::kOverlap * static_cast<double>(shorter);
}

bool WentOn(const Process& process) {
  return process.life != model::Life::kFrozen && process.life != model::Life::kGone &&
         process.life != model::Life::kGoneOrFrozen;
}

int64_t Heartbeat(const Process& process) {
  const double seconds = process.trace.settings().heartbeat_seconds();
  return seconds > 0 ? static_cast<int64_t>(std::min(seconds, 60.0) * 1e9) : 0;
}

// A time during which a process seems not to have run, on its own clock; empty when there is none
// worth telling.
struct Freeze {
  Span span;
  std::string sign;  // how it shows
  bool row_known = false;
  uint32_t row = 0;  // operation that shows it
};

// As its own recorder thread noticed.
Freeze NoticedFreeze(const Process& process) {
  const trace::Liveness& live = process.trace.liveness();
  const double beats = thresholds::kFreezeHeartbeats * static_cast<double>(Heartbeat(process));
  if (live.freeze_begin_ns() <= 0 || live.freeze_ns() < thresholds::kFreezeFloorNs ||
      static_cast<double>(live.freeze_ns()) < beats) {
    return {};
  }
  return {{live.freeze_begin_ns(), model::SatAdd(live.freeze_begin_ns(), live.freeze_ns())},
          absl::StrCat("its recorder thread did not run for ", DurationText(live.freeze_ns()),
                       " although it waited for no CPU, and no callback came in"),
          false,
          0};
}

// How long the end of a kernel was not seen, at least. By what it took on the GPU and on the host, which misses a thread that did not
// see its start in time either; and by the GPU's timer on the host's clock, where the record holds its stamps.
int64_t Unseen(const Op& op, const model::GpuClock* gpu) {
  const int64_t by_length = HostDuration(op) - GpuDuration(op);  // both are >= 0
  if (gpu == nullptr || !op.full || op.raw.gpu_finished_ns() == 0) return by_length;
  return std::max(by_length, model::SatSub(op.raw.finished_ns(), gpu->HostLatest(op.raw.gpu_finished_ns())));
}

// A kernel that the GPU ended long before NCCL's proxy thread, which polls for it, saw the end: the
// thread did not run. Freezes too short for the recorder thread show like this; the GPU's timer is
// needed.
Freeze UnseenEnd(const Job& job, const model::GpuClocks& gpus, const Process& process) {
  Freeze longest;
  for (const Communicator& c : job.communicators) {
    for (const Member& m : c.members) {
      if (m.process != process.index) continue;
      const model::GpuClock* gpu = gpus.Of(c, m);
      for (const Op& op : m.ops) {
        if (!Finished(op) || GpuDuration(op) == 0 || op.position() <= thresholds::kWarmupOperations)
          continue;
        const int64_t unseen = Unseen(op, gpu);
        if (unseen < thresholds::kFreezeFloorNs || unseen <= longest.span.length()) continue;
        longest = {{model::SatSub(op.raw.finished_ns(), unseen), op.raw.finished_ns()},
                   absl::StrCat(OpText(op.raw), " (communicator ", c.Label(), ") took ",
                                DurationText(GpuDuration(op)),
                                " on its GPU, but NCCL's thread saw its end only ",
                                DurationText(unseen), " later, and no other callback came in"),
                   true,
                   op.raw.row()};
      }
    }
  }
  return longest;
}

// Callbacks came in during the span: then only the recorder's thread stood still, not the process.
// A noticed freeze began up to one heartbeat after its noted begin, so the edges of the span prove
// nothing.
bool Active(const Job& job, int process, const Freeze& freeze) {
  const Span& span = freeze.span;
  const int64_t margin =
      std::max(freeze.row_known ? 0 : Heartbeat(job.processes[process]), span.length() / 10);
  const auto inside = [&](int64_t t) {
    return t > model::SatAdd(span.begin, margin) && t < model::SatSub(span.end, margin);
  };
  for (const Communicator& c : job.communicators) {
    for (const Member& m : c.members) {
      if (m.process != process) continue;
      for (const Op& op : m.ops) {
        const model::OpRecord& raw = op.raw;
        if (inside(raw.entered_ns()) || inside(raw.returned_ns()) || inside(raw.enqueued_ns()) ||
            inside(raw.started_ns()) || inside(raw.finished_ns())) {
          return true;
        }
      }
    }
  }
  for (const trace::Edge& edge : job.processes[process].trace.edges()) {
    if (inside(edge.changed_ns())) return true;
  }
  return false;
}

struct Waiter {
  const Communicator* communicator = nullptr;
  const Member* member = nullptr;
  const Op* op = nullptr;
  int64_t waited_ns = 0;
};

// Other ranks that surely were in an operation of a shared communicator for most of the span, the longest first.
std::vector<Waiter> Waiters(const Job& job, int process, const JobSpan& span) {
  std::map<RankKey, Waiter> waiters;
  for (const Communicator& c : job.communicators) {
    if (std::none_of(c.members.begin(), c.members.end(),
                     [&](const Member& m) { return m.process == process; }))
      continue;
    for (const Member& m : c.members) {
      if (!m.has_record() || m.process == process) continue;
      const Process& other = job.processes[m.process];
      for (const Op& op : m.ops) {
        if (!Finished(op) || op.raw.entered_ns() == 0) continue;
        const int64_t shared = span.SharedAtLeast(InJobTime(other, {op.raw.entered_ns(), op.raw.finished_ns()}));
        if (static_cast<double>(shared) < thresholds::kOverlap * static_cast<double>(span.length()))
          continue;
        Waiter& waiter = waiters[KeyOf(m)];
        if (shared > waiter.waited_ns) waiter = {&c, &m, &op, shared};
      }
    }
  }
  std::vector<Waiter> sorted;
  for (const auto& [key, waiter] : waiters) sorted.push_back(waiter);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Waiter& a, const Waiter& b) { return a.waited_ns > b.waited_ns; });
  return sorted;
}

void Finish(Finding* finding) {
  finding->set_confidence(Confidence::possible);
  finding->set_past(true);
  finding->mutable_cause()->set_id("not established");
}

// When a rank was frozen, so that a stall that this explains is not told twice.
using Frozen = std::map<RankKey, JobSpan>;

void FindFreezes(const Job& job, Frozen* frozen, std::vector<Candidate>* candidates) {
  const model::GpuClocks gpus(job);
  std::vector<Freeze> freezes(job.processes.size());
  std::vector<JobSpan> spans(job.processes.size());
  for (const Process& process : job.processes) {
    if (!WentOn(process)) continue;
    Freeze freeze = NoticedFreeze(process);
    if (freeze.span.length() <= 0) freeze = UnseenEnd(job, gpus, process);
    if (freeze.span.length() <= 0) continue;
    spans[process.index] = InJobTime(process, freeze.span);
    freezes[process.index] = std::move(freeze);
  }
  for (const Process& process : job.processes) {
    const JobSpan& span = spans[process.index];
    const Freeze& freeze = freezes[process.index];
    if (span.length() <= 0 || Active(job, process.index, freeze)) continue;
    size_t all = 0, host = 0, all_too = 0, host_too = 0;
    for (const Process& other : job.processes) {
      if (other.index == process.index) continue;
      const bool too = AtTheSameTime(span, spans[other.index]);
      ++all;
      all_too += too;
      host += other.host == process.host;
      host_too += too && other.host == process.host;
    }
    if ((host > 0 && host == host_too) || (all > 0 && 2 * all_too >= all)) continue;
    const std::vector<Waiter> waiters = Waiters(job, process.index, span);
    if (waiters.empty()) continue;

    std::set<int> ranks;
    const Member* self = nullptr;
    for (const Communicator& c : job.communicators) {
      for (const Member& m : c.members) {
        if (m.process != process.index) continue;
        ranks.insert(m.job_rank);
        if (self == nullptr) self = &m;
        (*frozen)[KeyOf(m)] = span;
      }
    }
    Candidate candidate;
    candidate.order = Class::kPast;
    candidate.communicator = waiters.front().communicator->index;
    candidate.position = waiters.front().op->p2p() ? 0 : waiters.front().op->position();
    Finding& finding = candidate.finding;
    finding.set_kind(Kind::process_stopped);
    AddRanks(ranks, finding.mutable_who()->mutable_ranks());
    finding.mutable_who()->add_hosts(process.host);
    const std::string name = RankText(*waiters.front().communicator, *self);
    finding.set_title(absl::StrCat("The process of ", name, " stood still for ",
                                   DurationText(span.length()),
                                   " and went on; the others waited for it"));
    *finding.add_evidence() = MemberEvidence(job, *self, freeze.row, freeze.sign);
    std::set<int> waiting;
    for (size_t i = 0; i < waiters.size(); ++i) {
      const Waiter& waiter = waiters[i];
      waiting.insert(waiter.member->job_rank);
      if (i >= 4) continue;
      *finding.add_evidence() =
          MemberEvidence(job, *waiter.member, waiter.op->raw.row(),
                         absl::StrCat("was in ", OpText(waiter.op->raw), " (communicator ",
                                      waiter.communicator->Label(), ") for ",
                                      DurationText(waiter.waited_ns), " of that time"));
    }
    for (int rank : ranks) waiting.erase(rank);
    AddRanks(waiting, finding.mutable_collateral()->mutable_ranks());
    Finish(&finding);
    finding.set_refuted_by(
        "the whole machine was suspended at that time, or only the recorder's thread was held "
        "back");
    finding.mutable_next()->set_text(
        "See who stopped it: a debugger, SIGSTOP from a job manager, a cgroup freezer, a "
        "checkpoint of the "
        "container, memory pressure.");
    finding.mutable_next()->set_command(
        "journalctl --since <time of the pause>; cat /sys/fs/cgroup/<job>/cgroup.events");
    candidates->push_back(std::move(candidate));
  }
}

// A stall that its reporters saw end, by communicator and position.
struct Stall {
  int64_t length_ns = 0;
  std::vector<const Member*> reporters;
};
using StallKey = std::tuple<int, bool, uint64_t>;  // communicator, p2p, position

std::map<StallKey, Stall> ResolvedStalls(const Job& job) {
  std::map<StallKey, Stall> stalls;
  for (const Communicator& c : job.communicators) {
    for (const Member& m : c.members) {
      if (!m.has_record() || m.raw == nullptr || m.finalized_open) continue;
      for (const trace::StallFinding& finding : job.processes[m.process].trace.stalls()) {
        if (finding.communicator() != m.raw->row() || finding.resolved_ns() == 0) continue;
        const Op* op = finding.p2p() ? nullptr : m.Collective(finding.position());
        if (op != nullptr && Open(*op)) continue;  // given up, not resolved
        Stall& stall = stalls[{c.index, finding.p2p(), finding.position()}];
        stall.length_ns =
            std::max(stall.length_ns, model::SatSub(finding.resolved_ns(), finding.since_ns()));
        stall.reporters.push_back(&m);
      }
    }
  }
  return stalls;
}

// Members that came to the operation when the others had waited for long: the shortest in it (no
// clocks compared). Empty when the record does not tell.
std::vector<const Member*> Latecomers(const Communicator& c, uint64_t position, int64_t stall_ns,
                                      const Timelines& timelines) {
  std::vector<std::pair<int64_t, const Member*>> times;
  int64_t longest = 0;
  for (const Member& m : c.members) {
    const Op* op = m.has_record() ? m.Collective(position) : nullptr;
    if (op == nullptr || HostDuration(*op) == 0) return {};
    times.push_back({HostDuration(*op), &m});
    longest = std::max(longest, times.back().first);
  }
  std::vector<const Member*> late;
  for (const auto& [time, member] : times) {
    if (time >= longest / 2) continue;
    // Late on its own account: it was out of NCCL for about as long as the others waited.
    const int64_t entered = member->Collective(position)->raw.entered_ns();
    const int64_t free = timelines.at(KeyOf(*member)).FreeSince(entered);
    if (free != 0 && model::SatSub(entered, free) >= stall_ns / 2) late.push_back(member);
  }
  return 2 * late.size() <= times.size() ? late : std::vector<const Member*>{};
}

void FindResolved(const Job& job, const Frozen& frozen, std::vector<Candidate>* candidates) {
  const Timelines timelines(job);
  for (const auto& [key, stall] : ResolvedStalls(job)) {
    const auto& [index, p2p, position] = key;
    const Communicator& c = job.communicators[index];
    std::vector<const Member*> late;
    if (!p2p) late = Latecomers(c, position, stall.length_ns, timelines);
    std::set<int> ranks, reporters;
    bool explained = false;
    for (const Member* m : late) {
      ranks.insert(m->job_rank);
      explained |= frozen.count(KeyOf(*m)) > 0;
    }
    for (const auto& [who, span] : frozen) {
      for (const Member& m : c.members)
        explained |= m.has_record() && KeyOf(m) == who && late.empty();
    }
    if (explained) continue;
    for (const Member* m : stall.reporters) reporters.insert(m->job_rank);
    for (int rank : ranks) reporters.erase(rank);

    Candidate candidate;
    candidate.order = Class::kPast;
    candidate.communicator = c.index;
    candidate.position = p2p ? 0 : position;
    Finding& finding = candidate.finding;
    finding.mutable_who()->add_communicators(c.Label());
    AddRanks(ranks, finding.mutable_who()->mutable_ranks());
    AddRanks(reporters, finding.mutable_collateral()->mutable_ranks());
    const std::string place = p2p || position == 0
                                  ? absl::StrCat("An operation of communicator ", c.Label())
                                  : PlaceText(c, position);
    if (late.empty()) {
      finding.set_kind(Kind::undetermined);
      finding.set_title(
          absl::StrCat(p2p || position == 0 ? place : absl::StrCat("In ", place, " the ranks"),
                       " stood still for ", DurationText(stall.length_ns),
                       " and went on; the records do not tell why"));
    } else {
      finding.set_kind(Kind::missing_rank);
      finding.set_title(absl::StrCat(RanksText(ranks), " came to ", place, " ",
                                     DurationText(stall.length_ns),
                                     " after the others; then the job went on"));
      for (const Member* m : late) {
        const Op* op = m->Collective(position);
        *finding.add_evidence() = MemberEvidence(
            job, *m, op->raw.row(),
            absl::StrCat(
                "was outside NCCL before ", OpText(op->raw), " for ",
                DurationText(model::SatSub(
                    op->raw.entered_ns(), timelines.at(KeyOf(*m)).FreeSince(op->raw.entered_ns()))),
                ", then needed ", DurationText(HostDuration(*op))));
      }
    }
    for (size_t i = 0; i < stall.reporters.size() && i < 4; ++i) {
      const Member& m = *stall.reporters[i];
      const Op* op = p2p ? nullptr : m.Collective(position);
      *finding.add_evidence() =
          MemberEvidence(job, m, op == nullptr ? 0 : op->raw.row(),
                         absl::StrCat("noticed no progress for ", DurationText(stall.length_ns),
                                      ", then it went on"));
    }
    Finish(&finding);
    finding.set_refuted_by("a record of that time which shows another rank or an edge behind it");
    finding.mutable_next()->set_text(
        "If it happens again, take the stacks while it lasts; a checkpoint, an evaluation or a "
        "slow batch on "
        "one rank looks like this.");
    finding.mutable_next()->set_command("py-spy dump --pid <pid of the rank>");
    candidates->push_back(std::move(candidate));
  }
}

}  // namespace

std::vector<Candidate> FindPast(const model::Job& job) {
  std::vector<Candidate> candidates;
  Frozen frozen;
  FindFreezes(job, &frozen, &candidates);
  FindResolved(job, frozen, &candidates);
  return candidates;
}

static const Register kRegister("past", FindPast);

}  // namespace ringscope::reasoning
