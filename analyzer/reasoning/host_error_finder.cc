// CUDA errors that a process's own calls got, as the preloaded library saw them: the first one after which the context answers
// nothing else. Every later call fails alike, so what a program prints of it names the wrong call; and its peers only see it
// leave.
#include <absl/strings/str_cat.h>

#include <string_view>

#include "analyzer/model/job_time.h"
#include "analyzer/reasoning/finder.h"
#include "analyzer/reasoning/op_text.h"

namespace ringscope::reasoning {
namespace {

using model::Process;

struct Meaning {
  uint32_t code;
  const char* text;
  const char* cause;  // "" where the code does not tell hardware from program
};
// cudaError_t (CUDA 11.8-13.0); causes as docs/verdicts.md names them.
constexpr Meaning kMeanings[] = {
    {214, "uncorrectable ECC error", "HW-06"},
    {220, "uncorrectable NVLink error", "HW-01"},
    {226, "a peer's memory could not be reached, or hardware", ""},
    {700, "illegal memory access", "UC-10"},
    {702, "a kernel ran into the launch timeout", ""},
    {710, "device-side assert", "UC-10"},
    {715, "illegal instruction", "UC-10"},
    {716, "misaligned address", "UC-10"},
    {719, "a kernel failed", ""},
};

const Meaning* MeaningOf(uint32_t code) {
  for (const Meaning& m : kMeanings) {
    if (m.code == code) return &m;
  }
  return nullptr;
}

std::vector<Candidate> Find(const model::Job& job) {
  const Process* first = nullptr;
  size_t others = 0;
  for (const Process& p : job.processes) {
    if (!p.trace.host().has_sticky()) continue;
    if (first != nullptr) ++others;
    const model::JobTime now = ToJobTime(p, p.trace.host().sticky().at_ns());
    if (first == nullptr || OrderOf(now, ToJobTime(*first, first->trace.host().sticky().at_ns())) == model::Order::kBefore)
      first = &p;
  }
  if (first == nullptr) return {};
  const trace::HostError& error = first->trace.host().sticky();
  const Meaning* meaning = MeaningOf(error.code());
  Candidate candidate;
  candidate.order = Class::kError;
  candidate.stops_job = true;
  // Before the end of its process, which follows from it, and behind what the kernel says of the hardware.
  const bool hardware = meaning != nullptr && std::string_view(meaning->cause).rfind("HW-", 0) == 0;
  candidate.layer = hardware ? Layer::kHardware : Layer::kDriver;
  Finding& f = candidate.finding;
  f.set_kind(Kind::error_reported);
  // That it happened is a fact; that it came first, only as far as the clocks tell.
  f.set_confidence(others == 0 ? Confidence::established : Confidence::probable);
  const std::string who =
      first->job_rank >= 0 ? absl::StrCat("rank ", first->job_rank) : absl::StrCat("process ", first->trace.process().pid());
  f.set_title(
      absl::StrCat("CUDA error ", error.code(), meaning != nullptr ? absl::StrCat(" (", meaning->text, ")") : "", " on ", who,
                   ", first returned by ", error.function(), "; its context answers nothing else since",
                   others > 0 ? absl::StrCat("; ", others, " other ", others == 1 ? "process" : "processes", " later") : ""));
  const bool caused = meaning != nullptr && meaning->cause[0] != 0;
  f.mutable_cause()->set_id(caused ? meaning->cause : "not established");
  if (caused) f.mutable_cause()->set_confidence(Confidence::possible);
  if (first->job_rank >= 0) f.mutable_who()->add_ranks(first->job_rank);
  f.mutable_who()->add_hosts(first->host);
  Evidence& evidence = *f.add_evidence();
  evidence.set_text(absl::StrCat(error.function(), " returned ", error.code(), " to thread ", error.tid(),
                                 ", the first such result of ", first->trace.host().cuda_errors(), " errors"));
  evidence.set_source(first->source);
  evidence.set_rank(first->job_rank);
  for (const Process& p : job.processes) {
    if (&p != first && p.job_rank >= 0) f.mutable_collateral()->add_ranks(p.job_rank);
  }
  f.set_refuted_by("another process whose first such error is earlier");
  f.mutable_next()->set_text(
      "The kernel log of that host around this time tells hardware from program: an Xid other than 13, 31 and 43 is hardware's. "
      "Without "
      "one, run that rank under compute-sanitizer.");
  f.mutable_next()->set_command(absl::StrCat("ssh ", ShellHost(first->host), " 'dmesg -T | grep -i -e xid -e nvrm'"));
  return {candidate};
}

const Register kRegister("host_error", Find);

}  // namespace
}  // namespace ringscope::reasoning
