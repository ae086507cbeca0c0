// The waiting ends at ranks that have not come: outside NCCL, inside a call, or without a record.
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/quiet.h"
#include "analyzer/reasoning/stack_view.h"
#include "analyzer/reasoning/stall_finder_words.h"

namespace ringscope::reasoning {
namespace {

// A call of the application that has not returned for the stall time, as the preloaded library saw it; nullptr: none.
const trace::CallInFlight* HeldCall(const model::Process& p) {
  for (const trace::CallInFlight& call : p.trace.calls()) {
    if (call.host_function().empty() || call.host_since_ns() == 0) continue;
    if (static_cast<double>(LastSign(p) - call.host_since_ns()) >= p.trace.settings().stall_seconds() * 1e9) return &call;
  }
  return nullptr;
}
// It waits for what was given to the GPU; whatever that waits for is the reason.
bool WaitsForGpu(const std::string& function) {
  return function.find("Synchronize") != std::string::npos || function.find("ncclGroupEnd") != std::string::npos;
}
// Needs the whole device or the context's lock: with kernels of NCCL running, a cycle (failure mode FW-03).
bool NeedsDevice(const std::string& function) {
  for (const char* name : {"cudaFree", "cudaMalloc", "cudaFreeHost", "cudaHostAlloc", "cuMemFree", "cuMemAlloc", "cuModuleLoadData",
                           "cuLibraryLoadData", "cudaDeviceSynchronize", "cuCtxSynchronize"}) {
    if (function.rfind(name, 0) == 0) return true;
  }
  return false;
}

class RankWriter : public StallWords {
 public:
  using StallWords::StallWords;

  Candidate Missing(const RootGroup& group) const {
    const std::set<int> ranks = RanksOf(group);
    if (TooMany(group, ranks.size())) return HalfOfThem(group, ranks);
    Candidate c = Start(group, Kind::missing_rank, Confidence::probable);
    Finding& f = c.finding;
    AddRanks(a_.JobRanks(ranks), f.mutable_who()->mutable_ranks());
    f.set_title(absl::StrCat(NamesText(ranks), ranks.size() == 1 ? " has" : " have",
                             " not entered ", Place(group), ", which the others wait in"));
    for (int r : ranks) {
      if (f.evidence_size() >= 8) break;
      AddAbsence(group, r, &f);
    }
    a_.Describe(group, &c);
    Held(group, ranks, &f);
    AddMissingNote(group, &f);
    f.set_refuted_by(absl::StrCat("a later record in which ", NamesText(ranks),
                                  " has entered the operation, or a stack of it "
                                  "inside this very call"));
    SetNext(
        &f,
        absl::StrCat(
            "See what ", NamesText(ranks), ranks.size() == 1 ? " does" : " do",
            " instead: data loading, checkpoint, a branch that leaves the call out, a debugger."),
        StackCommand(ranks));
    Stood(ranks, &f);
    return c;
  }

  // The newest stack of the rank's process; nullptr: none was given.
  const Stance* StackOf(int rank, const std::vector<Stance>& stances) const {
    const model::Process* p = a_.ProcessOf(rank);
    const std::set<int> job_rank = a_.JobRanks({rank});
    const Stance* found = nullptr;
    for (const Stance& s : stances) {
      if (p != nullptr ? IsOf(s, *p) : s.rank >= 0 && job_rank.count(s.rank) > 0) found = &s;
    }
    return found;
  }

