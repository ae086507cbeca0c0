// A plan with less than its siblings: NVLink lanes missing where every edge still finds a way over NVLink.
//
// The count of channels alone misleads: one GPU at 17 of 18 lanes gives more channels (28 for 24), each with less; the whole
// communicator takes the least of all ranks. So lanes are held against the machine's own symmetry, never channels.
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

class DegradedFinder {
 public:
  explicit DegradedFinder(const model::Job& job) : job_(job), machines_(MachinesOf(job)), reports_(LaneReports(machines_)) {}

  std::vector<Candidate> Find() {
    const std::vector<PlanEdge> edges = LocalEdges(job_, machines_);
    for (size_t m = 0; m < machines_.list.size(); ++m) {
      const LaneReport& report = reports_[m];
      if (report.empty()) continue;
      // Where edges left NVLink because of it, that is the finding (plan_fallback).
      const bool told = std::any_of(edges.begin(), edges.end(), [&](const PlanEdge& edge) {
        return edge.machine == static_cast<int>(m) && edge.carrier >= Carrier::kPcie &&
               !machines_.list[m].NvlinkJoins(edge.from_gpu, edge.to_gpu) &&
               WouldReach(machines_.list[m], report, edge.from_gpu, edge.to_gpu);
      });
      if (!told) OnMachine(static_cast<int>(m));
    }
    return std::move(found_);
  }

 private:
  void OnMachine(int m) {
    const Machine& machine = machines_.list[m];
    const LaneReport& report = reports_[m];
    const std::string host = machine.name.empty() ? "" : absl::StrCat(" on ", machine.name);
    std::string title;
    std::set<int> gpus;
    if (report.none_at_all) {
      title = absl::StrCat("None of the ", machine.gpus.size(), " GPUs", host, " (", report.product, ") has an NVLink lane (0 of ",
                           report.expected, "): one cause for all, fabric management or the driver first, not ",
                           machine.gpus.size(), " faults");
      for (size_t g = 0; g < machine.gpus.size(); ++g) gpus.insert(static_cast<int>(g));
    } else if (report.gpus.size() == 1) {
      const ShortGpu& s = report.gpus[0];
      gpus.insert(s.gpu);
      title = absl::StrCat(GpuText(machine, machine.gpus[s.gpu]), " has ", s.lanes, " of ", s.expected, " NVLink lanes (",
                           s.expected, " ", report.why, ")");
    } else if (!report.gpus.empty()) {
      for (const ShortGpu& s : report.gpus) gpus.insert(s.gpu);
      title = absl::StrCat(report.gpus.size(), " GPUs", host, " have fewer than ", report.expected, " NVLink lanes (",
                           report.expected, " ", report.why, ")");
    } else {
      const MissingLink& link = report.links[0];
      for (const MissingLink& l : report.links) gpus.insert({l.a, l.b});
      title = absl::StrCat("The NVLink between ", GpuText(machine.gpus[link.a]), " and ", GpuText(machine.gpus[link.b]), host,
                           " has ", link.lanes, " of ", link.expected, link.expected == 1 ? " lane" : " lanes", ", ", report.why);
      if (report.links.size() > 1) absl::StrAppend(&title, "; ", report.links.size() - 1, " more like it");
    }
    const bool dead =
        report.none_at_all || std::any_of(report.gpus.begin(), report.gpus.end(), [](const ShortGpu& s) { return s.lanes == 0; });
    if (dead) absl::StrAppend(&title, ": its edges cannot run over NVLink");
    absl::StrAppend(&title, Cost(m));

    // A GPU without any lane is off NVLink, whether or not its own log with the transports is here.
    Candidate c =
        Say(dead ? Kind::fallback_path : Kind::degraded_plan, Confidence::probable,
            report.none_at_all ? Layer::kDriver : Layer::kHardware, std::move(title), report.none_at_all ? "FB-02" : "HW-02");
    c.order = Class::kPlan;
    c.state = State::slow;
    Finding& f = c.finding;
    AddHost(machine, &f);
    for (const int g : gpus) AddGpu(machine.gpus[g], &f);
    if (!report.gpus.empty() && report.gpus.size() < machine.gpus.size()) {
      for (const ShortGpu& s : report.gpus) {
        if (machine.gpus[s.gpu].rank >= 0) f.mutable_who()->add_ranks(machine.gpus[s.gpu].rank);
      }
    }
    for (const MissingLink& link : report.links) {
      const MachineGpu &a = machine.gpus[link.a], &b = machine.gpus[link.b];
      if (f.who().links_size() == 32) break;
      f.mutable_who()->add_links(absl::StrCat(GpuText(a), " - ", GpuText(b), ": ", link.lanes, " of ", link.expected,
                                              link.expected == 1 ? " lane" : " lanes"));
      if (dead || a.rank < 0 || b.rank < 0) continue;
      for (const auto& [from, to] : {std::make_pair(a.rank, b.rank), std::make_pair(b.rank, a.rank)}) {
        EdgeName& edge = *f.mutable_who()->add_edges();
        edge.set_from(from);
        edge.set_to(to);
      }
    }
    if (dead && !report.none_at_all) AddRingEdges(machine, report, &f);
    CiteAll(m, gpus, &f);
    CitePlan(job_, machines_, m, &f);
    f.set_refuted_by(
        "the same count on a healthy machine of this model, or counters and states that show every link up at full speed");
    const int index = gpus.size() == 1 ? machine.gpus[*gpus.begin()].index : -1;
    SetNext(
        "Which links are down or slow, and since when. Compare with a sibling machine; drain this one and reset the GPU when they "
        "stay down.",
        absl::StrCat("nvidia-smi nvlink -s", index >= 0 ? absl::StrCat(" -i ", index) : "",
                     "; nvidia-smi nvlink -e; dmesg -T | grep -iE 'nvlink|xid'"),
        &f);
    found_.push_back(std::move(c));
  }

