// The way to the network: GPUDirect RDMA that is off although the adapters sit beside the GPUs, or off on some hosts only; and
// adapters that one host lacks.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyzer/reasoning/machines.h"
#include "analyzer/reasoning/plan_edges.h"
#include "analyzer/reasoning/plan_words.h"
#include "analyzer/reasoning/text_evidence.h"
#include "catalog/gpu_products.h"

namespace ringscope::reasoning {
namespace {

// Network lines of one machine.
struct Network {
  std::vector<const model::TransportLine*> direct, through_host;  // with /GDRDMA, without
  bool rdma = true;                                               // not TCP
  std::string name;                                               // "IB"
};

class NetworkPaths {
 public:
  explicit NetworkPaths(const model::Job& job) : job_(job), machines_(MachinesOf(job)) {
    networks_.resize(machines_.list.size());
    // Without P2P and shared memory the network also joins ranks of one machine (plan_fallback).
    std::set<const model::TransportLine*> local;
    for (const PlanEdge& edge : LocalEdges(job, machines_)) {
      if (edge.carrier == Carrier::kNet) local.insert(edge.lines.begin(), edge.lines.end());
    }
    for (const model::TransportLine& line : job.evidence.plan.transports) {
      if (!line.via.starts_with("NET/") || line.plan < 0 || machines_.of_plan[line.plan] < 0) continue;
      if (job.evidence.plan.plans[line.plan].n_nodes == 1 || local.count(&line) > 0) continue;
      Network& network = networks_[machines_.of_plan[line.plan]];
      network.name = line.via.substr(4, line.via.find('/', 4) - 4);
      network.rdma &= network.name != "Socket";
      (line.via.find("/GDRDMA") == line.via.npos ? network.through_host : network.direct).push_back(&line);
    }
  }

  std::vector<Candidate> Find() {
    // One rank's log of a machine without P2P and shared memory: its network edges may be local.
    const PathSettings settings = machines_.list.size() == 1 ? PathSettingsOn(job_, machines_.list[0]) : PathSettings();
    if (settings.p2p == nullptr || settings.shm == nullptr) Gdr();
    MissingAdapters();
    return std::move(found_);
  }

 private:
  Candidate& Add(Kind::Value kind, Confidence::Value confidence, Layer layer, std::string title, std::string_view cause) {
    Candidate c = Say(kind, confidence, layer, std::move(title), cause);
    c.order = Class::kPlan;
    c.state = State::slow;
    found_.push_back(std::move(c));
    return found_.back();
  }

  // An adapter that shares a PCIe switch with a GPU of a board made for it: nothing but software keeps the two from talking.
  const model::TopologyNic* Beside(const Machine& machine, const MachineGpu** gpu) const {
    std::vector<const model::TopologySystem*> systems = machine.logs;
    if (machine.file != nullptr) systems.push_back(machine.file);
    for (const model::TopologySystem* system : systems) {
      for (const model::TopologyNic& nic : system->nics) {
        for (const MachineGpu& g : machine.gpus) {
          if (nic.parent == 0 || nic.parent != g.parent || catalog::BoardProduct(g.product) == nullptr) continue;
          *gpu = &g;
          return &nic;
        }
      }
    }
    return nullptr;
  }

  void Gdr() {
    size_t with = 0, without = 0;
    for (const Network& n : networks_) {
      if (!n.rdma) return;
      with += !n.direct.empty();
      without += n.direct.empty() && !n.through_host.empty();
    }
    if (without == 0) return;
    std::vector<int> bad;
    for (size_t m = 0; m < networks_.size(); ++m) {
      if (networks_[m].direct.empty() && !networks_[m].through_host.empty()) bad.push_back(static_cast<int>(m));
    }
    const Machine& first = machines_.list[bad[0]];
    const model::Setting* level = SettingOn(job_, first, "NCCL_NET_GDR_LEVEL");
    if (level != nullptr && level->value != "LOC" && level->value != "0") level = nullptr;
    const auto no_module = EventsOf(job_, {"nccl-gdr-no-module"});
    const MachineGpu* gpu = nullptr;
    const model::TopologyNic* nic = Beside(first, &gpu);
    // All hosts alike, and nothing says that they could do better: by design on many machines.
    if (with == 0 && level == nullptr && nic == nullptr) return;
    std::vector<std::string> names;
    for (const int m : bad) {
      if (!machines_.list[m].name.empty()) names.push_back(machines_.list[m].name);
    }
    if (names.size() > 8) names.resize(8), names.push_back("more");
    const std::string hosts = names.empty() ? "" : absl::StrCat(" on ", absl::StrJoin(names, ", "));
    std::string title = absl::StrCat("Network edges", hosts, " go through host memory: GPUDirect RDMA is off (NET/",
                                     networks_[bad[0]].name, " without /GDRDMA)");
    if (level != nullptr)
      absl::StrAppend(&title, ", as ", SettingText(*level), " asks");
    else if (with > 0)
      absl::StrAppend(&title, ", while other hosts of the job use it");
    else
      absl::StrAppend(&title, " although adapters and GPUs share PCIe switches");
    Candidate& c =
        Add(Kind::fallback_path, level != nullptr || !no_module.empty() || with > 0 ? Confidence::probable : Confidence::possible,
            level != nullptr ? Layer::kConfiguration : Layer::kDriver, std::move(title), "NET-06");
    Finding& f = c.finding;
    for (const int m : bad) {
      AddHost(machines_.list[m], &f);
      std::set<std::pair<int, int>> seen;
      for (const model::TransportLine* line : networks_[m].through_host) {
        const int from = JobRank(*line, line->from), to = JobRank(*line, line->to);
        if (from < 0 || to < 0 || f.who().edges_size() >= 64 || !seen.insert({from, to}).second) continue;
        EdgeName& edge = *f.mutable_who()->add_edges();
        edge.set_from(from);
        edge.set_to(to);
      }
      if (f.evidence_size() < 4) Cite(job_, networks_[m].through_host[0]->where, LineText(*networks_[m].through_host[0]), &f);
    }
    for (const Network& n : networks_) {
      if (n.direct.empty()) continue;
      Cite(job_, n.direct[0]->where, LineText(*n.direct[0]), &f);
      break;
    }
    if (level != nullptr) CitePlanSetting(job_, *level, &f);
    CiteAll(job_, no_module, 2, &f);
    if (nic != nullptr) {
      Cite(job_, nic->where,
           absl::StrCat("adapter ", nic->name.empty() ? absl::StrCat("NET/", nic->id) : nic->name, " shares the PCIe switch ",
                        model::BusIdText(nic->parent), " with ", GpuText(*gpu), nic->gdr == 0 ? "; gdr=\"0\"" : ""),
           &f);
    }
    CitePlan(job_, machines_, bad[0], &f);
    f.set_refuted_by(
        "a platform that forbids GPUDirect RDMA by design (virtual machines, confidential computing), or adapters farther from the "
        "GPUs than PXB");
    SetNext(
        "Whether the driver offers GPU memory to the adapters: nvidia-peermem loaded, or DMA-BUF in kernel and driver; NCCL says "
        "why with "
        "NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH.",
        "lsmod | grep -E 'nvidia_peermem|nv_peer_mem'; NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH", &f);
  }

