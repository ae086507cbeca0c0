// The first exception of a job that is no echo of another: a rank that ran out of GPU memory, a wrong call, an assert.
//
// Every rank of a failed job prints a traceback; most say that a peer, the store or a launcher ended. What is left when those are taken
// away began it. torchelastic's "root cause" is the end that its agent noticed first: a hint, cited, never the reason alone.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>
#include <utility>

#include "analyzer/model/ranks_text.h"
#include "analyzer/model/views.h"
#include "analyzer/reasoning/exception_nature.h"
#include "analyzer/reasoning/stamp_order.h"
#include "analyzer/reasoning/text_evidence.h"
#include "catalog/catalog.h"

namespace ringscope::reasoning {
namespace {

// Whether a is certainly before b. Lines of one file stand in order; between files only clocks tell, within what they may differ by.
bool Before(const model::Job& job, const model::Exception& a, const model::Exception& b) {
  if (a.where.file == b.where.file) return a.where < b.where;
  constexpr int64_t kOneHost = 2'000'000'000;  // lines of several processes are written when they come to it
  if (SameHostName(a.by.host, b.by.host)) return NsBetween(a.time, b.time, true).value_or(0) > kOneHost;
  return SurelyBefore(job, {a.time, a.by.host}, {b.time, b.by.host});
}

// Lines by which other ranks say that a peer or a collective failed.
std::vector<const model::Event*> Echoes(const model::Job& job, const std::set<int>& ranks) {
  std::vector<const model::Event*> echoes;
  for (const model::Event& event : job.evidence.events) {
    if (event.by.rank >= 0 && ranks.count(event.by.rank) > 0) continue;
    const catalog::Signature* signature = catalog::FindSignature(event.signature);
    if (signature != nullptr && signature->role() == catalog::Role::collateral) echoes.push_back(&event);
  }
  return echoes;
}

// The package in whose code the innermost frame lies: ".../site-packages/NAME/...".
std::string PackageOf(const model::Exception& e) {
  for (size_t i = e.frames.size(); i-- > 0;) {
    const std::string& file = e.frames[i].file;
    size_t at = file.rfind("site-packages/");
    if (at == file.npos) at = file.rfind("dist-packages/");
    if (at == file.npos) continue;
    const size_t start = at + 14;
    const size_t end = file.find('/', start);
    if (end != file.npos) return file.substr(start, end - start);
  }
  return "";
}

struct Story {
  Nature nature;
  std::set<int> ranks;
  std::vector<const Raised*> raised;  // alike, on those ranks
};

void SetAdvice(const Story& story, Finding* finding) {
  const model::Exception& e = *story.raised[0]->shown;
  switch (story.nature) {
    case Nature::kGpuMemory:
      SetNext(
          "Leave memory on that GPU: a smaller batch or shard, no other process on it, "
          "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "
          "against fragmentation; see who holds it.",
          "nvidia-smi --query-compute-apps=pid,used_memory,gpu_bus_id --format=csv", finding);
      finding->set_refuted_by("memory free on that GPU when the allocation failed");
      return;
    case Nature::kHostMemory:
      SetNext("Give the host's processes memory: fewer or smaller data loader workers, a higher container limit; see what was killed.",
              "dmesg -T | grep -i 'killed process'; free -g; df -h /dev/shm", finding);
      finding->set_refuted_by("no kill in the host's kernel log and memory free at that time");
      return;
    case Nature::kUserGpu:
      SetNext(
          "Run that rank's step with CUDA_LAUNCH_BLOCKING=1 (or compute-sanitizer) to find the kernel, and look for an Xid on its "
          "host.",
          "dmesg -T | grep -i xid", finding);
      finding->set_refuted_by("an Xid of the link or of memory (74, 48, 94, 95, 145, 149) on that GPU before this error");
      return;
    default:
      break;
  }
  const std::string package = PackageOf(e);
  const bool wrong_call = Contains(e.type, "TypeError") || Contains(e.type, "AttributeError") || Contains(e.type, "ImportError") ||
                          Contains(e.type, "ModuleNotFoundError");
  if (wrong_call && !package.empty()) {
    SetNext(absl::StrCat("A call that does not fit what is installed: install matching versions of ", ShellWord(package),
                         " and of the package it calls, as its release notes name them."),
            absl::StrCat("pip check; pip show ", ShellWord(package)), finding);
  } else {
    SetNext("The whole traceback of that rank, and its input at that step; the other ranks' errors need no work.", "", finding);
  }
  finding->set_refuted_by("an earlier error on another rank, or on this one before the traceback");
}

std::string Title(const Story& story, bool everyone, bool others) {
  const model::Exception& e = *story.raised[0]->shown;
  const std::string who = everyone              ? "Every rank"
                          : story.ranks.empty() ? "A process"
                                                : model::RanksText({story.ranks.begin(), story.ranks.end()});
  std::string what;
  switch (story.nature) {
    case Nature::kGpuMemory:
      what = absl::StrCat(who, " ran out of GPU memory (out of memory)");
      break;
    case Nature::kHostMemory:
      what = absl::StrCat(who, " lost a worker or an allocation to the host's memory limit: ", ExceptionText(e));
      break;
    case Nature::kUserGpu:
      what = absl::StrCat(who, " ran a kernel that failed: ", ExceptionText(e));
      break;
    default:
      what = absl::StrCat(who, " raised ", ExceptionText(e));
      if (const std::string frame = FrameText(e); !frame.empty()) absl::StrAppend(&what, " in ", frame);
  }
  if (!what.empty() && what[0] == 'r') what[0] = 'R';
  if (others) absl::StrAppend(&what, "; what the other ranks report follows from it");
  return what;
}

void CiteRaised(const model::Job& job, const model::Exception& e, Finding* finding) {
  const std::string frame = FrameText(e);
  Cite(job, e.where, absl::StrCat(ExceptionText(e), frame.empty() ? "" : absl::StrCat(", raised in ", frame)), finding);
  if (e.by.rank >= 0) finding->mutable_evidence(finding->evidence_size() - 1)->set_rank(e.by.rank);
}

// The rank went on after it: it entered a collective later that then timed out. Without clocks, a line alone (no traceback) of a rank
// that waits in a collective, or of nobody, was told and not died of.
bool Survived(const model::Job& job, const Raised& raised) {
  const model::Exception& e = *raised.shown;
  bool waits = false;
  for (const model::WorkTimeout& t : job.evidence.work.timeouts) {
    if (t.by.rank != e.by.rank && e.by.rank >= 0) continue;
    waits = true;
    if (e.by.rank >= 0 && e.time.known() && e.time.clock == t.time.clock && e.time.clock != model::Stamp::Clock::kOfDay &&
        t.time.ns - t.ran_ms * 1'000'000 > e.time.ns + 5'000'000'000)
      return true;
  }
  return waits && !e.start.known() && raised.nature == Nature::kOwn;
}

std::vector<Candidate> FindExceptions(const model::Job& job) {
  const std::vector<Raised> raised = RaisedIn(job);
  std::vector<const Raised*> own, echoes;
  std::set<int> all_ranks;
  for (const Raised& r : raised) {
    if (r.shown->by.rank >= 0) all_ranks.insert(r.shown->by.rank);
    if (IsOwn(r.nature)) own.push_back(&r);
    if (r.nature == Nature::kCommunication) echoes.push_back(&r);
  }
  // A line that is an exception's last line alone may have been caught and told: it counts when nobody shows a traceback of his own.
  const bool traced = std::any_of(own.begin(), own.end(), [](const Raised* r) { return r->shown->start.known(); });
  if (traced) {
    own.erase(
        std::remove_if(own.begin(), own.end(), [](const Raised* r) { return !r->shown->start.known() && r->nature == Nature::kOwn; }),
        own.end());
  }
  own.erase(std::remove_if(own.begin(), own.end(), [&](const Raised* r) { return Survived(job, *r); }), own.end());
  if (own.empty()) return {};

  // Those that nothing is certainly before.
  std::vector<const Raised*> first;
  for (const Raised* r : own) {
    const bool later = std::any_of(own.begin(), own.end(), [&](const Raised* o) { return o != r && Before(job, *o->shown, *r->shown); });
    if (!later) first.push_back(r);
  }
  if (first.empty()) first.push_back(own[0]);
  Story story{first[0]->nature, {}, {first[0]}};
  const auto alike = [&](const Raised* r) {
    return r->nature == story.nature && r->shown->type == story.raised[0]->shown->type &&
           (r->shown->message == story.raised[0]->shown->message || story.nature == Nature::kGpuMemory);
  };
  // The same exception elsewhere is the same mistake on several ranks, whoever made it first. Memory runs out on one GPU first.
  const bool by_order = story.nature == Nature::kGpuMemory || story.nature == Nature::kHostMemory;
  for (const Raised* r : by_order ? first : own) {
    if (r != first[0] && alike(r)) story.raised.push_back(r);
  }
  for (const Raised* r : story.raised) {
    if (r->shown->by.rank >= 0) story.ranks.insert(r->shown->by.rank);
  }
  // Ranks of which anything is known.
  for (const model::LogRank& r : job.evidence.log_ranks) {
    if (!r.split && r.rank >= 0) all_ranks.insert(r.rank);
  }
  const bool everyone =
      story.ranks.size() >= 2 && std::includes(story.ranks.begin(), story.ranks.end(), all_ranks.begin(), all_ranks.end());
  const auto told = Echoes(job, story.ranks);
  const bool others = !everyone && (!echoes.empty() || !told.empty() || !job.evidence.work.timeouts.empty());

  const model::ProcessEnd* end = nullptr;
  for (const model::ProcessEnd& e : job.evidence.work.ends) {
    const bool same = std::any_of(e.ranks.begin(), e.ranks.end(), [&](int rank) { return story.ranks.count(rank) > 0; });
    if (!same || e.stopped_by_us) continue;
    if (end == nullptr || (e.first && !end->first)) end = &e;
  }
  const bool has_traceback = first[0]->shown->start.known();
  Confidence::Value confidence = has_traceback || story.nature != Nature::kOwn ? Confidence::probable : Confidence::possible;
  if (has_traceback && end != nullptr && others && story.ranks.size() == 1 && first.size() == 1) confidence = Confidence::established;
  Candidate candidate = Say(end != nullptr || others ? Kind::process_exited : Kind::error_reported, confidence, Layer::kProgram,
                            Title(story, everyone, others),
                            story.nature == Nature::kUserGpu      ? "UC-10"
                            : story.nature == Nature::kHostMemory ? "UC-08"
                                                                  : "UC-05");
  candidate.stops_job = true;
  candidate.state = State::crashed;
  candidate.when = first[0]->shown->time;
  Finding& finding = candidate.finding;
  if (!everyone) {
    for (const int rank : story.ranks) finding.mutable_who()->add_ranks(rank);
  }
  for (size_t i = 0; i < story.raised.size() && i < 4; ++i) {
    const auto& chain = story.raised[i]->chain;
    for (size_t j = 0; j < chain.size() && j < 3; ++j) CiteRaised(job, *chain[j], &finding);
  }
  if (end != nullptr) Cite(job, end->where, end->text, &finding);
  std::set<int> waiting;
  for (size_t i = 0; i < echoes.size(); ++i) {
    const model::Exception& e = *echoes[i]->shown;
    if (e.by.rank >= 0 && story.ranks.count(e.by.rank) == 0) waiting.insert(e.by.rank);
    if (i < 2) CiteRaised(job, e, &finding);
  }
  CiteAll(job, told, 2, &finding);
  for (const int rank : RanksOf(told)) waiting.insert(rank);
  for (const model::WorkTimeout& t : job.evidence.work.timeouts) {
    if (t.by.rank >= 0) waiting.insert(t.by.rank);
  }
  for (const int rank : waiting) {
    if (!everyone && story.ranks.count(rank) == 0) finding.mutable_collateral()->add_ranks(rank);
  }
  SetAdvice(story, &finding);
  return {candidate};
}

const Register kRegister("exception", FindExceptions);

}  // namespace
}  // namespace ringscope::reasoning
