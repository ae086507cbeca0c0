// Edges inside a machine that run over a worse path than NVLink which the hardware offers, or would offer if it were whole.
//
// NCCL says nothing when it plans around a missing link, and prints the same "P2P/IPC" over NVLink and over PCIe: what was taken
// must be held against what there is. By design, and no finding: islands of NVLink, machines without NVLink, relays of cube meshes.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <set>

#include "analyzer/reasoning/plan_edges.h"
#include "analyzer/reasoning/plan_words.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

constexpr size_t kMostEdges = 128;
constexpr size_t kEnoughGpus = 6;  // for an odd one out to mean something where no topology was logged

using Edges = std::vector<const PlanEdge*>;

bool Slow(const PlanEdge& edge) { return edge.carrier >= Carrier::kPcie; }

// "SHM (host memory)", "PCIe P2P and SHM (host memory)".
std::string PathsText(const Edges& edges) {
  std::set<std::string> paths;
  for (const PlanEdge* edge : edges) paths.insert(CarrierText(*edge));
  return absl::StrJoin(paths, " and ");
}

std::string OnHost(const Machine& machine) { return machine.name.empty() ? "" : absl::StrCat(" on ", machine.name); }

class FallbackFinder {
 public:
  explicit FallbackFinder(const model::Job& job) : job_(job), machines_(MachinesOf(job)), reports_(LaneReports(machines_)) {}

  std::vector<Candidate> Find() {
    edges_ = LocalEdges(job_, machines_);
    std::vector<Edges> of_machine(machines_.list.size());
    for (const PlanEdge& edge : edges_) of_machine[edge.machine].push_back(&edge);
    for (size_t m = 0; m < machines_.list.size(); ++m) OnMachine(static_cast<int>(m), of_machine[m]);
    return std::move(found_);
  }

 private:
  void OnMachine(int m, const Edges& all) {
    const Machine& machine = machines_.list[m];
    const LaneReport& report = reports_[m];
    const PathSettings settings = PathSettingsOn(job_, machine);
    Edges by_setting, refused, by_lanes, unknown;
    for (const PlanEdge* edge : all) {
      if (!Slow(*edge)) continue;
      const int a = edge->from_gpu, b = edge->to_gpu;
      if (machine.NvlinkReaches(a, b) && (settings.p2p != nullptr || settings.relay != nullptr)) {
        by_setting.push_back(edge);
      } else if (machine.NvlinkJoins(a, b)) {
        refused.push_back(edge);
      } else if (edge->carrier == Carrier::kNet && settings.shm != nullptr) {
        // NCCL looked and saw no NVLink: what was switched off by choice is PCIe or host memory, no path the hardware is for.
        if (!machine.links_told || machine.LinksAnywhere()) by_setting.push_back(edge);
      } else if (!report.empty() && WouldReach(machine, report, a, b)) {
        by_lanes.push_back(edge);
      } else if (!machine.LinksAnywhere()) {
        unknown.push_back(edge);
      }
    }
    if (settings.driver != nullptr && (!by_lanes.empty() || !unknown.empty())) {
      by_lanes.insert(by_lanes.end(), unknown.begin(), unknown.end());
      ByDriver(m, by_lanes, *settings.driver);
      by_lanes.clear();
      unknown.clear();
    }
    if (!by_setting.empty()) BySetting(m, by_setting, settings, true);
    if (!refused.empty()) Refused(m, refused, settings);
    if (!by_lanes.empty()) report.none_at_all ? NoneAtAll(m, by_lanes) : ByLanes(m, by_lanes);
    if (unknown.empty() || machine.links_told) return;
    if (settings.p2p != nullptr || settings.shm != nullptr)
      BySetting(m, unknown, settings, false);
    else
      OddOneOut(m, all, unknown);
  }

  Candidate& Add(Confidence::Value confidence, Layer layer, std::string title, std::string_view cause, int m, const Edges& edges) {
    Candidate candidate = Say(Kind::fallback_path, confidence, layer, std::move(title), cause);
    candidate.order = Class::kPlan;
    candidate.state = State::slow;
    AddEdges(edges, kMostEdges, &candidate.finding);
    AddHost(machines_.list[m], &candidate.finding);
    found_.push_back(std::move(candidate));
    return found_.back();
  }

  // NVLink's share that is left, in words: what the ring was planned at against what one GPU's NVLinks carry.
  std::string Cost(int m) const {
    double nvlink = 0;
    for (const MachineGpu& gpu : machines_.list[m].gpus) nvlink = std::max(nvlink, gpu.Bandwidth());
    std::string plan;
    const double rate = RingRate(job_, machines_, m, &plan);
    if (rate <= 0) return "; host memory carries about 5-20 GB/s, NVLink 20 GB/s and more a lane";
    if (nvlink <= 0 && reports_[m].expected > 0)
      nvlink = reports_[m].expected * (machines_.list[m].lane_bw > 0 ? machines_.list[m].lane_bw : 20.0);
    if (nvlink <= rate) return absl::StrCat("; the ring is planned at ", plan);
    return absl::StrFormat("; the ring is planned at %s where NVLink carries %.0f GB/s a GPU: about 1/%.0f", plan, nvlink,
                           nvlink / rate);
  }

