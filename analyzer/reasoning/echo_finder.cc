// Only echoes: connections that ended, stores that went away, workers that died, watchdogs that stand still. Who began it is in files
// that are not here; what is known is said, and which log to fetch.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <array>
#include <utility>

#include "analyzer/model/ranks_text.h"
#include "analyzer/reasoning/exception_nature.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

// Interrupted by hand: the traceback shows where the rank stood.
const model::Exception* InterruptedInCollective(const model::Job& job) {
  static constexpr std::array<const char*, 12> kCalls = {"all_reduce", "all_gather",    "broadcast", "reduce_scatter",     "barrier",
                                                         "all_to_all", "gather_object", "scatter",   "init_process_group", "send",
                                                         "recv",       "wait"};
  for (const Raised& r : RaisedIn(job)) {
    if (r.nature != Nature::kInterrupt) continue;
    for (const model::Exception::Frame& frame : r.shown->frames) {
      if (frame.file.find("distributed") == frame.file.npos && frame.code.find("dist.") == frame.code.npos) continue;
      for (const char* call : kCalls) {
        if (frame.function.find(call) != frame.function.npos) return r.shown;
      }
    }
  }
  return nullptr;
}

std::vector<Candidate> FindEchoes(const model::Job& job) {
  // Timeouts have a finder that says more.
  if (!job.evidence.work.timeouts.empty() || !job.evidence.work.cursors.empty()) return {};
  // So have these.
  if (!job.evidence.work.fingerprints.empty() ||
      FirstEvent(job, {"torch-store-clients", "torch-store-connect-failed", "torch-store-nccl-id", "address-in-use", "gloo-timeout",
                       "torch-monitored-barrier", "torch-ddp-model-differs", "torch-inputs-exhausted", "vllm-rpc-timeout",
                       "vllm-broadcast-block-wait", "sglang-watchdog"}) != nullptr)
    return {};
  const auto stuck = EventsOf(job, {"torch-watchdog-stuck"});
  const auto died = EventsOf(job, {"ray-worker-died", "vllm-worker-died"});
  const auto closed =
      EventsOf(job, {"gloo-peer-closed", "torch-store-connection-lost", "torch-monitored-barrier-peer", "torch-dump-signal"});
  std::vector<const model::Exception*> raised;
  for (const Raised& r : RaisedIn(job)) {
    if (IsOwn(r.nature)) return {};
    if (r.nature == Nature::kCommunication) raised.push_back(r.shown);
  }
  const model::Exception* stopped = raised.empty() ? InterruptedInCollective(job) : nullptr;
  if (stuck.empty() && died.empty() && closed.empty() && raised.empty() && stopped == nullptr) return {};
  std::set<int> ranks = RanksOf(closed);
  for (const model::Exception* e : raised) {
    if (e->by.rank >= 0) ranks.insert(e->by.rank);
  }
  std::string title;
  if (!stuck.empty()) {
    const std::set<int> who = RanksOf(stuck);
    title = absl::StrCat("The thread that watches the collectives stands still itself",
                         who.empty() ? "" : absl::StrCat(" on ", model::RanksText({who.begin(), who.end()})),
                         ": a CUDA or NCCL call that does not return, or Python's lock; which, the stacks tell");
  } else if (stopped != nullptr) {
    title = absl::StrCat(SpeakerText(stopped->by).empty() ? "A process" : SpeakerText(stopped->by),
                         " was interrupted while it waited in ", FrameText(*stopped), "; for whom, the other ranks' stacks tell");
  } else if (!raised.empty()) {
    title = absl::StrCat(ranks.empty()
                             ? "A process reports"
                             : absl::StrCat(model::RanksText({ranks.begin(), ranks.end()}), ranks.size() > 1 ? " report" : " reports"),
                         " that a peer or a connection failed (", ExceptionText(*raised[0]).substr(0, 160),
                         "); the peer's own error is not in these files");
  } else if (!died.empty()) {
    title = "A worker process ended; its own last words are not in these files";
  } else {
    title = "Connections ended because a process of the job went away; its own last words are not in these files";
  }
  Candidate candidate = Say(Kind::undetermined, Confidence::possible, Layer::kReport, std::move(title), "");
  candidate.state = !stuck.empty() || stopped != nullptr ? State::hang : State::crashed;
  Finding& finding = candidate.finding;
  CiteAll(job, stuck, 3, &finding);
  for (size_t i = 0; i < raised.size() && i < 3; ++i) {
    Cite(job, raised[i]->where, ExceptionText(*raised[i]), &finding);
    for (const std::string& line : raised[i]->more) {
      if (finding.evidence_size() < 10) Cite(job, raised[i]->where, line, &finding);
    }
  }
  if (stopped != nullptr) Cite(job, stopped->where, absl::StrCat(ExceptionText(*stopped), " in ", FrameText(*stopped)), &finding);
  CiteAll(job, died, 2, &finding);
  CiteAll(job, closed, 2, &finding);
  for (const int rank : ranks) finding.mutable_collateral()->add_ranks(rank);
  finding.set_refuted_by(
      "the other processes' logs, when all of them end with the same complaint: then the network between them is at fault");
  if (!stuck.empty() || stopped != nullptr) {
    SetNext("The stacks of all threads, of all ranks, while they stand still, and the hosts' kernel logs.",
            "gdb -p <pid> -batch -ex 'thread apply all bt'; dmesg -T | grep -iE 'xid|nvrm'", &finding);
  } else {
    SetNext(
        "The log of the process that went first, up to its end, of every rank and host (NCCL_DEBUG=WARN), and the kernel logs of its "
        "host.",
        "torchrun --log-dir logs --tee 3 …; dmesg -T | grep -iE 'xid|killed process'", &finding);
  }
  return {candidate};
}

const Register kRegister("echoes", FindEchoes);

}  // namespace
}  // namespace ringscope::reasoning
