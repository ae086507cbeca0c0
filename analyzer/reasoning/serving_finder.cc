// A serving engine whose workers stand still: the engine's own timeout says that one does, not which, nor why.
//
// What tells more: GPUs that are busy without an error or an Xid (a kernel that does not end), and trials in which one package's
// release is all that changed.
#include <absl/strings/str_cat.h>
#include <re2/re2.h>

#include <algorithm>
#include <map>
#include <utility>

#include "analyzer/reasoning/exception_nature.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

struct Bisect {
  std::string package, good, bad;
};

// "some-kernels 0.6.7: ok" against "some-kernels 0.6.8: hang". (NCCL's own releases are judged elsewhere.)
std::vector<Bisect> Bisected(const std::vector<const model::Event*>& trials) {
  static const RE2& good = *new RE2(R"((?i)\b(?:ok|works?|fine|pass(?:es|ed)?|stable|no hang)\b)");
  std::map<std::string, std::pair<std::string, std::string>> seen;
  for (const model::Event* trial : trials) {
    const std::string package(trial->Field("package"));
    if (package == "nccl" || package == "NCCL") continue;
    const std::string_view result = trial->Field("result");
    const bool well = RE2::PartialMatch(re2::StringPiece(result.data(), result.size()), good);
    (well ? seen[package].first : seen[package].second) = std::string(trial->Field("version"));
  }
  std::vector<Bisect> found;
  for (const auto& [package, versions] : seen) {
    if (!versions.first.empty() && !versions.second.empty() && versions.first != versions.second)
      found.push_back({package, versions.first, versions.second});
  }
  return found;
}

std::vector<Candidate> FindServingStall(const model::Job& job) {
  const auto stalls = EventsOf(job, {"vllm-rpc-timeout", "vllm-broadcast-block-wait", "sglang-watchdog"});
  if (stalls.empty()) return {};
  for (const Raised& raised : RaisedIn(job)) {
    if (IsOwn(raised.nature)) return {};
  }
  // Compiling and loading keep the workers away from their messages too; the engine that serves afterwards was only waiting.
  const auto serves = EventsOf(job, {"serving-progress"});
  const auto later = std::find_if(serves.begin(), serves.end(), [&](const model::Event* e) {
    return e->where.file == stalls.back()->where.file && e->where > stalls.back()->where;
  });
  if (later != serves.end() && FirstEvent(job, {"vllm-rpc-timeout", "sglang-watchdog"}) == nullptr) {
    Candidate candidate =
        Say(Kind::none, Confidence::probable, Layer::kReport,
            "The engine waited for its workers (compiling, loading, capturing graphs) and served afterwards: no stall", "");
    CiteAll(job, stalls, 2, &candidate.finding);
    Cite(job, **later, &candidate.finding);
    candidate.state = State::healthy;
    return {candidate};
  }
  const auto busy = EventsOf(job, {"note-gpus-busy"});
  const auto trials = EventsOf(job, {"note-version-trial"});
  const std::vector<Bisect> bisects = Bisected(trials);
  const bool one = bisects.size() == 1;
  std::string title = "A worker of the serving engine stands still";
  if (!busy.empty()) absl::StrAppend(&title, " in a kernel that does not end (the GPUs are busy, no error is told)");
  if (one) {
    absl::StrAppend(&title, ": with ", bisects[0].package, " ", bisects[0].bad, ", not with ", bisects[0].good,
                    "; that release is the first suspect");
  } else if (busy.empty()) {
    absl::StrAppend(&title, "; which and why its engine's timeout does not tell (it is no shortage of /dev/shm)");
  }
  const bool definite = !busy.empty() && one;
  Candidate candidate =
      Say(definite ? Kind::gpu_stalled : Kind::undetermined, definite ? Confidence::probable : Confidence::possible,
          definite ? Layer::kProgram : Layer::kReport, std::move(title), definite ? "UC-11" : "");
  candidate.stops_job = definite;
  candidate.state = State::hang;
  Finding& finding = candidate.finding;
  CiteAll(job, stalls, 3, &finding);
  CiteAll(job, busy, 2, &finding);
  CiteAll(job, trials, 8, &finding);
  finding.set_refuted_by(one ? "the release that ran hangs too when it runs as long and as often"
                             : "stacks of all workers in the same collective: then the transfer is at fault");
  if (one) {
    SetNext(
        absl::StrCat("Pin ", ShellWord(bisects[0].package), " to ", ShellWord(bisects[0].good),
                     "; to name the kernel: the stack of each worker, and cuda-gdb's list of kernels, while it stands still."),
        absl::StrCat("pip install ", ShellWord(bisects[0].package), "==", ShellWord(bisects[0].good),
                     "; py-spy dump --pid <worker pid>"),
        &finding);
  } else {
    SetNext(
        "The stacks of all workers while they stand still, and whether their GPUs run a kernel; then once with --enforce-eager.",
        "py-spy dump --pid <worker pid>  # on every worker; nvidia-smi", &finding);
  }
  return {candidate};
}

const Register kRegister("serving stall", FindServingStall);

}  // namespace
}  // namespace ringscope::reasoning
