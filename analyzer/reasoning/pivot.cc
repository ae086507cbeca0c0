#include "analyzer/reasoning/pivot.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace ringscope::reasoning {
namespace {

using Phase = EdgeEnd::Phase;

// The receiver is ready for more than has arrived. (A receive that is not posted is back-pressure,
// not a loss.)
bool WaitsForData(const EdgeEnd& recv) {
  return recv.phase == Phase::kOpen && recv.state == trace::RECV_WAIT &&
         (!recv.counted || recv.posted > recv.moved);
}

// An edge's in-side has what the receiving rank needs: nothing is missing there.
bool Satisfied(const EdgeView& edge) {
  if (edge.recv.phase == Phase::kOver) return true;
  return edge.recv.phase == Phase::kOpen && edge.recv.state == trace::RECV_GPU_WAIT;
}

// The sending rank's GPU owes data on this edge. Without SendPeerWait (before API 4) SendGPUWait
// also means "no credit"; then only a receiver that waits tells.
bool Owes(const EdgeView& edge) {
  if (edge.send.phase != Phase::kOpen || edge.send.state != trace::SEND_GPU_WAIT) return false;
  if (edge.recv.phase == Phase::kOpen) return edge.recv.state == trace::RECV_WAIT;
  return edge.recv.phase == Phase::kUnseen && edge.peer_wait_visible;
}

void Add(std::vector<Suspect>* suspects, Suspect suspect, int edge) {
  for (Suspect& known : *suspects) {
    if (known.kind == suspect.kind && known.from == suspect.from && known.to == suspect.to &&
        known.rank == suspect.rank && known.unit == suspect.unit) {
      if (edge >= 0) known.edges.push_back(edge);
      known.weak = known.weak && suspect.weak;
      return;
    }
  }
  if (edge >= 0) suspect.edges.push_back(edge);
  suspects->push_back(std::move(suspect));
}

// Ranks between which data moves without steps on this channel, as one name each. A rank with both
// an in- and an out-edge stands alone; the others of a host cannot be told apart.
class Units {
 public:
  Units(const PivotQuery& query, int channel) : query_(query) {
    for (const EdgeView& edge : query.edges) {
      if (edge.channel != channel) continue;
      out_.insert(edge.from);
      in_.insert(edge.to);
    }
    for (int rank : query.ranks) {
      std::string host = query.host ? query.host(rank) : "";
      if (!host.empty()) ++on_host_[host];
    }
  }
  // Nothing: the unit of this rank is not known.
  std::optional<std::string> Of(int rank) const {
    if (in_.count(rank) && out_.count(rank)) return Alone(rank);
    std::string host = query_.host ? query_.host(rank) : "";
    if (host.empty() || !query_.hosts_complete) return std::nullopt;
    auto it = on_host_.find(host);
    if (it != on_host_.end() && it->second == 1) return Alone(rank);
    return "host " + host;
  }
  static std::string Alone(int rank) { return "rank " + std::to_string(rank); }

