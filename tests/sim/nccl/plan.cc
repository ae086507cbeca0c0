#include "tests/sim/nccl/plan.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <limits>
#include <map>

namespace ringscope::sim {
namespace {

bool Set(const char* name) {
  const char* value = getenv(name);
  return value != nullptr && atoi(value) != 0;
}

int LanesBetween(const Peer& a, const Peer& b) {
  if (a.nvswitch && b.nvswitch) return std::min(a.lanes, b.lanes);
  return b.device < kMostGpus ? a.pair[b.device] : 0;
}

// Dearer than all better edges of a host together.
int64_t Cost(Transport transport) {
  switch (transport) {
    case Transport::kDirect:
    case Transport::kNvlink:
      return 0;
    case Transport::kIndirect:
    case Transport::kPcie:
      return 1;
    case Transport::kShm:
      return 100;
    default:
      return 10000;
  }
}

// The cheapest way through all ranks of a host, round or from end to end; the first in the order of ranks among equals.
class Trail {
 public:
  Trail(const std::vector<Peer>& peers, std::vector<int> ranks, bool round)
      : peers_(peers), ranks_(std::move(ranks)), round_(round), n_(ranks_.size()) {
    cost_.resize(n_ * n_);
    for (size_t i = 0; i < n_ && n_ <= kMost; ++i) {
      for (size_t k = 0; k < n_; ++k) cost_[i * n_ + k] = i == k ? 0 : Cost(Between(peers_, ranks_[i], ranks_[k]));
    }
  }
  std::vector<int> Find() {
    if (n_ < 3 || n_ > kMost) return ranks_;
    used_.assign(n_, false);
    path_.clear();
    // A ring has no first one; a way from end to end may begin anywhere.
    for (size_t first = 0; first < (round_ ? 1 : n_); ++first) Go(first, 0);
    std::vector<int> found;
    for (const size_t i : best_) found.push_back(ranks_[i]);
    return found;
  }

 private:
  static constexpr size_t kMost = 10;
  void Go(size_t i, int64_t cost) {
    if (cost >= best_cost_) return;
    used_[i] = true;
    path_.push_back(i);
    if (path_.size() == n_) {
      const int64_t all = cost + (round_ ? cost_[i * n_ + path_.front()] : 0);
      if (all < best_cost_) {
        best_cost_ = all;
        best_ = path_;
      }
    } else if (best_cost_ > 0) {
      for (size_t k = 0; k < n_; ++k) {
        if (!used_[k]) Go(k, cost + cost_[i * n_ + k]);
      }
    }
    path_.pop_back();
    used_[i] = false;
  }

