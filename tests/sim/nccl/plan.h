// How the ranks of a communicator are joined: rings, transports, channels. Every rank computes the same plan from what all ranks
// told of themselves (Peer), as NCCL does.
#ifndef RINGSCOPE_TESTS_SIM_NCCL_PLAN_H_
#define RINGSCOPE_TESTS_SIM_NCCL_PLAN_H_

#include <string>
#include <vector>

#include "tests/sim/machine/machine.h"
#include "tests/sim/nccl/wire.h"

namespace ringscope::sim {

// The first that two ranks can use, in NCCL's order of preference.
enum class Transport { kDirect, kNvlink, kIndirect, kPcie, kShm, kNet };  // kDirect: one GPU, or one process over NVLink
Transport Between(const std::vector<Peer>& peers, int a, int b);
bool SameHost(const Peer& a, const Peer& b);

struct Plan {
  std::vector<int> ring;  // ranks in the order in which data goes round
  std::vector<int> at;    // where each rank is in it
  int channels = 0;       // of collectives
  int nvls_channels = 0;  // 0: some rank's machine has no NVLink SHARP
  // What the rank's own host planned: NCCL prints it before ranks agree on the least.
  struct Local {
    int channels = 0;      // half of what follows when the network and other hosts set no narrower limit
    double bandwidth = 0;  // GB/s of one
    std::string type;      // worst path among GPUs / to the network
  };
  std::vector<Local> local;  // of each rank's host
  // Two ranks whose GPUs NVLink joins and the driver keeps apart: initialisation fails (NCCL 2.12.7 and later). -1: none.
  int refused_a = -1, refused_b = -1;

  // Of the tree: hosts in a binary tree, each by the first of its ranks in the ring; the others of a host in a chain behind it.
  struct Branch {
    int parent = -1;
    std::vector<int> children;
  };
  std::vector<Branch> tree;  // of each rank

  int Next(int rank) const { return ring[(static_cast<size_t>(at[static_cast<size_t>(rank)]) + 1) % ring.size()]; }
  int Before(int rank) const {
    return ring[(static_cast<size_t>(at[static_cast<size_t>(rank)]) + ring.size() - 1) % ring.size()];
  }
};
Plan MakePlan(const std::vector<Peer>& peers);

// What a rank on that GPU of the machine tells the others. `peer`: rank, device and host are set.
void Describe(const Machine& machine, Peer* peer);

// NCCL's words about the plan: the machine, its paths, the rings found (subsystem GRAPH), and the connections of this rank.
struct PlanWords {
  std::string text;
  bool graph = false;  // of the subsystem GRAPH
};
std::vector<PlanWords> GraphLines(const Machine& machine, const std::vector<Peer>& peers, const Plan& plan, int rank);
std::vector<PlanWords> ConnectionLines(const std::vector<Peer>& peers, const Plan& plan, int rank);

}  // namespace ringscope::sim

#endif  // RINGSCOPE_TESTS_SIM_NCCL_PLAN_H_