  // What they do instead, where their stacks are given. A stack is one moment: the record says that the rank has not come, the
  // stack only where it was then.
  void Stood(const std::set<int>& ranks, Finding* f) const {
    if (job_.evidence.stacks.processes.empty()) return;
    const std::vector<Stance> stances = Stances(job_);
    std::set<Doing> doing;
    const Stance* first = nullptr;
    size_t seen = 0;
    for (const int rank : ranks) {
      const Stance* s = StackOf(rank, stances);
      if (s == nullptr || s->telling == nullptr) continue;
      if (seen++ < 4) CiteStance(job_, *s, f);
      doing.insert(s->doing);
      if (first == nullptr) first = s;
    }
    if (first == nullptr) return;
    const StanceReading reading = ReadingOf(doing.size() == 1 ? first->doing : Doing::kUser);
    const bool waits = first->doing == Doing::kCollective || first->doing == Doing::kSync;
    f->set_title(absl::StrCat(f->title(), "; ", seen == 1 && ranks.size() == 1 ? "it stands" : absl::StrCat(seen, " stand"), " in ",
                              StanceText(*first)));
    if (waits) return;
    if (*reading.cause != 0 && (f->cause().id().empty() || f->cause().id() == "not established") && seen == ranks.size() &&
        reading.cause != std::string("UC-01")) {
      f->mutable_cause()->set_id(reading.cause);
      f->mutable_cause()->set_confidence(Confidence::possible);
    }
    f->mutable_next()->set_text(absl::StrCat("By its stack ", NamesText(ranks), " ", reading.what, ". ", reading.next, "."));
  }

  // Where its host stands, if a wrapped call holds it: then it is not late, it cannot go on.
  void Held(const RootGroup& group, const std::set<int>& ranks, Finding* f) const {
    std::set<std::string> blocked;
    size_t held = 0;
    for (const int rank : ranks) {
      const model::Process* p = a_.ProcessOf(rank);
      const model::Member* m = a_.MemberIn(group.comm, rank);
      const trace::CallInFlight* call = p == nullptr ? nullptr : HeldCall(*p);
      if (call == nullptr || m == nullptr) continue;
      ++held;
      if (!WaitsForGpu(call->host_function()) || NeedsDevice(call->host_function())) blocked.insert(call->host_function());
      *f->add_evidence() =
          MemberEvidence(job_, *m, call->row(),
                         absl::StrCat(a_.RankName(rank), ": thread ", call->tid(), " is inside ", call->host_function(), " since ",
                                      DurationText(LastSign(*p) - call->host_since_ns())));
    }
    if (held != ranks.size() || blocked.size() != 1) return;
    f->set_kind(Kind::host_blocked);
    f->set_title(absl::StrCat(NamesText(ranks), ranks.size() == 1 ? " is" : " are", " inside ", *blocked.begin(),
                              blocked.begin()->rfind("nccl", 0) == 0
                                  ? ", which does not return and has not begun "
                                  : absl::StrCat(", which does not return, and so ", ranks.size() == 1 ? "has" : "have", " not entered "),
                              Place(group)));
    if (!NeedsDevice(*blocked.begin())) return;
    f->mutable_cause()->set_id("FW-03");
    f->mutable_cause()->set_confidence(Confidence::possible);
  }

  void AddAbsence(const RootGroup& group, int rank, Finding* f) const {
    const model::Member* m = a_.MemberIn(group.comm, rank);
    const model::Process* p = a_.ProcessOf(rank);
    if (m == nullptr || p == nullptr) return;
    const bool p2p = group.comm >= 0 && a_.input.comms[group.comm].p2p;
    const model::Op* last = nullptr;
    for (const model::Op& op : m->ops) {
      if (op.p2p() == p2p) last = &op;
    }
    std::string text;
    if (last == nullptr) {
      text = absl::StrCat(a_.RankName(rank), " has called nothing on this communicator");
    } else {
      text = absl::StrCat(
          a_.RankName(rank), " has called ", p2p ? m->raw->p2ps() : m->collectives,
          p2p ? " sends and receives; the last one is " : " collectives; the last one is ",
          OpText(last->raw), CallText(job_, *m, last->raw), Finished(*last) ? ", finished" : "");
    }
    if (m->finalized)
      absl::StrAppend(&text, m->finalized_open ? "; it aborted the communicator"
                                               : "; it destroyed the communicator");
    *f->add_evidence() =
        MemberEvidence(job_, *m, last == nullptr ? 0 : last->raw.row(), std::move(text));
    *f->add_evidence() =
        MemberEvidence(job_, *m, 0,
                       absl::StrCat(a_.RankName(rank),
                                    HeldCall(*p) != nullptr && HeldCall(*p)->host_function().rfind("nccl", 0) == 0
                                        ? " has nothing enqueued; "
                                        : " is outside NCCL and nothing is enqueued; ",
                                    p->trace.has_dump() ? "it lived when its dump was written" :
                                    p->life == model::Life::kExited
                                        ? "whether its process still lives is not recorded"
                                        : p->life_evidence));
  }

