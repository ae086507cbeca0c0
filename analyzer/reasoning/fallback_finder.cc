// Network edges between GPUs of one node: a worse path than the hardware offers.
//
// Inside a node NCCL uses NVLink, PCIe peer-to-peer or shared memory; none of them has proxy steps.
// Steps between two ranks of one node therefore mean that the data goes through the network
// transport. That is true without any stall, explains slowness but never a hang, and may be meant
// (a switch in the environment), so it is told as a fact about the plan.
//
// Which ranks share a node is NCCL's own word (nNodes). Equal host names alone do not make one
// node: containers, or an NCCL_HOSTID that was set, separate what the name joins.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analyzer/reasoning/finders.h"
#include "analyzer/reasoning/op_text.h"

namespace ringscope::reasoning {
namespace {

using model::Communicator;
using model::Job;
using model::Member;

std::string NodeOf(const Job& job, const Member& member) {
  if (!member.has_record()) return "";
  const model::Process& process = job.processes[member.process];
  const auto id = process.trace.process().environment().find("NCCL_HOSTID");
  return absl::StrCat(process.host, "|", process.trace.process().boot_id(), "|",
                      id == process.trace.process().environment().end() ? "" : id->second);
}

// True when `from` and `to` lie on one node beyond doubt.
class Nodes {
 public:
  Nodes(const Job& job, const Communicator& c) : job_(job), c_(c) {
    std::set<std::string> names;
    bool complete = true;
    for (const Member& member : c.members) {
      complete &= member.has_record();
      if (member.has_record()) names.insert(NodeOf(job, member));
    }
    // Names are believed only where they say as many nodes as NCCL does.
    names_count_ = complete && c.n_nodes > 0 && names.size() == static_cast<size_t>(c.n_nodes);
  }
  bool Same(int from, int to) const {
    if (c_.n_nodes == 1) return true;
    if (!names_count_) return false;
    return NodeOf(job_, c_.members[from]) == NodeOf(job_, c_.members[to]);
  }

 private:
  const Job& job_;
  const Communicator& c_;
  bool names_count_ = false;
};

bool Moved(const model::EdgeSide& side) {
  return side.raw != nullptr && (side.raw->ops_started() > 0 || side.raw->steps_total() > 0);
}

// Settings that make NCCL take this path, as far as the record knows them.
std::set<std::string> Switches(const Job& job, const Communicator& c) {
  static const char* const kNames[] = {"NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_P2P_LEVEL",
                                       "NCCL_HOSTID",      "NCCL_NVLS_ENABLE", "NCCL_CUMEM_ENABLE"};
  std::set<std::string> found;
  for (const Member& member : c.members) {
    if (!member.has_record()) continue;
    const auto& environment = job.processes[member.process].trace.process().environment();
    for (const char* name : kNames) {
      const auto it = environment.find(name);
      if (it == environment.end()) continue;
      const bool flag = std::string(name).find("_DISABLE") != std::string::npos;
      if (flag && (it->second.empty() || it->second == "0")) continue;
      found.insert(absl::StrCat(name, "=", it->second));
    }
  }
  return found;
}

bool Judge(const Job& job, const Communicator& c, const std::vector<const model::Edge*>& edges,
           Candidate* candidate) {
  const Nodes nodes(job, c);
  std::map<std::pair<int, int>, const model::EdgeSide*> inside;  // by ranks in the communicator
  for (const model::Edge* edge : edges) {
    if (!nodes.Same(edge->from, edge->to)) continue;
    for (const auto* side : {&edge->sender, &edge->receiver}) {
      if (*side && Moved(**side)) inside.try_emplace({edge->from, edge->to}, &**side);
    }
  }
  if (inside.empty()) return false;
  Finding& finding = candidate->finding;
  candidate->order = Class::kPlan;
  candidate->communicator = c.index;
  finding.set_kind(Kind::fallback_path);
  finding.set_confidence(Confidence::probable);
  finding.mutable_who()->add_communicators(c.Label());
  constexpr size_t kNamed = 64, kCited = 6;
  std::set<std::string> hosts;
  size_t n = 0;
  for (const auto& [ends, side] : inside) {
    const Member &from = c.members[ends.first], &to = c.members[ends.second];
    if (n < kNamed && from.job_rank >= 0 && to.job_rank >= 0) {
      EdgeName* edge = finding.mutable_who()->add_edges();
      edge->set_from(from.job_rank);
      edge->set_to(to.job_rank);
    }
    const Member& holder = side->raw->send() ? from : to;
    if (holder.has_record()) hosts.insert(job.processes[holder.process].host);
    if (n++ < kCited) {
      *finding.add_evidence() =
          MemberEvidence(job, holder, side->raw->row(),
                         absl::StrCat("proxy steps between ", RankText(c, from), " and ",
                                      RankText(c, to), " of one node: ", side->raw->steps_total(),
                                      " steps on channel ", side->raw->channel()));
    }
  }
  for (const std::string& host : hosts) finding.mutable_who()->add_hosts(host);
  if (c.n_nodes == 1) {
    Evidence* evidence = finding.add_evidence();
    evidence->set_text(
        absl::StrCat("NCCL said at initialisation that all ", c.n_ranks, " ranks are on one node"));
    evidence->set_rank(-1);
  }
  const std::set<std::string> switches = Switches(job, c);
  if (!switches.empty()) {
    Evidence* evidence = finding.add_evidence();
    evidence->set_text(absl::StrCat("in the environment: ", absl::StrJoin(switches, ", ")));
    evidence->set_rank(-1);
  }
  finding.set_title(absl::StrCat("Communicator ", c.Label(),
                                 " uses the network between GPUs of one node (", inside.size(),
                                 inside.size() == 1 ? " edge)" : " edges)",
                                 switches.empty() ? "" : ", as the environment asks for"));
  finding.mutable_cause()->set_id("not established");
  finding.set_refuted_by(
      "NCCL's log shows P2P or SHM for these connections, or the ranks are virtual machines or "
      "containers that "
      "share no memory");
  finding.mutable_next()->set_text(
      switches.empty()
          ? "See what NCCL says about these connections and whether peer access works on this node."
          : "Unset these variables for one run, or find out why they were set.");
  finding.mutable_next()->set_command(
      "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,P2P; nvidia-smi topo -m; nvidia-smi topo -p2p "
      "r; df -h /dev/shm");
  return true;
}

}  // namespace

std::vector<Candidate> FindFallbacks(const model::Job& job) {
  std::map<int, std::vector<const model::Edge*>> edges;
  for (const model::Edge& edge : job.edges) {
    if (edge.communicator >= 0 && edge.from != edge.to) edges[edge.communicator].push_back(&edge);
  }
  std::vector<Candidate> candidates;
  for (const auto& [communicator, list] : edges) {
    Candidate candidate;
    if (Judge(job, job.communicators[communicator], list, &candidate))
      candidates.push_back(std::move(candidate));
  }
  return candidates;
}

static const Register kRegister("fallback path", FindFallbacks);

}  // namespace ringscope::reasoning
