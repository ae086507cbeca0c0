// A network edge that is slow, by what its send steps wait for (docs/localisation.md, Slow edges).
//
// In steady state all edges of a ring carry the same number of bytes in the same time, and every
// kernel is equally long, so neither bytes per second nor kernel times name the slow edge. What
// differs is the wait state: only on the slow edge do steps spend their time handed to the network
// (SendWait); everywhere else they wait for their GPU.
//
// The record keeps sums of wait times, so one hiccup of a process (descheduled for 20 ms with four
// steps on the wire) looks like a slow edge. It shows in the kernels: a hiccup makes one of them
// long, a slow edge makes all of them long. So what the longer kernels can explain is subtracted
// from the claim.
//
// Blind spot: transports that complete a send when it is copied (TCP sockets) show no SendWait;
// then nothing is said.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "analyzer/model/safe_math.h"
#include "analyzer/reasoning/finders.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/samples.h"
#include "analyzer/reasoning/thresholds.h"

namespace ringscope::reasoning {
namespace {

using model::Communicator;
using model::Job;

// All channels of one direction between two ranks.
struct Load {
  uint64_t steps = 0;
  uint64_t bytes = 0;
  int64_t wire_ns = 0, other_ns = 0;  // step-ns in SendWait; in the states before it
  bool stands = false;  // an operation is under way and has waited for long
  const model::Edge* sample = nullptr;
  int64_t PerStep() const { return steps == 0 ? 0 : wire_ns / static_cast<int64_t>(steps); }
  double Share() const {
    const double all = static_cast<double>(wire_ns) + static_cast<double>(other_ns);
    return all <= 0 ? 0 : static_cast<double>(wire_ns) / all;
  }
};

using Loads = std::map<std::pair<int, int>, Load>;  // from, to

std::map<int, Loads> Collect(const Job& job) {
  std::map<int, Loads> loads;
  for (const model::Edge& edge : job.edges) {
    if (edge.communicator < 0 || edge.p2p || !edge.sender || edge.sender->raw == nullptr) continue;
    const trace::Edge& raw = *edge.sender->raw;
    if (raw.wait_ns_size() < 3) continue;
    Load& load = loads[edge.communicator][{edge.from, edge.to}];
    load.steps += raw.steps_total();
    load.bytes += raw.bytes();
    load.wire_ns = model::SatAdd(load.wire_ns, std::max<int64_t>(0, raw.wait_ns(2)));
    for (int state : {0, 1}) {
      load.other_ns = model::SatAdd(load.other_ns, std::max<int64_t>(0, raw.wait_ns(state)));
    }
    // What the steps that are under way wait for now is a stall, or not yet known: it does not count.
    if (edge.sender->open && edge.sender->process >= 0) {
      const int64_t since = std::max<int64_t>(
          0, model::SatSub(job.processes[edge.sender->process].trace.written_ns(), raw.changed_ns()));
      int64_t on_the_wire = 0;
      for (const int slot : raw.slots()) {
        if (slot == trace::STEP_FREE || slot == trace::STEP_STARTED) continue;
        if (slot == trace::SEND_WAIT) on_the_wire = model::SatAdd(on_the_wire, since);
        if (slot != trace::SEND_WAIT) load.other_ns = model::SatSub(load.other_ns, since);
      }
      // Too much of it to know the rest by taking it away.
      load.wire_ns = model::SatSub(load.wire_ns, on_the_wire);
      load.stands |= on_the_wire > load.wire_ns / 4;
    }
    if (load.sample == nullptr || raw.steps_total() > load.sample->sender->raw->steps_total())
      load.sample = &edge;
  }
  return loads;
}

bool AboutEqual(uint64_t a, uint64_t b) {
  const double x = static_cast<double>(a), y = static_cast<double>(b);
  return x <= y * thresholds::kEdgeTrafficRatio && y <= x * thresholds::kEdgeTrafficRatio;
}

// How much longer than usual the collectives of the process that drives the edge took, summed
// (host's clock); usual is the median of the same call; a call that came too seldom to know what is
// usual counts whole. `known` tells how many were looked at. Connecting is left out.
int64_t Unsteady(const Communicator& c, int process, size_t* known) {
  std::map<std::tuple<int, int, uint64_t>, std::vector<int64_t>> durations;
  *known = 0;
  for (const model::Member& m : c.members) {
    if (process < 0 || m.process != process) continue;
    for (const model::Op& op : m.ops) {
      if (op.p2p() || !Finished(op) || HostDuration(op) == 0 ||
          op.position() <= thresholds::kWarmupOperations)
        continue;
      durations[{m.rank, op.raw.func(), op.raw.count()}].push_back(HostDuration(op));
      ++*known;
    }
  }
  int64_t sum = 0;
  for (const auto& [call, values] : durations) {
    const int64_t usual = values.size() < thresholds::kUsualCalls ? 0 : Median(values);
    for (int64_t value : values) sum = model::SatAdd(sum, std::max<int64_t>(0, value - usual));
  }
  return sum;
}

void Judge(const Job& job, const Communicator& c, const Loads& loads,
           std::vector<Candidate>* candidates) {
  for (const auto& [ends, load] : loads) {
    if (load.stands || load.steps < thresholds::kEdgeSteps ||
        load.PerStep() < thresholds::kEdgeWireFloorNs)
      continue;
    if (load.Share() < thresholds::kEdgeWireShare) continue;
    std::vector<int64_t> others;
    for (const auto& [other_ends, other] : loads) {
      if (other_ends == ends || other.stands || other.steps < thresholds::kEdgeSteps) continue;
      if (!AboutEqual(load.steps, other.steps) || !AboutEqual(load.bytes, other.bytes)) continue;
      others.push_back(other.PerStep());
    }
    if (others.empty()) continue;
    const int64_t usual = Median(others);
    if (static_cast<double>(load.PerStep()) <
        thresholds::kEdgeWireRatio * static_cast<double>(std::max<int64_t>(usual, 1)))
      continue;

    size_t known = 0;
    const int64_t unsteady = Unsteady(c, load.sample->sender->process, &known);
    if (known == 0 ||
        static_cast<double>(load.wire_ns) < thresholds::kStepSlots * static_cast<double>(unsteady))
      continue;
    const bool covered = 2 * known >= load.sample->sender->raw->ops_started();

    const model::Member &from = c.members[ends.first], &to = c.members[ends.second];
    Candidate candidate;
    candidate.order = Class::kSlow;
    candidate.communicator = c.index;
    Finding& finding = candidate.finding;
    finding.set_kind(Kind::edge_slow);
    // One other edge is the way back of the same pair: it can be fast for its own reasons.
    finding.set_confidence(others.size() >= 2 && covered ? Confidence::probable
                                                         : Confidence::possible);
    finding.mutable_who()->add_communicators(c.Label());
    if (from.job_rank >= 0 && to.job_rank >= 0) {
      EdgeName* edge = finding.mutable_who()->add_edges();
      edge->set_from(from.job_rank);
      edge->set_to(to.job_rank);
    }
    finding.set_title(absl::StrCat("The network edge from ", RankText(c, from), " to ",
                                   RankText(c, to), " is slow: a send step spends ",
                                   DurationText(load.PerStep()),
                                   " on the wire, on comparable edges ", DurationText(usual)));
    const model::Process* driver = nullptr;
    if (load.sample->sender->process >= 0) driver = &job.processes[load.sample->sender->process];
    Evidence* evidence = finding.add_evidence();
    evidence->set_text(absl::StrCat(
        load.steps, " send steps, ", absl::StrFormat("%.0f", 100 * load.Share()),
        " % of their open time in SendWait; ", others.size(),
        " other edges with about equal traffic: ", DurationText(usual), " a step (median)"));
    if (driver != nullptr) {
      evidence->set_source(
          absl::StrCat("rank ", driver->job_rank, " on ", driver->host, " (", driver->source, ")"));
      evidence->set_rank(driver->job_rank);
    } else {
      evidence->set_rank(-1);
    }
    evidence->set_row(load.sample->sender->raw->row());
    std::set<int> waiting;
    for (const model::Member& member : c.members) waiting.insert(member.job_rank);
    AddRanks(waiting, finding.mutable_collateral()->mutable_ranks());
    finding.mutable_cause()->set_id("not established");
    finding.set_refuted_by(
        "a single long stall in the past (the record keeps sums, not the distribution), or the "
        "same edge fast with "
        "another network interface");
    finding.mutable_next()->set_text(
        "Measure this path by itself in both directions and read the error and congestion counters "
        "of the "
        "interfaces at both ends.");
    finding.mutable_next()->set_command(
        "ib_write_bw <host of the receiver>; ethtool -S <interface>; perfquery -x");
    candidates->push_back(std::move(candidate));
  }
}

}  // namespace

std::vector<Candidate> FindSlowEdges(const model::Job& job) {
  std::vector<Candidate> candidates;
  for (const auto& [communicator, loads] : Collect(job))
    Judge(job, job.communicators[communicator], loads, &candidates);
  return candidates;
}

static const Register kRegister("slow edge", FindSlowEdges);

}  // namespace ringscope::reasoning