 private:
  const PivotQuery& query_;
  std::set<int> in_, out_;
  std::map<std::string, int> on_host_;
};

Suspect UnitSuspect(const std::string& unit) {
  Suspect suspect{.kind = Suspect::kGpu};
  if (unit.rfind("rank ", 0) == 0) {
    suspect.rank = std::stoi(unit.substr(5));
  } else {
    suspect.kind = Suspect::kUnit;
    suspect.unit = unit.substr(5);
  }
  return suspect;
}

// Ring and chain: the unit that has all it needs and still owes.
void RingPivot(const PivotQuery& query, int channel, std::vector<Suspect>* suspects) {
  Units units(query, channel);
  struct Side {
    int in = 0, satisfied = 0, owing_edge = -1;
    bool unknown = false;
  };
  std::map<std::string, Side> sides;
  int no_unit = 0;
  for (size_t i = 0; i < query.edges.size(); ++i) {
    const EdgeView& edge = query.edges[i];
    if (edge.channel != channel) continue;
    auto from = units.Of(edge.from), to = units.Of(edge.to);
    if (from && to && *from == *to) continue;
    if (to) {
      Side& side = sides[*to];
      ++side.in;
      side.satisfied += Satisfied(edge);
      side.unknown |= edge.recv.phase == Phase::kUnseen;
    }
    if (from) {
      Side& side = sides[*from];
      if (Owes(edge) && side.owing_edge < 0) side.owing_edge = static_cast<int>(i);
    }
    no_unit += !from || !to;
  }
  const auto sources =
      std::count_if(sides.begin(), sides.end(), [](const auto& s) { return s.second.in == 0; });
  for (const auto& [unit, side] : sides) {
    if (side.owing_edge < 0 || side.unknown || side.satisfied != side.in) continue;
    // Without an in-edge: the start of a chain, or its in-edge was not recorded.
    if (side.in == 0 && !(query.chain && sources == 1 && no_unit == 0)) continue;
    Add(suspects, UnitSuspect(unit), side.owing_edge);
  }
}

// Everything is starved although all run: what arrives at a stopped GPU ends in the buffers before it. A ring then runs dry behind
// it, and the counts tell: a unit that works has sent more than it received (its ranks' own data first), the one that holds the
// data less.
void DryPivot(const PivotQuery& query, int channel, std::vector<Suspect>* suspects) {
  if (query.chain) return;
  Units units(query, channel);
  std::map<std::string, std::pair<int, int>> ends;  // of each unit: its in-edge, its out-edge
  for (size_t i = 0; i < query.edges.size(); ++i) {
    const EdgeView& edge = query.edges[i];
    if (edge.channel != channel) continue;
    if (Judge(edge) != EdgeVerdict::kStarved || !edge.send.counted || !edge.recv.counted) return;
    auto from = units.Of(edge.from), to = units.Of(edge.to);
    if (!from || !to || *from == *to) return;
    const auto in = ends.try_emplace(*to, -1, -1).first, out = ends.try_emplace(*from, -1, -1).first;
    if (in->second.first >= 0 || out->second.second >= 0) return;  // not one way through it
    in->second.first = out->second.second = static_cast<int>(i);
  }
  const std::string* holder = nullptr;
  for (const auto& [unit, edges] : ends) {
    if (edges.first < 0 || edges.second < 0) return;
    const auto received = query.edges[static_cast<size_t>(edges.first)].recv.done;
    const auto sent = query.edges[static_cast<size_t>(edges.second)].send.moved;
    if (received == sent || (received > sent && holder != nullptr)) return;
    if (received > sent) holder = &unit;
  }
  if (holder == nullptr) return;
  Suspect suspect = UnitSuspect(*holder);
  suspect.weak = true;
  Add(suspects, std::move(suspect), ends.at(*holder).second);
}

// Tree: data goes up and comes down the same pair of ranks, so the receiver of "down" starves with
// its own parent. A rank that owes to a neighbour and misses nothing but that neighbour's answer is
// a candidate; a root that waits for one child looks the same. Each rank has another place in the
// next channel's tree, so the candidates of all channels are cut.
void TreePivot(const PivotQuery& query, const std::set<int>& channels,
               std::vector<Suspect>* suspects) {
  std::map<std::string, int> on_host;
  for (int rank : query.ranks) {
    if (query.host) ++on_host[query.host(rank)];
  }
  const auto unit_of = [&](int rank) -> std::optional<std::string> {
    std::string host = query.host ? query.host(rank) : "";
    if (host.empty() || !query.hosts_complete) return std::nullopt;
    return on_host[host] == 1 ? Units::Alone(rank) : "host " + host;
  };
  std::optional<std::set<std::string>> common;
  int witness = -1;
  for (int channel : channels) {
    std::map<std::string, std::set<std::string>> owes, misses;
    bool incomplete = false;
    for (size_t i = 0; i < query.edges.size(); ++i) {
      const EdgeView& edge = query.edges[i];
      if (edge.channel != channel) continue;
      auto from = unit_of(edge.from), to = unit_of(edge.to);
      if (!from || !to || edge.recv.phase == Phase::kUnseen) {
        incomplete = true;
        break;
      }
      if (Owes(edge)) {
        owes[*from].insert(*to);
        witness = static_cast<int>(i);
      }
      if (!Satisfied(edge)) misses[*to].insert(*from);
    }
    if (incomplete || owes.empty()) continue;
    std::set<std::string> candidates;
    for (const auto& [unit, to] : owes) {
      const std::set<std::string>& missing = misses[unit];
      if (missing.empty() || (missing.size() == 1 && to.count(*missing.begin())))
        candidates.insert(unit);
    }
    if (!common) {
      common = std::move(candidates);
    } else {
      std::set<std::string> both;
      std::set_intersection(common->begin(), common->end(), candidates.begin(), candidates.end(),
                            std::inserter(both, both.end()));
      common = std::move(both);
    }
  }
  if (!common || common->size() != 1) return;
  Suspect suspect = UnitSuspect(*common->begin());
  suspect.weak = true;
  Add(suspects, std::move(suspect), witness);
}

}  // namespace

