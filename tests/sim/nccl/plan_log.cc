// NCCL's words about a plan, in the shapes of 2.28 (tests/corpus/topology has those of 2.30).
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <set>

#include "tests/sim/nccl/plan.h"

namespace ringscope::sim {
namespace {

template <typename... Args>
std::string Format(const char* format, Args... args) {
  char text[512];
  snprintf(text, sizeof(text), format, args...);
  return text;
}

double PciRate(const Machine& m) { return m.sm >= 90 ? 48.0 : m.sm >= 80 ? 24.0 : 12.0; }
std::string GpuName(const MachineGpu& gpu) { return Format("GPU/0-%x000", gpu.bus); }

class System {
 public:
  explicit System(const Machine& machine) : m_(machine) {}

  std::vector<std::string> Lines() {
    double most = 0;
    for (size_t g = 0; g < m_.gpus.size(); ++g) most = std::max(most, m_.LanesOf(static_cast<int>(g)) * m_.lane_gbytes);
    lines_.push_back(Format("=== System : maxBw %.1f totalBw %.1f ===", most, most));
    std::set<int> sockets;
    for (const MachineGpu& gpu : m_.gpus) sockets.insert(gpu.cpu);
    for (const int cpu : sockets) Socket(cpu, sockets);
    lines_.push_back("==========================================");
    for (size_t a = 0; a < m_.gpus.size(); ++a) Paths(a);
    return std::move(lines_);
  }

 private:
  void Socket(int cpu, const std::set<int>& sockets) {
    lines_.push_back(Format("CPU/0-%d (1/1/3)", cpu));
    std::set<int> switches;
    for (const MachineGpu& gpu : m_.gpus) {
      if (gpu.cpu == cpu && !gpu.lost) switches.insert(gpu.pci);
    }
    for (const int pci : switches) {
      lines_.push_back(Format("+ PCI[%.1f] - PCI/0-%x000 (1000c03010001000)", PciRate(m_), pci));
      for (size_t g = 0; g < m_.gpus.size(); ++g) {
        if (m_.gpus[g].pci == pci && !m_.gpus[g].lost) Gpu(g);
      }
      for (size_t n = 0; n < m_.nics.size(); ++n) {
        const MachineNic& nic = m_.nics[n];
        if (nic.pci != pci || !nic.up) continue;
        lines_.push_back(Format("              + PCI[%.1f] - NIC/0-%x000", PciRate(m_), nic.bus));
        lines_.push_back(
            Format("                            + NET[%.1f] - NET/0-%zu (%zx/1/%f)", nic.gbps / 8.0, n, n, nic.gbps / 8.0));
      }
    }
    for (const int other : sockets) {
      if (other != cpu) lines_.push_back(Format("+ SYS[%.1f] - CPU/0-%d", m_.sm >= 90 ? 22.0 : 10.0, other));
    }
  }
  void Gpu(size_t g) {
    const MachineGpu& gpu = m_.gpus[g];
    lines_.push_back(Format("              + PCI[%.1f] - %s (%zu)", PciRate(m_), GpuName(gpu).c_str(), g));
    if (m_.nvswitch && gpu.lanes > 0)
      lines_.push_back(Format("                            + NVL[%.1f] - NVS/0-0", gpu.lanes * m_.lane_gbytes));
    for (size_t other = 0; !m_.nvswitch && other < m_.gpus.size(); ++other) {
      const int lanes = m_.LanesBetween(static_cast<int>(g), static_cast<int>(other));
      if (lanes > 0)
        lines_.push_back(
            Format("                            + NVL[%.1f] - %s", lanes * m_.lane_gbytes, GpuName(m_.gpus[other]).c_str()));
    }
  }
  std::string Path(size_t a, size_t b) const {
    const int lanes = m_.LanesBetween(static_cast<int>(a), static_cast<int>(b));
    const MachineGpu &x = m_.gpus[a], &y = m_.gpus[b];
    if (a == b) return "0/5000.0/LOC";
    if (lanes > 0) return Format("%d/%.1f/NVL", m_.nvswitch ? 2 : 1, lanes * m_.lane_gbytes);
    for (size_t via = 0; !m_.nvswitch && via < m_.gpus.size(); ++via) {
      const int first = m_.LanesBetween(static_cast<int>(a), static_cast<int>(via)),
                second = m_.LanesBetween(static_cast<int>(via), static_cast<int>(b));
      if (first > 0 && second > 0) return Format("2/%.1f/NVB", std::min(first, second) * m_.lane_gbytes);
    }
    if (x.pci == y.pci) return Format("2/%.1f/PIX", PciRate(m_));
    if (x.cpu == y.cpu) return Format("4/%.1f/PHB", PciRate(m_));
    return Format("5/%.1f/SYS", m_.sm >= 90 ? 22.0 : 10.0);
  }
  void Paths(size_t a) {
    std::string line = GpuName(m_.gpus[a]) + " :";
    for (size_t b = 0; b < m_.gpus.size(); ++b) line += GpuName(m_.gpus[b]) + " (" + Path(a, b) + ") ";
    lines_.push_back(line);
  }

