// Watchdog timeouts read together: who had not come to the collective that the others waited in, and what its host did meanwhile.
//
// A rank that waits times out; the rank it waits for need not, since each watchdog counts from its own enqueue. A rank is named
// only for what its own log says (it had enqueued less, or was busy on the host); a rank without a log is a log to collect.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "analyzer/model/ranks_text.h"
#include "analyzer/reasoning/exception_nature.h"
#include "analyzer/reasoning/text_evidence.h"
#include "analyzer/reasoning/work_groups.h"

namespace ringscope::reasoning {
namespace {

using Kind_ = model::HostWork::Kind;

std::string WorkText(const GroupWork& group) {
  std::string op;
  for (const auto& [rank, work] : group.ranks) {
    if (work.timeout != nullptr && op.empty()) op = work.timeout->op;
  }
  const int64_t seq = group.Oldest();
  std::string text = op.empty() ? "a collective" : op;
  if (seq >= 0) absl::StrAppend(&text, " (work ", seq, ")");
  if (const std::string label = group.Label(); !label.empty()) absl::StrAppend(&text, " of ", label);
  return text;
}

int64_t LimitSeconds(const GroupWork& group) {
  for (const auto& [rank, work] : group.ranks) {
    if (work.timeout != nullptr && work.timeout->timeout_ms > 0) return work.timeout->timeout_ms / 1000;
  }
  return 0;
}

void CiteGroup(const model::Job& job, const GroupWork& group, int most, Finding* finding) {
  int cited = 0;
  for (const auto& [rank, work] : group.ranks) {
    if (cited >= most) break;
    if (work.timeout != nullptr) CiteTimeout(job, *work.timeout, finding);
    if (work.cursor != nullptr) CiteCursor(job, *work.cursor, finding);
    ++cited;
  }
}

// ---- a rank that says itself that it had not come so far
struct Behind {
  std::set<int> ranks;
  int64_t at = -1;
};
// Ranks that wait in another group themselves only pass the waiting on.
Behind RanksBehind(const GroupWork& group, const std::set<int>& waiting_elsewhere) {
  Behind behind;
  behind.at = group.Oldest();
  if (behind.at < 0) return behind;
  for (const auto& [rank, work] : group.ranks) {
    if (rank < 0 || work.timeout != nullptr || work.cursor == nullptr || work.cursor->failed) continue;
    if (work.cursor->enqueued < behind.at && waiting_elsewhere.count(rank) == 0) behind.ranks.insert(rank);
  }
  // When most members are behind, the few that timed out are ahead: nothing tells who is wrong.
  if (behind.ranks.size() > group.TimedOut().size()) behind.ranks.clear();
  return behind;
}

Candidate MissingRank(const model::Job& job, const GroupWork& group, const Behind& behind) {
  const std::set<int> out = group.TimedOut();
  Candidate candidate =
      Say(Kind::missing_rank, Confidence::probable, Layer::kProgram,
          absl::StrCat(model::RanksText({behind.ranks.begin(), behind.ranks.end()}), " never enqueued ", WorkText(group),
                       ", in which ", model::RanksText({out.begin(), out.end()}), " waited until the timeout"),
          "UC-01");
  candidate.stops_job = true;
  candidate.state = State::hang;
  Finding& finding = candidate.finding;
  finding.mutable_cause()->set_confidence(Confidence::possible);
  for (const int rank : behind.ranks) {
    finding.mutable_who()->add_ranks(rank);
    if (finding.evidence_size() < 4) CiteCursor(job, *group.ranks.at(rank).cursor, &finding);
  }
  for (const int rank : out) finding.mutable_collateral()->add_ranks(rank);
  CiteGroup(job, group, 3, &finding);
  for (const model::HostWork& h : job.evidence.work.host_work) {
    if (finding.evidence_size() < 14 && behind.ranks.count(h.by.rank) > 0) CiteHostWork(job, h, &finding);
  }
  finding.set_refuted_by("a flight recorder dump of that rank in which the work is enqueued");
  SetNext("What that rank's host did instead: its stack while it hangs, or the Python stack in its flight recorder dump.",
          "py-spy dump --pid <pid of that rank>", &finding);
  return candidate;
}

// ---- a rank whose host was busy
struct Busy {
  const model::HostWork* work = nullptr;
  int rank = -1;
  bool told = false;  // the line itself names the rank
  bool long_enough = false;
};

// Whether the line is of the time of the wait: what was told long before may have ended without a word.
bool OfTheWait(const model::Job& job, const model::HostWork& h, const GroupWork& group) {
  const model::WorkTimeout* first = nullptr;
  for (const auto& [rank, work] : group.ranks) {
    if (work.timeout != nullptr && (first == nullptr || work.timeout->where < first->where)) first = work.timeout;
  }
  if (first == nullptr) return true;
  constexpr int64_t kSlack = 120'000'000'000;  // between the line and the others' wait, and between clocks
  if (h.time.known() && h.time.clock == first->time.clock && first->time.clock != model::Stamp::Clock::kOfDay) {
    return h.time.ns >= first->time.ns - first->ran_ms * 1'000'000 - kSlack;
  }
  constexpr uint32_t kNear = 40;  // lines
  if (h.where.file == first->where.file)
    return h.where.line <= first->where.line + kNear && first->where.line <= h.where.line + kNear;
  const uint64_t lines = job.evidence.files[h.where.file].lines;
  return h.where.line + kNear >= lines;
}

Busy BusyHost(const model::Job& job, const GroupWork& group) {
  const std::set<int> out = group.TimedOut();
  const int64_t limit = LimitSeconds(group);
  Busy best;
  std::map<std::pair<int, int>, const model::HostWork*> newest;  // by rank and kind: what came last says whether it is over
  for (const model::HostWork& h : job.evidence.work.host_work) {
    const model::HostWork*& last = newest[{h.by.rank, static_cast<int>(h.kind)}];
    if (last == nullptr || last->where.file != h.where.file || last->where < h.where) last = &h;
    // Several bars of one kind run one after the other; one that has run as long as the others waited stays of interest.
    if (h.elapsed_s && limit > 0 && *h.elapsed_s * 2 >= limit) newest[{h.by.rank, 100 + static_cast<int>(h.kind)}] = &h;
  }
  for (const auto& [key_of, newest_work] : newest) {
    const model::HostWork& h = *newest_work;
    if (h.over || h.kind == Kind_::kIterations) continue;
    Busy busy{&h, h.by.rank, h.by.rank >= 0, false};
    // Frameworks let the first process prepare data, download and save while the others wait; its lines carry no rank because
    // only it prints.
    if (!busy.told) busy.rank = 0;
    if (out.count(busy.rank) > 0 || out.empty()) continue;
    if (group.ranks.count(busy.rank) > 0 && group.ranks.at(busy.rank).cursor != nullptr &&
        group.ranks.at(busy.rank).cursor->enqueued >= group.Oldest())
      continue;
    busy.long_enough = h.elapsed_s && limit > 0 && *h.elapsed_s * 2 >= limit;
    // The lines of one rank's own log do not speak for another.
    if (!busy.told && out.size() < 2 && !busy.long_enough) continue;
    if (!busy.long_enough && !OfTheWait(job, h, group)) continue;
    const auto key = [](const Busy& b) { return std::make_tuple(b.long_enough, b.told); };
    if (best.work == nullptr || key(busy) >= key(best)) best = busy;
  }
  return best;
}

std::string DoingText(Kind_ kind) {
  switch (kind) {
    case Kind_::kPreprocess:
      return "prepared data (tokenizer, preprocessing)";
    case Kind_::kDownload:
      return "downloaded files";
    case Kind_::kLoad:
      return "loaded files";
    case Kind_::kSave:
      return "saved a checkpoint";
    case Kind_::kEvaluate:
      return "evaluated";
    case Kind_::kCompile:
      return "compiled";
    case Kind_::kIterations:
      break;
  }
  return "worked";
}

Candidate BusyRank(const model::Job& job, const GroupWork& group, const Busy& busy) {
  const std::set<int> out = group.TimedOut();
  const bool saving = busy.work->kind == Kind_::kSave || busy.work->kind == Kind_::kEvaluate;
  Candidate candidate =
      Say(Kind::missing_rank, busy.told || busy.long_enough ? Confidence::probable : Confidence::possible, Layer::kProgram,
          absl::StrCat("Rank ", busy.rank, " ", DoingText(busy.work->kind), " on its host while ",
                       model::RanksText({out.begin(), out.end()}), " waited in ", WorkText(group), " until the timeout of ",
                       LimitSeconds(group), " s"),
          saving ? "FW-07" : "UC-06");
  candidate.stops_job = true;
  candidate.state = State::hang;
  Finding& finding = candidate.finding;
  finding.mutable_who()->add_ranks(busy.rank);
  for (const int rank : out) finding.mutable_collateral()->add_ranks(rank);
  CiteHostWork(job, *busy.work, &finding);
  CiteGroup(job, group, 3, &finding);
  finding.set_refuted_by(absl::StrCat("a timeout of rank ", busy.rank, " in the same work, or its stack inside a collective"));
  switch (busy.work->kind) {
    case Kind_::kSave:
      SetNext(
          "How long the save takes: raise the process group's timeout above it, save asynchronously, or let all ranks take part.",
          absl::StrCat("py-spy dump --pid <pid of rank ", busy.rank, ">"), &finding);
      break;
    case Kind_::kEvaluate:
      SetNext("Let all ranks evaluate, or raise the process group's timeout above the evaluation's time.",
              absl::StrCat("py-spy dump --pid <pid of rank ", busy.rank, ">"), &finding);
      break;
    default:
      SetNext(
          "Raise the timeout (ddp_timeout, init_process_group(timeout=…)) above the time that this takes, or do it before the "
          "job "
          "(tokenize, "
          "download or cache beforehand, more workers).",
          absl::StrCat("py-spy dump --pid <pid of rank ", busy.rank, ">"), &finding);
  }
  return candidate;
}

// ---- a rank that waits on the host for those that wait on the GPU for it
std::set<int> InHostCollective(const model::Job& job, const std::set<int>& out) {
  std::set<int> inside;
  for (const int rank : RanksOf(EventsOf(job, {"gloo-timeout"}))) {
    if (rank >= 0 && out.count(rank) == 0) inside.insert(rank);
  }
  return inside.size() < out.size() ? inside : std::set<int>();
}

Candidate HostCollective(const model::Job& job, const GroupWork& group, const std::set<int>& inside) {
  const std::set<int> out = group.TimedOut();
  const FewerBatches fewer = FewerBatchesIn(job);
  std::string who = model::RanksText({inside.begin(), inside.end()});
  who[0] = 'R';
  Candidate candidate = Say(
      Kind::missing_rank, Confidence::probable, Layer::kProgram,
      absl::StrCat(who, inside.size() == 1 ? " waits" : " wait", " in a host-side collective (Gloo) while ",
                   model::RanksText({out.begin(), out.end()}), " wait in ", WorkText(group), ": they wait for each other, and ",
                   inside.size() == 1 ? "it" : "they", " went another way than the others"),
      "FW-06", "gloo-timeout");
  candidate.stops_job = true;
  candidate.state = State::hang;
  Finding& finding = candidate.finding;
  finding.mutable_cause()->set_confidence(Confidence::possible);
  for (const int rank : inside) finding.mutable_who()->add_ranks(rank);
  for (const int rank : out) finding.mutable_collateral()->add_ranks(rank);
  CiteAll(job, EventsOf(job, {"gloo-timeout"}), 2, &finding);
  for (const model::HostWork* h : {fewer.fewer, fewer.more}) {
    if (h != nullptr) CiteHostWork(job, *h, &finding);
  }
  for (const model::HostWork& h : job.evidence.work.host_work) {
    if (finding.evidence_size() < 6 && inside.count(h.by.rank) > 0) CiteHostWork(job, h, &finding);
  }
  CiteGroup(job, group, 3, &finding);
  finding.set_refuted_by(
      absl::StrCat("the ", inside.size() == 1 ? "rank has" : "ranks have", " entered ", WorkText(group), " too"));
  SetNext(
      "Why the ranks part: unequal numbers of batches (drop the last, pad, or use the Join context), a condition that only some "
      "ranks meet, "
      "a barrier on another group.",
      "py-spy dump --pid <pid>  # on every rank while it hangs", &finding);
  return candidate;
}

// ---- everybody sends
// A large send ends only when its receiver takes it: ranks that all wait in sends, and none in a receive, wait for each other.
bool AllSend(const GroupWork& group) {
  size_t sends = 0;
  for (const auto& [rank, work] : group.ranks) {
    if (work.timeout == nullptr) return false;
    if (work.timeout->op != "SEND") return false;
    ++sends;
  }
  return sends >= 2;
}

Candidate Sends(const model::Job& job, const GroupWork& group) {
  const std::set<int> out = group.TimedOut();
  std::string who = model::RanksText({out.begin(), out.end()});
  if (!who.empty()) who[0] = 'R';
  Candidate candidate =
      Say(Kind::order_mismatch, Confidence::possible, Layer::kProgram,
          absl::StrCat(who,
                       " wait in a SEND and none in a RECV: both sides send first, and a large send ends only when "
                       "the other side receives"),
          "UC-03");
  candidate.stops_job = true;
  candidate.state = State::hang;
  Finding& finding = candidate.finding;
  for (const int rank : out) finding.mutable_collateral()->add_ranks(rank);
  CiteGroup(job, group, 4, &finding);
  finding.set_refuted_by(
      "another rank that waits in the RECV of one of these sends: then the transfer between them stands still");
  SetNext(
      "Put the send and the receive of a pair into one group (batch_isend_irecv, ncclGroupStart/End), or let one side of each "
      "pair receive "
      "first; flight recorder dumps show which send has no receive.",
      "torchfrtrace -p <prefix of the dumps>", &finding);
  return candidate;
}

// ---- not enough
Candidate NotEnough(const model::Job& job, const GroupWork& group) {
  const std::set<int> out = group.TimedOut();
  const bool spans = group.group.spans_job() || !group.group.known();
  // Without a size, ranks that are numbered without a gap from 0 may be all there are.
  int world = spans ? std::max(WorldOf(job), group.Members()) : 0;
  const bool guessed = world == 0 && group.ranks.size() >= 2 && group.ranks.begin()->first == 0 &&
                       group.ranks.rbegin()->first + 1 == static_cast<int>(group.ranks.size());
  if (guessed) world = static_cast<int>(group.ranks.size());
  std::set<int> rest;
  for (int rank = 0; rank < world && world <= 4096; ++rank) {
    if (group.ranks.count(rank) == 0) rest.insert(rank);
  }
  const bool all = world > 0 && rest.empty();
  std::set<int64_t> places;
  for (const auto& [rank, work] : group.ranks) {
    if (work.timeout != nullptr && work.timeout->seq) places.insert(*work.timeout->seq);
  }
  std::set<int> known(out);
  known.erase(-1);
  std::string title = known.empty()       ? "A rank"
                      : known.size() == 1 ? absl::StrCat("Rank ", *known.begin())
                                          : model::RanksText({known.begin(), known.end()});
  if (!title.empty() && title[0] == 'r') title[0] = 'R';
  absl::StrAppend(&title, " ran into the timeout in ", WorkText(group));
  if (all) {
    absl::StrAppend(&title, guessed ? "; if these are all its ranks, " : "; ", "all had entered it", guessed ? " and" : ", so",
                    " the transfer or a GPU stands still: the logs do not tell which");
  } else if (places.size() > 1) {
    absl::StrAppend(&title, "; the ranks stand at different works (", *places.begin(), " to ", *places.rbegin(),
                    "), which says that some had gone on, not who is to blame");
  } else {
    absl::StrAppend(
        &title, "; a rank that waits is not the one to blame, and the logs of the other ranks",
        spans && !rest.empty() && rest.size() <= 64 ? absl::StrCat(" (", model::RanksText({rest.begin(), rest.end()}), ")") : "",
        " are not here");
  }
  Candidate candidate = Say(Kind::undetermined, Confidence::possible, Layer::kReport, std::move(title), "");
  candidate.state = State::hang;
  Finding& finding = candidate.finding;
  CiteGroup(job, group, 4, &finding);
  for (const Raised& raised : RaisedIn(job)) {
    if (raised.nature != Nature::kArtefact || finding.evidence_size() > 12) continue;
    Cite(job, raised.shown->where,
         absl::StrCat(ExceptionText(*raised.shown),
                      " (no GPU is asked for that much: the size was read from memory that the failed ",
                      "collective had not written; it follows from the timeout)"),
         &finding);
  }
  for (const int rank : known) finding.mutable_collateral()->add_ranks(rank);
  finding.set_refuted_by("the records of the other ranks, when they show who had not entered this work");
  if (all) {
    SetNext(
        "Which rank's kernel started and which edge does not move: flight recorder dumps of all ranks "
        "(TORCH_NCCL_TRACE_BUFFER_SIZE=2000), "
        "the kernel logs and port counters of all hosts.",
        "dmesg -T | grep -iE 'xid|nvrm|mlx5'; nvidia-smi; ibstat", &finding);
  } else {
    SetNext(
        "The same log, and a flight recorder dump (TORCH_NCCL_TRACE_BUFFER_SIZE=2000) or stack, of the other ranks: which of "
        "them had "
        "not "
        "entered this work.",
        "py-spy dump --pid <pid>  # on every rank while it hangs; NCCL_DEBUG=WARN in the next run", &finding);
  }
  return candidate;
}

std::vector<Candidate> FindWorkTimeouts(const model::Job& job) {
  std::vector<Candidate> found;
  const std::vector<GroupWork> groups = GroupsOf(job);
  const GroupWork* told = nullptr;
  bool diverges = false;  // another finder's
  for (const GroupWork& group : groups) {
    if (group.TimedOut().empty()) continue;
    std::set<int> elsewhere;
    for (const GroupWork& other : groups) {
      if (&other == &group) continue;
      const std::set<int> out = other.TimedOut();
      elsewhere.insert(out.begin(), out.end());
    }
    if (const Behind behind = RanksBehind(group, elsewhere); !behind.ranks.empty()) {
      found.push_back(MissingRank(job, group, behind));
    } else if (const std::set<int> inside = InHostCollective(job, group.TimedOut()); !inside.empty()) {
      found.push_back(HostCollective(job, group, inside));
    } else if (const Busy busy = BusyHost(job, group); busy.work != nullptr) {
      found.push_back(BusyRank(job, group, busy));
    } else if (AllSend(group)) {
      found.push_back(Sends(job, group));
    }
    // The group with the most to show.
    diverges |= !Compare(group).camps.empty();
    if (told == nullptr || group.ranks.size() > told->ranks.size()) told = &group;
  }
  if (found.empty() && told != nullptr && !diverges) found.push_back(NotEnough(job, *told));
  return found;
}

const Register kRegister("work timeout", FindWorkTimeouts);

}  // namespace
}  // namespace ringscope::reasoning
