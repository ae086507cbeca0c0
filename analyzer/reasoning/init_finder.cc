// Communicators that never came up: ranks that did not come, ids that were never given, and inits that all entered and none left.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>
#include <optional>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/init_progress.h"
#include "analyzer/reasoning/nccl_text.h"
#include "analyzer/reasoning/op_text.h"

namespace ringscope::reasoning {
namespace {

Candidate NotJoined(const model::Job& job, const std::vector<const model::Event*>& events) {
  const model::Event& event = *events.front();
  const int64_t joined = event.Number("joined").value_or(0), total = event.Number("total").value_or(0);
  Candidate candidate =
      Say(Kind::init_incomplete, Confidence::possible, Layer::kReport,
          absl::StrCat(std::max<int64_t>(total - joined, 0), " of ", total, " processes are missing at the rendezvous (", joined,
                       "/", total, " clients joined): who they are and why they did not come is not in these files"),
          "NC-05", "torch-store-clients");
  candidate.stops_job = true;
  candidate.state = State::init_failure;
  OnlyWaited(events, &candidate.finding);
  CiteAll(job, events, 4, &candidate.finding);
  candidate.finding.set_refuted_by("logs that show all processes connected to the store before the timeout");
  return candidate;
}

// A rank waited for the id that the first rank of its group has to create.
Candidate NoId(const model::Job& job, const std::vector<const model::Event*>& events) {
  const model::Event& event = *events.front();
  const std::string error(event.Field("error"));
  const int root = RankField(event, "root");
  const bool default_group = Contains(error, "default_pg") || !Contains(error, "key:");
  const bool timeout = Contains(error, "imeout") || Contains(error, "imed out") || Contains(error, "wait timeout");
  std::string title =
      timeout
          ? absl::StrCat("Rank ", root, default_group ? "" : " of a process group",
                         " did not give out the NCCL id that the others wait for")
          : absl::StrCat("The store went away while ranks waited for the NCCL id: the process that holds it (rank 0) is gone");
  Candidate candidate = Say(Kind::init_incomplete, Confidence::possible, Layer::kReport, title, "NC-05", "torch-store-nccl-id");
  Finding& finding = candidate.finding;
  candidate.stops_job = true;
  candidate.state = State::init_failure;
  if (default_group && root >= 0 && timeout) {
    finding.set_confidence(Confidence::probable);
    finding.mutable_cause()->set_confidence(Confidence::probable);
    finding.mutable_who()->add_ranks(root);
  }
  for (const model::Event* e : events) {
    const int rank = RankField(*e, "rank");
    if (default_group && rank >= 0 && rank != root) finding.mutable_collateral()->add_ranks(rank);
  }
  CiteAll(job, events, 4, &finding);
  finding.set_refuted_by("the log of that rank shows that it created the id in time");
  return candidate;
}

std::string WhoEntered(const InitProgress& p) {
  return absl::StrCat(p.started.size(), " of ", p.n_ranks, " ranks entered ", p.function.empty() ? "NCCL's init" : p.function,
                      " and none came out");
}

// Ranks that entered and whose logs break off without an error, while all the others report that a connection was closed from its
// other end. A socket closes so when its process ends; a process that gives up itself says why.
std::set<int> EndedInSilence(const model::Job& job, const InitProgress& p) {
  std::set<int> silent = p.StartedRanks();
  for (const model::Event* e : EventsOf(job, {"nccl-socket-closed", "nccl-socket-failed"})) silent.erase(e->by.rank);
  return silent.size() * 2 < p.started.size() ? silent : std::set<int>();
}

// Some rank is through the bootstrap, which ends only when all have come.
bool AllCame(const model::Job& job) {
  std::set<int> failed;
  for (const model::Event* e : EventsOf(job, {"nccl-socket-closed", "nccl-socket-failed"})) failed.insert(e->by.rank);
  for (const model::Event* e : EventsOf(job, {"nccl-bootstrap-done"})) {
    if (failed.count(e->by.rank) == 0) return true;
  }
  return std::any_of(job.evidence.plan.plans.begin(), job.evidence.plan.plans.end(),
                     [](const model::RankPlan& plan) { return !plan.patterns.empty() || !plan.rings.empty(); });
}

std::optional<Candidate> Incomplete(const model::Job& job) {
  const InitProgress p = LookAtInit(job);
  if (p.n_ranks == 0 || p.started.empty() || !p.completed.empty() || p.aborted) return std::nullopt;
  if (FirstEvent(job, {"nccl-connected", "nccl-tests-ok"}) != nullptr) return std::nullopt;  // nearly through: the log is cut
  const bool all = static_cast<int>(p.started.size()) == p.n_ranks;
  Candidate candidate;
  const std::set<int> silent = all ? EndedInSilence(job, p) : std::set<int>();
  std::set<int> named = silent;
  if (!silent.empty()) {
    candidate =
        Say(Kind::init_incomplete, Confidence::possible, Layer::kReport,
            absl::StrCat("The log of ", RanksText(silent), " breaks off inside ", p.function.empty() ? "NCCL's init" : p.function,
                         " without an error, and all others lost a connection: ",
                         silent.size() == 1 ? "its process" : "their processes", " ended there"),
            "NC-05", "nccl-socket-closed");
    SetNext(absl::StrCat("How the process of ", RanksText(silent), " ended: its exit status, and the kernel's log of its host."),
            "sacct -j JOB --format=JobID,State,ExitCode; dmesg -T | grep -iE 'oom|killed|segfault|xid'", &candidate.finding);
    candidate.finding.set_refuted_by(
        "a log of that rank that goes on, or a launcher that had ended the job before the connections closed");
    CiteAll(job, EventsOf(job, {"nccl-socket-closed", "nccl-socket-failed"}), 4, &candidate.finding);
  } else if (all) {
    candidate = Say(Kind::init_incomplete, Confidence::possible, Layer::kReport,
                    absl::StrCat(WhoEntered(p), "; all are there, so none of them is missing"), "");
    SetNext(
        "Stacks of two ranks on different hosts inside the init, and NCCL's own lines about it: they show at which exchange it "
        "stands.",
        "gdb -p PID -batch -ex 'thread apply all bt'; NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,NET,GRAPH",
        &candidate.finding);
    candidate.finding.set_refuted_by("`Init COMPLETE` lines further on in the logs");
  } else {
    std::set<int> absent;
    for (int rank = 0; rank < p.n_ranks; ++rank) {
      if (p.started.count(rank) == 0) absent.insert(rank);
    }
    // A log of the whole job would have their lines too; files of single ranks may just be missing here, which is plain when the
    // others are through the bootstrap. When none is, the few that show no line are worth a look in either case.
    const bool few = absent.size() * 2 <= static_cast<size_t>(p.n_ranks) && absent.size() < p.started.size() &&
                     (p.ranks_in_one_file > 1 || !AllCame(job));
    const bool whole_log = p.ranks_in_one_file > 1 && few;
    candidate = Say(Kind::init_incomplete, Confidence::possible, Layer::kReport,
                    absl::StrCat(WhoEntered(p), "; no line of ", RanksText(absent),
                                 whole_log ? " stands in the job's log"
                                 : few     ? " is in these files: never came, or its log was not collected"
                                           : " is in these files"),
                    "NC-05");
    if (few) named = absent;
    SetNext("What the ranks without an `Init START` line do: were they started, did they fail before, where do they stand.",
            "py-spy dump --pid PID", &candidate.finding);
    candidate.finding.set_refuted_by("`Init START` lines of those ranks in logs that are not here");
  }
  candidate.stops_job = true;
  candidate.state = silent.empty() ? State::init_hang : State::init_failure;
  Finding& finding = candidate.finding;
  AddRanks(named, finding.mutable_who()->mutable_ranks());
  std::set<int> waiting = p.StartedRanks();
  for (int rank : named) waiting.erase(rank);
  AddRanks(waiting, finding.mutable_collateral()->mutable_ranks());
  size_t cited = 0;
  for (const auto& [rank, entry] : p.started) {
    if (cited++ == 4) break;
    Cite(job, entry->started,
         absl::StrCat("rank ", rank, " of ", p.n_ranks, " on ", entry->by.host.empty() ? "?" : entry->by.host,
                      ": Init START, no Init COMPLETE"),
         &finding);
  }
  for (const model::Version* v : NcclVersions(job)) CiteVersion(job, *v, &finding);
  return candidate;
}

std::vector<Candidate> FindInit(const model::Job& job) {
  std::vector<Candidate> found;
  if (const auto clients = EventsOf(job, {"torch-store-clients"}); !clients.empty()) found.push_back(NotJoined(job, clients));
  if (const auto id = EventsOf(job, {"torch-store-nccl-id"}); !id.empty()) found.push_back(NoId(job, id));
  const auto twice = EventsOf(job, {"nccl-rank-checked-in-twice"});
  const auto counts = EventsOf(job, {"nccl-bootstrap-mismatch"});
  if (!twice.empty() || !counts.empty()) {
    const bool again = !twice.empty();
    const model::Event& event = again ? *twice.front() : *counts.front();
    std::string title =
        again ? absl::StrCat("Two processes came as rank ", std::string(event.Field("rank")), " of the same communicator")
              : absl::StrCat("Processes disagree on the number of ranks: ", std::string(event.Field("mine")), " and ",
                             std::string(event.Field("theirs")));
    Candidate candidate =
        Say(Kind::init_incomplete, Confidence::probable, Layer::kProgram, title, again ? "FW-08" : "NC-05", event.signature);
    if (again && RankField(event, "rank") >= 0) candidate.finding.mutable_who()->add_ranks(RankField(event, "rank"));
    candidate.stops_job = true;
    candidate.state = State::init_failure;
    CiteAll(job, again ? twice : counts, 3, &candidate.finding);
    candidate.finding.set_refuted_by(
        "every process of the job has its own rank, passes the same number of ranks, and none is left of an earlier run");
    found.push_back(std::move(candidate));
  }
  if (auto incomplete = Incomplete(job)) found.push_back(std::move(*incomplete));
  return found;
}

const Register kRegister("init", FindInit);

}  // namespace
}  // namespace ringscope::reasoning
