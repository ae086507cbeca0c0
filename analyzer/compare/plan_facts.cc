// What NCCL planned on each rank: channels, the ring's path and bandwidth, NVLS, network.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>

#include "analyzer/compare/compare.h"

namespace ringscope::compare {
namespace {

std::vector<Fact> Facts(const model::Job& job) {
  std::vector<Fact> facts;
  int world = 0;
  for (const model::RankPlan& p : job.evidence.plan.plans) {
    if (!p.split) world = std::max(world, p.n_ranks);
  }
  for (const model::RankPlan& p : job.evidence.plan.plans) {
    if (p.split || p.n_ranks != world || p.rank < 0) continue;
    const auto add = [&](const char* name, std::string value, double quality, model::Where where, const char* explains,
                         const char* confirm) {
      facts.push_back({name, RankSubject(p.rank), std::move(value), job.evidence.PlaceText(where.known() ? where : p.where), 0,
                       Change::can_explain, explains, confirm, quality});
    };
    if (p.coll_channels > 0)
      add("collective channels", absl::StrCat(p.coll_channels), p.coll_channels, p.counts,
          "Fewer channels move less at a time; all ranks take the least that any of them has.",
          "Graph lines (NCCL_DEBUG_SUBSYS=GRAPH) of the rank whose Pattern is worst.");
    if (p.nvls_channels >= 0)
      add("NVLS channels", absl::StrCat(p.nvls_channels), p.nvls_channels + 1, p.counts,
          "Without NVLS all-reduces inside an NVSwitch domain use rings and trees.",
          "nvidia-smi -q | grep -A3 Fabric; NCCL_NVLS_ENABLE.");
    if (!p.network.empty())
      add("network", p.network,
          p.network == "Socket" ? 1
          : p.network == "IB"   ? 2
                                : 0,
          p.network_at, "Sockets instead of InfiniBand or RoCE cost most of the bandwidth between hosts.",
          "ibstat; NCCL_IB_DISABLE, NCCL_NET, NCCL_NET_PLUGIN; the plugin's library in LD_LIBRARY_PATH.");
    if (p.net_devices >= 0)
      add("network devices", absl::StrCat(p.net_devices), p.net_devices + 1, p.net_devices_at,
          "Fewer adapters carry the same traffic.", "ibstat; NCCL_IB_HCA; ls /sys/class/infiniband.");
    for (const model::PlanPattern& pattern : p.patterns) {
      if (pattern.pattern != 4) continue;
      add("ring plan",
          absl::StrFormat("%s/%s, %d x %.1f/%.1f GB/s", std::string(model::PathTypeText(pattern.intra)),
                          std::string(model::PathTypeText(pattern.inter)), pattern.channels, pattern.bw_intra, pattern.bw_inter),
          pattern.channels * std::min(pattern.bw_intra, pattern.bw_inter > 0 ? pattern.bw_inter : pattern.bw_intra),
          pattern.where, "The ring's path and bandwidth bound large collectives.",
          "nvidia-smi topo -m; nvidia-smi nvlink -s; all_reduce_perf on both.");
      break;
    }
  }
  return facts;
}

const RegisterFacts kRegister({Change::plan, "NCCL's plan", "run it with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH", Facts,
                               /*absence_counts=*/false});

}  // namespace
}  // namespace ringscope::compare
