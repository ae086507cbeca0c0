// The waiting ends at a GPU, at one of several GPUs of a host, or inside a communicator that shows
// no more.
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/stall_finder_words.h"

namespace ringscope::reasoning {
namespace {

using graph::Node;

class GpuWriter : public StallWords {
 public:
  using StallWords::StallWords;

  Candidate Gpu(const RootGroup& group) const {
    const std::set<int> ranks = RanksOf(group);
    if (TooMany(group, ranks.size())) {
      Candidate c = Start(group, Kind::undetermined, Confidence::possible);
      c.finding.set_title(absl::StrCat("On ", ranks.size(), " of ", a_.MembersSeen(group.comm),
                                       " ranks ", Place(group),
                                       " is enqueued and has not started"));
      a_.Describe(group, &c);
      c.finding.set_refuted_by("a kernel that runs on one of these GPUs and is not the job's");
      SetNext(&c.finding,
              "See what these GPUs execute: a compute kernel, a wait for an event, nothing.",
              "cuda-gdb -p <pid>");
      return c;
    }
    bool weak = false, by_edges = false;
    for (int n : group.nodes) {
      weak |= a_.NodeAt(n).weak;
      by_edges |= !a_.NodeAt(n).edges.empty();
    }
    Candidate c =
        Start(group, Kind::gpu_stalled, weak ? Confidence::possible : Confidence::probable);
    Finding& f = c.finding;
    AddRanks(a_.JobRanks(ranks), f.mutable_who()->mutable_ranks());
    AddGpus(ranks, &f);
    if (by_edges) {
      f.set_title(absl::StrCat("The GPU of ", NamesText(ranks), " makes no progress in ",
                               Place(group), ": it has received data and sends none on"));
    } else if (weak) {  // LinkLastOnes() of the graph
      f.set_title(absl::StrCat("The GPU of ", NamesText(ranks), " does not finish ", Place(group),
                               ": it has started there, and all others have finished"));
    } else {
      f.set_title(absl::StrCat(
          "The GPU of ", NamesText(ranks), " does not run ", Place(group),
          ": enqueued, nothing of NCCL before it in its queue, and not started or not served"));
    }
    for (int n : group.nodes) AddGpuEvidence(group, a_.NodeAt(n), &f);
    a_.Describe(group, &c);
    AddMissingNote(group, &f);
    f.set_refuted_by(
        "a compute kernel, stream dependency or full GPU that keeps the kernel waiting (then the "
        "GPU is well and its "
        "work is not), or a proxy thread that has died and reports nothing");
    SetNext(&f, "See what the GPU executes, and whether the driver reported a fault (Xid).",
            GpuCommand(ranks));
    return c;
  }

  void AddGpuEvidence(const RootGroup& group, const Node& node, Finding* f) const {
    a_.AddEdgeEvidence(node, f);
    if (!node.edges.empty()) AddInEdges(node, f);
    const model::Member* m = a_.MemberIn(group.comm, node.rank);
    if (m == nullptr || !m->has_record()) return;
    for (const model::Op& op : m->ops) {
      if (group.comm >= 0 && op.p2p() != a_.input.comms[group.comm].p2p) continue;
      if (op.position() != group.position) continue;
      if (m->raw->from_dump()) {
        *f->add_evidence() = MemberEvidence(
            job_, *m, op.raw.row(),
            absl::StrCat(OpText(op.raw), CallText(job_, *m, op.raw),
                         ": scheduled, where other ranks have started it"));
        continue;
      }
      *f->add_evidence() = MemberEvidence(
          job_, *m, op.raw.row(),
          absl::StrCat(OpText(op.raw), ": ", op.raw.kernels_started(), " of ", op.raw.channels(),
                       " kernel channels started, ", op.raw.kernels_stopped(), " stopped"));
    }
  }
  // The other half of the pivot: what has arrived at the rank and is not taken.
  void AddInEdges(const Node& gpu, Finding* f) const {
    Node in;
    const auto& edges = a_.input.graph.edges;
    for (int e : gpu.edges) {
      for (size_t i = 0; i < edges.size(); ++i) {
        if (edges[i].comm == edges[e].comm && edges[i].to == gpu.rank &&
            edges[i].send_position == edges[e].send_position &&
            edges[i].channel == edges[e].channel) {
          in.edges.push_back(static_cast<int>(i));
        }
      }
    }
    a_.AddEdgeEvidence(in, f);
  }