trace::StepState StepThatTells(const trace::Edge& edge, uint32_t profiler_api) {
  const bool stale_steps = profiler_api > 0 && profiler_api < 4 && !edge.send();
  if (stale_steps && edge.posted() > 0 && edge.slots_size() > 0) {
    const int slot = static_cast<int>((edge.posted() - 1) % 8);
    return slot < edge.slots_size() ? edge.slots(slot) : trace::STEP_FREE;
  }
  return edge.state();
}

EdgeVerdict Judge(const EdgeView& edge) {
  const EdgeEnd &send = edge.send, &recv = edge.recv;
  const bool both_open = send.phase == Phase::kOpen && recv.phase == Phase::kOpen;
  if (both_open && send.counted && recv.counted && send.total != recv.total)
    return EdgeVerdict::kUnequal;
  if (recv.phase == Phase::kOpen && recv.state == trace::RECV_FLUSH_WAIT)
    return EdgeVerdict::kFlush;
  if (WaitsForData(recv)) {
    if (send.phase == Phase::kOver) return EdgeVerdict::kWire;
    if (both_open) {
      // The counts come first: on sockets a send is "done" when the kernel's buffer took it, and
      // the newest step then shows SendGPUWait although nothing arrived.
      if (send.counted && recv.counted && send.moved > recv.moved) return EdgeVerdict::kWire;
      if (send.state == trace::SEND_WAIT) return EdgeVerdict::kWire;
      if (send.state == trace::SEND_PEER_WAIT) return EdgeVerdict::kControl;
      if (send.state == trace::SEND_GPU_WAIT) return EdgeVerdict::kStarved;
    }
    return EdgeVerdict::kSilent;
  }
  if (recv.phase == Phase::kOpen && recv.state == trace::RECV_GPU_WAIT)
    return EdgeVerdict::kBackedUp;
  if (send.phase == Phase::kOpen && recv.phase == Phase::kNotBegun) {
    return send.state == trace::SEND_GPU_WAIT ? EdgeVerdict::kStarved : EdgeVerdict::kBackedUp;
  }
  return EdgeVerdict::kSilent;
}

std::vector<Suspect> FindSuspects(const PivotQuery& query) {
  std::vector<Suspect> suspects;
  std::set<int> channels;
  for (size_t i = 0; i < query.edges.size(); ++i) {
    const EdgeView& edge = query.edges[i];
    channels.insert(edge.channel);
    Suspect suspect{.kind = Suspect::kWire, .from = edge.from, .to = edge.to};
    switch (Judge(edge)) {
      case EdgeVerdict::kWire:
        suspect.weak = edge.send.phase == Phase::kOver;
        break;
      case EdgeVerdict::kControl:
        suspect.kind = Suspect::kControl;
        break;
      case EdgeVerdict::kFlush:
        suspect.kind = Suspect::kFlush;
        break;
      case EdgeVerdict::kUnequal:
        suspect.kind = Suspect::kUnequal;
        break;
      default:
        continue;
    }
    Add(&suspects, std::move(suspect), static_cast<int>(i));
  }
  // A direct statement of an edge goes before what the pattern suggests (docs/localisation.md, Pivot
  // rule).
  if (!suspects.empty()) return suspects;
  if (query.pattern == Pattern::kRing) {
    for (int channel : channels) RingPivot(query, channel, &suspects);
    if (suspects.empty()) {
      for (int channel : channels) DryPivot(query, channel, &suspects);
    }
  } else if (query.pattern == Pattern::kTree) {
    TreePivot(query, channels, &suspects);
  }
  return suspects;
}

}  // namespace ringscope::reasoning