  // Edges of the rings that end at a GPU without lanes, by the orders that rank 0 prints and the ends that every rank prints.
  void AddRingEdges(const Machine& machine, const LaneReport& report, Finding* f) {
    std::set<std::pair<int, int>> edges;
    const auto add = [&](int from, int to) {
      const int a = machine.GpuOfRank(from), b = machine.GpuOfRank(to);
      if (a >= 0 && b >= 0 && (report.Dead(a) || report.Dead(b))) edges.insert({from, to});
    };
    for (const int i : machine.plans) {
      if (!machines_.is_world[i]) continue;
      const model::RankPlan& plan = job_.evidence.plan.plans[i];
      for (const model::PlanRing& ring : plan.rings) {
        for (size_t k = 0; k < ring.order.size(); ++k) add(ring.order[k], ring.order[(k + 1) % ring.order.size()]);
        if (ring.prev >= 0) add(ring.prev, plan.rank), add(plan.rank, ring.next);
      }
    }
    for (const auto& [from, to] : edges) {
      if (f->who().edges_size() >= 64) return;
      const bool known = std::any_of(f->who().edges().begin(), f->who().edges().end(),
                                     [&, a = from, b = to](const EdgeName& e) { return e.from() == a && e.to() == b; });
      if (known) continue;
      EdgeName& edge = *f->mutable_who()->add_edges();
      edge.set_from(from);
      edge.set_to(to);
    }
  }

  void CiteAll(int m, const std::set<int>& gpus, Finding* f) {
    const Machine& machine = machines_.list[m];
    size_t cited = 0;
    for (const int g : gpus) {
      if (cited++ < 4) CiteLanes(job_, machine, machine.gpus[g], f);
    }
    for (size_t g = 0; g < machine.gpus.size(); ++g) {
      if (gpus.count(static_cast<int>(g)) > 0 || machine.gpus[g].Lanes() < reports_[m].expected) continue;
      CiteLanes(job_, machine, machine.gpus[g], f);
      break;
    }
  }

  std::string Cost(int m) const {
    const LaneReport& report = reports_[m];
    double least = 1;
    for (const ShortGpu& s : report.gpus) least = std::min(least, static_cast<double>(s.lanes) / s.expected);
    std::string plan;
    const double rate = RingRate(job_, machines_, m, &plan);
    std::string text;
    if (!report.gpus.empty() && least > 0)
      text = absl::StrFormat("; %.0f %% of the NVLink capacity is left to every rank", least * 100);
    if (rate > 0) absl::StrAppendFormat(&text, "; the ring is planned at %s = %g GB/s", plan, rate);
    return text;
  }

  const model::Job& job_;
  const Machines machines_;
  const std::vector<LaneReport> reports_;
  std::vector<Candidate> found_;
};

std::vector<Candidate> FindPlanDegraded(const model::Job& job) {
  const model::PlanFacts& plan = job.evidence.plan;
  if (plan.systems.empty() && plan.matrices.empty()) return {};
  return DegradedFinder(job).Find();
}

const Register kRegister("plan_degraded", FindPlanDegraded);

}  // namespace
}  // namespace ringscope::reasoning
