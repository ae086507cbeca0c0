// How each edge is connected, by NCCL's channel lines, and which edges inside a host use the network, by the records.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyzer/compare/compare.h"

namespace ringscope::compare {
namespace {

constexpr const char* kExplains = "An edge over a slower path bounds every collective that uses it.";
constexpr const char* kConfirm = "nvidia-smi topo -m and -p2p r, nvidia-smi nvlink -s on both; the same all_reduce_perf on both.";

// "NET/IB/0/GDRDMA" and "NET/IB/3/GDRDMA" are one way; so are the two directions of P2P's copies.
std::string Way(const std::string& via) {
  std::string way;
  for (const auto& part : absl::StrSplit(via, '/')) {
    // Indices of adapters, and the relays of indirect peer access ("5[5]").
    const bool index = !part.empty() && part[0] >= '0' && part[0] <= '9';
    if (index || part == "read" || part.empty()) continue;
    absl::StrAppend(&way, way.empty() ? "" : "/", std::string(part));
  }
  return way;
}

// As NCCL prefers them: peer access, shared memory, network with GPUDirect, network, sockets.
double Quality(const std::string& way) {
  if (way.starts_with("P2P") || way.starts_with("direct")) return 6;
  if (way.starts_with("SHM")) return 5;
  if (!way.starts_with("NET")) return 0;
  return way.find("Socket") != way.npos ? 1 : way.find("GDR") != way.npos ? 4 : 3;
}

std::vector<Fact> Facts(const model::Job& job) {
  const model::PlanFacts& plan = job.evidence.plan;
  int world = 0;
  for (const model::RankPlan& p : plan.plans) {
    if (!p.split) world = std::max(world, p.n_ranks);
  }
  std::map<std::pair<int, int>, std::set<std::string>> ways;
  std::map<std::pair<int, int>, model::Where> where;
  for (const model::TransportLine& t : plan.transports) {
    if (t.from < 0 || t.to < 0 || t.plan < 0) continue;
    const model::RankPlan& of = plan.plans[static_cast<size_t>(t.plan)];
    if (of.split || of.n_ranks != world) continue;
    ways[{t.from, t.to}].insert(Way(t.via));
    where.emplace(std::make_pair(t.from, t.to), t.where);
  }
  std::vector<Fact> facts;
  for (const auto& [edge, used] : ways) {
    Fact f;
    f.name = "transport";
    f.subject = EdgeSubject(edge.first, edge.second);
    for (const std::string& way : used) absl::StrAppend(&f.value, f.value.empty() ? "" : " and ", way);
    f.quality = 7;
    for (const std::string& way : used) f.quality = std::min(f.quality, Quality(way));
    f.source = job.evidence.PlaceText(where.at(edge));
    f.weight = Change::can_explain;
    f.explains = kExplains;
    f.confirm = kConfirm;
    facts.push_back(std::move(f));
  }
  return facts;
}

const RegisterFacts kRegister({Change::transport, "transports per edge",
                               "run it with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH,P2P,SHM,NET", Facts,
                               /*absence_counts=*/false});

}  // namespace
}  // namespace ringscope::compare