  void BySetting(int m, const Edges& edges, const PathSettings& settings, bool told) {
    std::vector<std::string> names, variables;
    const bool net = std::any_of(edges.begin(), edges.end(), [](const PlanEdge* e) { return e->carrier == Carrier::kNet; });
    std::vector<const model::Setting*> causes;
    if (settings.p2p != nullptr) causes.push_back(settings.p2p);
    if (settings.shm != nullptr && net) causes.push_back(settings.shm);
    if (settings.p2p == nullptr && settings.relay != nullptr) causes.push_back(settings.relay);
    if (causes.empty()) return;
    for (const model::Setting* s : causes) names.push_back(SettingText(*s)), variables.push_back(ShellWord(s->name));
    const std::string set = absl::StrCat(absl::StrJoin(names, " and "), causes.size() > 1 ? " are set: " : " is set: ");
    Candidate& c =
        Add(told ? Confidence::established : Confidence::possible, Layer::kConfiguration,
            absl::StrCat(set, EdgesText(edges), " run over ", PathsText(edges), OnHost(machines_.list[m]),
                         told ? " although NVLink joins their GPUs" : "; what the hardware offers is not in the evidence"),
            "FB-02", m, edges);
    Finding& f = c.finding;
    for (const model::Setting* s : causes) CitePlanSetting(job_, *s, &f);
    CiteEdges(job_, edges, 3, &f);
    if (told) {
      const MachineGpu& gpu = machines_.list[m].gpus[std::max(0, edges[0]->from_gpu)];
      CiteLanes(job_, machines_.list[m], gpu, &f);
    }
    CitePlan(job_, machines_, m, &f);
    f.set_title(absl::StrCat(f.title(), told ? Cost(m) : ""));
    f.set_refuted_by("the same transports without these variables");
    SetNext(
        "Run once without these variables; they switch a path off for testing and repair nothing. If the job then hangs, the fault "
        "is in the "
        "peer-to-peer path, and nvidia-smi topo -p2p and lspci's ACSCtl tell more.",
        absl::StrCat("unset ", absl::StrJoin(variables, " "), "; nvidia-smi topo -m"), &f);
  }

  void ByDriver(int m, const Edges& edges, const model::Setting& option) {
    Candidate& c = Add(Confidence::probable, Layer::kDriver,
                       absl::StrCat("The driver option ", SettingText(option), " switches NVLink off", OnHost(machines_.list[m]),
                                    ": ", EdgesText(edges), " run over ", PathsText(edges), " instead"),
                       "FB-02", m, edges);
    Finding& f = c.finding;
    CitePlanSetting(job_, option, &f);
    CiteEdges(job_, edges, 3, &f);
    CiteMatrix(m, &f);
    CitePlan(job_, machines_, m, &f);
    f.set_refuted_by("NV# entries in nvidia-smi topo -m, or the driver having been loaded without this option");
    SetNext("What the loaded driver was given. Remove the option, reload the driver (or reboot), and look for NV# in the matrix.",
            "cat /proc/driver/nvidia/params | grep -i nvlink; nvidia-smi topo -m; nvidia-smi nvlink -s", &f);
  }

  void CiteMatrix(int m, Finding* f) {
    const model::TopologyMatrix* matrix = machines_.list[m].matrix;
    for (size_t i = 0; matrix != nullptr && i < matrix->rows.size() && i < 2; ++i) {
      Cite(job_, matrix->rows[i].where, absl::StrCat(matrix->rows[i].name, ": ", absl::StrJoin(matrix->rows[i].cells, " ")), f);
    }
  }