  Candidate HalfOfThem(const RootGroup& group, const std::set<int>& ranks) const {
    Candidate c = Start(group, Kind::undetermined, Confidence::possible);
    Finding& f = c.finding;
    f.set_title(absl::StrCat(ranks.size(), " of ", a_.MembersSeen(group.comm),
                             " ranks have not entered ", Place(group),
                             ": either they are late or the others are ahead"));
    a_.Describe(group, &c);
    AddNote(&f, absl::StrCat("not entered: ", NamesText(ranks)));
    AddMissingNote(group, &f);
    f.set_refuted_by("stacks that show which half is where the program should be");
    SetNext(&f, "Compare the stacks of one rank of each half.", StackCommand(ranks));
    return c;
  }

  Candidate InApi(const RootGroup& group) const {
    const std::set<int> ranks = RanksOf(group);
    const bool many = TooMany(group, ranks.size());
    Candidate c =
        Start(group, many ? Kind::undetermined : Kind::host_blocked, Confidence::probable);
    Finding& f = c.finding;
    if (!many) AddRanks(a_.JobRanks(ranks), f.mutable_who()->mutable_ranks());
    f.set_title(absl::StrCat(NamesText(ranks), ranks.size() == 1 ? " is" : " are",
                             " inside an NCCL call that does not return, in ", Place(group)));
    if (many) f.set_confidence(Confidence::possible);
    for (const int rank : ranks) {
      const model::Process* p = a_.ProcessOf(rank);
      const model::Member* m = a_.MemberIn(group.comm, rank);
      const trace::CallInFlight* call = p == nullptr || f.evidence_size() >= 8 ? nullptr : HeldCall(*p);
      if (call != nullptr && m != nullptr)
        *f.add_evidence() = MemberEvidence(job_, *m, call->row(),
                                           absl::StrCat(a_.RankName(rank), ": thread ", call->tid(), " is inside ", call->host_function(),
                                                        " since ", DurationText(LastSign(*p) - call->host_since_ns())));
    }
    a_.Describe(group, &c);
    AddMissingNote(group, &f);
    f.set_refuted_by("a stack outside of NCCL and the CUDA driver");
    SetNext(&f, "The native stack tells what the call waits for: the driver, a lock, a connection.",
            "gdb -p <pid> -batch -ex 'thread apply all bt'");
    return c;
  }

  Candidate NoRecord(const RootGroup& group) const {
    const std::set<int> ranks = RanksOf(group);
    Candidate c = Start(group, Kind::undetermined, Confidence::possible);
    Finding& f = c.finding;
    f.set_title(absl::StrCat(Place(group), " stands still; the waiting leads to ", NamesText(ranks),
                             ", of which there is no record"));
    a_.Describe(group, &c);
    f.set_refuted_by("the record of that rank");
    if (OfDumps(a_)) {
      SetNext(&f,
              absl::StrCat("Get the dump of ", NamesText(ranks),
                           ", written on its own host: it has not entered, is gone, or was in teardown or blocked when the "
                           "others dumped (then none was written, and a stack of it tells)."),
              "ls -l /tmp/nccl_trace_rank_* ${TORCH_FR_DUMP_TEMP_FILE:+$TORCH_FR_DUMP_TEMP_FILE*}  # on its host");
      return c;
    }
    SetNext(&f,
            absl::StrCat("Get the record of ", NamesText(ranks),
                         " (flight file or trace): it has not entered, is gone, or shows the "
                         "other side of the stalled edge."),
            "ls /dev/shm/ringscope-*/ on its host; then: ringscope diagnose <all records>");
    Stood(ranks, &f);
    return c;
  }
};

}  // namespace

Candidate DescribeMissing(const StallAnalysis& a, const RootGroup& group) {
  return RankWriter(a).Missing(group);
}
Candidate DescribeInApi(const StallAnalysis& a, const RootGroup& group) {
  return RankWriter(a).InApi(group);
}
Candidate DescribeNoRecord(const StallAnalysis& a, const RootGroup& group) {
  return RankWriter(a).NoRecord(group);
}

}  // namespace ringscope::reasoning
