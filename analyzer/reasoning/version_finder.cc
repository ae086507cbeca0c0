// Different releases of NCCL in one job, or another library than the program was built for.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <map>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/nccl_text.h"

namespace ringscope::reasoning {
namespace {

// First release with each public function (nccl.h.in of the tags).
struct Since {
  std::string_view function;
  int release;
};
constexpr Since kSince[] = {
    {"ncclCommWindowRegister", 22703},
    {"ncclCommShrink", 22703},
    {"ncclCommInitRankScalable", 22304},
    {"ncclGroupSimulateEnd", 22203},
    {"ncclCommRegister", 21901},
    {"ncclMemAlloc", 21901},
    {"ncclMemFree", 21901},
    {"ncclCommSplit", 21801},
    {"ncclCommFinalize", 21403},
    {"ncclCommInitRankConfig", 21403},
    {"ncclGetLastError", 21304},
    {"ncclRedOpCreatePreMulSum", 21104},
    {"ncclRedOpDestroy", 21104},
    {"ncclSend", 20703},
    {"ncclCommRevoke", 22807},
    {"ncclCommGrow", 22902},
    {"ncclAlltoAll", 22803},
    {"ncclGather", 22803},
    {"ncclScatter", 22803},
    {"ncclCommSuspend", 22907},
};

int SinceRelease(std::string_view function) {
  if (function.starts_with("pnccl")) function.remove_prefix(1);
  for (const Since& s : kSince) {
    if (s.function == function) return s.release;
  }
  return 0;
}

std::vector<const model::Version*> Packages(const model::Job& job) {
  std::vector<const model::Version*> found;
  std::set<std::string> seen;
  for (const model::Version& v : job.evidence.versions) {
    const bool package = v.component.starts_with("nvidia-nccl-cu") || v.component == "libnccl2";
    if (package && seen.insert(v.component + v.version).second) found.push_back(&v);
  }
  return found;
}

constexpr const char* kOneLibrary =
    "Leave one NCCL: uninstall the packages that do not belong to this program, reinstall the one that does (their files share "
    "one folder), and see which "
    "libnccl.so.2 is loaded.";
constexpr const char* kWhich =
    "pip list 2>/dev/null | grep -i nccl; ldconfig -p | grep nccl; echo $LD_LIBRARY_PATH; grep libnccl /proc/PID/maps";

Candidate UndefinedSymbol(const model::Job& job, const std::vector<const model::Event*>& undefined) {
  const std::string symbol(undefined.front()->Field("symbol"));
  const auto packages = Packages(job);
  const int since = SinceRelease(symbol);
  std::string title = symbol.empty() ? std::string("The program found no NCCL library (libnccl.so.2)")
                                     : absl::StrCat("The NCCL library that was loaded lacks ", symbol);
  if (since > 0) absl::StrAppend(&title, ", which NCCL has since ", NcclReleaseText(since));
  const model::Version* old = nullptr;
  for (const model::Version* v : packages) {
    if (since > 0 && NcclRelease(v->version) > 0 && NcclRelease(v->version) < since) old = v;
  }
  if (old != nullptr) absl::StrAppend(&title, ": ", old->component, " ", old->version, " is too old");
  if (packages.size() > 1) absl::StrAppend(&title, "; ", packages.size(), " NCCL packages are installed over each other");
  Candidate candidate = Say(Kind::misconfigured, old != nullptr ? Confidence::established : Confidence::probable,
                            Layer::kConfiguration, title, "FB-06", "nccl-undefined-symbol");
  candidate.stops_job = true;
  candidate.state = State::init_failure;
  Accuse(undefined, &candidate.finding);
  CiteAll(job, undefined, 2, &candidate.finding);
  for (const model::Version* v : packages) CiteVersion(job, *v, &candidate.finding);
  for (const model::Version* v : VersionsOf(job, "nccl")) CiteVersion(job, *v, &candidate.finding);
  candidate.finding.set_refuted_by("`nm -D` of the libnccl.so.2 that is loaded shows the symbol");
  SetNext(old != nullptr
              ? absl::StrCat("Uninstall ", old->component,
                             ", then reinstall the NCCL package that the program wants; see which libnccl.so.2 is loaded.")
              : std::string(kOneLibrary),
          kWhich, &candidate.finding);
  return candidate;
}

// The host of whoever printed a release. The banner ("NCCL version 2.20.5+cuda12.4") has no prefix: it is of the host that alone
// speaks in its file.
std::string HostOf(const model::Job& job, const model::Version& v) {
  if (!v.by.host.empty()) return v.by.pid >= 0 ? v.by.host : "";
  std::set<std::string> hosts;
  for (const model::LogRank& r : job.evidence.log_ranks) {
    if (!r.noted && r.started.known() && r.started.file == v.where.file) hosts.insert(r.by.host);
  }
  return hosts.size() == 1 ? *hosts.begin() : "";
}

// Releases that NCCL itself printed, by the host that printed them.
Candidate* OfHosts(const model::Job& job, Candidate* candidate) {
  std::map<std::string, std::set<std::string>> hosts_of;
  std::map<std::string, const model::Version*> first;
  for (const model::Version& v : job.evidence.versions) {
    if (v.component != "nccl") continue;
    const std::string host = HostOf(job, v);
    if (host.empty()) continue;
    hosts_of[v.version].insert(host);
    first.emplace(v.version, &v);
  }
  if (hosts_of.size() != 2) return nullptr;
  const auto& a = *hosts_of.begin();
  const auto& b = *std::next(hosts_of.begin());
  // One host with both: two runs in one log.
  for (const std::string& host : a.second) {
    if (b.second.count(host) > 0) return nullptr;
  }
  *candidate = Say(Kind::misconfigured, Confidence::possible, Layer::kConfiguration,
                   absl::StrCat("Hosts run different releases of NCCL: ", a.first, " on ", absl::StrJoin(a.second, ", "), ", ",
                                b.first, " on ", absl::StrJoin(b.second, ", ")),
                   "FB-06", "nccl-version-mismatch");
  if (a.second.size() != b.second.size() && a.second.size() + b.second.size() > 2) {
    for (const std::string& host : a.second.size() < b.second.size() ? a.second : b.second)
      candidate->finding.mutable_who()->add_hosts(host);
  }
  for (const auto& [version, where] : first)
    Cite(job, where->where, absl::StrCat("NCCL ", version, " on ", HostOf(job, *where)), &candidate->finding);
  return candidate;
}

std::vector<Candidate> FindVersions(const model::Job& job) {
  std::vector<Candidate> found;
  auto undefined = EventsOf(job, {"nccl-undefined-symbol"});
  // NCCL asks each plugin for the newest table it knows, and older ones after that: a refusal is how it finds out.
  std::erase_if(undefined, [](const model::Event* event) {
    return Contains(event->text, "NCCL INFO ") || Contains(event->Field("symbol"), "Plugin_v") ||
           Contains(event->Field("symbol"), "ncclProfiler_v") || Contains(event->Field("symbol"), "ncclEnv");
  });
  if (!undefined.empty()) found.push_back(UndefinedSymbol(job, undefined));

  const auto mismatch = EventsOf(job, {"nccl-version-mismatch", "nccl-compiled-with-other"});
  Candidate hosts;
  Candidate* differ = OfHosts(job, &hosts);
  if (!mismatch.empty()) {
    const bool across = mismatch.front()->signature == "nccl-version-mismatch";
    std::string title = across ? "Ranks of one communicator run different releases of NCCL"
                               : "The program was built for another NCCL than the one that was loaded";
    if (const auto va = mismatch.front()->Field("va"); !va.empty()) {
      absl::StrAppend(&title, ": ", std::string(va), " and ", std::string(mismatch.front()->Field("vb")));
    }
    Candidate candidate =
        Say(Kind::misconfigured, Confidence::established, Layer::kConfiguration, title, "FB-06", mismatch.front()->signature);
    candidate.stops_job = true;
    candidate.state = State::init_failure;
    CiteAll(job, mismatch, 4, &candidate.finding);
    for (const model::Version* v : VersionsOf(job, "nccl")) CiteVersion(job, *v, &candidate.finding);
    for (const model::Version* v : Packages(job)) CiteVersion(job, *v, &candidate.finding);
    candidate.finding.set_refuted_by("all ranks print one NCCL version");
    found.push_back(std::move(candidate));
  } else if (differ != nullptr) {
    // Only a reason where something went wrong before or at the first operation.
    const auto errors =
        EventsOf(job, {"nccl-message-truncated", "nccl-socket-truncated", "nccl-wrong-magic", "nccl-bootstrap-mismatch",
                       "nccl-cuda-failure", "nccl-internal-inconsistency", "nccl-ib-collective-mismatch", "nccl-socket-closed"});
    const bool failed = !errors.empty() || !AnyInitComplete(job);
    if (failed) {
      differ->stops_job = true;
      differ->state = AnyInitComplete(job) ? State::crashed : State::init_failure;
      if (!errors.empty()) differ->finding.set_confidence(Confidence::probable);
      differ->finding.mutable_cause()->set_confidence(differ->finding.confidence());
      CiteAll(job, errors, 3, &differ->finding);
    } else {
      differ->order = Class::kPlan;
    }
    differ->finding.set_refuted_by("the same failure with one release on all hosts");
    found.push_back(std::move(*differ));
  }
  return found;
}

const Register kRegister("version", FindVersions);

}  // namespace
}  // namespace ringscope::reasoning
