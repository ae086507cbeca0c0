// RoCE with a GID that the fabric does not route: a link-local or RoCE v1 entry, or an index that does not exist. Connections
// come up (over TCP), the first transfer or the queue pair fails.
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <optional>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/network_text.h"

namespace ringscope::reasoning {
namespace {

struct Used {
  int index = -1;           // the GID index in force
  bool link_local = false;  // seen to be fe80::
  bool shown = false;       // NCCL's own lines show it; otherwise it follows from the settings
  model::Where where;
  std::string text;
};

bool LinkLocal(std::string_view gid) { return gid.starts_with("fe80") || gid.starts_with("FE80"); }

// What the job used, as the log shows it, else as its settings and its release make it.
std::optional<Used> UsedGid(const model::Job& job) {
  for (const model::QueuePair& qp : job.evidence.network.queue_pairs) {
    if (qp.gid_index < 0 || !qp.link_local) continue;
    return Used{qp.gid_index, true, true, qp.where,
                absl::StrCat("NCCL connected with GID index ", qp.gid_index, ", a link-local address")};
  }
  // Up to 2.19 ("with error …") addresses of InfiniBand may be printed too; they begin with fe80:: and are right so.
  const bool roce = std::any_of(job.evidence.network.adapters.begin(), job.evidence.network.adapters.end(),
                                [](const model::AdapterUse& a) { return a.roce; });
  for (const Completion& c : Completions(job)) {
    if (LinkLocal(c.event->Field("local_gid")) && (roce || Contains(c.event->text, "status")))
      return Used{-1, true, true, c.event->where, "the failed connection used a link-local GID"};
  }
  for (const model::Event* e : EventsOf(job, {"nccl-ibv-modify-qp"})) {
    const std::optional<int64_t> index = e->Number("gid_index");
    if (!index) continue;
    if (LinkLocal(e->Field("local_gid")) || *index > 0)
      return Used{static_cast<int>(*index), LinkLocal(e->Field("local_gid")), true, e->where, e->text};
  }
  for (const model::QueuePair& qp : job.evidence.network.queue_pairs) {
    if (qp.gid_index >= 0)
      return Used{qp.gid_index, false, true, qp.where, absl::StrCat("NCCL connected with GID index ", qp.gid_index)};
  }
  if (const model::Setting* s = SettingOf(job, "NCCL_IB_GID_INDEX")) {
    int index = 0;
    if (absl::SimpleAtoi(s->value, &index) && index >= 0)
      return Used{index, false, true, s->where, absl::StrCat("NCCL_IB_GID_INDEX=", s->value)};
  }
  // Chosen by NCCL itself since 2.21; before, index 0 unless told otherwise.
  const int release = OldestNccl(job);
  if (release == 0 || release >= 22105 || !UsesRoce(job)) return std::nullopt;
  for (const model::Version& v : job.evidence.versions) {
    if (v.component == "nccl")
      return Used{0, false, false, v.where,
                  absl::StrCat("NCCL ", v.version, " uses GID index 0 unless NCCL_IB_GID_INDEX says otherwise")};
  }
  return std::nullopt;
}

bool NcclDevice(const model::Job& job, const model::RoceGid& gid) {
  const auto& adapters = job.evidence.network.adapters;
  return adapters.empty() || std::any_of(adapters.begin(), adapters.end(), [&](const model::AdapterUse& a) {
           return a.device == gid.device && a.port == gid.port;
         });
}

bool Routable(const model::RoceGid& gid) { return !gid.LinkLocal() && gid.version != 1; }

std::vector<Candidate> FindRoceGid(const model::Job& job) {
  const auto completions = Completions(job);
  const auto refused = EventsOf(job, {"nccl-ibv-modify-qp"});
  const Completion* error = FirstError(completions);
  const bool transfer = error != nullptr && (error->status == kRetryExceeded || error->status == kRemoteOperation);
  if (!transfer && refused.empty()) return {};
  // InfiniBand's own addresses begin with fe80:: and are right so.
  if (!job.evidence.network.adapters.empty() && !UsesRoce(job)) return {};
  // Nothing says that these are RoCE adapters: a link-local address alone is how every InfiniBand adapter begins.
  if (job.evidence.network.gids.empty() && !UsesRoce(job) && SettingOf(job, "NCCL_IB_GID_INDEX") == nullptr && refused.empty())
    return {};
  // It ran before with the same entry.
  if (transfer && WorkedBefore(job, *error->event).has_value()) return {};
  const std::optional<Used> used = UsedGid(job);
  if (!used) return {};

  const model::RoceGid* bad = nullptr;   // the entry that was used
  const model::RoceGid* good = nullptr;  // the one to use: v2 with an IPv4 address, else any routable one
  int highest = -1;
  for (const model::RoceGid& gid : job.evidence.network.gids) {
    if (!NcclDevice(job, gid)) continue;
    highest = std::max(highest, gid.index);
    if (gid.index == used->index && bad == nullptr && !Routable(gid)) bad = &gid;
    if (Routable(gid) && (good == nullptr || (good->ipv4.empty() && !gid.ipv4.empty()))) good = &gid;
  }
  const bool beyond = highest >= 0 && used->index > highest;
  const bool invalid = std::any_of(refused.begin(), refused.end(),
                                   [](const model::Event* e) { return e->Field("error").starts_with("Invalid argument"); });
  const bool forced = SettingOf(job, "NCCL_IB_GID_INDEX") != nullptr;
  if (bad == nullptr && !beyond && !used->link_local && !(invalid && forced)) return {};
  // Link-local entries work inside one segment; the table or a second sign must say that there is a better one.
  const bool sure = (bad != nullptr || beyond) && (good != nullptr || beyond);
  const Confidence::Value confidence = sure && used->shown && used->link_local ? Confidence::established
                                       : sure || (invalid && forced)           ? Confidence::probable
                                                                               : Confidence::possible;
  std::string title =
      absl::StrCat("Wrong GID: RoCE traffic uses ", used->index >= 0 ? absl::StrCat("index ", used->index) : "an entry",
                   beyond                                                     ? ", which the adapter does not have"
                   : used->link_local || (bad != nullptr && bad->LinkLocal()) ? ", a link-local address that is not routed"
                   : bad != nullptr                                           ? ", a RoCE v1 entry"
                                                                              : ", which the adapter refuses",
                   transfer ? "; the first transfers get no answer" : "; queue pairs do not connect");
  Candidate candidate = Say(Kind::misconfigured, confidence, Layer::kConfiguration, title, "NET-03", "nccl-ibv-modify-qp");
  candidate.stops_job = true;
  candidate.state = transfer ? State::crashed : State::init_failure;
  Finding& finding = candidate.finding;
  Cite(job, used->where, used->text, &finding);
  if (bad != nullptr)
    Cite(job, bad->where,
         absl::StrCat("used: ", bad->device, " index ", bad->index, " GID ", bad->gid,
                      bad->version > 0 ? absl::StrCat(" RoCE v", bad->version) : ""),
         &finding);
  if (good != nullptr)
    Cite(job, good->where,
         absl::StrCat("routable: ", good->device, " index ", good->index, " GID ", good->gid,
                      good->ipv4.empty() ? "" : absl::StrCat(" ", good->ipv4),
                      good->version > 0 ? absl::StrCat(" RoCE v", good->version) : ""),
         &finding);
  CiteSettings(job, "NCCL_IB_GID_INDEX", 2, &finding);
  CiteCompletions(job, completions, 3, &finding);
  CiteAll(job, refused, 2, &finding);
  std::vector<const model::Event*> reporters = refused;
  for (const Completion& c : completions) reporters.push_back(c.event);
  OnlyReported(reporters, &finding);
  finding.set_refuted_by("ib_write_bw between the two hosts works with the GID index that NCCL used");
  const std::string index = good != nullptr ? absl::StrCat(good->index) : "<index of the RoCE v2 entry with an IPv4 address>";
  SetNext(
      absl::StrCat("Set NCCL_IB_GID_INDEX=", index,
                   " on all hosts, or leave it unset on NCCL 2.21 and later; check with a bandwidth test over the same entry."),
      absl::StrCat("show_gids; ib_write_bw -d ", good != nullptr ? ShellWord(good->device) : "<device>", " -x ",
                   good != nullptr ? absl::StrCat(good->index) : "<index>", " <other host>"),
      &finding);
  return {candidate};
}

const Register kRegister("roce_gid", FindRoceGid);

}  // namespace
}  // namespace ringscope::reasoning
