// /dev/shm: too small for NCCL's shared-memory transport, or refused for another reason.
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/nccl_text.h"

namespace ringscope::reasoning {
namespace {

// What a container gets unless it asks for more.
bool ContainerDefault(std::string_view size) {
  return size == "64M" || size == "65536" || size == "65536k" || size == "64m" || size == "64MiB";
}

// Cites what is known of the mount. True: full, or as small as containers make it.
bool CiteMount(const model::Job& job, Finding* finding) {
  bool tight = false;
  for (const model::Event* event : EventsOf(job, {"df-shm", "mount-shm"})) {
    Cite(job, *event, finding);
    tight |= ContainerDefault(event->Field("size")) || event->Number("percent").value_or(0) >= 90;
  }
  return tight;
}

Candidate TooSmall(const model::Job& job, const std::vector<const model::Event*>& full,
                   const std::vector<const model::Event*>& segments) {
  Candidate candidate = Say(Kind::resource_exhausted, Confidence::probable, Layer::kHost,
                            "/dev/shm is too small: NCCL could not reserve shared memory", "NC-08", "nccl-shm-no-space");
  candidate.stops_job = true;
  candidate.state = State::init_failure;
  Finding& finding = candidate.finding;
  if (full.front()->signature == "shm-bus-error") {
    finding.set_title("/dev/shm is too small: a data loader could not reserve shared memory");
    candidate.state = State::crashed;
  }
  Accuse(full, &finding);
  CiteAll(job, full, 4, &finding);
  CiteAll(job, segments, 2, &finding);
  if (CiteMount(job, &finding)) {
    finding.set_confidence(Confidence::established);
    finding.mutable_cause()->set_confidence(Confidence::established);
  }
  OnlyWaited(PeerLosses(job), &finding);
  finding.set_refuted_by("`df /dev/shm` on that host shows room while the job starts");
  return candidate;
}

// The system said why, and it was not space.
Candidate Refused(const model::Job& job, const std::vector<const model::Event*>& refused) {
  const std::string error(refused.front()->Field("error"));
  Candidate candidate = Say(Kind::resource_exhausted, Confidence::probable, Layer::kHost,
                            absl::StrCat("NCCL was refused shared memory in /dev/shm: ", error), "NC-08", "nccl-shm-file-failed");
  if (Contains(error, "ermission") || Contains(error, "ead-only") || Contains(error, "No such file"))
    candidate.finding.set_kind(Kind::misconfigured);
  candidate.stops_job = true;
  candidate.state = State::init_failure;
  Accuse(refused, &candidate.finding);
  CiteAll(job, refused, 4, &candidate.finding);
  CiteMount(job, &candidate.finding);
  candidate.finding.set_refuted_by("the same program as the same user creates files in /dev/shm on that host");
  if (Contains(error, "No such file")) {
    SetNext(
        "Whether the ranks of this host share one /dev/shm: containers with one host name but separate /dev/shm do not see each "
        "other's "
        "segments (--ipc=host, one shared emptyDir, or different host names; NCCL_SHM_DISABLE=1 gets by).",
        "ls -l /dev/shm  # in each container", &candidate.finding);
  }
  return candidate;
}

// The segment failed and CUDA's own complaint stands before it: the file was there, registering it with the GPU failed.
Candidate NotRegistered(const model::Job& job, const std::vector<const model::Event*>& segments,
                        const std::vector<const model::Event*>& cuda) {
  const std::string error = cuda.empty() ? "" : std::string(cuda.front()->Field("error"));
  Candidate candidate = Say(Kind::undetermined, Confidence::possible, Layer::kHost,
                            error.empty() ? "NCCL could not set up a shared memory segment (SHM); the log does not say why"
                                          : absl::StrCat("CUDA refused to register NCCL's shared memory segments (SHM): ", error,
                                                         "; space in /dev/shm is not what failed"),
                            "", "nccl-shm-segment-failed");
  candidate.order = Class::kError;
  candidate.stops_job = true;
  candidate.state = State::init_failure;
  Accuse(segments, &candidate.finding);
  CiteAll(job, cuda, 3, &candidate.finding);
  CiteAll(job, segments, 3, &candidate.finding);
  CiteMount(job, &candidate.finding);
  candidate.finding.set_refuted_by("a warning before these lines that names an errno (no space, no permission)");
  SetNext(
      "The limit of locked memory in the job (ulimit -l), versions of driver and CUDA, leftover /dev/shm/nccl-* files, and "
      "whether a program "
      "of one line that calls cudaHostRegister works there. NCCL_SHM_DISABLE=1 gets by meanwhile.",
      "ulimit -l; nvidia-smi | head -4; ls -l /dev/shm; df -h /dev/shm", &candidate.finding);
  return candidate;
}

// SIGBUS on a page of shared memory that could not be had: no line of NCCL's, only the signal and a mount as small as containers
// make it.
std::vector<Candidate> BusErrors(const model::Job& job) {
  constexpr int kSigBus = 7;
  Candidate candidate = Say(Kind::resource_exhausted, Confidence::probable, Layer::kHost,
                            "/dev/shm is as small as containers make it, and a process ended by a bus error (SIGBUS)", "NC-08",
                            "nccl-shm-no-space");
  Finding& finding = candidate.finding;
  std::set<int> ranks;
  for (const model::ProcessEnd& end : job.evidence.work.ends) {
    if (end.signal != kSigBus && end.exit_code != -kSigBus && end.exit_code != 128 + kSigBus) continue;
    if (finding.evidence_size() < 4) Cite(job, end.where, end.text, &finding);
    ranks.insert(end.ranks.begin(), end.ranks.end());
  }
  if (finding.evidence_size() == 0 || !CiteMount(job, &finding)) return {};
  for (const int rank : ranks) finding.mutable_who()->add_ranks(rank);
  candidate.stops_job = true;
  candidate.state = State::crashed;
  finding.set_refuted_by("a core dump that shows the bus error elsewhere than in memory under /dev/shm");
  return {candidate};
}

std::vector<Candidate> FindShm(const model::Job& job) {
  const auto full = EventsOf(job, {"nccl-shm-no-space", "shm-bus-error"});
  auto segments = EventsOf(job, {"nccl-shm-segment-failed"});
  if (!full.empty()) return {TooSmall(job, full, segments)};
  std::vector<const model::Event*> refused = EventsOf(job, {"nccl-shm-file-failed"});
  for (const model::Event* event : segments) {
    if (!event->Field("error").empty()) refused.push_back(event);
  }
  if (!refused.empty()) {
    if (Contains(refused.front()->Field("error"), "No space left")) return {TooSmall(job, refused, segments)};
    return {Refused(job, refused)};
  }
  if (segments.empty()) return BusErrors(job);
  std::vector<const model::Event*> cuda;
  for (const model::Event* event : EventsOf(job, {"nccl-cuda-failure"})) {
    if (Contains(event->text, "shm")) cuda.push_back(event);
  }
  return {NotRegistered(job, segments, cuda)};
}

const Register kRegister("shm", FindShm);

}  // namespace
}  // namespace ringscope::reasoning