  // Links are up, nothing was switched off, and NCCL went elsewhere: the driver did not grant peer access.
  void Refused(int m, const Edges& edges, const PathSettings& settings) {
    const Machine& machine = machines_.list[m];
    Candidate& c = Add(Confidence::probable, Layer::kDriver,
                       absl::StrCat("NVLink joins the GPUs of ", EdgesText(edges), OnHost(machine), ", yet they run over ",
                                    PathsText(edges), ": peer access is not granted", Cost(m)),
                       "FB-02", m, edges);
    Finding& f = c.finding;
    CiteEdges(job_, edges, 3, &f);
    if (edges[0]->from_gpu >= 0) CiteLanes(job_, machine, machine.gpus[edges[0]->from_gpu], &f);
    if (settings.ignore != nullptr) CitePlanSetting(job_, *settings.ignore, &f);
    for (const model::TopologyMatrix* p2p : machine.p2p) {
      for (size_t i = 0; i < p2p->rows.size() && i < 2; ++i)
        Cite(job_, p2p->rows[i].where, absl::StrCat("topo -p2p ", p2p->rows[i].name, ": ", absl::StrJoin(p2p->rows[i].cells, " ")),
             &f);
    }
    CitePlan(job_, machines_, m, &f);
    f.set_refuted_by(
        "an environment variable or a container limit that hides peers, or OK for these pairs in nvidia-smi topo -p2p n with "
        "fabric status Success");
    SetNext("Whether the driver grants peer access, and whether every GPU is registered with the fabric.",
            "nvidia-smi topo -p2p n; nvidia-smi -q | grep -A6 Fabric; systemctl status nvidia-fabricmanager", &f);
  }

  void ByLanes(int m, const Edges& edges) {
    const Machine& machine = machines_.list[m];
    const LaneReport& report = reports_[m];
    std::vector<int> dead;
    for (const ShortGpu& s : report.gpus) {
      if (s.lanes == 0) dead.push_back(s.gpu);
    }
    std::string title;
    if (dead.size() == 1) {
      title = absl::StrCat(GpuText(machine, machine.gpus[dead[0]]), " has 0 of ", report.expected, " NVLink lanes (",
                           report.expected, " ", report.why, ")");
    } else if (!dead.empty()) {
      title = absl::StrCat(dead.size(), " GPUs", OnHost(machine), " have none of their ", report.expected, " NVLink lanes");
    } else {
      title = absl::StrCat(report.links.size(), " NVLink connections between GPUs", OnHost(machine), " are missing, ", report.why);
    }
    Candidate& c = Add(Confidence::probable, Layer::kHardware,
                       absl::StrCat(title, ": ", EdgesText(edges), " run over ", PathsText(edges), " instead of NVLink", Cost(m)),
                       "HW-02", m, edges);
    Finding& f = c.finding;
    std::set<int> gpus(dead.begin(), dead.end());
    if (dead.empty()) {
      for (const MissingLink& link : report.links) gpus.insert({link.a, link.b});
    }
    for (const int g : gpus) {
      AddGpu(machine.gpus[g], &f);
      if (!dead.empty() && machine.gpus[g].rank >= 0) f.mutable_who()->add_ranks(machine.gpus[g].rank);
    }
    size_t cited = 0;
    for (const int g : gpus) {
      if (cited++ < 4) CiteLanes(job_, machine, machine.gpus[g], &f);
    }
    AddMissingLinks(machine, report, &f);
    CiteSibling(m, gpus, &f);
    CiteEdges(job_, edges, 4, &f);
    CitePlan(job_, machines_, m, &f);
    CiteOtherHosts(m, &f);
    f.set_refuted_by("the same links missing by design of this product, or on its healthy siblings too");
    SetNext(
        "The state of each link, and why it is down. Drain the machine, reset the GPU or reboot; links that stay down mean a "
        "repair.",
        absl::StrCat("nvidia-smi nvlink -s",
                     dead.size() == 1 && machine.gpus[dead[0]].index >= 0 ? absl::StrCat(" -i ", machine.gpus[dead[0]].index) : "",
                     "; nvidia-smi topo -m; dmesg -T | grep -iE 'nvlink|xid|sxid'"),
        &f);
  }

  void AddMissingLinks(const Machine& machine, const LaneReport& report, Finding* f) {
    for (const MissingLink& link : report.links) {
      if (f->who().links_size() == 32) return;
      f->mutable_who()->add_links(absl::StrCat(GpuText(machine.gpus[link.a]), " - ", GpuText(machine.gpus[link.b]), ": ",
                                               link.lanes, " of ", link.expected, link.expected == 1 ? " lane" : " lanes"));
    }
  }

  void CiteSibling(int m, const std::set<int>& gpus, Finding* f) {
    const Machine& machine = machines_.list[m];
    const MachineGpu* best = nullptr;
    for (size_t g = 0; g < machine.gpus.size(); ++g) {
      if (gpus.count(static_cast<int>(g)) == 0 && (best == nullptr || machine.gpus[g].Lanes() > best->Lanes()))
        best = &machine.gpus[g];
    }
    if (best != nullptr && best->Lanes() > 0) CiteLanes(job_, machine, *best, f);
  }

