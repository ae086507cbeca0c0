// Initialisation that NCCL's topology step ends: NVLink-joined GPUs without peer access, and a graph dump of a plan that the dump
// cannot write.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <set>

#include "analyzer/reasoning/machines.h"
#include "analyzer/reasoning/plan_words.h"
#include "analyzer/reasoning/text_evidence.h"

namespace ringscope::reasoning {
namespace {

const Machine* MachineOfSpeaker(const model::Job& job, const Machines& machines, const model::Speaker& by) {
  for (size_t i = 0; i < machines.of_plan.size(); ++i) {
    const model::RankPlan& plan = job.evidence.plan.plans[i];
    if (machines.of_plan[i] >= 0 && plan.by.host == by.host && plan.by.pid == by.pid) return &machines.list[machines.of_plan[i]];
  }
  return machines.list.size() == 1 ? &machines.list[0] : nullptr;
}

// Cells of `nvidia-smi topo -p2p` for this pair that are not OK.
size_t CiteRefusals(const model::Job& job, const Machine& machine, const std::set<int64_t>& gpus, Finding* f) {
  size_t cited = 0;
  for (const model::TopologyMatrix* matrix : machine.p2p) {
    for (const auto& row : matrix->rows) {
      for (size_t c = 0; c < row.cells.size() && c < matrix->columns.size(); ++c) {
        const bool pair =
            std::any_of(gpus.begin(), gpus.end(), [&](int64_t g) { return row.name == absl::StrCat("GPU", g); }) &&
            std::any_of(gpus.begin(), gpus.end(), [&](int64_t g) { return matrix->columns[c] == absl::StrCat("GPU", g); });
        if (!pair || row.cells[c] == "OK" || row.cells[c] == "X" || cited >= 4) continue;
        ++cited;
        Cite(job, row.where, absl::StrCat("nvidia-smi topo -p2p: ", row.name, " to ", matrix->columns[c], " ", row.cells[c]), f);
      }
    }
  }
  for (size_t i = 0; cited > 0 && machine.matrix != nullptr && i < machine.matrix->rows.size() && i < 1; ++i) {
    const auto& row = machine.matrix->rows[i];
    std::string cells;
    for (const std::string& cell : row.cells) absl::StrAppend(&cells, " ", cell);
    Cite(job, row.where, absl::StrCat("nvidia-smi topo -m: ", row.name, cells), f);
  }
  return cited;
}

std::vector<Candidate> FindP2pRefused(const model::Job& job) {
  const auto events = EventsOf(job, {"nccl-p2p-refused-nvlink"});
  if (events.empty()) return {};
  const Machines machines = MachinesOf(job);
  const Machine* machine = MachineOfSpeaker(job, machines, events[0]->by);
  std::set<int64_t> gpus;
  std::set<std::string> pairs;
  for (const model::Event* event : events) {
    const auto a = event->Number("a"), b = event->Number("b");
    if (!a || !b) continue;
    gpus.insert({*a, *b});
    pairs.insert(absl::StrCat(std::min(*a, *b), " and ", std::max(*a, *b)));
  }
  const std::string host =
      events[0]->by.host.empty()
          ? ""
          : absl::StrCat(" on ", machine != nullptr && !machine->name.empty() ? machine->name : events[0]->by.host);
  Candidate c = Say(Kind::error_reported, Confidence::possible, Layer::kDriver,
                    absl::StrCat("NVLink joins GPUs ", pairs.empty() ? "" : *pairs.begin(), host,
                                 ", yet the driver refuses peer access (P2P) between them: NCCL's initialisation fails by design"),
                    "HW-02", "nccl-p2p-refused-nvlink");
  c.stops_job = true;
  c.state = State::init_failure;
  Finding& f = c.finding;
  for (const int64_t gpu : gpus) {
    const int g = machine == nullptr ? -1 : machine->GpuOfIndex(static_cast<int>(gpu));
    if (g >= 0)
      AddGpu(machine->gpus[g], &f);
    else
      f.mutable_who()->add_gpus(absl::StrCat("GPU ", gpu));
  }
  if (machine != nullptr) AddHost(*machine, &f);
  CiteAll(job, events, 3, &f);
  // NVML's own word on the pair beside NCCL's makes a line of evidence; which of hardware and fabric it is stays open.
  if (machine != nullptr && CiteRefusals(job, *machine, gpus, &f) > 0) f.set_confidence(Confidence::probable);
  f.set_refuted_by(
      "OK for this pair in nvidia-smi topo -p2p n while the job starts; a virtual machine or a fabric state other than Success "
      "points to "
      "fabric management (FB-02), not to the links");
  return {c};
}

std::vector<Candidate> FindGraphDump(const model::Job& job) {
  std::vector<const model::Event*> events;
  for (const model::Event* event : EventsOf(job, {"nccl-graph-value-unknown"})) {
    // Without the variable the line is about a topology file.
    const bool set = std::any_of(job.evidence.settings.begin(), job.evidence.settings.end(),
                                 [](const model::Setting& s) { return s.name == "NCCL_GRAPH_DUMP_FILE"; });
    if (set) events.push_back(event);
  }
  if (events.empty()) return {};
  Candidate c =
      Say(Kind::misconfigured, Confidence::probable, Layer::kConfiguration,
          "NCCL_GRAPH_DUMP_FILE makes initialisation fail: the ring's path type is NET, which NCCL cannot write into the dump",
          "NC-03", "nccl-graph-value-unknown");
  c.stops_job = true;
  c.state = State::init_failure;
  Finding& f = c.finding;
  for (const int rank : RanksOf(events)) f.mutable_who()->add_ranks(rank);
  CiteAll(job, events, 2, &f);
  for (const model::Setting& s : job.evidence.settings) {
    if (s.name != "NCCL_GRAPH_DUMP_FILE" || s.by.pid != events[0]->by.pid) continue;
    CitePlanSetting(job, s, &f);
    break;
  }
  for (const model::RankPlan& plan : job.evidence.plan.plans) {
    if (plan.by.pid != events[0]->by.pid || plan.by.host != events[0]->by.host) continue;
    for (const model::PlanPattern& p : plan.patterns) {
      if (p.intra != model::PathType::kNet && p.inter != model::PathType::kNet) continue;
      const std::string types = absl::StrCat(std::string(PathTypeText(p.intra)), "/", std::string(PathTypeText(p.inter)));
      Cite(job, p.where, absl::StrCat("Pattern ", p.pattern, ", nChannels ", p.channels, ", type ", types), &f);
    }
  }
  f.set_refuted_by("the same failure without NCCL_GRAPH_DUMP_FILE");
  return {c};
}

const Register kRefused("p2p_refused", FindP2pRefused);
const Register kGraphDump("graph_dump", FindGraphDump);

}  // namespace
}  // namespace ringscope::reasoning
