// The waiting ends at ranks that have not come: outside NCCL, inside a call, or without a record.
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/stall_finder_words.h"

namespace ringscope::reasoning {
namespace {

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
    return c;
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
                       absl::StrCat(a_.RankName(rank), " is outside NCCL and nothing is enqueued; ",
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
