// Processes that are gone or frozen while others wait for them.
//
// That a process is gone says nothing by itself: jobs are ended. It is a finding only where the
// waiting of others ends at it, where it left an operation unfinished that others lived on with, or
// where communicators that have never been used stand there with one member frozen (creation
// hangs).
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "analyzer/reasoning/finder.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/quiet.h"
#include "analyzer/reasoning/stall_finder.h"

namespace ringscope::reasoning {
namespace {

using graph::End;
using model::Communicator;
using model::Job;
using model::Life;
using model::Member;
using model::Op;
using model::Process;

std::string CommandFor(const Process& p) {
  return absl::StrCat("ssh ", ShellHost(p.host), " 'ps -o pid,stat,wchan,lstart,cmd -p ", p.trace.process().pid(),
                      "; dmesg -T | grep -i -e oom -e killed -e segfault -e xid'");
}

struct Words {
  Kind::Value kind;
  Confidence::Value confidence;
  const char* what;
  const char* next;
};
Words WordsFor(End end) {
  switch (end) {
    case End::kRankFrozen:
      return {Kind::process_stopped, Confidence::established, "exists and does not run (stopped or frozen)",
              "See who stopped the process: a debugger, a signal, the freezer of its container; "
              "`kill -CONT` lets it go on."};
    case End::kRankLost:
      return {Kind::process_exited, Confidence::possible, "is gone or frozen",
              "Look whether the process still exists and in which state."};
    case End::kRankExited:
      return {Kind::process_exited, Confidence::probable, "has exited in order",
              "See its exit status in the launcher's log (the record does not hold it) and why its "
              "program ended before the others': fewer inputs, an early exit, an exception that "
              "was handled."};
    default:
      return {Kind::process_exited, Confidence::established, "is gone without a clean end",
              "See how it ended: exit status in the launcher's log, out-of-memory killer, crash, a "
              "signal."};
  }
}

// Kind and confidence of a process whose life is one of the ends.
End EndOfLife(Life life) {
  switch (life) {
    case Life::kFrozen:
      return End::kRankFrozen;
    case Life::kGoneOrFrozen:
      return End::kRankLost;
    case Life::kExited:
      return End::kRankExited;
    default:
      return End::kRankDead;
  }
}

void AddLife(const StallAnalysis& a, int comm, int rank, Finding* f) {
  const Member* m = a.MemberIn(comm, rank);
  const Process* p = a.ProcessOf(rank);
  if (m == nullptr || p == nullptr) return;
  *f->add_evidence() = MemberEvidence(
      a.job, *m, 0,
      a.input.ranks[rank].inferred ? absl::StrCat(a.RankName(rank),
                                                  " left no clean end and its last sign of life is older than the wait of the "
                                                  "others, who "
                                                  "aborted long before the stall time and ended in order: an error told them")
                                   : absl::StrCat(a.RankName(rank), ": ", p->life_evidence));
  if (comm < 0) return;
  const bool p2p = a.input.comms[comm].p2p;
  const Op* last = nullptr;
  for (const Op& op : m->ops) {
    if (op.p2p() == p2p) last = &op;
  }
  if (last != nullptr) {
    *f->add_evidence() =
        MemberEvidence(a.job, *m, last->raw.row(),
                       absl::StrCat("its newest call on ", a.CommunicatorOf(comm).Label(), " is number ", last->position(), ", ",
                                    OpText(last->raw), Finished(*last) ? ", finished" : ""));
  }
}

void WaitedFor(const StallAnalysis& a, std::vector<Candidate>* out) {
  for (const RootGroup& group : a.groups) {
    switch (group.cls) {
      case End::kRankDead:
      case End::kRankFrozen:
      case End::kRankLost:
      case End::kRankExited:
        break;
      default:
        continue;
    }
    std::set<int> ranks;
    for (int n : group.nodes) ranks.insert(a.NodeAt(n).rank);
    const Words words = WordsFor(group.cls);
    // Most ranks ended in order and a few wait: as likely these have called once too often.
    const bool few_are_left =
        group.cls == End::kRankExited && group.comm >= 0 && 2 * ranks.size() > static_cast<size_t>(a.MembersSeen(group.comm));
    Candidate c;
    c.order = Class::kLiveness;
    c.left_in_order = group.cls == End::kRankExited;
    Finding& f = c.finding;
    f.set_kind(few_are_left ? Kind::undetermined : words.kind);
    f.set_confidence(few_are_left ? Confidence::possible : words.confidence);
    const bool inferred = std::any_of(ranks.begin(), ranks.end(), [&](int r) { return a.input.ranks[r].inferred; });
    if (words.confidence == Confidence::established && (inferred || !a.AllSeen(group.comm))) {
      f.set_confidence(Confidence::probable);
    }
    if (!few_are_left) AddRanks(a.JobRanks(ranks), f.mutable_who()->mutable_ranks());
    std::string names;
    for (int r : ranks) absl::StrAppend(&names, names.empty() ? "" : ", ", a.RankName(r));
    const std::string place = group.comm < 0 ? "" : absl::StrCat(" in communicator ", a.CommunicatorOf(group.comm).Label());
    f.set_title(ranks.size() == 1 ? absl::StrCat("The process of ", names, " ", words.what, ", and others wait for it", place)
                                  : absl::StrCat("Each process of ", names, " ", words.what, ", and others wait for them", place));
    for (int r : ranks) {
      if (f.evidence_size() < 8) AddLife(a, group.comm, r, &f);
      const Process* p = a.ProcessOf(r);
      if (p != nullptr && f.next().command().empty()) f.mutable_next()->set_command(CommandFor(*p));
    }
    a.Describe(group, &c);
    f.set_refuted_by("a sign of life of this process newer than the wait of the others");
    f.mutable_next()->set_text(words.next);
    if (few_are_left) {
      f.set_title(absl::StrCat(ranks.size(), " of ", a.MembersSeen(group.comm), " ranks have ended in order while the rest waits",
                               place, ": either they ended too early, or the rest has called once too often"));
      f.set_refuted_by("the program's own count of steps on both sides");
      f.mutable_next()->set_text(
          "Compare the steps that both sides count in their logs, and the calls of the ranks that wait with those of the "
          "others.");
      f.mutable_next()->clear_command();
    }
    out->push_back(std::move(c));
  }
}

// The waiting ends at a rank without a record, but its neighbours wrote down what they saw of its process.
void SeenByNeighbours(const StallAnalysis& a, std::vector<Candidate>* out) {
  std::set<int> said;
  for (const RootGroup& group : a.groups) {
    if (group.cls != End::kNoRecord) continue;
    std::set<int> ranks;
    for (int n : group.nodes) ranks.insert(a.NodeAt(n).rank);
    for (int rank : ranks) {
      if (a.ProcessOf(rank) != nullptr) continue;
      std::set<int> job_ranks = a.JobRanks({rank});
      // Which rank of the job a member without a record is may be unknown; but if only one has none, it is that one.
      if (job_ranks.empty() && a.job.missing_job_ranks.size() == 1) job_ranks.insert(a.job.missing_job_ranks[0]);
      if (job_ranks.size() != 1 || *job_ranks.begin() < 0) continue;
      const int job_rank = *job_ranks.begin();
      const Process* observer = nullptr;
      const trace::Sibling* newest = nullptr;
      for (const Process& p : a.job.processes) {
        for (const trace::Sibling& s : p.trace.siblings()) {
          if (s.rank() != job_rank) continue;
          // Those that see a process are its neighbours: one clock.
          if (newest == nullptr || p.ToRealtime(s.checked_ns()) > observer->ToRealtime(newest->checked_ns()))
            observer = &p, newest = &s;
        }
      }
      if (newest == nullptr || !said.insert(job_rank).second) continue;
      if (newest->state() != trace::Sibling::GONE && newest->state() != trace::Sibling::FROZEN) continue;
      const bool frozen = newest->state() == trace::Sibling::FROZEN;
      const Words words = WordsFor(frozen ? End::kRankFrozen : End::kRankDead);
      Candidate c;
      c.order = Class::kLiveness;
      Finding& f = c.finding;
      f.set_kind(words.kind);
      f.set_confidence(Confidence::probable);  // one witness, and nothing of its own
      AddRanks(job_ranks, f.mutable_who()->mutable_ranks());
      f.set_title(absl::StrCat("The process of ", a.RankName(rank), " ", words.what,
                               ", others wait for it, and there is no record of it"));
      Evidence* seen = f.add_evidence();
      seen->set_text(
          absl::StrCat("rank ", observer->job_rank, ", on its host, saw its flight file ",
                       frozen ? "locked and its heartbeat old" : "unlocked without a clean end",
                       newest->process_state().empty() ? "" : absl::StrCat(" (process state ", newest->process_state(), ")")));
      seen->set_source(observer->source);
      seen->set_rank(observer->job_rank);
      a.Describe(group, &c);
      f.set_refuted_by("a sign of life of this process newer than the wait of the others");
      f.mutable_next()->set_text(words.next);
      f.mutable_next()->set_command(absl::StrCat("ssh ", ShellHost(observer->host), " 'ps -o pid,stat,wchan,lstart,cmd -p ",
                                                 newest->pid(), "; ls -l /dev/shm/ringscope-*/'"));
      out->push_back(std::move(c));
    }
  }
}

// Nobody waits for it any more, or nobody stands still: it died with operations open and others
// lived on.
void DiedWithWork(const StallAnalysis& a, std::vector<Candidate>* out) {
  for (const Process& p : a.job.processes) {
    if (p.life != Life::kGone) continue;
    for (const Communicator& comm : a.job.communicators) {
      for (const Member& m : comm.members) {
        if (m.process != p.index) continue;
        const auto open = std::find_if(m.ops.begin(), m.ops.end(), [](const Op& op) { return Open(op); });
        if (open == m.ops.end()) continue;
        const double stall = p.trace.settings().stall_seconds() * 1e9;
        const bool lived_on =
            std::any_of(comm.members.begin(), comm.members.end(), [&](const Member& other) {
              return other.has_record() && other.process != p.index &&
                     static_cast<double>(model::AfterAtLeast(
                         model::LastSignOf(p), model::LastSignOf(a.job.processes[other.process]))) > stall;
            });
        const bool known = std::any_of(out->begin(), out->end(), [&](const Candidate& c) {
          return std::count(c.finding.who().ranks().begin(), c.finding.who().ranks().end(), m.job_rank) > 0;
        });
        if (!lived_on || known || m.job_rank < 0) continue;
        Candidate c;
        c.order = Class::kLiveness;
        c.communicator = comm.index;
        c.position = open->p2p() ? 0 : open->position();
        Finding& f = c.finding;
        f.set_kind(Kind::process_exited);
        f.set_confidence(Confidence::possible);
        AddRanks({m.job_rank}, f.mutable_who()->mutable_ranks());
        f.mutable_who()->add_communicators(comm.Label());
        f.set_title(absl::StrCat("The process of ", RankText(comm, m), " is gone without a clean end; it left ",
                                 OpText(open->raw), " unfinished while others lived on"));
        *f.add_evidence() = MemberEvidence(a.job, m, open->raw.row(), absl::StrCat(OpText(open->raw), " is open"));
        *f.add_evidence() = MemberEvidence(a.job, m, 0, p.life_evidence);
        f.set_refuted_by("a launcher that ended this process on purpose");
        f.mutable_next()->set_text(WordsFor(End::kRankDead).next);
        f.mutable_next()->set_command(CommandFor(p));
        out->push_back(std::move(c));
      }
    }
  }
}

// No operation is open, but a few processes are gone or frozen, and the others, who went on until then, have called nothing since, for
// longer than a stall takes. They stand where records do not reach: where a communicator is created, or in a barrier of the host.
void GoneWhileOthersStand(const Job& job, std::vector<Candidate>* out) {
  std::vector<const Process*> gone, alive;
  for (const Process& p : job.processes) {
    if (p.trace.communicators_size() == 0) continue;
    const bool is = p.life == Life::kGone || p.life == Life::kFrozen;
    if (!is && p.life != Life::kRunning && p.life != Life::kUnknown) return;
    (is ? gone : alive).push_back(&p);
  }
  if (gone.empty() || gone.size() >= alive.size()) return;
  std::set<int> dead, frozen, waiting;
  for (const Process* p : alive) {
    const double stall = p->trace.settings().stall_seconds() * 1e9;
    const trace::Liveness& live = p->trace.liveness();
    if (stall <= 0 || live.last_callback_ns() <= 0) return;
    if (static_cast<double>(live.heartbeat_ns()) - static_cast<double>(live.last_callback_ns()) < stall) return;
    for (const Process* lost : gone) {
      if (static_cast<double>(model::AfterAtLeast(model::LastSignOf(*lost), model::LastSignOf(*p))) < stall) return;
    }
    if (p->job_rank >= 0) waiting.insert(p->job_rank);
  }
  for (const Process* p : gone) {
    if (p->job_rank < 0) return;
    (p->life == Life::kFrozen ? frozen : dead).insert(p->job_rank);
  }
  for (const std::set<int>* ranks : {&dead, &frozen}) {
    if (ranks->empty()) continue;
    const Words words = WordsFor(ranks == &frozen ? End::kRankFrozen : End::kRankDead);
    Candidate c;
    c.order = Class::kLiveness;
    c.stops_job = true;
    Finding& f = c.finding;
    f.set_kind(words.kind);
    f.set_confidence(Confidence::probable);
    AddRanks(*ranks, f.mutable_who()->mutable_ranks());
    AddRanks(waiting, f.mutable_collateral()->mutable_ranks());
    f.set_title(absl::StrCat("The process of ", RanksText(*ranks), " ", words.what,
                             ", and the others have called no operation of NCCL since"));
    for (const Process* p : gone) {
      if (ranks->count(p->job_rank) == 0 || f.evidence_size() >= 8) continue;
      Evidence& evidence = *f.add_evidence();
      evidence.set_text(absl::StrCat("rank ", p->job_rank, ": ", p->life_evidence));
      evidence.set_source(p->source);
      evidence.set_rank(p->job_rank);
      if (f.next().command().empty()) f.mutable_next()->set_command(CommandFor(*p));
    }
    f.mutable_cause()->set_id("not established");
    f.set_refuted_by("a sign of life of this process newer than the others' last operation, or a program that needs it no more");
    f.mutable_next()->set_text(words.next);
    out->push_back(std::move(c));
  }
}

// Nobody is left to wait: every process of the job is gone or frozen, as the only one of a job with one rank is.
void NobodyLeft(const StallAnalysis& a, std::vector<Candidate>* out) {
  std::set<int> ranks;
  const Process* example = nullptr;
  std::set<End> ends;
  for (const Process& p : a.job.processes) {
    if (p.life != Life::kGone && p.life != Life::kFrozen && p.life != Life::kGoneOrFrozen) return;
    if (p.trace.communicators_size() == 0) continue;
    ends.insert(EndOfLife(p.life));
    if (p.job_rank >= 0) ranks.insert(p.job_rank);
    if (example == nullptr) example = &p;
  }
  if (example == nullptr || ends.size() != 1 || !a.job.missing_job_ranks.empty()) return;
  const bool one = a.job.processes.size() == 1;
  const bool frozen = *ends.begin() == End::kRankFrozen;
  Words words = WordsFor(*ends.begin());
  // A job that is killed or suspended as a whole was meant to be, as a rule.
  if (!one && !frozen) return;
  Candidate c;
  c.order = Class::kLiveness;
  c.stops_job = frozen;
  Finding& f = c.finding;
  f.set_kind(one ? words.kind : Kind::undetermined);
  f.set_confidence(one ? std::min(words.confidence, Confidence::probable) : Confidence::possible);
  if (ranks.empty()) ranks.insert(0);
  if (one) AddRanks(ranks, f.mutable_who()->mutable_ranks());
  f.set_title(absl::StrCat("The ", one ? "only process of the job " : "process of every rank of the job ", words.what));
  Evidence& evidence = *f.add_evidence();
  evidence.set_text(example->life_evidence);
  evidence.set_source(example->source);
  evidence.set_rank(example->job_rank);
  f.mutable_cause()->set_id("not established");
  f.set_refuted_by(frozen ? "whoever stopped it on purpose (a debugger, a scheduler that suspends jobs)"
                          : "whoever ended it on purpose");
  f.mutable_next()->set_text(words.next);
  f.mutable_next()->set_command(CommandFor(*example));
  out->push_back(std::move(c));
}

// Communicators exist and no operation was ever called on any.
bool OnlyCreated(const Job& job) {
  bool any = false;
  for (const Communicator& comm : job.communicators) {
    any |= comm.n_ranks > 1;
    for (const Member& m : comm.members) {
      if (m.raw != nullptr && (m.raw->collectives() > 0 || m.raw->p2ps() > 0 || !m.ops.empty())) return false;
      if (m.raw != nullptr && m.raw->finalized_ns() != 0) return false;
    }
  }
  return any;
}

// ... and a member does not run: creation hangs at it.
void InitHang(const Job& job, std::vector<Candidate>* out) {
  for (const Communicator& comm : job.communicators) {
    std::vector<const Member*> halted, others;
    for (const Member& m : comm.members) {
      if (!m.has_record()) continue;
      const Life life = job.processes[m.process].life;
      const bool is = life == Life::kFrozen || life == Life::kGone || life == Life::kGoneOrFrozen;
      (is ? halted : others).push_back(&m);
    }
    if (halted.empty() || halted.size() >= others.size()) continue;
    for (const Member* m : halted) {
      const Process& p = job.processes[m->process];
      Words words = WordsFor(EndOfLife(p.life));
      if (p.life == Life::kGoneOrFrozen) {
        // Creation talks over sockets: had the process ended, they would be closed and creation
        // would have failed.
        words = WordsFor(End::kRankFrozen);
        words.confidence = Confidence::possible;
        words.what =
            "does not run (stopped or frozen; had it ended, the others' connections to it would be "
            "closed)";
      }
      const double stall = p.trace.settings().stall_seconds() * 1e9;
      const bool waited = std::any_of(others.begin(), others.end(), [&](const Member* other) {
        return static_cast<double>(model::AfterAtLeast(
                   model::LastSignOf(p), model::LastSignOf(job.processes[other->process]))) >= stall;
      });
      if (!waited) continue;
      Candidate c;
      c.order = Class::kLiveness;
      c.communicator = comm.index;
      c.stops_job = true;
      Finding& f = c.finding;
      f.set_kind(words.kind);
      f.set_confidence(std::min(words.confidence, Confidence::probable));
      if (m->job_rank >= 0) AddRanks({m->job_rank}, f.mutable_who()->mutable_ranks());
      f.mutable_who()->add_communicators(comm.Label());
      std::set<int> waiting;
      for (const Member* other : others) waiting.insert(other->job_rank);
      AddRanks(waiting, f.mutable_collateral()->mutable_ranks());
      f.set_title(absl::StrCat("The process of ", RankText(comm, *m), " ", words.what, " while communicator ", comm.Label(),
                               " is set up"));
      *f.add_evidence() = MemberEvidence(job, *m, 0, absl::StrCat(RankText(comm, *m), ": ", p.life_evidence));
      for (const Member* other : others) {
        if (f.evidence_size() >= 4) break;
        *f.add_evidence() = MemberEvidence(job, *other, 0,
                                           absl::StrCat(RankText(comm, *other),
                                                        " has the communicator and has called "
                                                        "no operation; ",
                                                        job.processes[other->process].life_evidence));
      }
      f.set_refuted_by("a sign of life of this process newer than those of the others");
      f.mutable_next()->set_text(words.next);
      f.mutable_next()->set_command(CommandFor(p));
      f.mutable_cause()->set_id("not established");
      out->push_back(std::move(c));
    }
  }
}

// The same without anybody who is seen to have halted, but with members of whom nothing is known.
// (A job that has its communicators and takes long to load a model looks like this too: nobody is
// accused.)
void InitWithoutRecord(const Job& job, std::vector<Candidate>* out) {
  for (const Communicator& comm : job.communicators) {
    std::set<int> missing;
    std::string names;
    const Member* waiting = nullptr;
    bool long_enough = false;
    for (const Member& m : comm.members) {
      if (!m.has_record()) {
        missing.insert(m.job_rank);
        if (missing.size() <= 8) absl::StrAppend(&names, names.empty() ? "" : ", ", RankText(comm, m));
        continue;
      }
      const Process& p = job.processes[m.process];
      const double patience = p.trace.settings().stall_seconds() * 1e9;
      long_enough |= static_cast<double>(LastSign(p) - m.raw->created_ns()) >= patience;
      if (waiting == nullptr) waiting = &m;
    }
    if (missing.empty() || waiting == nullptr || !long_enough) continue;
    Candidate c;
    c.order = Class::kUndetermined;
    c.communicator = comm.index;
    Finding& f = c.finding;
    f.set_kind(Kind::undetermined);
    f.set_confidence(Confidence::possible);
    f.mutable_who()->add_communicators(comm.Label());
    f.set_title(absl::StrCat("Communicator ", comm.Label(), " was created and no operation was ever called; of ", names,
                             " there is no record"));
    *f.add_evidence() = MemberEvidence(job, *waiting, 0,
                                       absl::StrCat(RankText(comm, *waiting),
                                                    " has the communicator and has called no "
                                                    "operation for longer than the stall time"));
    f.set_refuted_by("the record of that rank, or a program that has nothing to communicate yet");
    f.mutable_next()->set_text(absl::StrCat("Get the record of ", names, " and see whether its process lives."));
    f.mutable_next()->set_command("ls /dev/shm/ringscope-*/ on its host; then: ringscope diagnose <all records>");
    out->push_back(std::move(c));
  }
}

const Register kRegister("liveness", FindLiveness);

}  // namespace

std::vector<Candidate> FindLiveness(const Job& job) {
  std::vector<Candidate> out;
  const StallAnalysis analysis(job);
  WaitedFor(analysis, &out);
  SeenByNeighbours(analysis, &out);
  DiedWithWork(analysis, &out);
  if (OnlyCreated(job)) {
    InitHang(job, &out);
    if (out.empty()) InitWithoutRecord(job, &out);
  }
  const bool stands = std::any_of(out.begin(), out.end(), [](const Candidate& c) { return c.stops_job; });
  if (!stands && !analysis.input.open) GoneWhileOthersStand(job, &out);
  if (out.empty()) NobodyLeft(analysis, &out);
  return out;
}

}  // namespace ringscope::reasoning
