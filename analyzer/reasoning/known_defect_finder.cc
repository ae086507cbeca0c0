// Known defects of NCCL releases, and defects that somebody's own trials point at. A release in the affected range alone says
// nothing: the trigger has to be there too, and other reasons are never refuted here, so "probable" is the most that is said.
#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/init_progress.h"
#include "analyzer/reasoning/nccl_text.h"
#include "analyzer/reasoning/op_text.h"
#include "catalog/catalog.h"

namespace ringscope::reasoning {
namespace {

// What a setting takes out of play when it makes the difference.
struct Switch {
  std::string_view name;
  const char* part;
  const char* cause;
  const char* next;
};
constexpr const char* kPeerNext =
    "Whether ACS and IOMMU redirect peer writes, and the peer matrix: lspci -vvv | grep ACSCtl; nvidia-smi topo -p2p r.";
constexpr const char* kOtherRelease = "The same with other releases of NCCL and driver, and on another machine of the same kind.";
constexpr Switch kSwitches[] = {
    {"NCCL_P2P_DISABLE", "peer access between GPUs", "FB-05", kPeerNext},
    {"NCCL_P2P_LEVEL", "peer access over PCIe", "FB-05", kPeerNext},
    {"NCCL_NVLS_ENABLE", "NVLink SHARP", "FB-01",
     "The fabric's state on every GPU: nvidia-smi -q | grep -A4 Fabric; the fabric manager's log."},
    {"NCCL_SHM_DISABLE", "shared memory", "NC-08", "df -h /dev/shm; ulimit -l; whether cudaHostRegister works there."},
    {"NCCL_IB_DISABLE", "InfiniBand or RoCE", "NET-03",
     "GIDs, MTU and reachability of the adapters: show_gids, ibv_devinfo, perftest."},
    {"NCCL_NET_GDR_LEVEL", "GPUDirect RDMA", "NET-06",
     "nvidia-peermem or DMA-BUF, ACS: lsmod | grep peermem; lspci -vvv | grep ACSCtl."},
    {"NCCL_CUMEM_ENABLE", "CUDA's virtual memory API", "NC-03", kOtherRelease},
    {"NCCL_PROTO", "a protocol", "NC-03", kOtherRelease},
    {"NCCL_ALGO", "an algorithm", "NC-03", kOtherRelease},
};

struct Trigger {
  bool aarch64 = false;       // the machine
  bool split_share = false;   // split communicators that share resources
  bool nvls_differs = false;  // some ranks have NVLS, others of the same communicator not
  bool launch_blocking = false;
  bool mixed_cpus = false;
  bool gdr_off = false;     // GPUDirect RDMA switched off by setting
  bool uds_failed = false;  // handing memory over by a local socket failed
};

// What stands in catalog/tables/nccl_defects.textproto as a trigger; those that only a stack shows are nccl_defect_finder's.
bool Triggered(catalog::NcclDefect::Trigger trigger, const Trigger& t) {
  switch (trigger) {
    case catalog::NcclDefect::nvls_differs:
      return t.nvls_differs;
    case catalog::NcclDefect::split_share:
      return t.split_share;
    case catalog::NcclDefect::launch_blocking:
      return t.launch_blocking;
    case catalog::NcclDefect::mixed_cpus:
      return t.mixed_cpus;
    case catalog::NcclDefect::arm_gdr_off:
      return t.aarch64 && t.gdr_off;
    case catalog::NcclDefect::uds_failed:
      return t.uds_failed;
    default:
      return false;
  }
}

Trigger Look(const model::Job& job) {
  Trigger t;
  std::set<std::string> machines;
  for (const model::Version& v : job.evidence.versions) {
    if (v.component == "machine") machines.insert(v.version);
  }
  t.aarch64 = machines.count("aarch64") > 0;
  t.mixed_cpus = machines.size() > 1;
  t.uds_failed = FirstEvent(job, {"nccl-uds-failed"}) != nullptr;
  for (const model::Setting& s : job.evidence.settings) {
    t.launch_blocking |= s.name == "CUDA_LAUNCH_BLOCKING" && s.value == "1";
    t.gdr_off |= s.name == "NCCL_NET_GDR_LEVEL" && (s.value == "LOC" || s.value == "0");
    t.split_share |= s.name == "NCCL_COMM_SPLIT_SHARE_RESOURCES" && s.value == "1";
  }
  std::set<bool> nvls;
  for (const model::Event* event : EventsOf(job, {"nccl-channel-counts"})) {
    if (const auto channels = event->Number("nvls")) nvls.insert(*channels > 0);
  }
  t.nvls_differs = nvls.size() > 1;
  return t;
}

// ---- trials

// "2.28.9" in a variant's words.
int ReleaseIn(const std::string& variant) {
  static const RE2& named = *new RE2(R"((?i)nccl[^\d]{0,12}(\d+\.\d+(?:\.\d+)?))");
  static const RE2& bare = *new RE2(R"(^v?(2\.\d{1,2}\.\d{1,2})\b)");
  std::string version;
  if (RE2::PartialMatch(variant, named, &version) || RE2::PartialMatch(variant, bare, &version)) return NcclRelease(version);
  return 0;
}

bool About(const std::string& variant, const char* pattern) { return RE2::PartialMatch(variant, pattern); }

// Clean runs of a variant are no proof when the other one also runs clean now and then: of n clean runs, (1-p)^n happen by luck
// at a rate p of bad ones. Unknown numbers count as "every time", as people who do not count mean it.
bool CouldBeLuck(const std::vector<const model::Trial*>& bad, const std::vector<const model::Trial*>& good) {
  double runs = 0, failures = 0, clean = 0;
  for (const model::Trial* t : bad) {
    runs += t->runs;
    failures += t->bad_runs;
  }
  if (runs == 0 || failures >= runs) return false;
  for (const model::Trial* t : good) clean += std::max(t->runs - t->bad_runs, 1);
  return std::pow(1 - failures / runs, clean) > 0.05;
}

struct Verdict {
  bool luck = false;
  int bad_release = 0, good_release = 0;  // the same but for NCCL's release went badly and well
  bool graphs = false;                    // graphs off went well, on badly
  bool layout = false;                    // only uneven numbers of ranks a node went badly
  std::string bad_layout;
  std::string setting, setting_text;  // an NCCL_ setting with which it went well
};

// "7+8 ranks": numbers of ranks a node.
bool Layout(const std::string& variant, std::vector<int>* counts) {
  static const RE2& shape = *new RE2(R"(\b(\d{1,3}(?: ?\+ ?\d{1,3})+)\b)");
  std::string text;
  if (!RE2::PartialMatch(variant, shape, &text)) return false;
  re2::StringPiece rest(text);
  int count = 0;
  while (RE2::FindAndConsume(&rest, R"((\d+))", &count)) counts->push_back(count);
  return counts->size() > 1;
}

Verdict Judge(const std::vector<model::Trial>& trials) {
  Verdict verdict;
  std::vector<const model::Trial*> bad, good;
  for (const model::Trial& t : trials) (t.bad() ? bad : good).push_back(&t);
  verdict.luck = CouldBeLuck(bad, good);
  bool uneven_bad = false, uneven_good = false, even_bad = false, even_good = false;
  for (const model::Trial& t : trials) {
    if (const int release = ReleaseIn(t.variant); release > 0) {
      int& side = t.bad() ? verdict.bad_release : verdict.good_release;
      side = t.bad() ? std::max(side, release) : side == 0 ? release : std::min(side, release);
    }
    if (!t.bad() &&
        About(t.variant,
              R"((?i)\beager\b|no (cuda[ -]?)?graphs?|graphs? (off|disabled)|without (cuda[ -]?)?graphs?|disable.?cuda.?graph)"))
      verdict.graphs = true;
    if (!t.bad() && verdict.setting.empty()) {
      static const RE2& assignment = *new RE2(R"((NCCL_\w+=\S+))");
      std::string setting;
      if (RE2::PartialMatch(t.variant, assignment, &setting)) {
        verdict.setting = setting.substr(0, setting.find('='));
        verdict.setting_text = setting;
      }
    }
    std::vector<int> counts;
    if (Layout(t.variant, &counts)) {
      const bool even = std::all_of(counts.begin(), counts.end(), [&](int c) { return c == counts.front(); });
      (even ? (t.bad() ? even_bad : even_good) : (t.bad() ? uneven_bad : uneven_good)) = true;
      if (!even && t.bad()) {
        std::vector<std::string> words;
        for (const int c : counts) words.push_back(absl::StrCat(c));
        verdict.bad_layout = absl::StrJoin(words, "+");
      }
    }
  }
  verdict.layout = uneven_bad && even_good && !even_bad && !uneven_good;
  if (verdict.bad_release == verdict.good_release) verdict.bad_release = verdict.good_release = 0;
  return verdict;
}

void CiteTrials(const model::Job& job, Finding* finding) {
  size_t cited = 0;
  for (const model::Trial& t : job.evidence.trials) {
    if (cited++ == 8) break;
    Cite(job, t.where, t.text, finding);
  }
}

void CiteContext(const model::Job& job, Finding* finding) {
  for (const model::Version* v : NcclVersions(job)) CiteVersion(job, *v, finding);
  for (const model::Version* v : VersionsOf(job, "machine")) CiteVersion(job, *v, finding);
  CiteAll(job, EventsOf(job, {"vllm-rpc-timeout", "vllm-broadcast-block-wait"}), 1, finding);
  CiteAll(job, EventsOf(job, {"cuda-graph-capturing"}), 1, finding);
}

std::optional<Candidate> OfTrials(const model::Job& job) {
  if (job.evidence.trials.empty()) return std::nullopt;
  const Verdict v = Judge(job.evidence.trials);
  const InitProgress init = LookAtInit(job);
  const auto versions = NcclVersions(job);
  const int running = versions.empty() ? 0 : NcclRelease(versions.front()->version);
  std::string title;
  Confidence::Value confidence = Confidence::possible;
  std::string next, cause;
  if (v.bad_release > 0 && v.good_release > 0) {
    // The control experiment that tells: another library, the same program.
    confidence = Confidence::probable;
    title = absl::StrCat("NCCL ", NcclReleaseText(v.bad_release), " itself is the likely reason: with NCCL ",
                         NcclReleaseText(v.good_release), " the same program runs",
                         v.graphs ? ", and without CUDA graphs too (CUDA graph replay is the trigger)" : "");
    next = absl::StrCat("Run with NCCL ", NcclReleaseText(v.good_release), v.good_release > v.bad_release ? " or later" : "",
                        v.graphs ? ", or without CUDA graphs (--enforce-eager)" : "",
                        "; repeat it often enough that luck is no explanation.");
  } else if (v.layout) {
    const bool all_there = init.n_ranks > 0 && static_cast<int>(init.started.size()) == init.n_ranks && init.completed.empty();
    confidence = all_there ? Confidence::probable : Confidence::possible;
    title = absl::StrCat("Only the uneven layout ", v.bad_layout, " (ranks a node) hangs, even ones run",
                         all_there ? absl::StrCat("; all ", init.n_ranks, " ranks entered ",
                                                  init.function.empty() ? "NCCL's init" : init.function, " and none came out")
                                   : "",
                         ": a defect of NCCL", running > 0 ? absl::StrCat(" ", NcclReleaseText(running)) : "",
                         " with this layout is the likely reason");
    next =
        "Use the same number of ranks on every node, or try an earlier and a later release of NCCL with the same layout; stacks "
        "inside the init show the exchange it stands at.";
  } else if (v.graphs && !versions.empty()) {
    title = absl::StrCat("It goes wrong only with CUDA graphs (NCCL ", versions.front()->version,
                         "): graph replay is the trigger, a defect of this release or a launch order that "
                         "differs between ranks");
    next =
        "Run the same with another release of NCCL and graphs on: that tells the library from the program. --enforce-eager gets "
        "by.";
  } else if (!v.setting.empty()) {
    title = absl::StrCat("It runs with ", v.setting_text, " and not without: that says where the fault lies, not what it is");
    next = "Name the part that this setting leaves out and look at it alone; the setting is a way around, not a repair.";
    for (const Switch& s : kSwitches) {
      if (v.setting != s.name) continue;
      absl::StrAppend(&title, " (", s.part, ")");
      cause = s.cause;
      next = s.next;
    }
  } else {
    return std::nullopt;
  }
  if (v.luck) {
    confidence = Confidence::possible;
    title = absl::StrCat("The runs tried are too few to rule out luck; what they point at: ", title);
    next =
        "Repeat the variants that ran until luck is no explanation: at a rate p of bad runs, n clean ones happen by luck with "
        "(1-p)^n.";
  }
  if (cause.empty()) cause = v.bad_release > 0 || v.layout ? "NC-03" : v.graphs ? "NC-09" : "";
  Candidate candidate = Say(Kind::misconfigured, confidence, Layer::kConfiguration, title, cause);
  if (v.luck || (v.bad_release == 0 && !v.layout)) {
    candidate.finding.set_kind(Kind::undetermined);
    candidate.order = v.luck ? Class::kUndetermined : Class::kError;
  }
  candidate.stops_job = true;
  candidate.state = init.n_ranks > 0 && init.completed.empty() ? State::init_hang : State::hang;
  CiteTrials(job, &candidate.finding);
  CiteContext(job, &candidate.finding);
  size_t cited = 0;
  for (const auto& [rank, entry] : init.started) {
    if (!init.completed.empty() || cited++ == 3) break;
    Cite(job, entry->started,
         absl::StrCat("rank ", rank, " of ", init.n_ranks, ": ", entry->name.empty() ? "Init" : entry->name,
                      " START, no COMPLETE"),
         &candidate.finding);
  }
  candidate.finding.set_refuted_by("the variants that went well fail too when they are repeated as often");
  SetNext(next, "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV; python -c 'import torch; print(torch.cuda.nccl.version())'",
          &candidate.finding);
  return candidate;
}

std::optional<Candidate> OfRelease(const model::Job& job) {
  const Trigger trigger = Look(job);
  for (const model::Version* version : NcclVersions(job)) {
    const int release = NcclRelease(version->version);
    for (const catalog::NcclDefect& defect : catalog::Faults().nccl_defect()) {
      if (release < NcclRelease(defect.from()) || release >= NcclRelease(defect.fixed()) || !Triggered(defect.trigger(), trigger))
        continue;
      // A settled job does not suffer from it.
      Candidate candidate =
          Say(Kind::misconfigured, Confidence::probable, Layer::kConfiguration,
              absl::StrCat("NCCL ", version->version, " has a known defect that fits: ", defect.text()), defect.cause());
      candidate.stops_job = true;
      candidate.state = State::hang;
      Finding& finding = candidate.finding;
      CiteVersion(job, *version, &finding);
      if (trigger.nvls_differs) CiteAll(job, EventsOf(job, {"nccl-channel-counts"}), 6, &finding);
      for (const model::Version* v : VersionsOf(job, "machine")) CiteVersion(job, *v, &finding);
      CiteTrials(job, &finding);
      finding.set_refuted_by(absl::StrCat("the same with ", defect.remedy(), " (", defect.reference(), ")"));
      SetNext(absl::StrCat("Take ", defect.remedy(), " and repeat the run several times."),
              "python -c 'import torch; print(torch.cuda.nccl.version())'; uname -m", &finding);
      return candidate;
    }
  }
  return std::nullopt;
}

std::vector<Candidate> FindDefects(const model::Job& job) {
  std::vector<Candidate> found;
  if (auto candidate = OfRelease(job)) found.push_back(std::move(*candidate));
  if (found.empty()) {
    if (auto candidate = OfTrials(job)) found.push_back(std::move(*candidate));
  }
  return found;
}

const Register kRegister("known_defect", FindDefects);

}  // namespace
}  // namespace ringscope::reasoning
