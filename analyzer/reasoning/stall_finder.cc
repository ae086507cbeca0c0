// What stands still and why, as far as cursors, queues and edges tell: the ends of the wait-for
// graph in words. (Ends at a process that is gone or frozen are liveness_finder.cc's.)
//
// What is never done: to call a rank missing because its record is missing; to name one of several
// contradicting ends; to name half or more of a communicator (then the others may as well be
// ahead); to say anything of records whose processes were ended while things moved.
#include "analyzer/reasoning/stall_finder.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/stall_finder_words.h"

namespace ringscope::reasoning {
namespace {

using graph::End;

// Several different ends inside one operation cannot all be the reason: data either waits for a GPU
// or for the network.
std::set<int> ContradictingComms(const StallAnalysis& a) {
  std::map<int, std::set<End>> kinds;
  std::map<int, size_t> gpus;
  for (const RootGroup& group : a.groups) {
    if (group.comm < 0 || !InsideOperation(group.cls)) continue;
    kinds[group.comm].insert(group.cls);
    if (group.cls != End::kGpuStalled) continue;
    for (int n : group.nodes) gpus[group.comm] += !a.NodeAt(n).edges.empty();
  }
  std::set<int> comms;
  for (const auto& [comm, set] : kinds) {
    if (set.size() > 1 || gpus[comm] > 1) comms.insert(comm);
  }
  return comms;
}

// Of one communicator an end that says something stands for the operations that say nothing.
bool MoreIsKnown(const StallAnalysis& a, const RootGroup& ambiguous) {
  return std::any_of(a.groups.begin(), a.groups.end(), [&](const RootGroup& other) {
    return other.cls != End::kAmbiguous && other.comm >= 0 && ambiguous.comm >= 0 &&
           a.input.comms[other.comm].communicator == a.input.comms[ambiguous.comm].communicator;
  });
}

std::vector<Candidate> DescribeAll(const StallAnalysis& a) {
  const std::set<int> contradicting = ContradictingComms(a);
  std::set<int> said;
  std::vector<Candidate> out;
  for (const RootGroup& group : a.groups) {
    if (contradicting.count(group.comm) && InsideOperation(group.cls)) {
      if (said.insert(group.comm).second) out.push_back(DescribeContradiction(a, group.comm));
      continue;
    }
    if (group.cls == End::kAmbiguous && MoreIsKnown(a, group)) continue;
    switch (group.cls) {
      case End::kNotEntered:
        out.push_back(DescribeMissing(a, group));
        break;
      case End::kInApi:
        out.push_back(DescribeInApi(a, group));
        break;
      case End::kGpuStalled:
        out.push_back(DescribeGpu(a, group));
        break;
      case End::kInsideNode:
        out.push_back(DescribeInsideNode(a, group));
        break;
      case End::kNetEdge:
      case End::kNetControl:
      case End::kRecvFlush:
        out.push_back(DescribeEdges(a, group));
        break;
      case End::kUnmatched:
        out.push_back(DescribeUnmatched(a, group));
        break;
      case End::kCycle:
        out.push_back(DescribeCycle(a, group));
        break;
      case End::kUnequalSteps:
        out.push_back(DescribeUnequal(a, group));
        break;
      case End::kAmbiguous:
        out.push_back(DescribeAmbiguous(a, group));
        break;
      case End::kNoRecord:
        out.push_back(DescribeNoRecord(a, group));
        break;
      default:
        break;  // liveness_finder.cc
    }
  }
  return out;
}

// Who had not come yet to what was under way: no accusation, but where to look if it stood.
void AddAbsent(const StallAnalysis& a, Finding* f) {
  std::map<std::pair<int, uint64_t>, const graph::Participation*> open;
  for (const graph::Participation& op : a.input.graph.ops) {
    if (!a.input.comms[op.comm].p2p && op.progress.Before(graph::Stage::kFinished)) open.try_emplace({op.comm, op.position}, &op);
  }
  size_t lines = 0;
  for (const auto& [at, op] : open) {
    const graph::Comm& comm = a.input.graph.comms[at.first];
    std::set<int> absent;
    for (size_t i = 0; i < comm.ranks.size() && i < comm.entered.size(); ++i) {
      if (comm.entered[i] < at.second && a.input.graph.ranks[comm.ranks[i]].host != graph::Host::kNoRecord) absent.insert(comm.ranks[i]);
    }
    if (absent.empty() || 2 * absent.size() >= comm.ranks.size() || ++lines > 2) continue;
    graph::Node node;
    node.kind = graph::Node::kOp, node.comm = at.first, node.position = at.second, node.rank = op->rank;
    Evidence& e = *f->add_evidence();
    e.set_rank(-1);
    e.set_text(absl::StrCat(RanksText(a.JobRanks(absent)), " had not entered ", a.OpName(node), " yet"));
  }
}

// Processes were ended with operations open that had moved a moment before: the records tell
// nothing of a hang.
std::vector<Candidate> EndedInFlight(const StallAnalysis& analysis) {
  std::set<int> ranks;
  for (size_t i = 0; i < analysis.input.graph.ops.size(); ++i) {
    const graph::Participation& op = analysis.input.graph.ops[i];
    const model::Process* p = analysis.ProcessOf(op.rank);
    if (p == nullptr || !op.progress.Before(graph::Stage::kFinished)) continue;
    const trace::Liveness& live = p->trace.liveness();
    const bool lives = (p->from_flight_file && live.lock_known() && live.lock_held()) || p->trace.has_dump();
    if (!lives && p->life != model::Life::kExited) ranks.insert(op.rank);
  }
  if (ranks.empty()) return {};
  Candidate c;
  c.order = Class::kUndetermined;
  Finding& f = c.finding;
  f.set_kind(Kind::undetermined);
  f.set_confidence(Confidence::possible);
  f.set_title(absl::StrCat("The records end while operations were under way on ",
                           RanksText(analysis.JobRanks(ranks)),
                           ": nothing had been without progress for the stall time"));
  size_t lines = 0;
  for (size_t i = 0; i < analysis.input.graph.ops.size() && lines < 4; ++i) {
    const graph::Participation& op = analysis.input.graph.ops[i];
    if (ranks.count(op.rank) == 0 || !op.progress.Before(graph::Stage::kFinished)) continue;
    const OpOrigin& origin = analysis.input.ops[i];
    const model::Communicator& comm = analysis.job.communicators[origin.communicator];
    *f.add_evidence() =
        MemberEvidence(analysis.job, comm.members[origin.member], origin.op->raw.row(),
                       absl::StrCat(OpText(origin.op->raw), " of ", comm.Label(), " is open"));
    ++lines;
  }
  AddAbsent(analysis, &f);
  f.set_refuted_by("a record that was written after the stall time had passed");
  f.mutable_next()->set_text(
      "If the job was ended because it hung, let it stand for the stall time "
      "(RINGSCOPE_STALL_SECONDS) before "
      "it is killed, or diagnose it while it lives.");
  f.mutable_next()->set_command("ringscope diagnose <flight directory> on the running job");
  return {c};
}

const Register kRegister("stall", FindStalls);

}  // namespace

std::vector<Candidate> FindStalls(const model::Job& job) {
  const StallAnalysis analysis(job);
  if (analysis.input.open && !analysis.input.hung) return EndedInFlight(analysis);
  return DescribeAll(analysis);
}

}  // namespace ringscope::reasoning