  void AddGpus(const std::set<int>& ranks, Finding* f) const {
    for (int r : ranks) {
      const model::Process* p = a_.ProcessOf(r);
      if (p == nullptr) continue;
      // Which of several GPUs the communicator uses is not recorded.
      if (p->trace.process().gpus_size() == 1) {
        const trace::Gpu& gpu = p->trace.process().gpus(0);
        f->mutable_who()->add_gpus(absl::StrCat(
            p->host, ":", gpu.bus_id().empty() ? std::to_string(gpu.device()) : gpu.bus_id()));
      }
    }
  }
  std::string GpuCommand(const std::set<int>& ranks) const {
    for (int r : ranks) {
      const model::Process* p = a_.ProcessOf(r);
      if (p != nullptr && !p->host.empty()) {
        return absl::StrCat("ssh ", ShellHost(p->host),
                            " 'nvidia-smi; dmesg -T | grep -i -e xid -e nvrm'; cuda-gdb -p ",
                            p->trace.process().pid());
      }
    }
    return "nvidia-smi; dmesg -T | grep -i -e xid -e nvrm";
  }

  Candidate InsideNode(const RootGroup& group) const {
    std::set<std::string> hosts;
    for (int n : group.nodes) hosts.insert(a_.NodeAt(n).unit);
    // Inside a host that exchanges data without steps the rank cannot be told: the host is the
    // answer, a possible one.
    Candidate c = Start(group, hosts.size() > 1 ? Kind::undetermined : Kind::gpu_stalled,
                        Confidence::possible);
    Finding& f = c.finding;
    for (const std::string& h : hosts) f.mutable_who()->add_hosts(h);
    const bool by_edges = std::any_of(group.nodes.begin(), group.nodes.end(),
                                      [&](int n) { return !a_.NodeAt(n).edges.empty(); });
    f.set_title(absl::StrCat("A GPU of host ", absl::StrJoin(hosts, ", "), " makes no progress in ",
                             Place(group),
                             by_edges ? ": data arrives at the host and none leaves it"
                                      : ": some ranks of the host do not finish, all others have"));
    if (hosts.size() > 1) f.mutable_who()->clear_hosts();
    for (int n : group.nodes) {
      const Node& node = a_.NodeAt(n);
      a_.AddEdgeEvidence(node, &f);
      AddHostInEdges(node, &f);
    }
    a_.Describe(group, &c);
    LeaveOutHosts(hosts, &f);
    AddMissingNote(group, &f);
    AddNote(&f,
            "inside the host the ranks see each other's data without network steps: which of its "
            "GPUs stands still is not visible");
    f.set_refuted_by("progress of all GPUs of the host, or a fault between them (NVLink, PCIe)");
    SetNext(&f, "Look at every GPU of the host: Xid, NVLink errors, which kernels run.",
            absl::StrCat("ssh ", ShellHost(*hosts.begin()),
                         " 'nvidia-smi nvlink -e; dmesg -T | grep -i -e xid -e nvrm'"));
    return c;
  }
  // One of these hosts' ranks is why the others wait: none of them is said to wait only.
  void LeaveOutHosts(const std::set<std::string>& hosts, Finding* f) const {
    std::set<int> there;
    const auto& host_of = a_.input.graph.hosts;
    for (size_t r = 0; r < host_of.size(); ++r) {
      if (hosts.count(host_of[r])) there.insert(static_cast<int>(r));
    }
    std::set<int> waiting(f->collateral().ranks().begin(), f->collateral().ranks().end());
    for (int rank : a_.JobRanks(there)) waiting.erase(rank);
    f->mutable_collateral()->clear_ranks();
    AddRanks(waiting, f->mutable_collateral()->mutable_ranks());
  }
  void AddHostInEdges(const Node& unit, Finding* f) const {
    Node in;
    const auto& edges = a_.input.graph.edges;
    const auto on_unit = [&](int r) { return a_.input.graph.hosts[r] == unit.unit; };
    for (int e : unit.edges) {
      for (size_t i = 0; i < edges.size(); ++i) {
        if (edges[i].comm == edges[e].comm && on_unit(edges[i].to) && !on_unit(edges[i].from) &&
            edges[i].send_position == edges[e].send_position &&
            edges[i].channel == edges[e].channel) {
          in.edges.push_back(static_cast<int>(i));
        }
      }
    }
    a_.AddEdgeEvidence(in, f);
  }