  // "Host A alone would have had 8 channels": every rank takes the least of all.
  void CiteOtherHosts(int m, Finding* f) {
    std::string mine;
    const double rate = RingRate(job_, machines_, m, &mine);
    for (size_t other = 0; other < machines_.list.size(); ++other) {
      std::string plan;
      if (static_cast<int>(other) == m || RingRate(job_, machines_, static_cast<int>(other), &plan) <= rate || rate <= 0) continue;
      CitePlan(job_, machines_, static_cast<int>(other), f);
      f->mutable_evidence(f->evidence_size() - 1)
          ->set_text(absl::StrCat(f->evidence(f->evidence_size() - 1).text(), " (", machines_.list[other].name, " alone planned ",
                                  plan, "; every rank takes the least of all)"));
      return;
    }
  }

  void NoneAtAll(int m, const Edges& edges) {
    const Machine& machine = machines_.list[m];
    const LaneReport& report = reports_[m];
    Candidate& c =
        Add(Confidence::probable, Layer::kDriver,
            absl::StrCat(
                "None of the ", machine.gpus.size(), " GPUs", OnHost(machine), " (", report.product, ") has an NVLink lane (0 of ",
                report.expected, "): all their edges run over ", PathsText(edges), " instead of NVLink. One cause for all, ",
                report.switched ? "fabric management (fabric manager, partition) first" : "the driver or fabric management first",
                ", not ", machine.gpus.size(), " faults", Cost(m)),
            "FB-02", m, edges);
    Finding& f = c.finding;
    for (const MachineGpu& gpu : machine.gpus) AddGpu(gpu, &f);
    for (size_t g = 0; g < machine.gpus.size() && g < 2; ++g) CiteLanes(job_, machine, machine.gpus[g], &f);
    CiteEdges(job_, edges, 4, &f);
    CitePlan(job_, machines_, m, &f);
    f.set_refuted_by(
        "a virtual machine or product variant that has no NVLink by design, where a healthy sibling shows none either");
    SetNext(
        "Whether the links are up, and whether the fabric manager runs and the GPUs are registered (State Completed, Status "
        "Success, a cluster UUID).",
        "nvidia-smi nvlink -s; systemctl status nvidia-fabricmanager; nvidia-smi -q | grep -A6 Fabric; grep -i nvlink "
        "/proc/driver/nvidia/params",
        &f);
  }

  // Only transport lines, no topology: one GPU of many whose every edge goes through host memory while all others have peer access.
  void OddOneOut(int m, const Edges& all, const Edges& slow) {
    const Machine& machine = machines_.list[m];
    std::set<int> ranks, common;
    for (const PlanEdge* edge : all) ranks.insert({edge->from, edge->to});
    bool first = true;
    for (const PlanEdge* edge : slow) {
      if (edge->carrier != Carrier::kShm) return;
      const std::set<int> ends = {edge->from, edge->to};
      std::set<int> both;
      for (const int r : ends) {
        if (first || common.count(r) > 0) both.insert(r);
      }
      common = both;
      first = false;
    }
    std::set<int> peers;
    for (const PlanEdge* edge : slow) peers.insert(common.count(edge->from) > 0 ? edge->to : edge->from);
    if (common.size() != 1 || peers.size() < 2 || ranks.size() < kEnoughGpus) return;
    const int odd = *common.begin();
    for (const PlanEdge* edge : all) {
      if (!Slow(*edge) && (edge->from == odd || edge->to == odd)) return;
    }
    const int g = machine.GpuOfRank(odd);
    const std::string name = g >= 0 ? GpuText(machine, machine.gpus[g]) : absl::StrCat("rank ", odd, OnHost(machine));
    Candidate& c = Add(Confidence::possible, Layer::kHardware,
                       absl::StrCat("All edges of ", name, " (", EdgesText(slow), ") run over ", PathsText(slow),
                                    " while every other edge has peer access; what "
                                    "the hardware offers is not in the evidence"),
                       "HW-02", m, slow);
    Finding& f = c.finding;
    f.mutable_who()->add_ranks(odd);
    if (g >= 0) AddGpu(machine.gpus[g], &f);
    CiteEdges(job_, slow, 4, &f);
    CitePlan(job_, machines_, m, &f);
    f.set_refuted_by("nvidia-smi topo -m without NV# anywhere: that GPU is then only farther away on PCIe");
    SetNext("How the GPUs are joined, and which NVLinks are up; NCCL's own view comes with NCCL_DEBUG_SUBSYS=INIT,GRAPH.",
            "nvidia-smi topo -m; nvidia-smi nvlink -s; NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH", &f);
  }

  const model::Job& job_;
  const Machines machines_;
  const std::vector<LaneReport> reports_;
  std::vector<PlanEdge> edges_;
  std::vector<Candidate> found_;
};

std::vector<Candidate> FindPlanFallback(const model::Job& job) {
  if (job.evidence.plan.transports.empty()) return {};
  return FallbackFinder(job).Find();
}

const Register kRegister("plan_fallback", FindPlanFallback);

}  // namespace
}  // namespace ringscope::reasoning
