// The waiting ends at edges, or at ends that contradict each other.
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/stall_finder_words.h"

namespace ringscope::reasoning {
namespace {

using graph::End;
using graph::Node;

class EdgeWriter : public StallWords {
 public:
  using StallWords::StallWords;

  Candidate Edges(const RootGroup& group) const {
    bool weak = true, control = false, flush = false;
    std::set<std::pair<int, int>> data;
    for (int n : group.nodes) {
      const Node& node = a_.NodeAt(n);
      weak &= node.weak;
      control |= node.kind == Node::kControl;
      flush |= node.kind == Node::kFlush;
      data.insert({node.rank, node.peer});
    }
    Candidate c =
        Start(group, Kind::edge_stalled, weak ? Confidence::possible : Confidence::probable);
    Finding& f = c.finding;
    std::vector<std::string> names;
    std::set<std::pair<int, int>> named;  // several channels of one edge are one edge
    for (int n : group.nodes) {
      const Node& node = a_.NodeAt(n);
      const bool against = node.kind == Node::kControl;  // the clear-to-send goes against the data
      const int from = *a_.JobRanks({against ? node.peer : node.rank}).begin();
      const int to = *a_.JobRanks({against ? node.rank : node.peer}).begin();
      if (named.insert({from, to}).second) {
        EdgeName& edge = *f.mutable_who()->add_edges();
        edge.set_from(from);
        edge.set_to(to);
        if (named.size() <= 4)
          names.push_back(absl::StrCat(a_.RankName(from_rank(node, against)), " -> ",
                                       a_.RankName(to_rank(node, against))));
      }
      a_.AddEdgeEvidence(node, &f);
    }
    const std::string list = absl::StrJoin(names, ", ");
    if (flush) {
      f.set_title(absl::StrCat("Data of edge ", list,
                               " has arrived and does not reach GPU memory, in ", Place(group)));
    } else if (control) {
      f.set_title(absl::StrCat("The clear-to-send of edge ", list,
                               " does not reach the sender, in ", Place(group)));
    } else {
      f.set_title(absl::StrCat(
          "Edge ", list, " does not move: data was handed to the network and has not arrived, in ",
          Place(group)));
    }
    if (const int hub = CommonRank(data); hub >= 0) {
      AddRanks(a_.JobRanks({hub}), f.mutable_who()->mutable_ranks());
      AddNote(&f, absl::StrCat("all these edges begin or end at ", a_.RankName(hub),
                               " and its in- and out-edges stand still: its "
                               "proxy thread or its network interface, rather than several paths"));
    }
    a_.Describe(group, &c);
    AddMissingNote(group, &f);
    if (flush) {
      const model::Process* to = a_.ProcessOf(a_.NodeAt(group.nodes[0]).peer);
      f.set_refuted_by("progress of these steps in a later record of the receiver");
      SetNext(&f,
              "Look at the receiver's way from the network adapter to GPU memory: GPUDirect "
              "modules, PCIe errors, ACS.",
              absl::StrCat("ssh ", to != nullptr ? ShellHost(to->host) : "<receiver>",
                           " 'dmesg -T | grep -i -e aer -e nvrm -e mlx5; lsmod | grep -e peermem "
                           "-e nvidia; lspci -vvv | grep -i acsctl'"));
      return c;
    }
    f.set_refuted_by(
        "the two ends' interfaces passing traffic to each other at this moment, or a receiving "
        "process whose proxy "
        "thread does not run");
    SetNext(&f,
            "Look at the interfaces and the path of both ends; on RoCE and InfiniBand at their "
            "error and pause counters.",
            EdgeCommand(group));
    return c;
  }
  static int from_rank(const Node& n, bool against) { return against ? n.peer : n.rank; }
  static int to_rank(const Node& n, bool against) { return against ? n.rank : n.peer; }

