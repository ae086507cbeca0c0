// The shapes of NCCL's lines about a plan, releases 2.4 to 2.30, one function a shape. Each returns false and leaves its result
// alone when the line is another.
#ifndef RINGSCOPE_ANALYZER_READERS_NCCL_PLAN_LINES_H_
#define RINGSCOPE_ANALYZER_READERS_NCCL_PLAN_LINES_H_

#include <string_view>

#include "analyzer/model/evidence_plan.h"

namespace ringscope::ingest {

// "Ring 00 : 0[0] -> 1[1] via P2P/IPC" (to 2.6), "Channel 00 : 0[1a000] -> 1[3b000] via direct shared memory" (to 2.12),
// "Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0(1)/GDRDMA", "Ring 00 : 3 -> 4 [send] via NET/IB/0".
bool TransportShape(std::string_view text, model::TransportLine* line);

// "Channel 00/24 :    0   1   2": a ring's order; long rings take several lines of the same channel. `channels` is the 24.
bool RingOrderShape(std::string_view text, int* channel, int* channels, std::vector<int>* order);

// "Ring 00 : 7 -> 0 -> 1".
bool RingShape(std::string_view text, int* me, model::PlanRing* ring);

// "Trees [0] 1/-1/-1->0->-1 [1] …", also "1->0->2/-1/-1" of releases up to 2.6.
bool TreesShape(std::string_view text, int* me, std::vector<model::PlanTree>* trees);

// "Pattern 4, crossNic 0, nChannels 12, bw 30.0/30.0, type NVL/PIX, sameChannels 1" ("speed" up to 2.12).
bool PatternShape(std::string_view text, model::PlanPattern* pattern);

// "24 coll channels, 24 collnet channels, 0 nvls channels, 32 p2p channels, 32 p2p channels per peer".
bool ChannelCountsShape(std::string_view text, model::RankPlan* plan);

// "comm 0x… rank 0 nranks 8 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x… - Init START|COMPLETE" and the forms of other releases.
// `done` for COMPLETE. ncclCommSplit and the like set `split`.
bool InitShape(std::string_view text, model::RankPlan* plan, bool* done);

// "comm 0x… rank 0 nRanks 8 nNodes 1 localRanks 8 localRank 0 MNNVL 0" (2.21 and later).
bool NodesShape(std::string_view text, model::RankPlan* plan);

// A device of the topology log or its path table: "GPU/0-1b000" (2.21 and later), "GPU/1B000", "NET/3", "NVS/0-0". `id` is
// system id << 56 | local id.
struct DeviceName {
  std::string_view type;  // "GPU", "NET", "NVS", "CPU", "PCI", "NIC", "DEV", "GIN", "RMA"
  uint64_t id = 0;
};
bool TakeDevice(std::string_view* text, DeviceName* device);

// "+ PCI[48.0] - GPU/0-1b000 (0)": `indent` is where the plus stands.
struct TopologyShape {
  size_t indent = 0;
  std::string_view link;  // "PCI", "NVL", "SYS", "NET", "LOC", "C2C"
  double bw = 0;
  DeviceName device;
  std::string_view rest;  // "(10de233010de16c1)"
};
bool TopologyLinkShape(std::string_view text, TopologyShape* shape);

// "GPU/0-1b000 :GPU/0-1b000 (0/5000.0/LOC) NET/0-0 (6/48.0/PHB)". Entries about GPUs and NETs only. False for other rows.
bool PathRowShape(std::string_view text, std::vector<model::TopologyPath>* paths);

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_READERS_NCCL_PLAN_LINES_H_