  int JobRank(const model::TransportLine& line, int rank) const {
    if (machines_.is_world[line.plan] || machines_.world == 0) return rank;
    return -1;
  }

  // How many adapters NCCL sees on each host; every rank's plan is that of the poorest host.
  void MissingAdapters() {
    struct Count {
      int adapters = -1;
      model::Where where;
      std::set<uint64_t> ids;
      std::string text;
    };
    std::vector<Count> counts(machines_.list.size());
    int most = -1;
    size_t full = 0, told = 0;
    for (size_t m = 0; m < machines_.list.size(); ++m) {
      const Machine& machine = machines_.list[m];
      Count& count = counts[m];
      for (const int i : machine.plans) {
        const model::RankPlan& plan = job_.evidence.plan.plans[i];
        if (!machines_.is_world[i] || plan.net_devices < 0 || plan.n_nodes == 1 || plan.net_devices <= count.adapters) continue;
        count.adapters = plan.net_devices;
        count.where = plan.net_devices_at;
        count.text = absl::StrCat("Rank ", plan.rank, ": ", plan.net_devices, " Net devices");
      }
      for (const model::TopologySystem* system : machine.logs) {
        // The fastest alone: whether a management port is listed too says nothing.
        double fastest = 0;
        for (const model::TopologyNic& nic : system->nics) fastest = std::max(fastest, nic.bw);
        for (const model::TopologyNic& nic : system->nics) {
          if (nic.bw >= fastest) count.ids.insert(nic.id);
        }
        if (count.adapters < 0 && machines_.world > static_cast<int>(machine.gpus.size())) {
          count.adapters = static_cast<int>(count.ids.size());
          count.where = system->where;
          count.text = absl::StrCat("the topology lists ", count.adapters, " network devices of its fastest kind");
        }
        break;
      }
      most = std::max(most, count.adapters);
    }
    for (const Count& count : counts) told += count.adapters >= 0, full += count.adapters >= 0 && count.adapters == most;
    if (told < 2 || full == told) return;
    for (size_t m = 0; m < machines_.list.size(); ++m) {
      const Count& count = counts[m];
      if (count.adapters < 0 || count.adapters == most) continue;
      const Machine& machine = machines_.list[m];
      const Count* whole = nullptr;
      for (const Count& other : counts) {
        if (other.adapters == most) whole = &other;
      }
      std::vector<std::string> missing;
      for (const uint64_t id : whole->ids) {
        if (!count.ids.empty() && count.ids.count(id) == 0) missing.push_back(absl::StrCat("NET/", id));
      }
      Candidate& c = Add(Kind::degraded_plan, Confidence::probable, Layer::kHardware,
                         absl::StrCat(machine.name.empty() ? "One host" : machine.name, " has ", count.adapters,
                                      " network adapters for NCCL, other hosts of the job ", most,
                                      missing.empty() ? "" : absl::StrCat(" (it lacks ", absl::StrJoin(missing, ", "), ")"),
                                      ": every rank takes the plan of the poorest host"),
                         "NET-08");
      AddHost(machine, &c.finding);
      Cite(job_, count.where, count.text, &c.finding);
      Cite(job_, whole->where, whole->text, &c.finding);
      CitePlan(job_, machines_, static_cast<int>(m), &c.finding);
      c.finding.set_refuted_by("hosts of different models, or NCCL_IB_HCA naming fewer adapters there");
      SetNext("Which adapter is missing there, and whether its port is up.",
              "ibstat; ls /sys/class/infiniband; lspci | grep -i -E 'mellanox|infiniband'; env | grep NCCL_IB_HCA", &c.finding);
    }
  }

  const model::Job& job_;
  const Machines machines_;
  std::vector<Network> networks_;
  std::vector<Candidate> found_;
};

std::vector<Candidate> FindNetworkPaths(const model::Job& job) {
  if (job.evidence.plan.plans.empty()) return {};
  return NetworkPaths(job).Find();
}

const Register kRegister("network_path", FindNetworkPaths);

}  // namespace
}  // namespace ringscope::reasoning