  // A rank that several stalled edges share, both as sender and as receiver; -1 none.
  static int CommonRank(const std::set<std::pair<int, int>>& edges) {
    if (edges.size() < 2) return -1;
    for (const auto& [from, to] : edges) {
      for (int r : {from, to}) {
        const bool all = std::all_of(edges.begin(), edges.end(),
                                     [r](const auto& e) { return e.first == r || e.second == r; });
        const bool in =
            std::any_of(edges.begin(), edges.end(), [r](const auto& e) { return e.second == r; });
        const bool out =
            std::any_of(edges.begin(), edges.end(), [r](const auto& e) { return e.first == r; });
        if (all && in && out) return r;
      }
    }
    return -1;
  }
  std::string EdgeCommand(const RootGroup& group) const {
    const Node& node = a_.NodeAt(group.nodes[0]);
    const model::Process *from = a_.ProcessOf(node.rank), *to = a_.ProcessOf(node.peer);
    const std::string a = from != nullptr ? ShellHost(from->host) : "<sender>";
    const std::string b = to != nullptr ? ShellHost(to->host) : "<receiver>";
    return absl::StrCat("ssh ", a, " 'ping -c 3 ", b, "; ip -s link; ss -tin; rdma link'; ssh ", b,
                        " 'ip -s link; ss -tin; rdma link'");
  }

  Candidate Contradiction(int comm) const {
    RootGroup all{End::kAmbiguous, {}, comm, 0, {}, {}};
    for (const RootGroup& group : a_.groups) {
      if (group.comm != comm || !InsideOperation(group.cls)) continue;
      all.nodes.insert(all.nodes.end(), group.nodes.begin(), group.nodes.end());
      all.waiting.insert(group.waiting.begin(), group.waiting.end());
      all.position = all.position == 0 ? group.position : std::min(all.position, group.position);
    }
    Candidate c = Start(all, Kind::undetermined, Confidence::possible);
    Finding& f = c.finding;
    f.set_title(
        absl::StrCat(Place(all), " stands still, and its channels point to different places"));
    for (int n : all.nodes) {
      const Node& node = a_.NodeAt(n);
      AddNote(&f, absl::StrCat("one end of the waiting: ", NodeText(node)));
      a_.AddEdgeEvidence(node, &f);
    }
    a_.Describe(all, &c);
    f.set_refuted_by("a second snapshot in which all channels point to the same place");
    SetNext(&f, "Look at the GPUs and the network interfaces that are named.",
            "nvidia-smi; dmesg -T | grep -i xid; ip -s link; rdma link");
    return c;
  }
  std::string NodeText(const Node& node) const {
    switch (node.kind) {
      case Node::kGpu:
        return absl::StrCat("the GPU of ", a_.RankName(node.rank));
      case Node::kUnit:
        return absl::StrCat("a GPU of host ", node.unit);
      default:
        return absl::StrCat("the edge ", a_.RankName(node.rank), " -> ", a_.RankName(node.peer));
    }
  }

  Candidate Unequal(const RootGroup& group) const {
    Candidate c = Start(group, Kind::undetermined, Confidence::possible);
    Finding& f = c.finding;
    f.set_title(
        absl::StrCat("The two ends of an edge do not run the same operation in ", Place(group)));
    for (int n : group.nodes) a_.AddEdgeEvidence(a_.NodeAt(n), &f);
    a_.Describe(group, &c);
    f.set_refuted_by("equal arguments on all ranks");
    SetNext(&f,
            "Compare the arguments and the environment (NCCL_*) of the ranks at this operation.",
            "ringscope show <record of each rank>");
    return c;
  }
};

}  // namespace

Candidate DescribeEdges(const StallAnalysis& a, const RootGroup& group) {
  return EdgeWriter(a).Edges(group);
}
Candidate DescribeUnequal(const StallAnalysis& a, const RootGroup& group) {
  return EdgeWriter(a).Unequal(group);
}
Candidate DescribeContradiction(const StallAnalysis& a, int comm) {
  return EdgeWriter(a).Contradiction(comm);
}

}  // namespace ringscope::reasoning