  const Machine& m_;
  std::vector<std::string> lines_;
};

std::string Name(const Peer& p) { return Format("%d[%d]", p.rank, p.device); }

}  // namespace

std::vector<PlanWords> GraphLines(const Machine& machine, const std::vector<Peer>& peers, const Plan& plan, int rank) {
  std::vector<PlanWords> words;
  const auto graph = [&](std::string text) { words.push_back({std::move(text), true}); };
  for (std::string& line : System(machine).Lines()) graph(std::move(line));
  const Plan::Local& local = plan.local[static_cast<size_t>(rank)];
  const Peer& own = peers[static_cast<size_t>(rank)];
  for (const int pattern : {4, 1}) {
    graph(Format("Pattern %d, crossNic 0, nChannels %d, bw %f/%f, type %s, sameChannels 1", pattern, local.channels,
                 local.bandwidth, local.bandwidth, local.type.c_str()));
    for (int c = 0; c < local.channels; ++c) {
      std::string line = Format("%2d :", c);
      for (const int r : plan.ring) {
        const Peer& p = peers[static_cast<size_t>(r)];
        if (SameHost(p, own) && static_cast<size_t>(p.device) < machine.gpus.size())
          line += " " + GpuName(machine.gpus[static_cast<size_t>(p.device)]);
      }
      graph(line);
    }
  }
  if (rank == 0) {
    for (int c = 0; c < plan.channels; ++c) {
      std::string line = Format("Channel %02d/%02d :", c, plan.channels);
      for (const int r : plan.ring) line += " " + std::to_string(r);
      words.push_back({line, false});
    }
  }
  if (peers.size() > 1) {
    for (int c = 0; c < plan.channels; ++c)
      graph(Format("Ring %02d : %d -> %d -> %d", c, plan.Before(rank), rank, plan.Next(rank)));
  }
  return words;
}

std::vector<PlanWords> ConnectionLines(const std::vector<Peer>& peers, const Plan& plan, int rank) {
  std::vector<PlanWords> words;
  const auto say = [&](std::string text) { words.push_back({std::move(text), false}); };
  const Peer& own = peers[static_cast<size_t>(rank)];
  const int next = plan.Next(rank), before = plan.Before(rank);
  const auto net = [&](const Peer& p) {
    return p.nics == 0 ? std::string("NET/Socket/0") : Format("NET/IB/%d%s", p.device % p.nics, p.gdr ? "/GDRDMA" : "");
  };
  for (int c = 0; c < plan.channels && peers.size() > 1; ++c) {
    if (Between(peers, before, rank) == Transport::kNet)
      say(Format("Channel %02d/0 : ", c) + Name(peers[static_cast<size_t>(before)]) + " -> " + Name(own) + " [receive] via " +
          net(own));
    const std::string to = Name(own) + " -> " + Name(peers[static_cast<size_t>(next)]);
    switch (Between(peers, rank, next)) {
      case Transport::kDirect:
        say(Format("Channel %02d/0 : ", c) + to + " via P2P/direct pointer");
        break;
      case Transport::kNvlink:
        say(Format("Channel %02d/0 : ", c) + to + " via P2P/IPC" + (own.sm == 80 ? "/read" : ""));
        break;
      case Transport::kPcie:
        say(Format("Channel %02d/0 : ", c) + to + " via P2P/IPC");
        break;
      case Transport::kIndirect:
        say(Format("Channel %02d/0 : ", c) + to + " via P2P/indirect");
        break;
      case Transport::kShm:
        say(Format("Channel %02d : ", c) + to + " via SHM/direct/direct");
        break;
      case Transport::kNet:
        say(Format("Channel %02d/0 : ", c) + to + " [send] via " + net(own));
    }
  }
  if (peers.size() > 1) say("Connected all rings, use ring PXN 0 GDR " + std::to_string(own.nics > 0 && own.gdr));
  return words;
}

}  // namespace ringscope::sim
