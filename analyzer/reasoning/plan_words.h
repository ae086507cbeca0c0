// Words and evidence that the finders of plans share.
#ifndef RINGSCOPE_ANALYZER_REASONING_PLAN_WORDS_H_
#define RINGSCOPE_ANALYZER_REASONING_PLAN_WORDS_H_

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/reasoning/lanes.h"
#include "analyzer/reasoning/machines.h"
#include "analyzer/reasoning/plan_edges.h"
#include "proto/diagnosis.pb.h"

namespace ringscope::reasoning {

// A setting of this name in a process of this machine, or of nobody in particular; the newest.
const model::Setting* SettingOn(const model::Job& job, const Machine& machine, std::string_view name);
// 1, 0x1, true; LOC and 0 for levels is the caller's.
bool IsOn(const model::Setting* setting);

// Settings by which people take NVLink away from NCCL.
struct PathSettings {
  const model::Setting* p2p = nullptr;     // NCCL_P2P_DISABLE=1, NCCL_P2P_LEVEL=LOC
  const model::Setting* shm = nullptr;     // NCCL_SHM_DISABLE=1
  const model::Setting* relay = nullptr;   // NCCL_NVB_DISABLE=1
  const model::Setting* driver = nullptr;  // RMNvLinkEnable=0, NVreg_NvLinkDisable=1
  const model::Setting* ignore = nullptr;  // NCCL_IGNORE_DISABLED_P2P
};
PathSettings PathSettingsOn(const model::Job& job, const Machine& machine);
// "NCCL_P2P_DISABLE=1".
std::string SettingText(const model::Setting& setting);
void CitePlanSetting(const model::Job& job, const model::Setting& setting, Finding* finding);

// What the topology says of this GPU's NVLinks: cites the lines, or that there are none.
void CiteLanes(const model::Job& job, const Machine& machine, const MachineGpu& gpu, Finding* finding);
// The ring's search result on this machine, and the channels that all ranks settled for.
void CitePlan(const model::Job& job, const Machines& machines, int machine, Finding* finding);
void CiteEdges(const model::Job& job, const std::vector<const PlanEdge*>& edges, size_t most, Finding* finding);

// GB/s of the ring as this machine planned it; 0 unknown. `text`: "2 channels x 20 GB/s".
double RingRate(const model::Job& job, const Machines& machines, int machine, std::string* text);

void AddGpu(const MachineGpu& gpu, Finding* finding);
void AddHost(const Machine& machine, Finding* finding);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_PLAN_WORDS_H_