  Candidate Ambiguous(const RootGroup& group) const {
    Candidate c = Start(group, Kind::undetermined, Confidence::possible);
    Finding& f = c.finding;
    f.set_title(
        absl::StrCat(Place(group), " runs on all ranks and stands still inside the communicator"));
    for (int n : group.nodes) {
      const int rank = a_.NodeAt(n).rank;
      if (rank < 0 || !a_.input.graph.ranks[rank].queue_hidden) continue;
      f.set_title(absl::StrCat(Place(group), " stands still at ", a_.RankName(rank),
                               "; what its GPU has before it in its queue is not visible"));
    }
    a_.Describe(group, &c);
    LeaveOutMembers(group.comm, &f);
    const std::string host = OnlyHost(group.comm);
    if (!host.empty()) f.mutable_who()->add_hosts(host);
    if (TimeAssumed(a_)) {
      // Every running job looks like this at any moment.
      c.stops_job = false;
      f.set_title(absl::StrCat(Place(group), " has been called by all ranks and is not over; the dumps do not tell for how long"));
    }
    AddMissingNote(group, &f);
    AddNote(&f,
            "no edge with network steps tells more: a fault between GPUs, one GPU, different "
            "arguments or NCCL itself look alike");
    f.set_refuted_by("a rank that has not started the operation");
    const std::string look = "nvidia-smi nvlink -e; dmesg -T | grep -i -e xid -e nvrm";
    SetNext(&f, "Compare arguments; look for Xid and NVLink errors on the GPUs of these ranks.",
            host.empty() ? absl::StrCat(look, "  # on each host of these ranks")
                         : absl::StrCat("ssh ", ShellHost(host), " '", look, "'"));
    return c;
  }
  // One of the members is why: none of them is said to wait only.
  void LeaveOutMembers(int comm, Finding* f) const {
    if (comm < 0) return;
    const auto& members = a_.input.graph.comms[comm].ranks;
    std::set<int> waiting(f->collateral().ranks().begin(), f->collateral().ranks().end());
    for (int rank : a_.JobRanks({members.begin(), members.end()})) waiting.erase(rank);
    f->mutable_collateral()->clear_ranks();
    AddRanks(waiting, f->mutable_collateral()->mutable_ranks());
  }
  // The host on which all members are; empty: several, or not known.
  std::string OnlyHost(int comm) const {
    if (comm < 0) return "";
    std::set<std::string> hosts;
    for (int rank : a_.input.graph.comms[comm].ranks) hosts.insert(a_.input.graph.hosts[rank]);
    return hosts.size() == 1 ? *hosts.begin() : "";
  }
};

}  // namespace

Candidate DescribeGpu(const StallAnalysis& a, const RootGroup& group) {
  return GpuWriter(a).Gpu(group);
}
Candidate DescribeInsideNode(const StallAnalysis& a, const RootGroup& group) {
  return GpuWriter(a).InsideNode(group);
}
Candidate DescribeAmbiguous(const StallAnalysis& a, const RootGroup& group) {
  return GpuWriter(a).Ambiguous(group);
}

}  // namespace ringscope::reasoning
