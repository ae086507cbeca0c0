// Limits of a process: locked memory, open files, threads.
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/nccl_text.h"

namespace ringscope::reasoning {
namespace {

// Registering GPU and staging buffers needs far more; what asks for less than this is not stopped by it.
constexpr int64_t kPlentyKiB = int64_t{64} << 20;

bool LimitIsLow(const model::Job& job, std::string_view name, int64_t plenty) {
  for (const model::Setting& s : job.evidence.settings) {
    int64_t value = 0;
    if (s.name == name && s.value != "unlimited" && absl::SimpleAtoi(s.value, &value) && value < plenty) return true;
  }
  return false;
}

// Cites the limits that the input shows. -1: none shown; 0: one that cannot be the reason; 1: one that can.
int CiteLimits(const model::Job& job, std::string_view name, int64_t plenty, Finding* finding) {
  int shown = -1;
  for (const model::Setting& s : job.evidence.settings) {
    if (s.name != name) continue;
    int64_t value = 0;
    const bool low = s.value != "unlimited" && absl::SimpleAtoi(s.value, &value) && value < plenty;
    Cite(job, s.where, absl::StrCat(s.name, " (", name == "ulimit -l" ? "memlock, KiB" : "limit", "): ", s.value), finding);
    shown = std::max(shown, low ? 1 : 0);
  }
  return shown;
}

void Settle(int shown, Candidate* candidate) {
  const Confidence::Value confidence = shown > 0    ? Confidence::established
                                       : shown == 0 ? Confidence::possible
                                                    : Confidence::probable;
  candidate->finding.set_confidence(confidence);
  candidate->finding.mutable_cause()->set_confidence(confidence);
  candidate->stops_job = true;
  candidate->state = State::init_failure;
}

std::vector<Candidate> FindLimits(const model::Job& job) {
  std::vector<Candidate> found;
  const auto warned = EventsOf(job, {"libibverbs-memlock"});
  std::vector<const model::Event*> pinned = EventsOf(job, {"nccl-ib-reg-no-memory"});
  // Old releases print no errno, and queues take locked memory too: then the limit itself has to be in the input.
  const bool low = !warned.empty() || LimitIsLow(job, "ulimit -l", kPlentyKiB);
  for (const model::Event* event : EventsOf(job, {"nccl-ibv-reg-gpu", "nccl-ibv-create"})) {
    if (low && (event->Field("error").empty() || Contains(event->Field("error"), "Cannot allocate memory")))
      pinned.push_back(event);
  }
  const bool failed = !pinned.empty();
  pinned.insert(pinned.end(), warned.begin(), warned.end());
  if (!pinned.empty()) {
    Candidate candidate = Say(Kind::resource_exhausted, Confidence::probable, Layer::kHost,
                              "Locked memory (memlock, ulimit -l) is limited too low: the network card could not register memory",
                              "NC-08", "nccl-ib-reg-no-memory");
    Finding& finding = candidate.finding;
    Accuse(pinned, &finding);
    CiteAll(job, pinned, 3, &finding);
    CiteAll(job, EventsOf(job, {"nccl-proxy-operation-failed"}), 1, &finding);
    const int shown = CiteLimits(job, "ulimit -l", kPlentyKiB, &finding);
    Settle(!warned.empty() ? 1 : shown, &candidate);
    if (!failed) {  // only libibverbs' own warning
      candidate.stops_job = false;
      finding.set_confidence(Confidence::possible);
      finding.mutable_cause()->set_confidence(Confidence::possible);
    }
    OnlyWaited(PeerLosses(job), &finding);
    finding.set_refuted_by("`grep 'Max locked memory' /proc/PID/limits` of the job's process says unlimited");
    found.push_back(std::move(candidate));
  }
  if (const auto files = EventsOf(job, {"too-many-open-files"}); !files.empty()) {
    Candidate candidate = Say(Kind::resource_exhausted, Confidence::probable, Layer::kHost,
                              "A process ran out of file descriptors (ulimit -n, nofile)", "NC-08", "too-many-open-files");
    Accuse(files, &candidate.finding);
    CiteAll(job, files, 3, &candidate.finding);
    Settle(CiteLimits(job, "ulimit -n", 1 << 20, &candidate.finding), &candidate);
    OnlyWaited(PeerLosses(job), &candidate.finding);
    candidate.finding.set_refuted_by("the process holds far fewer descriptors than its limit when the error appears");
    found.push_back(std::move(candidate));
  }
  if (const auto threads = EventsOf(job, {"thread-limit"}); !threads.empty()) {
    Candidate candidate =
        Say(Kind::resource_exhausted, Confidence::probable, Layer::kHost,
            "A process could not start another thread or process (pids limit, ulimit -u)", "NC-08", "thread-limit");
    Accuse(threads, &candidate.finding);
    CiteAll(job, threads, 3, &candidate.finding);
    Settle(CiteLimits(job, "ulimit -u", 1 << 22, &candidate.finding), &candidate);
    OnlyWaited(PeerLosses(job), &candidate.finding);
    candidate.finding.set_refuted_by("pids.current stays far below pids.max on that host");
    found.push_back(std::move(candidate));
  }
  return found;
}

const Register kRegister("limits", FindLimits);

}  // namespace
}  // namespace ringscope::reasoning
