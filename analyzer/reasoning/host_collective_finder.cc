// Host-side collectives that did not end: barriers that name who is missing, and checkpoints whose ranks coordinate over Gloo.
//
// A Gloo timeout names the operation that waited, never the rank that was late; a monitored barrier names the ranks that rank 0 did not
// hear from.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "analyzer/model/ranks_text.h"
#include "analyzer/model/views.h"
#include "analyzer/reasoning/exception_nature.h"
#include "analyzer/reasoning/text_evidence.h"
#include "analyzer/reasoning/work_groups.h"

namespace ringscope::reasoning {
namespace {

std::set<int> Numbers(std::string_view text) {
  std::set<int> ranks;
  for (size_t i = 0; i < text.size();) {
    int64_t n = -1;
    for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i)
      n = std::min<int64_t>((n < 0 ? 0 : n) * 10 + (text[i] - '0'), 1 << 30);
    if (n >= 0 && n < (1 << 20)) ranks.insert(static_cast<int>(n));
    if (n < 0) ++i;
  }
  return ranks;
}

bool OfCheckpoint(const model::Exception::Frame& frame) {
  for (const std::string* text : {&frame.function, &frame.file, &frame.code}) {
    if (Contains(*text, "checkpoint") || Contains(*text, "save_") || Contains(*text, ".save(") || Contains(*text, "dist_cp") ||
        Contains(*text, "state_dict"))
      return true;
  }
  return false;
}

void FindBarrier(const model::Job& job, std::vector<Candidate>* found) {
  const auto barriers = EventsOf(job, {"torch-monitored-barrier"});
  if (barriers.empty()) return;
  std::set<int> missing;
  for (const model::Event* event : barriers) {
    const std::set<int> ranks = Numbers(event->Field("missing"));
    missing.insert(ranks.begin(), ranks.end());
  }
  bool closed = false;
  for (const model::Exception& e : job.evidence.work.exceptions) {
    for (const std::string& line : e.more) closed |= Contains(line, "Connection closed by peer");
    closed |= Contains(e.message, "failed to pass") && Contains(e.message, "Connection closed by peer");
  }
  Candidate candidate = Say(closed ? Kind::process_exited : Kind::missing_rank, Confidence::probable, Layer::kProgram,
                            absl::StrCat(model::RanksText({missing.begin(), missing.end()}), closed ? " had ended" : " did not come",
                                         " when rank 0 waited in a monitored barrier"),
                            closed ? "UC-05" : "UC-01", "torch-monitored-barrier");
  candidate.finding.mutable_cause()->set_confidence(Confidence::possible);
  candidate.stops_job = true;
  candidate.state = closed ? State::crashed : State::hang;
  for (const int rank : missing) candidate.finding.mutable_who()->add_ranks(rank);
  candidate.finding.mutable_collateral()->add_ranks(0);
  CiteAll(job, barriers, 4, &candidate.finding);
  for (const model::HostWork& h : job.evidence.work.host_work) {
    if (candidate.finding.evidence_size() < 8 && missing.count(h.by.rank) > 0) CiteHostWork(job, h, &candidate.finding);
  }
  candidate.finding.set_refuted_by("those ranks' stacks inside the same barrier: then the connection to rank 0 is at fault");
  found->push_back(std::move(candidate));
}

void FindCheckpoint(const model::Job& job, std::vector<Candidate>* found) {
  using SaveKind = model::HostWork::Kind;
  const model::Exception* waited = nullptr;
  std::vector<const model::Exception*> others;
  bool gloo = false;
  for (const Raised& raised : RaisedIn(job)) {
    if (IsOwn(raised.nature)) return;  // somebody failed; who waited in a save is collateral
    if (raised.nature != Nature::kCommunication) continue;
    const model::Exception& e = *raised.chain.front();
    const bool timeout = Contains(e.message, "imed out") || Contains(e.message, "imeout");
    gloo |= Contains(e.message, "gloo") || Contains(e.message, "Gloo");
    if (waited == nullptr && timeout && std::any_of(e.frames.begin(), e.frames.end(), OfCheckpoint)) {
      waited = &e;
    } else {
      others.push_back(&e);
    }
  }
  if (waited == nullptr) return;
  Candidate candidate =
      Say(Kind::host_blocked, Confidence::probable, Layer::kProgram,
          absl::StrCat("A checkpoint save did not get through its coordination", gloo ? " over Gloo" : "", " before the timeout",
                       waited->by.rank >= 0 ? absl::StrCat(" (told by rank ", waited->by.rank, ", which waited)") : "",
                       "; who was late in it is not told"),
          "FW-07");
  candidate.stops_job = true;
  candidate.state = State::hang;
  Finding& finding = candidate.finding;
  for (const model::HostWork& h : job.evidence.work.host_work) {
    if (h.kind == SaveKind::kSave && finding.evidence_size() < 3) CiteHostWork(job, h, &finding);
  }
  Cite(job, waited->where, ExceptionText(*waited), &finding);
  for (const model::Exception::Frame& frame : waited->frames) {
    if (finding.evidence_size() < 8 && OfCheckpoint(frame))
      Cite(job, waited->start,
           absl::StrCat(frame.code.empty() ? frame.function : frame.code, " in ", frame.function, ", line ", frame.line), &finding);
  }
  for (size_t i = 0; i < others.size() && i < 3; ++i) {
    Cite(job, others[i]->where, ExceptionText(*others[i]), &finding);
    if (others[i]->by.rank >= 0) finding.mutable_collateral()->add_ranks(others[i]->by.rank);
  }
  if (waited->by.rank >= 0) finding.mutable_collateral()->add_ranks(waited->by.rank);
  finding.set_refuted_by("a rank's own error, or a rank that never entered the save");
  SetNext(
      "Where the ranks are during the save: stacks of all. Plans that all ranks send to one rank grow with the job: save per rank "
      "(sharded), "
      "cache the plan, save asynchronously, or raise that group's timeout.",
      "py-spy dump --pid <pid>  # on every rank during the save", &finding);
  found->push_back(std::move(candidate));
}

void FindGlooTimeout(const model::Job& job, std::vector<Candidate>* found) {
  const auto timeouts = EventsOf(job, {"gloo-timeout"});
  if (timeouts.empty() || !found->empty()) return;
  Candidate candidate = Say(Kind::undetermined, Confidence::possible, Layer::kReport,
                            "A host-side collective (Gloo) timed out; the rank that was late in it is not told by the one that waited",
                            "", "gloo-timeout");
  candidate.state = State::hang;
  CiteAll(job, timeouts, 3, &candidate.finding);
  CiteAll(job, EventsOf(job, {"gloo-peer-closed"}), 2, &candidate.finding);
  for (const int rank : RanksOf(timeouts)) candidate.finding.mutable_collateral()->add_ranks(rank);
  candidate.finding.set_refuted_by("stacks of all ranks inside that collective: then the network between them is at fault");
  found->push_back(std::move(candidate));
}

std::vector<Candidate> FindHostCollectives(const model::Job& job) {
  std::vector<Candidate> found;
  FindBarrier(job, &found);
  FindCheckpoint(job, &found);
  FindGlooTimeout(job, &found);
  return found;
}

const Register kRegister("host collective", FindHostCollectives);

}  // namespace
}  // namespace ringscope::reasoning
