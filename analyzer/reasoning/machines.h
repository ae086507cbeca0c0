// The machines of a job as NCCL's logs, its topology files and nvidia-smi's matrices describe them, joined: which GPUs, which
// job ranks drive them, and what NVLinks they have.
#ifndef RINGSCOPE_ANALYZER_REASONING_MACHINES_H_
#define RINGSCOPE_ANALYZER_REASONING_MACHINES_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/model/model.h"

namespace ringscope::reasoning {

struct MachineGpu {
  uint64_t node = 0;  // NCCL's id: system << 56 | bus id
  bool has_bus_id = false;
  model::BusId bus_id = 0;
  int index = -1;        // NVML's
  int rank = -1;         // of the job
  int sm = 0;            // 0 unknown
  uint32_t product = 0;  // PCI vendor << 16 | device; 0 unknown
  int numa = -1;
  double pci_bw = 0;
  model::BusId parent = 0;  // PCIe switch above
  bool links_told = false;  // some text lists its NVLinks (which may be none)
  struct Link {
    int peer = -1;  // index in gpus; kSwitch; kOutside: a GPU that the job does not use
    double bw = 0;
    int lanes = 0;  // 0: the log tells the rate alone and no known rate a lane divides it
    model::Where where;
  };
  static constexpr int kSwitch = -1, kOutside = -2;
  std::vector<Link> links;
  model::Where where;  // what tells of its links
  int Lanes() const;
  double Bandwidth() const;
  int LanesTo(int peer) const;
};

struct Machine {
  std::string name;  // for people and for Who::hosts; may be empty when no text names it
  std::vector<MachineGpu> gpus;
  std::vector<int> plans;       // indices in PlanFacts::plans
  bool links_told = false;      // NCCL itself, or nvidia-smi, told which NVLinks there are
  bool links_complete = false;  // ... also those to GPUs that the job does not use
  bool nvswitch = false;
  double lane_bw = 0;                                 // GB/s of one lane in NCCL's reckoning; 0 unknown
  std::vector<const model::TopologySystem*> logs;     // one a rank and communicator, the largest first
  std::vector<const model::TopologySystem*> earlier;  // of those, what communicators made before the newest saw of the same GPUs
  const model::TopologySystem* file = nullptr;
  const model::TopologyMatrix* matrix = nullptr;  // topo -m
  std::vector<const model::TopologyMatrix*> p2p;  // topo -p2p
  int GpuOfRank(int rank) const;
  int GpuOfIndex(int index) const;
  int GpuOfNode(uint64_t node) const;
  int GpuOfBus(model::BusId bus) const;
  bool LinksAnywhere() const;
  // NVLink joins a to b directly or through switches.
  bool NvlinkJoins(int a, int b) const;
  // ... or by one relay, which NCCL uses since 2.9 where nothing forbids it.
  bool NvlinkReaches(int a, int b) const;
};

struct Machines {
  std::vector<Machine> list;
  std::vector<int> of_plan;     // machine of each plan; -1 unknown
  std::vector<int> job_rank;    // of each plan: of the job; -1 unknown
  std::vector<int> generation;  // of each plan: how many communicators its process had planned before
  int world = 0;                // ranks of the largest communicator; 0 untold
  // Plans of the largest communicator (or, where nothing tells sizes, all).
  std::vector<bool> is_world;
};

Machines MachinesOf(const model::Job& job);

// "GPU 3 (0000:61:00.0)".
std::string GpuText(const MachineGpu& gpu);
// "GPU 3 (0000:61:00.0, rank 11) on hostB".
std::string GpuText(const Machine& machine, const MachineGpu& gpu);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_MACHINES_H_