  const std::vector<Peer>& peers_;
  const std::vector<int> ranks_;
  const bool round_;
  const size_t n_;
  std::vector<int64_t> cost_;
  std::vector<bool> used_;
  std::vector<size_t> path_, best_;
  int64_t best_cost_ = std::numeric_limits<int64_t>::max();
};

// Rings that NCCL found on the machines of tests/corpus/topology (2.30.7), and the rule that yields them all: as many rings of
// 30, 25 or 20 GB/s as carry the most over the narrowest GPU's lanes to a switch; one a lane in a mesh.
Plan::Local OnHost(const std::vector<Peer>& peers, const std::vector<int>& ranks, const std::vector<int>& order, bool round) {
  Plan::Local local;
  bool pcie = false, shm = false, net = false, all_shm = order.size() > 1;
  bool across = false;  // sockets
  for (size_t i = 0; i + (round ? 0 : 1) < order.size() && order.size() > 1; ++i) {
    const int a = order[i], b = order[(i + 1) % order.size()];
    const Transport t = Between(peers, a, b);
    pcie |= t == Transport::kPcie || t == Transport::kIndirect;
    shm |= t == Transport::kShm;
    net |= t == Transport::kNet;
    all_shm &= t == Transport::kShm;
    if (t == Transport::kShm || t == Transport::kPcie)
      across |= peers[static_cast<size_t>(a)].cpu != peers[static_cast<size_t>(b)].cpu;
  }
  const Peer& any = peers[static_cast<size_t>(ranks[0])];
  if (!pcie && !shm && !net) {
    int lanes = std::numeric_limits<int>::max();
    for (const int r : ranks) {
      int of = any.nvswitch ? peers[static_cast<size_t>(r)].lanes : 0;
      for (const int other : ranks) {
        if (!any.nvswitch && other != r) of += LanesBetween(peers[static_cast<size_t>(r)], peers[static_cast<size_t>(other)]);
      }
      lanes = std::min(lanes, of);
    }
    local.type = "NVL";
    local.bandwidth = 20;
    local.channels = std::max(1, lanes);
    if (any.nvswitch) {
      double best = 0;
      for (const double each : {30.0, 25.0, 20.0}) {
        const int rings = static_cast<int>(lanes * 20.6 / each);
        if (rings * each <= best) continue;
        best = rings * each;
        local.channels = rings;
        local.bandwidth = each;
      }
    }
    return local;
  }
  local.type = net ? "LOC" : across ? "SYS" : "PHB";
  local.channels = pcie || net || (all_shm && any.sm < 80) ? 1 : all_shm ? 5 : 2;
  local.bandwidth = all_shm ? (any.sm < 80 ? 5 : 6) : any.sm < 80 ? (pcie ? 12 : 10) : 20;
  return local;
}

// A binary tree over 0, 1, …, n - 1 in their natural order: odd numbers are its leaves, 0 is the root and has one child. -1:
// none.
int ParentOf(int i, int n) {
  if (i == 0) return -1;
  const int bit = i & -i, up = (i & ~bit) | bit << 1;
  return up < n ? up : i & ~bit;
}

std::vector<Plan::Branch> MakeTree(size_t ranks, const std::vector<std::vector<int>>& chains) {
  std::vector<Plan::Branch> tree(ranks);
  const int n = static_cast<int>(chains.size());
  const auto join = [&](int parent, int child) {
    tree[static_cast<size_t>(parent)].children.push_back(child);
    tree[static_cast<size_t>(child)].parent = parent;
  };
  for (const std::vector<int>& chain : chains) {
    for (size_t i = 1; i < chain.size(); ++i) join(chain[i - 1], chain[i]);
  }
  for (int host = 0; host < n; ++host) {
    if (const int parent = ParentOf(host, n); parent >= 0)
      join(chains[static_cast<size_t>(parent)][0], chains[static_cast<size_t>(host)][0]);
  }
  return tree;
}

}  // namespace

bool SameHost(const Peer& a, const Peer& b) { return strcmp(a.host, b.host) == 0; }

void Describe(const Machine& machine, Peer* peer) {
  const int gpu = peer->device;
  peer->sm = static_cast<uint8_t>(machine.sm);
  peer->nvswitch = machine.nvswitch;
  peer->gdr = machine.gdr;
  peer->no_p2p = Set("NCCL_P2P_DISABLE");
  peer->no_shm = Set("NCCL_SHM_DISABLE");
  for (const MachineNic& nic : machine.nics) peer->nics = static_cast<uint8_t>(peer->nics + nic.up);
  if (gpu < 0 || static_cast<size_t>(gpu) >= machine.gpus.size()) return;
  const MachineGpu& own = machine.gpus[static_cast<size_t>(gpu)];
  peer->lanes = static_cast<uint8_t>(machine.nvswitch ? own.lanes : 0);
  peer->cpu = static_cast<uint8_t>(own.cpu);
  peer->pci = static_cast<uint8_t>(own.pci);
  const char* nvls = getenv("NCCL_NVLS_ENABLE");
  peer->nvls = machine.nvls && machine.sm >= 90 && machine.nvswitch && (nvls == nullptr || atoi(nvls) != 0);
  peer->multicast = own.multicast;
  for (int other = 0; other < kMostGpus; ++other) {
    peer->pair[other] = static_cast<uint8_t>(machine.nvswitch ? 0 : machine.LanesBetween(gpu, other));
    if (machine.refused.count({std::min(gpu, other), std::max(gpu, other)}) != 0)
      peer->refused = static_cast<uint16_t>(peer->refused | 1u << other);
  }
}

Transport Between(const std::vector<Peer>& peers, int from, int to) {
  const Peer &a = peers[static_cast<size_t>(from)], &b = peers[static_cast<size_t>(to)];
  if (!SameHost(a, b)) return Transport::kNet;
  if (a.device == b.device) return Transport::kDirect;
  if (!a.no_p2p && !b.no_p2p) {
    if (LanesBetween(a, b) > 0) return a.pid == b.pid ? Transport::kDirect : Transport::kNvlink;
    for (int via = 0; via < kMostGpus; ++via) {  // wider than PCIe, so before it
      if (a.pair[via] > 0 && b.pair[via] > 0) return Transport::kIndirect;
    }
    if (a.pci == b.pci) return Transport::kPcie;
  }
  return a.no_shm || b.no_shm ? Transport::kNet : Transport::kShm;
}

Plan MakePlan(const std::vector<Peer>& peers) {
  Plan plan;
  std::vector<std::string> hosts;
  std::map<std::string, std::vector<int>> of_host;
  for (const Peer& p : peers) {
    std::vector<int>& ranks = of_host[p.host];
    if (ranks.empty()) hosts.push_back(p.host);
    ranks.push_back(p.rank);
  }
  plan.local.resize(peers.size());
  plan.channels = std::numeric_limits<int>::max();
  std::vector<std::vector<int>> chains;
  bool nvls = peers.size() > 1;
  for (const std::string& host : hosts) {
    const std::vector<int>& ranks = of_host[host];
    const bool round = hosts.size() == 1;
    const std::vector<int> order = Trail(peers, ranks, round).Find();
    plan.ring.insert(plan.ring.end(), order.begin(), order.end());
    chains.push_back(order);
    Plan::Local local = OnHost(peers, ranks, order, round);
    const Peer& any = peers[static_cast<size_t>(ranks[0])];
    if (hosts.size() > 1 && any.nics > 0 && any.nics < local.channels) local.channels = any.nics;
    if (hosts.size() > 1) local.bandwidth = std::min(local.bandwidth, any.gdr ? 48.0 : 20.0);
    local.type += hosts.size() > 1 && !any.gdr ? "/PHB" : "/PIX";
    for (const int r : ranks) plan.local[static_cast<size_t>(r)] = local;
    plan.channels = std::min(plan.channels, 2 * local.channels);
    for (const int r : ranks) {
      const Peer& p = peers[static_cast<size_t>(r)];
      nvls = nvls && p.nvls;
      for (const int other : ranks) {
        const Peer& q = peers[static_cast<size_t>(other)];
        if (plan.refused_a < 0 && r < other && q.device < kMostGpus && (p.refused >> q.device & 1) != 0 &&
            LanesBetween(p, q) > 0) {
          plan.refused_a = r;
          plan.refused_b = other;
        }
      }
    }
  }
  plan.tree = MakeTree(peers.size(), chains);
  plan.nvls_channels = nvls ? 16 : 0;
  plan.at.resize(peers.size());
  for (size_t i = 0; i < plan.ring.size(); ++i) plan.at[static_cast<size_t>(plan.ring[i])] = static_cast<int>(i);
  return plan;
}

}  // namespace ringscope::sim
