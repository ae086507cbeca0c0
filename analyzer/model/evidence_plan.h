// How NCCL connected the ranks, as its log (SUBSYS INIT, GRAPH) and its topology and graph files tell it, and what the machine
// offers: nvidia-smi's matrices.
#ifndef RINGSCOPE_ANALYZER_MODEL_EVIDENCE_PLAN_H_
#define RINGSCOPE_ANALYZER_MODEL_EVIDENCE_PLAN_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/model/bus_id.h"
#include "analyzer/model/evidence_place.h"

namespace ringscope::model {

// NCCL's distance between two devices, nearest first (src/include/graph.h). Also nvidia-smi's: NV# is kNvl, NODE is kPhb.
enum class PathType : int8_t { kUnknown, kLoc, kNvl, kNvb, kC2c, kPix, kPxb, kP2c, kPxn, kPhb, kSys, kNet, kDis };
PathType ParsePathType(std::string_view text);
std::string_view PathTypeText(PathType type);

// "Channel 00/0 : 0[0] -> 1[1] via P2P/IPC". Lines of one rank that differ in the channel alone are one of these.
struct TransportLine {
  int channel = -1;                      // of the first
  int channels = 1;                      // how many such lines
  int from = -1, to = -1;                // ranks in the communicator of the speaker
  std::string from_bracket, to_bracket;  // bus id up to 2.18.1, NVML device index since 2.18.3; as written
  std::string via;                       // as written, "P2P/IPC/read", "SHM/direct/direct", "NET/IB/0/GDRDMA"
  bool send = false, receive = false;    // [send] / [receive] of network lines
  int plan = -1;                         // index in PlanFacts::plans: whose communicator the ranks belong to
  Where where;
  Speaker by;
};

// "Pattern 4, crossNic 0, nChannels 12, bw 30.0/30.0, type NVL/PIX, sameChannels 1": what the search settled for on this rank,
// before all ranks agreed on the least.
struct PlanPattern {
  int pattern = -1;  // 1 balanced tree, 2 split tree, 3 tree, 4 ring, 5 NVLS, 6 CollNet direct
  int cross_nic = 0, channels = 0;
  double bw_intra = 0, bw_inter = 0;  // GB/s a channel
  PathType intra = PathType::kUnknown, inter = PathType::kUnknown;
  Where where;
};

struct PlanRing {
  int channel = -1;
  int prev = -1, next = -1;  // "Ring 00 : prev -> me -> next"
  std::vector<int> order;    // "Channel 00/24 : 0 1 2 …", which rank 0 prints
};

struct PlanTree {
  int channel = -1, up = -1;
  int down[3] = {-1, -1, -1};
};

// One rank of one communicator, from the lines that its process wrote while it set the communicator up.
struct RankPlan {
  int rank = -1, n_ranks = 0;
  std::string communicator;  // commId where printed, else the pointer
  bool split = false;        // of ncclCommSplit and the like
  int cuda_device = -1, nvml_device = -1;
  bool has_bus_id = false;
  BusId bus_id = 0;
  int n_nodes = 0, local_ranks = 0, local_rank = -1, mnnvl = -1;
  int coll_channels = -1, nvls_channels = -1, p2p_channels = -1;
  int nvls_support = -1;  // "NVLS multicast support is [not ]available"
  int channels = 0;       // NN of "Channel 00/NN"
  int net_devices = -1;   // "Rank 0: 8 Net devices"
  std::string network;    // "Using network IB"
  int system = -1;        // index in PlanFacts::systems
  std::vector<PlanPattern> patterns;
  std::vector<PlanRing> rings;
  std::vector<PlanTree> trees;
  bool started = false, completed = false;
  Where where;                                              // first line
  Where init, counts, net_devices_at, network_at, nvls_at;  // lines of those facts; file -1: none
  Speaker by;
};

// What a GPU is joined to by NVLink, as planned: links that are down are not listed by NCCL.
struct TopologyLink {
  uint64_t peer = 0;  // NodeId of the GPU; 0 when nvswitch
  bool nvswitch = false;
  double bw = 0;  // GB/s, from a log; 0 from a file
  int lanes = 0;  // from a file; 0 from a log
  Where where;
};

// A GPU in a topology. MNNVL topologies hold GPUs of several hosts, told apart by NCCL's system id.
struct TopologyGpu {
  uint64_t node = 0;  // system id << 56 | bus id
  BusId bus_id = 0;
  int device = -1, rank = -1;  // from a file, or "(rank)" of releases up to 2.25
  int sm = 0;                  // 90
  uint32_t product = 0;        // PCI vendor << 16 | device, 0x10de2330
  BusId parent = 0;            // the PCIe switch above; 0 the CPU
  int numa = -1;
  double pci_bw = 0;     // GB/s of its PCIe link, from a log
  std::string pci_link;  // "32.0 GT/s PCIe x16", from a file
  int gdr = -1;
  std::vector<TopologyLink> links;
  Where where;
};

struct TopologyNic {
  std::string name;  // from a file
  uint64_t id = 0;   // N of NET/N
  BusId bus_id = 0, parent = 0;
  int numa = -1, gdr = -1;
  double bw = 0;  // GB/s
  Where where;
};

// An entry of the path table: "GPU/0-43000 (4/370.8/NVL)" in the row of a GPU.
struct TopologyPath {
  uint64_t from = 0, to = 0;  // NodeId of a GPU; NET's N when to_net
  bool to_net = false;
  double bw = 0;
  PathType type = PathType::kUnknown;
  Where where;  // the row
};

struct TopologySystem {
  bool from_file = false;  // XML; otherwise "=== System" in a log
  bool nvswitch = false;
  double max_bw = 0;
  std::vector<TopologyGpu> gpus;
  std::vector<TopologyNic> nics;
  std::vector<TopologyPath> paths;
  Where where;
  Speaker by;
};

// A <graph> of NCCL_GRAPH_DUMP_FILE.
struct GraphFile {
  int id = -1;
  PlanPattern pattern;
  bool by_device = false;                  // up to 2.26 device indices stand for ranks
  std::vector<std::vector<int>> channels;  // ranks in order
  Where where;
};

// A matrix of `nvidia-smi topo`: -m (how devices are joined) or -p2p (whether the driver grants peer access).
struct TopologyMatrix {
  enum class Kind : uint8_t { kTopology, kP2p } kind = Kind::kTopology;
  char capability = 0;               // of -p2p, where the command stands above: 'n' NVLink, 'r' read, 'w' write, …
  std::vector<std::string> columns;  // "GPU0", "NIC0", "mlx5_0"
  struct Row {
    std::string name;
    std::vector<std::string> cells;  // as many as columns; "X", "NV18", "SYS", "OK", "NS"
    std::string cpu_affinity, numa;
    Where where;
  };
  std::vector<Row> rows;
  std::map<std::string, std::string> legend;  // "NIC0" -> "mlx5_0"
  Where where;                                // the header
  Speaker by;
};

struct PlanFacts {
  std::vector<RankPlan> plans;
  std::vector<TransportLine> transports;
  std::vector<TopologySystem> systems;
  std::vector<GraphFile> graphs;
  std::vector<TopologyMatrix> matrices;
};

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_EVIDENCE_PLAN_H_
