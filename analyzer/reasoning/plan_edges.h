// The edges of a job's rings and trees inside its machines, each with the path it took.
#ifndef RINGSCOPE_ANALYZER_REASONING_PLAN_EDGES_H_
#define RINGSCOPE_ANALYZER_REASONING_PLAN_EDGES_H_

#include <string>
#include <vector>

#include "analyzer/reasoning/lanes.h"
#include "analyzer/reasoning/machines.h"
#include "proto/diagnosis.pb.h"

namespace ringscope::reasoning {

// Worst last.
enum class Carrier { kNvlink, kRelay, kP2pUnknown, kPcie, kShm, kNet };

struct PlanEdge {
  int from = -1, to = -1;  // job ranks
  int machine = -1;
  int from_gpu = -1, to_gpu = -1;  // in the machine
  Carrier carrier = Carrier::kP2pUnknown;
  int channels = 0;
  const model::TransportLine* line = nullptr;      // the first
  std::vector<const model::TransportLine*> lines;  // all: other channels' directions, other communicators
};

// Edges whose two ends are on one machine, one a direction and carrier. Connections that both ends log are one edge.
std::vector<PlanEdge> LocalEdges(const model::Job& job, const Machines& machines);

// "P2P/IPC over PCIe", "SHM", "NET/Socket".
std::string CarrierText(const PlanEdge& edge);
// "Channel 00/0 : 2[2] -> 3[3] via SHM/direct".
std::string LineText(const model::TransportLine& line);
// "0-1, 3-4 and 12 more": both directions are one.
std::string EdgesText(const std::vector<const PlanEdge*>& edges);
// Both directions as the plan has them, at most `most`.
void AddEdges(const std::vector<const PlanEdge*>& edges, size_t most, Finding* finding);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_PLAN_EDGES_H_
