// Defects of NCCL releases that a stack or a crash's backtrace shows by name (their release notes and issue tracker).
//
// A release in the range and the place in the stack make it probable, not more: that another release runs is what proves it.
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <array>
#include <set>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/ras_view.h"
#include "analyzer/reasoning/stack_view.h"
#include "analyzer/reasoning/text_evidence.h"
#include "catalog/catalog.h"

namespace ringscope::reasoning {
namespace {

using Release = std::array<int, 3>;

// "2.28.9", "2.28.9+cuda13.0", "22809" (ncclGetVersion), "2289" would be ambiguous and is not taken.
bool ReleaseOf(std::string_view text, Release* release) {
  *release = {0, 0, 0};
  size_t part = 0, digits = 0;
  for (const char c : text) {
    if (c >= '0' && c <= '9' && digits < 6) {
      (*release)[part] = (*release)[part] * 10 + (c - '0');
      ++digits;
    } else if (c == '.' && digits > 0 && part < 2) {
      ++part, digits = 0;
    } else {
      break;
    }
  }
  if (part == 0 && (*release)[0] >= 20000) *release = {(*release)[0] / 10000, (*release)[0] / 100 % 100, (*release)[0] % 100};
  return (*release)[0] >= 1 && (part >= 1 || (*release)[1] > 0);
}

// NCCL as its own banner, RAS or a Python package names it.
const model::Version* NcclVersion(const model::Job& job, Release* release) {
  for (const model::Version& v : job.evidence.versions) {
    if ((v.component == "nccl" || v.component.starts_with("nvidia-nccl")) && ReleaseOf(v.version, release)) return &v;
  }
  return nullptr;
}

// The machine's architecture where some line names it.
const model::Event* Machine(const model::Job& job, std::string_view machine) {
  for (const model::Event* event : EventsOf(job, {"host-uname", "host-architecture"})) {
    if (event->Field("machine") == machine) return event;
  }
  return nullptr;
}

// The first release without a defect of catalog/tables/nccl_defects.textproto.
Release FixedIn(catalog::NcclDefect::Trigger trigger) {
  Release fixed = {0, 0, 0};
  for (const catalog::NcclDefect& defect : catalog::Faults().nccl_defect()) {
    if (defect.trigger() == trigger) ReleaseOf(defect.fixed(), &fixed);
  }
  return fixed;
}

std::vector<Candidate> ProxySlots(const model::Job& job) {
  std::vector<const Stance*> inside;
  const std::vector<Stance> stances = Stances(job);
  std::set<int> who;
  for (const Stance& s : stances) {
    if (s.doing != Doing::kProxySlot) continue;
    inside.push_back(&s);
    if (s.rank >= 0) who.insert(s.rank);
  }
  if (inside.empty()) return {};
  Release release = {0, 0, 0};
  const model::Version* version = NcclVersion(job, &release);
  const model::Event* arm = Machine(job, "aarch64");
  const bool x86 = Machine(job, "x86_64") != nullptr;
  const std::string name = who.empty() ? WhoText(*inside[0]) : RanksText(who);
  const Release fixed = FixedIn(catalog::NcclDefect::arm_proxy_slots);
  const bool affected = version != nullptr && release < fixed;
  Candidate c;
  // 2.29.3: "Fixes a hang on ARM": an exchange that may fail without a reason was not repeated, so slots were lost for good.
  if (affected && arm != nullptr) {
    c = Say(Kind::error_reported, Confidence::probable, Layer::kDriver,
            absl::StrCat("Defect of NCCL ", version->version, " on aarch64: ", name,
                         " spins in ncclLocalOpAppend for a proxy slot; releases before 2.29.3 lose these slots on ARM"),
            "NC-03");
    SetNext(
        "Run NCCL 2.29.3 or later (LD_PRELOAD or pip install --upgrade nvidia-nccl-cu13): if the same job then does not stop, it was "
        "this",
        "python -c 'import torch; print(torch.cuda.nccl.version())'", &c.finding);
    c.finding.set_refuted_by("the same stop with NCCL 2.29.3 or later, or on x86_64");
  } else {
    c = Say(
        Kind::host_blocked, Confidence::possible, Layer::kProgram,
        absl::StrCat(
            name, " waits in NCCL (ncclLocalOpAppend) for a free proxy slot: its proxy thread does not finish the operations before",
            x86 ? "" : "; on aarch64 before NCCL 2.29.3 slots were lost by a defect"),
        affected && !x86 ? "NC-03" : "NC-01");
    c.order = Class::kStall;
    SetNext(
        "NCCL's version and the machine (uname -m); and what the proxy progress thread of that process does: its stack, and the state "
        "of its peers",
        "uname -m; gdb -p <pid> -batch -ex 'thread apply all bt'", &c.finding);
    c.finding.set_refuted_by("a proxy thread that makes progress, or a rank whose operation this one waits for");
  }
  c.stops_job = true;
  c.state = State::hang;
  AddRanks(who, c.finding.mutable_who()->mutable_ranks());
  for (size_t i = 0; i < inside.size() && i < 4; ++i) CiteStance(job, *inside[i], &c.finding);
  if (version != nullptr) Cite(job, version->where, absl::StrCat(version->component, " ", version->version), &c.finding);
  if (arm != nullptr) Cite(job, *arm, &c.finding);
  for (const RasHistory& h : RasHistories(job)) {
    for (const model::RasCounts& counts : h.last().communicator->counts) {
      for (const model::RasShare& share : counts.shares) {
        for (const model::RasRank& r : share.named) {
          if (share.count < FrontCount(counts) && who.count(r.rank) > 0)
            Cite(job, share.where,
                 absl::StrCat("RAS: rank ", r.rank, " has launched up to operation ", share.count, ", others ", FrontCount(counts)),
                 &c.finding);
        }
      }
    }
  }
  return {c};
}

std::vector<Candidate> RasCrash(const model::Job& job) {
  const auto frames = EventsOf(job, {"nccl-ras-crash-frame"});
  const auto crash = EventsOf(job, {"nccl-ras-crash-frame", "crash-segfault"});
  if (frames.empty()) return {};
  Release release = {0, 0, 0};
  const model::Version* version = NcclVersion(job, &release);
  Candidate c = Say(
      Kind::error_reported,
      version != nullptr && release >= Release{2, 24, 0} && release < Release{2, 30, 0} ? Confidence::probable : Confidence::possible,
      Layer::kDriver, "NCCL's RAS thread crashed the process: a defect of NCCL, not of the job", "NC-03", "nccl-ras-crash-frame");
  c.stops_job = true;
  c.state = State::crashed;
  AddRanks(reasoning::RanksOf(crash), c.finding.mutable_who()->mutable_ranks());
  CiteAll(job, frames, 3, &c.finding);
  if (version != nullptr) Cite(job, version->where, absl::StrCat(version->component, " ", version->version), &c.finding);
  c.finding.set_refuted_by("the same crash with NCCL_RAS_ENABLE=0");
  return {c};
}

std::vector<Candidate> FindDefects(const model::Job& job) {
  std::vector<Candidate> found = ProxySlots(job);
  for (Candidate& c : RasCrash(job)) found.push_back(std::move(c));
  return found;
}

const Register kRegister("nccl defects in stacks", FindDefects);

}  // namespace
}  // namespace ringscope::reasoning
