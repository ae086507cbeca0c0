#include "analyzer/reasoning/plan_words.h"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <set>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

constexpr int kRing = 4;  // NCCL_TOPO_PATTERN_RING

int64_t Value(std::string_view text) {
  int64_t n = 0;
  if (text.starts_with("0x")) return absl::SimpleHexAtoi(Absl(text), &n) ? n : -1;
  return absl::SimpleAtoi(Absl(text), &n) ? n : -1;
}

const model::PlanPattern* RingOf(const model::RankPlan& plan) {
  for (const model::PlanPattern& p : plan.patterns) {
    if (p.pattern == kRing && p.channels > 0) return &p;
  }
  return nullptr;
}

// The plan on this machine that tells most: of the largest communicator, with a ring; the newest of these.
const model::RankPlan* TellingPlan(const model::Job& job, const Machines& machines, int machine) {
  int best = -1;
  for (const int i : machines.list[machine].plans) {
    const model::RankPlan& plan = job.evidence.plan.plans[i];
    if (RingOf(plan) == nullptr && plan.coll_channels < 0) continue;
    const auto worth = [&](int index) {
      const model::RankPlan& p = job.evidence.plan.plans[index];
      return std::make_tuple(p.n_ranks, RingOf(p) != nullptr, p.coll_channels >= 0, machines.generation[index]);
    };
    if (best < 0 || worth(i) > worth(best)) best = i;
  }
  return best < 0 ? nullptr : &job.evidence.plan.plans[best];
}

}  // namespace

const model::Setting* SettingOn(const model::Job& job, const Machine& machine, std::string_view name) {
  const model::Setting* found = nullptr;
  for (const model::Setting& s : job.evidence.settings) {
    if (s.name != name) continue;
    bool here = s.by.host.empty() || s.by.host == machine.name;
    const auto of = [&](int i) {
      const model::RankPlan& plan = job.evidence.plan.plans[i];
      return plan.by.host == s.by.host && (s.by.pid < 0 || plan.by.pid < 0 || plan.by.pid == s.by.pid);
    };
    here |= std::any_of(machine.plans.begin(), machine.plans.end(), of);
    if (here) found = &s;
  }
  return found;
}

bool IsOn(const model::Setting* setting) { return setting != nullptr && Value(setting->value) > 0; }

PathSettings PathSettingsOn(const model::Job& job, const Machine& machine) {
  PathSettings found;
  const auto on = [&](std::string_view name) {
    const model::Setting* s = SettingOn(job, machine, name);
    return IsOn(s) ? s : nullptr;
  };
  const auto off = [&](std::string_view name) -> const model::Setting* {
    const model::Setting* s = SettingOn(job, machine, name);
    return s != nullptr && Value(s->value) == 0 ? s : nullptr;
  };
  found.p2p = on("NCCL_P2P_DISABLE");
  if (found.p2p == nullptr) {
    const model::Setting* level = SettingOn(job, machine, "NCCL_P2P_LEVEL");
    if (level != nullptr && (level->value == "LOC" || Value(level->value) == 0)) found.p2p = level;
  }
  found.shm = on("NCCL_SHM_DISABLE");
  found.relay = on("NCCL_NVB_DISABLE");
  found.ignore = on("NCCL_IGNORE_DISABLED_P2P");
  for (const char* name : {"RMNvLinkEnable", "RmNvLinkEnable"}) {
    if (found.driver == nullptr) found.driver = off(name);
  }
  if (found.driver == nullptr) found.driver = on("NVreg_NvLinkDisable");
  return found;
}

std::string SettingText(const model::Setting& setting) { return absl::StrCat(setting.name, "=", setting.value.substr(0, 40)); }

void CitePlanSetting(const model::Job& job, const model::Setting& setting, Finding* finding) {
  const bool nccl = setting.name.rfind("NCCL_", 0) == 0;
  Cite(job, setting.where,
       nccl ? absl::StrCat(setting.name, " set by environment to ", setting.value.substr(0, 80)) : SettingText(setting), finding);
}

void CiteLanes(const model::Job& job, const Machine& machine, const MachineGpu& gpu, Finding* finding) {
  const std::string name = GpuText(machine, gpu);
  if (gpu.links.empty()) {
    Cite(job, gpu.where, absl::StrCat(name, " is listed without any NVLink"), finding);
    return;
  }
  for (const MachineGpu::Link& link : gpu.links) {
    const std::string peer = link.peer == MachineGpu::kSwitch ? "the NVSwitches"
                             : link.peer < 0                  ? "a GPU outside the job"
                                                              : GpuText(machine.gpus[link.peer]);
    const std::string rate = link.bw > 0 ? absl::StrFormat("NVL[%.1f]: ", link.bw) : "";
    Cite(job, link.where.known() ? link.where : gpu.where,
         absl::StrCat(name, " to ", peer, ": ", rate,
                      link.lanes > 0 ? absl::StrCat(link.lanes, link.lanes == 1 ? " lane" : " lanes") : "NVLink"),
         finding);
  }
}

void CitePlan(const model::Job& job, const Machines& machines, int machine, Finding* finding) {
  const model::RankPlan* plan = TellingPlan(job, machines, machine);
  if (plan == nullptr) return;
  if (const model::PlanPattern* ring = RingOf(*plan)) {
    Cite(job, ring->where,
         absl::StrFormat("Pattern %d, nChannels %d, bw %g/%g, type %s/%s", ring->pattern, ring->channels, ring->bw_intra,
                         ring->bw_inter, Absl(PathTypeText(ring->intra)), Absl(PathTypeText(ring->inter))),
         finding);
  }
  if (plan->coll_channels >= 0)
    Cite(job, plan->counts, absl::StrCat(plan->coll_channels, " coll channels, for every rank"), finding);
}

void CiteEdges(const model::Job& job, const std::vector<const PlanEdge*>& edges, size_t most, Finding* finding) {
  std::set<std::pair<int, int>> pairs;
  for (const PlanEdge* edge : edges) {
    if (pairs.size() == most) break;
    if (pairs.insert({std::min(edge->from, edge->to), std::max(edge->from, edge->to)}).second)
      Cite(job, edge->line->where, LineText(*edge->line), finding);
  }
}

double RingRate(const model::Job& job, const Machines& machines, int machine, std::string* text) {
  const model::RankPlan* plan = TellingPlan(job, machines, machine);
  const model::PlanPattern* ring = plan == nullptr ? nullptr : RingOf(*plan);
  if (ring == nullptr) return 0;
  *text = absl::StrFormat("%d %s x %g GB/s", ring->channels, ring->channels == 1 ? "channel" : "channels", ring->bw_intra);
  return ring->channels * ring->bw_intra;
}

void AddGpu(const MachineGpu& gpu, Finding* finding) {
  if (finding->who().gpus_size() < 64) finding->mutable_who()->add_gpus(GpuText(gpu));
}

void AddHost(const Machine& machine, Finding* finding) {
  if (machine.name.empty()) return;
  for (const std::string& host : finding->who().hosts()) {
    if (host == machine.name) return;
  }
  finding->mutable_who()->add_hosts(machine.name);
}

}  // namespace ringscope::reasoning
