// What the machines are: size of the job, GPUs and their links.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyzer/compare/compare.h"

namespace ringscope::compare {
namespace {

void Size(const model::Job& job, std::vector<Fact>* facts) {
  int world = job.world_size;
  std::set<std::string> hosts;
  for (const model::Process& p : job.processes) hosts.insert(p.host);
  for (const model::LogRank& r : job.evidence.log_ranks) {
    if (!r.split) world = std::max(world, r.n_ranks);
    if (!r.by.host.empty()) hosts.insert(r.by.host);
  }
  if (world > 0)
    facts->push_back({"ranks", "", absl::StrCat(world), "", 0, Change::can_explain,
                      "Another size has other rings, messages and waits: compare runs of one size.", ""});
  if (!hosts.empty())
    facts->push_back({"hosts", "", absl::StrCat(hosts.size()), "", 0, Change::can_explain,
                      "Ranks that share fewer hosts talk more over the network, or more inside them.", ""});
}

// By host and index where hosts are named alike, else by index.
void Gpus(const model::Job& job, std::vector<Fact>* facts) {
  std::map<std::pair<std::string, int>, std::pair<const model::GpuReading*, const model::HardwareSnapshot*>> newest;
  for (const model::HardwareSnapshot& s : job.evidence.hardware.snapshots) {
    for (const model::GpuReading& g : s.gpus) {
      if (g.index >= 0) newest[{s.by.host, g.index}] = {&g, &s};
    }
  }
  std::set<std::string> hosts;
  for (const auto& [key, gpu] : newest) hosts.insert(key.first);
  std::map<std::pair<std::string, int>, std::pair<int, int>> lanes;
  std::map<std::pair<std::string, int>, model::Where> at;
  for (const model::HardwareSnapshot& s : job.evidence.hardware.snapshots) {
    for (const model::GpuReading& g : s.gpus) {
      if (g.index < 0 || (g.links.empty() && !g.all_links_inactive)) continue;
      int active = 0, known = 0;
      for (const model::LinkReading& l : g.links) {
        known += l.state != model::LinkReading::State::kUnknown;
        active += l.state == model::LinkReading::State::kActive;
      }
      if (known == 0 && !g.all_links_inactive) continue;
      lanes[{s.by.host, g.index}] = {active, known};
      at[{s.by.host, g.index}] = g.where;
    }
  }
  const auto subject = [&](const std::pair<std::string, int>& key) {
    return absl::StrCat("GPU ", key.second, hosts.size() > 1 ? absl::StrCat(" on ", key.first) : "");
  };
  for (const auto& [key, count] : lanes) {
    facts->push_back({"active NVLinks", subject(key), absl::StrCat(count.first), job.evidence.PlaceText(at[key]), 0,
                      Change::can_explain, "A GPU with fewer links makes NCCL plan less bandwidth for all ranks.",
                      "nvidia-smi nvlink -s -i <GPU>; dmesg -T | grep -E 'Xid|NVLink'.", count.first + 1.0});
  }
  for (const auto& [key, reading] : newest) {
    const model::GpuReading& g = *reading.first;
    const auto add = [&](const char* name, const char* column, const char* explains) {
      if (const model::Reading* r = g.Find(column); r != nullptr)
        facts->push_back({name, subject(key), r->value, job.evidence.PlaceText(r->where), 0, Change::can_explain, explains,
                          "nvidia-smi -q -d PERFORMANCE,CLOCK,POWER while it works."});
    };
    add("PCIe width", "pcie.link.width.current", "A narrower link slows copies and GPUDirect.");
    add("power limit", "power.limit", "A lower limit lowers clocks.");
    add("fabric state", "fabric.state", "A GPU that the fabric has not taken has no NVLink to others.");
    if (!g.product.empty())
      facts->push_back({"GPU product", subject(key), g.product, job.evidence.PlaceText(g.where), 0, Change::can_explain,
                        "Another product has another speed.", ""});
  }
}

std::vector<Fact> Facts(const model::Job& job) {
  std::vector<Fact> facts;
  Size(job, &facts);
  Gpus(job, &facts);
  // GPUs that NCCL's topology lists, with their lanes.
  std::map<int, const model::TopologyGpu*> by_device;
  for (const model::TopologySystem& s : job.evidence.plan.systems) {
    for (const model::TopologyGpu& g : s.gpus) {
      if (g.device < 0 || g.links.empty()) continue;
      double bw = 0;
      int count = 0;
      for (const model::TopologyLink& l : g.links) {
        bw += l.bw;
        count += l.lanes;
      }
      facts.push_back({"NVLink in NCCL's topology", absl::StrCat("GPU ", g.device),
                       count > 0 ? absl::StrCat(count, " lanes") : absl::StrCat(static_cast<int>(bw), " GB/s"),
                       job.evidence.PlaceText(g.where), 0, Change::can_explain,
                       "A GPU with less NVLink makes NCCL plan less bandwidth for all ranks.",
                       "nvidia-smi nvlink -s -i <GPU>; dmesg -T | grep -E 'Xid|NVLink'."});
    }
  }
  return facts;
}

const RegisterFacts kRegister({Change::hardware, "hardware", "give its NCCL log, traces or nvidia-smi output", Facts,
                               /*absence_counts=*/false});

}  // namespace
}  // namespace ringscope::compare
