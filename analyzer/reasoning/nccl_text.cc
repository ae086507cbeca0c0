#include "analyzer/reasoning/nccl_text.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <set>

#include "analyzer/model/views.h"

namespace ringscope::reasoning {

std::vector<const model::Version*> VersionsOf(const model::Job& job, std::string_view component) {
  std::vector<const model::Version*> found;
  std::set<std::string> seen;
  for (const model::Version& v : job.evidence.versions) {
    if (v.component == component && seen.insert(v.version).second) found.push_back(&v);
  }
  return found;
}

std::vector<const model::Version*> NcclVersions(const model::Job& job) {
  std::vector<const model::Version*> found = VersionsOf(job, "nccl");
  if (!found.empty()) return found;
  for (const model::Version& v : job.evidence.versions) {
    if (v.component.starts_with("nvidia-nccl-cu") || v.component == "libnccl2") found.push_back(&v);
  }
  return found;
}

void CiteVersion(const model::Job& job, const model::Version& version, Finding* finding) {
  const std::string name = version.component == "nccl" ? "NCCL" : version.component;
  Cite(job, version.where, absl::StrCat(name, " ", version.version), finding);
}

std::vector<const model::Setting*> SettingsOf(const model::Job& job, std::initializer_list<std::string_view> names) {
  std::vector<const model::Setting*> found;
  for (const model::Setting& s : job.evidence.settings) {
    if (std::find(names.begin(), names.end(), s.name) != names.end()) found.push_back(&s);
  }
  return found;
}

void CiteSetting(const model::Job& job, const model::Setting& setting, Finding* finding) {
  const std::string who = SpeakerText(setting.by);
  Cite(job, setting.where,
       absl::StrCat(setting.name, setting.name.starts_with("ulimit") ? ": " : "=", setting.value, who.empty() ? "" : " on ", who),
       finding);
}

int RankField(const model::Event& event, std::string_view name) {
  const auto rank = event.Number(name);
  return rank && *rank >= 0 && *rank < (1 << 22) ? static_cast<int>(*rank) : -1;
}

void Accuse(const std::vector<const model::Event*>& events, Finding* finding) {
  std::set<int> ranks(finding->who().ranks().begin(), finding->who().ranks().end());
  std::set<std::string> hosts(finding->who().hosts().begin(), finding->who().hosts().end());
  for (const model::Event* event : events) {
    if (event->by.rank >= 0 && ranks.insert(event->by.rank).second) finding->mutable_who()->add_ranks(event->by.rank);
    if (!event->by.host.empty() && hosts.insert(event->by.host).second) finding->mutable_who()->add_hosts(event->by.host);
  }
}

void OnlyWaited(const std::vector<const model::Event*>& events, Finding* finding) {
  std::set<int> known(finding->who().ranks().begin(), finding->who().ranks().end());
  known.insert(finding->collateral().ranks().begin(), finding->collateral().ranks().end());
  for (const int rank : RanksOf(events)) {
    if (known.insert(rank).second) finding->mutable_collateral()->add_ranks(rank);
  }
}

std::vector<const model::Event*> PeerLosses(const model::Job& job) {
  return EventsOf(job, {"nccl-socket-closed", "nccl-socket-failed", "nccl-socket-progress", "nccl-local-peer-closed",
                        "nccl-proxy-wait-failed"});
}

int WorldSize(const model::Job& job) {
  int world = 0;
  for (const model::LogRank& r : job.evidence.log_ranks) {
    if (!r.split && !r.noted) world = std::max(world, r.n_ranks);
  }
  return world;
}

bool AnyInitComplete(const model::Job& job) {
  const int world = WorldSize(job);
  return std::any_of(job.evidence.log_ranks.begin(), job.evidence.log_ranks.end(),
                     [&](const model::LogRank& r) { return !r.split && !r.noted && r.n_ranks == world && r.completed.known(); });
}

std::vector<std::string> LogHosts(const model::Job& job) {
  std::set<std::string> hosts;
  for (const model::Event& e : job.evidence.events) {
    if (e.by.pid >= 0 && !e.by.host.empty()) hosts.insert(e.by.host);
  }
  for (const model::LogRank& r : job.evidence.log_ranks) {
    if (!r.by.host.empty()) hosts.insert(r.by.host);
  }
  return {hosts.begin(), hosts.end()};
}

}  // namespace ringscope::reasoning
