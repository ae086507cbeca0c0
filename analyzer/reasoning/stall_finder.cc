// What stands still and why, as far as cursors, queues and edges tell: the ends of the wait-for graph in words. (Ends at a
// process that is gone or frozen are liveness_finder.cc's.)
//
// What is never done: to call a rank missing because its record is missing; to name one of several contradicting ends; to
// name half or more of a communicator (then the others may as well be ahead); to say anything of records whose processes were
// ended while things moved.
#include "analyzer/reasoning/stall_finder.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analyzer/reasoning/op_text.h"

namespace ringscope::reasoning {
namespace {

using graph::End;
using graph::Node;

bool PivotClass(End cls) {
  switch (cls) {
    case End::kGpuStalled:
    case End::kInsideNode:
    case End::kNetEdge:
    case End::kNetControl:
    case End::kRecvFlush:
    case End::kUnequalSteps:
      return true;
    default:
      return false;
  }
}

class Writer {
 public:
  explicit Writer(const StallAnalysis& analysis) : a_(analysis), job_(analysis.job) {}

  std::vector<Candidate> Run() {
    FindContradictions();
    for (const RootGroup& group : a_.groups) {
      if (contradicting_.count(group.comm) && PivotClass(group.cls)) {
        if (said_.insert(group.comm).second) out_.push_back(Contradiction(group.comm));
        continue;
      }
      switch (group.cls) {
        case End::kNotEntered: out_.push_back(Missing(group)); break;
        case End::kInApi: out_.push_back(InApi(group)); break;
        case End::kGpuStalled: out_.push_back(Gpu(group)); break;
        case End::kInsideNode: out_.push_back(InsideNode(group)); break;
        case End::kNetEdge:
        case End::kNetControl:
        case End::kRecvFlush: out_.push_back(Edges(group)); break;
        case End::kUnmatched: out_.push_back(Unmatched(group)); break;
        case End::kCycle: out_.push_back(Cycle(group)); break;
        case End::kUnequalSteps: out_.push_back(Unequal(group)); break;
        case End::kAmbiguous: out_.push_back(Ambiguous(group)); break;
        case End::kNoRecord: out_.push_back(NoRecord(group)); break;
        default: break;
      }
    }
    return std::move(out_);
  }

 private:
  // Several different ends inside one operation cannot all be the reason: data either waits for a GPU or for the network.
  void FindContradictions() {
    std::map<int, std::set<int>> kinds;
    std::map<int, size_t> gpus;
    for (const RootGroup& group : a_.groups) {
      if (group.comm < 0 || !PivotClass(group.cls)) continue;
      kinds[group.comm].insert(static_cast<int>(group.cls));
      if (group.cls != End::kGpuStalled) continue;
      for (int n : group.nodes) gpus[group.comm] += !a_.NodeAt(n).edges.empty();
    }
    for (const auto& [comm, set] : kinds) {
      if (set.size() > 1 || gpus[comm] > 1) contradicting_.insert(comm);
    }
  }

  Candidate Start(const RootGroup& group, Kind::Value kind, Confidence::Value confidence) const {
    Candidate c;
    c.order = kind == Kind::undetermined ? Class::kUndetermined : Class::kStall;
    c.finding.set_kind(kind);
    // Cursors of all members are one complete line of evidence; without some of them it is a hint (2.6).
    if (group.comm >= 0 && !a_.AllSeen(group.comm)) confidence = std::min(confidence, Confidence::possible);
    c.finding.set_confidence(confidence);
    return c;
  }


  std::string Place(const RootGroup& group) const {
    if (group.comm < 0) return "an operation";
    const model::Communicator& c = a_.CommunicatorOf(group.comm);
    if (a_.input.comms[group.comm].p2p) return absl::StrCat("a send or receive of communicator ", c.Label());
    for (const model::Member& m : c.members) {
      if (const model::Op* op = m.Collective(group.position)) {
        return absl::StrCat(FuncText(op->raw.func()), " #", group.position, " of communicator ", c.Label());
      }
    }
    return PlaceText(c, group.position);
  }

  std::set<int> RanksOf(const RootGroup& group) const {
    std::set<int> ranks;
    for (int n : group.nodes) ranks.insert(a_.NodeAt(n).rank);
    return ranks;
  }

  // "py-spy dump --pid 17" on the hosts of the ranks.
  std::string StackCommand(const std::set<int>& ranks) const {
    std::vector<std::string> parts;
    for (int r : ranks) {
      const model::Process* p = a_.ProcessOf(r);
      if (p == nullptr) continue;
      parts.push_back(absl::StrCat("ssh ", p->host.empty() ? "<host>" : p->host, " py-spy dump --pid ", p->trace.process().pid()));
      if (parts.size() == 4) break;
    }
    return parts.empty() ? "py-spy dump --pid <pid>" : absl::StrJoin(parts, "; ");
  }

  static void SetNext(Finding* f, std::string text, std::string command) {
    f->mutable_next()->set_text(std::move(text));
    f->mutable_next()->set_command(std::move(command));
  }
  static void AddNote(Finding* f, std::string text) {
    Evidence& e = *f->add_evidence();
    e.set_text(std::move(text));
    e.set_rank(-1);
  }

  void AddMissingNote(const RootGroup& group, Finding* f) const {
    const std::string missing = a_.MissingMembers(group.comm);
    if (!missing.empty()) AddNote(f, absl::StrCat("incomplete view: no usable record of ", missing));
  }

  // Too many of a communicator to say that it is they who are wrong.
  bool TooMany(const RootGroup& group, size_t named) const {
    return named >= 2 && group.comm >= 0 && 2 * static_cast<int>(named) >= a_.MembersSeen(group.comm);
  }

  // ----------------------------------------------------------------------------------------------------- missing ranks
  Candidate Missing(const RootGroup& group) const {
    const std::set<int> ranks = RanksOf(group);
    if (TooMany(group, ranks.size())) return HalfOfThem(group, ranks);
    Candidate c = Start(group, Kind::missing_rank, Confidence::probable);
    Finding& f = c.finding;
    AddRanks(a_.JobRanks(ranks), f.mutable_who()->mutable_ranks());
    f.set_title(absl::StrCat(NamesText(ranks), ranks.size() == 1 ? " has" : " have", " not entered ", Place(group),
                             ", which the others wait in"));
    for (int r : ranks) {
      if (f.evidence_size() >= 8) break;
      AddAbsence(group, r, &f);
    }
    a_.Describe(group, &c);
    AddMissingNote(group, &f);
    f.set_refuted_by(absl::StrCat("a later record in which ", NamesText(ranks), " has entered the operation, or a stack of it "
                                  "inside this very call"));
    SetNext(&f, absl::StrCat("See what ", NamesText(ranks), ranks.size() == 1 ? " does" : " do",
                             " instead: data loading, checkpoint, a branch that leaves the call out, a debugger."),
            StackCommand(ranks));
    return c;
  }

  std::string NamesText(const std::set<int>& ranks) const {
    std::vector<std::string> names;
    for (int r : ranks) names.push_back(a_.RankName(r));
    if (names.size() == 1) return names[0];
    const std::set<int> jobs = a_.JobRanks(ranks);
    const bool known = std::all_of(ranks.begin(), ranks.end(), [&](int r) { return a_.input.ranks[r].job_rank >= 0; });
    if (known) return RanksText(jobs);
    if (names.size() > 8) names.resize(8);
    return absl::StrJoin(names, ", ");
  }

  void AddAbsence(const RootGroup& group, int rank, Finding* f) const {
    const model::Member* m = a_.MemberIn(group.comm, rank);
    const model::Process* p = a_.ProcessOf(rank);
    if (m == nullptr || p == nullptr) return;
    const bool p2p = group.comm >= 0 && a_.input.comms[group.comm].p2p;
    const model::Op* last = nullptr;
    for (const model::Op& op : m->ops) {
      if (op.p2p() == p2p) last = &op;
    }
    std::string text;
    if (last == nullptr) {
      text = absl::StrCat(a_.RankName(rank), " has called nothing on this communicator");
    } else {
      text = absl::StrCat(a_.RankName(rank), " has called ", p2p ? m->raw->p2ps() : m->collectives,
                          p2p ? " sends and receives; the last one is " : " collectives; the last one is ", OpText(last->raw),
                          Finished(*last) ? ", finished" : "");
    }
    if (m->finalized) absl::StrAppend(&text, m->finalized_open ? "; it aborted the communicator" : "; it destroyed the communicator");
    *f->add_evidence() = MemberEvidence(job_, *m, last == nullptr ? 0 : last->raw.row(), std::move(text));
    *f->add_evidence() = MemberEvidence(
        job_, *m, 0,
        absl::StrCat(a_.RankName(rank), " is outside NCCL and nothing is enqueued; ",
                     p->life == model::Life::kExited ? "whether its process still lives is not recorded" : p->life_evidence));
  }

  Candidate HalfOfThem(const RootGroup& group, const std::set<int>& ranks) const {
    Candidate c = Start(group, Kind::undetermined, Confidence::possible);
    Finding& f = c.finding;
    f.set_title(absl::StrCat(ranks.size(), " of ", a_.MembersSeen(group.comm), " ranks have not entered ", Place(group),
                             ": either they are late or the others are ahead"));
    a_.Describe(group, &c);
    AddNote(&f, absl::StrCat("not entered: ", NamesText(ranks)));
    AddMissingNote(group, &f);
    f.set_refuted_by("stacks that show which half is where the program should be");
    SetNext(&f, "Compare the stacks of one rank of each half.", StackCommand(ranks));
    return c;
  }

  Candidate InApi(const RootGroup& group) const {
    const std::set<int> ranks = RanksOf(group);
    const bool many = TooMany(group, ranks.size());
    Candidate c = Start(group, many ? Kind::undetermined : Kind::host_blocked, Confidence::probable);
    Finding& f = c.finding;
    if (!many) AddRanks(a_.JobRanks(ranks), f.mutable_who()->mutable_ranks());
    f.set_title(absl::StrCat(NamesText(ranks), ranks.size() == 1 ? " is" : " are", " inside an NCCL call that does not return, in ",
                             Place(group)));
    if (many) f.set_confidence(Confidence::possible);
    a_.Describe(group, &c);
    AddMissingNote(group, &f);
    f.set_refuted_by("a stack outside of NCCL and the CUDA driver");
    SetNext(&f, "The native stack tells what the call waits for: the driver, a lock, a connection.",
            "gdb -p <pid> -batch -ex 'thread apply all bt'");
    return c;
  }

  // --------------------------------------------------------------------------------------------------- GPUs and edges
  Candidate Gpu(const RootGroup& group) const {
    const std::set<int> ranks = RanksOf(group);
    if (TooMany(group, ranks.size())) {
      Candidate c = Start(group, Kind::undetermined, Confidence::possible);
      c.finding.set_title(absl::StrCat("On ", ranks.size(), " of ", a_.MembersSeen(group.comm), " ranks ", Place(group),
                                       " is enqueued and has not started"));
      a_.Describe(group, &c);
      c.finding.set_refuted_by("a kernel that runs on one of these GPUs and is not the job's");
      SetNext(&c.finding, "See what these GPUs execute: a compute kernel, a wait for an event, nothing.", "cuda-gdb -p <pid>");
      return c;
    }
    bool weak = false, by_edges = false;
    for (int n : group.nodes) {
      weak |= a_.NodeAt(n).weak;
      by_edges |= !a_.NodeAt(n).edges.empty();
    }
    Candidate c = Start(group, Kind::gpu_stalled, weak ? Confidence::possible : Confidence::probable);
    Finding& f = c.finding;
    AddRanks(a_.JobRanks(ranks), f.mutable_who()->mutable_ranks());
    AddGpus(ranks, &f);
    if (by_edges) {
      f.set_title(absl::StrCat("The GPU of ", NamesText(ranks), " makes no progress in ", Place(group),
                               ": it has received data and sends none on"));
    } else {
      f.set_title(absl::StrCat("The GPU of ", NamesText(ranks), " does not run ", Place(group),
                               ": enqueued, nothing of NCCL before it in its queue, and not started or not served"));
    }
    for (int n : group.nodes) AddGpuEvidence(group, a_.NodeAt(n), &f);
    a_.Describe(group, &c);
    AddMissingNote(group, &f);
    f.set_refuted_by("a compute kernel, stream dependency or full GPU that keeps the kernel waiting (then the GPU is well and its "
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
      *f->add_evidence() = MemberEvidence(job_, *m, op.raw.row(),
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
        if (edges[i].comm == edges[e].comm && edges[i].to == gpu.rank && edges[i].send_position == edges[e].send_position &&
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
        f->mutable_who()->add_gpus(absl::StrCat(p->host, ":", gpu.bus_id().empty() ? std::to_string(gpu.device()) : gpu.bus_id()));
      }
    }
  }
  std::string GpuCommand(const std::set<int>& ranks) const {
    for (int r : ranks) {
      const model::Process* p = a_.ProcessOf(r);
      if (p != nullptr && !p->host.empty()) {
        return absl::StrCat("ssh ", p->host, " 'nvidia-smi; dmesg -T | grep -i -e xid -e nvrm'; cuda-gdb -p ", p->trace.process().pid());
      }
    }
    return "nvidia-smi; dmesg -T | grep -i -e xid -e nvrm";
  }

  Candidate InsideNode(const RootGroup& group) const {
    std::set<std::string> hosts;
    for (int n : group.nodes) hosts.insert(a_.NodeAt(n).unit);
    // Inside a host that exchanges data without steps the rank cannot be told: the host is the answer, a possible one.
    Candidate c = Start(group, hosts.size() > 1 ? Kind::undetermined : Kind::gpu_stalled, Confidence::possible);
    Finding& f = c.finding;
    for (const std::string& h : hosts) f.mutable_who()->add_hosts(h);
    f.set_title(absl::StrCat("A GPU of host ", absl::StrJoin(hosts, ", "), " makes no progress in ", Place(group),
                             ": data arrives at the host and none leaves it"));
    if (hosts.size() > 1) f.mutable_who()->clear_hosts();
    for (int n : group.nodes) {
      const Node& node = a_.NodeAt(n);
      a_.AddEdgeEvidence(node, &f);
      AddHostInEdges(node, &f);
    }
    a_.Describe(group, &c);
    AddMissingNote(group, &f);
    AddNote(&f, "inside the host the ranks see each other's data without network steps: which of its GPUs stands still is not visible");
    f.set_refuted_by("progress of all GPUs of the host, or a fault between them (NVLink, PCIe)");
    SetNext(&f, "Look at every GPU of the host: Xid, NVLink errors, which kernels run.",
            absl::StrCat("ssh ", *hosts.begin(), " 'nvidia-smi nvlink -e; dmesg -T | grep -i -e xid -e nvrm'"));
    return c;
  }
  void AddHostInEdges(const Node& unit, Finding* f) const {
    Node in;
    const auto& edges = a_.input.graph.edges;
    const auto on_unit = [&](int r) { return a_.input.graph.hosts[r] == unit.unit; };
    for (int e : unit.edges) {
      for (size_t i = 0; i < edges.size(); ++i) {
        if (edges[i].comm == edges[e].comm && on_unit(edges[i].to) && !on_unit(edges[i].from) &&
            edges[i].send_position == edges[e].send_position && edges[i].channel == edges[e].channel) {
          in.edges.push_back(static_cast<int>(i));
        }
      }
    }
    a_.AddEdgeEvidence(in, f);
  }

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
    Candidate c = Start(group, Kind::edge_stalled, weak ? Confidence::possible : Confidence::probable);
    Finding& f = c.finding;
    std::vector<std::string> names;
    for (int n : group.nodes) {
      const Node& node = a_.NodeAt(n);
      const bool against = node.kind == Node::kControl;  // the clear-to-send goes against the data
      EdgeName& edge = *f.mutable_who()->add_edges();
      const int from = *a_.JobRanks({against ? node.peer : node.rank}).begin();
      const int to = *a_.JobRanks({against ? node.rank : node.peer}).begin();
      edge.set_from(from);
      edge.set_to(to);
      if (names.size() < 4) names.push_back(absl::StrCat(a_.RankName(from_rank(node, against)), " -> ", a_.RankName(to_rank(node, against))));
      a_.AddEdgeEvidence(node, &f);
    }
    const std::string list = absl::StrJoin(names, ", ");
    if (flush) {
      f.set_title(absl::StrCat("Data of edge ", list, " has arrived and does not reach GPU memory, in ", Place(group)));
    } else if (control) {
      f.set_title(absl::StrCat("The clear-to-send of edge ", list, " does not reach the sender, in ", Place(group)));
    } else {
      f.set_title(absl::StrCat("Edge ", list, " does not move: data was handed to the network and has not arrived, in ", Place(group)));
    }
    if (const int hub = CommonRank(data); hub >= 0) {
      AddRanks(a_.JobRanks({hub}), f.mutable_who()->mutable_ranks());
      AddNote(&f, absl::StrCat("all these edges begin or end at ", a_.RankName(hub), " and its in- and out-edges stand still: its "
                               "proxy thread or its network interface, rather than several paths"));
    }
    a_.Describe(group, &c);
    AddMissingNote(group, &f);
    f.set_refuted_by("the two ends' interfaces passing traffic to each other at this moment, or a receiving process whose proxy "
                     "thread does not run");
    SetNext(&f, "Look at the interfaces and the path of both ends; on RoCE and InfiniBand at their error and pause counters.",
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
        const bool all = std::all_of(edges.begin(), edges.end(), [r](const auto& e) { return e.first == r || e.second == r; });
        const bool in = std::any_of(edges.begin(), edges.end(), [r](const auto& e) { return e.second == r; });
        const bool out = std::any_of(edges.begin(), edges.end(), [r](const auto& e) { return e.first == r; });
        if (all && in && out) return r;
      }
    }
    return -1;
  }
  std::string EdgeCommand(const RootGroup& group) const {
    const Node& node = a_.NodeAt(group.nodes[0]);
    const model::Process *from = a_.ProcessOf(node.rank), *to = a_.ProcessOf(node.peer);
    const std::string a = from != nullptr && !from->host.empty() ? from->host : "<sender>";
    const std::string b = to != nullptr && !to->host.empty() ? to->host : "<receiver>";
    return absl::StrCat("ssh ", a, " 'ping -c 3 ", b, "; ip -s link; ss -tin; rdma link'; ssh ", b, " 'ip -s link; ss -tin; rdma link'");
  }

  Candidate Contradiction(int comm) const {
    RootGroup all{End::kAmbiguous, {}, comm, 0, {}, {}};
    for (const RootGroup& group : a_.groups) {
      if (group.comm != comm || !PivotClass(group.cls)) continue;
      all.nodes.insert(all.nodes.end(), group.nodes.begin(), group.nodes.end());
      all.waiting.insert(group.waiting.begin(), group.waiting.end());
      all.position = all.position == 0 ? group.position : std::min(all.position, group.position);
    }
    Candidate c = Start(all, Kind::undetermined, Confidence::possible);
    Finding& f = c.finding;
    f.set_title(absl::StrCat(Place(all), " stands still, and its channels point to different places"));
    for (int n : all.nodes) {
      const Node& node = a_.NodeAt(n);
      AddNote(&f, absl::StrCat("one end of the waiting: ", NodeText(node)));
      a_.AddEdgeEvidence(node, &f);
    }
    a_.Describe(all, &c);
    f.set_refuted_by("a second snapshot in which all channels point to the same place");
    SetNext(&f, "Look at the GPUs and the network interfaces that are named.", "nvidia-smi; dmesg -T | grep -i xid; ip -s link; rdma link");
    return c;
  }
  std::string NodeText(const Node& node) const {
    switch (node.kind) {
      case Node::kGpu: return absl::StrCat("the GPU of ", a_.RankName(node.rank));
      case Node::kUnit: return absl::StrCat("a GPU of host ", node.unit);
      default: return absl::StrCat("the edge ", a_.RankName(node.rank), " -> ", a_.RankName(node.peer));
    }
  }

  // -------------------------------------------------------------------------------------------- messages and deadlocks
  Candidate Unmatched(const RootGroup& group) const {
    std::set<int> lacking, having;
    for (int n : group.nodes) {
      lacking.insert(a_.NodeAt(n).rank);
      having.insert(a_.NodeAt(n).peer);
    }
    Candidate c = Start(group, Kind::p2p_unmatched, Confidence::probable);
    Finding& f = c.finding;
    // Where each lacks what the other has there is no culprit, only an order that cannot work.
    const bool mutual = std::any_of(lacking.begin(), lacking.end(), [&](int r) { return having.count(r) > 0; });
    if (!mutual) AddRanks(a_.JobRanks(lacking), f.mutable_who()->mutable_ranks());
    for (int n : group.nodes) {
      const Node& node = a_.NodeAt(n);
      const bool lacks_recv = node.unit == "recv";
      EdgeName& edge = *f.mutable_who()->add_edges();
      edge.set_from(*a_.JobRanks({lacks_recv ? node.peer : node.rank}).begin());
      edge.set_to(*a_.JobRanks({lacks_recv ? node.rank : node.peer}).begin());
      AddNote(&f, absl::StrCat(a_.RankName(node.peer), " has called ", lacks_recv ? "send" : "receive", " ", node.position,
                               lacks_recv ? " to " : " from ", a_.RankName(node.rank), ", which has not called the matching ",
                               lacks_recv ? "receive" : "send", " and waits for ", a_.RankName(node.peer), " elsewhere"));
    }
    const Node& first = a_.NodeAt(group.nodes[0]);
    f.set_title(mutual ? absl::StrCat("Ranks wait for each other in sends and receives of communicator ",
                                      a_.CommunicatorOf(group.comm).Label())
                       : absl::StrCat(a_.RankName(first.rank), " left out a ", first.unit == "recv" ? "receive from " : "send to ",
                                      a_.RankName(first.peer), " in communicator ", a_.CommunicatorOf(group.comm).Label()));
    a_.Describe(group, &c);
    AddMissingNote(group, &f);
    f.set_refuted_by("a program in which the missing call comes from another thread or stream that does not depend on this wait");
    SetNext(&f, "Look for the send or receive that one side calls and the other does not.", StackCommand(lacking));
    return c;
  }

  Candidate Cycle(const RootGroup& group) const {
    std::set<int> comms, ranks;
    std::map<int, std::map<int, int>> first_of;  // rank -> comm that runs, comm that is queued
    for (int n : group.nodes) {
      const Node& node = a_.NodeAt(n);
      if (node.rank >= 0) ranks.insert(node.rank);
      if (node.kind == Node::kOp) comms.insert(node.comm);
    }
    std::set<int> communicators;
    for (int comm : comms) communicators.insert(a_.input.comms[comm].communicator);
    const bool one = communicators.size() < 2;
    Candidate c = Start(group, one ? Kind::p2p_unmatched : Kind::communicator_cycle, Confidence::probable);
    Finding& f = c.finding;
    for (int comm : comms) {
      if (!a_.AllSeen(comm)) f.set_confidence(Confidence::possible);
    }
    for (int index : communicators) f.mutable_who()->add_communicators(job_.communicators[index].Label());
    const std::set<int> odd = OddRanks(group);
    AddRanks(a_.JobRanks(odd), f.mutable_who()->mutable_ranks());
    std::vector<std::string> labels;
    for (int index : communicators) labels.push_back(job_.communicators[index].Label());
    f.set_title(absl::StrCat(one ? "Operations of communicator " : "Communicators ", absl::StrJoin(labels, ", "),
                             " wait for each other",
                             odd.empty() ? "" : absl::StrCat(": ", NamesText(odd), " issued them in another order than the others")));
    AddOrders(group, &f);
    a_.Describe(group, &c);
    AddNote(&f, "the cure is one order on all ranks; no hardware is implicated");
    f.set_refuted_by("both kernels found running on one GPU (then they are not serialised, and this is no cycle)");
    SetNext(&f, "Find the code that issues these operations and make its order the same on all ranks.", StackCommand(odd.empty() ? ranks : odd));
    return c;
  }

  // Which communicator's operation each rank runs while the other's is queued behind it.
  std::map<int, std::pair<int, int>> Orders(const RootGroup& group) const {
    std::map<int, std::pair<int, int>> orders;
    for (int n : group.nodes) {
      const Node& node = a_.NodeAt(n);
      if (node.kind != Node::kOp) continue;
      for (int to : a_.result.next[n]) {
        const Node& other = a_.NodeAt(to);
        if (other.kind == Node::kOp && other.rank == node.rank && other.comm != node.comm) {
          orders[node.rank] = {other.comm, node.comm};
        }
      }
    }
    return orders;
  }
  std::set<int> OddRanks(const RootGroup& group) const {
    const auto orders = Orders(group);
    std::map<std::pair<int, int>, std::set<int>> camps;
    for (const auto& [rank, order] : orders) camps[order].insert(rank);
    if (camps.size() != 2) return {};
    const auto& a = camps.begin()->second;
    const auto& b = camps.rbegin()->second;
    // Two camps of opposite order, one of them smaller; half against half tells nothing.
    const auto &x = camps.begin()->first, &y = camps.rbegin()->first;
    if (x.first != y.second || x.second != y.first || a.size() == b.size()) return {};
    return a.size() < b.size() ? a : b;
  }
  void AddOrders(const RootGroup& group, Finding* f) const {
    size_t lines = 0;
    for (const auto& [rank, order] : Orders(group)) {
      if (++lines > 8) break;
      const model::Member* m = a_.MemberIn(order.second, rank);
      if (m == nullptr || !m->has_record()) continue;
      uint32_t row = 0;
      for (int n : group.nodes) {
        const Node& node = a_.NodeAt(n);
        if (node.kind != Node::kOp || node.rank != rank || node.comm != order.second) continue;
        for (const model::Op& op : m->ops) {
          if (op.position() == node.position && op.p2p() == a_.input.comms[node.comm].p2p) row = op.raw.row();
        }
      }
      *f->add_evidence() =
          MemberEvidence(job_, *m, row, absl::StrCat(a_.RankName(rank), " runs an operation of ", a_.CommunicatorOf(order.first).Label(),
                                                     " and has one of ", a_.CommunicatorOf(order.second).Label(), " queued behind it"));
    }
  }

  // ------------------------------------------------------------------------------------------------------ undetermined
  Candidate Unequal(const RootGroup& group) const {
    Candidate c = Start(group, Kind::undetermined, Confidence::possible);
    Finding& f = c.finding;
    f.set_title(absl::StrCat("The two ends of an edge do not run the same operation in ", Place(group)));
    for (int n : group.nodes) a_.AddEdgeEvidence(a_.NodeAt(n), &f);
    a_.Describe(group, &c);
    f.set_refuted_by("equal arguments on all ranks");
    SetNext(&f, "Compare the arguments and the environment (NCCL_*) of the ranks at this operation.", "ringscope show <record of each rank>");
    return c;
  }

  Candidate Ambiguous(const RootGroup& group) const {
    Candidate c = Start(group, Kind::undetermined, Confidence::possible);
    Finding& f = c.finding;
    f.set_title(absl::StrCat(Place(group), " runs on all ranks and stands still inside the communicator"));
    a_.Describe(group, &c);
    AddMissingNote(group, &f);
    AddNote(&f, "no edge with network steps tells more: a fault between GPUs, one GPU, different arguments or NCCL itself look alike");
    f.set_refuted_by("a rank that has not started the operation");
    SetNext(&f, "Compare arguments; look for Xid and NVLink errors on the GPUs of these ranks.",
            "nvidia-smi nvlink -e; dmesg -T | grep -i -e xid -e nvrm");
    return c;
  }

  Candidate NoRecord(const RootGroup& group) const {
    const std::set<int> ranks = RanksOf(group);
    Candidate c = Start(group, Kind::undetermined, Confidence::possible);
    Finding& f = c.finding;
    f.set_title(absl::StrCat(Place(group), " stands still; the waiting leads to ", NamesText(ranks), ", of which there is no record"));
    a_.Describe(group, &c);
    f.set_refuted_by("the record of that rank");
    SetNext(&f,
            absl::StrCat("Get the record of ", NamesText(ranks), " (flight file or trace): it has not entered, is gone, or shows the "
                         "other side of the stalled edge."),
            "ls /dev/shm/ringscope-*/ on its host; then: ringscope diagnose <all records>");
    return c;
  }

  const StallAnalysis& a_;
  const model::Job& job_;
  std::set<int> contradicting_, said_;
  std::vector<Candidate> out_;
};

// Processes were ended with operations open that had moved a moment before: the records tell nothing of a hang.
std::vector<Candidate> EndedInFlight(const StallAnalysis& analysis) {
  std::set<int> ranks;
  for (size_t i = 0; i < analysis.input.graph.ops.size(); ++i) {
    const graph::Participation& op = analysis.input.graph.ops[i];
    const model::Process* p = analysis.ProcessOf(op.rank);
    if (p == nullptr || !op.progress.Before(graph::Stage::kFinished)) continue;
    const trace::Liveness& live = p->trace.liveness();
    const bool lives = p->from_flight_file && live.lock_known() && live.lock_held();
    if (!lives && p->life != model::Life::kExited) ranks.insert(op.rank);
  }
  if (ranks.empty()) return {};
  Candidate c;
  c.order = Class::kUndetermined;
  Finding& f = c.finding;
  f.set_kind(Kind::undetermined);
  f.set_confidence(Confidence::possible);
  f.set_title(absl::StrCat("The records end while operations were under way on ", RanksText(analysis.JobRanks(ranks)),
                           ": nothing had been without progress for the stall time"));
  size_t lines = 0;
  for (size_t i = 0; i < analysis.input.graph.ops.size() && lines < 4; ++i) {
    const graph::Participation& op = analysis.input.graph.ops[i];
    if (ranks.count(op.rank) == 0 || !op.progress.Before(graph::Stage::kFinished)) continue;
    const OpOrigin& origin = analysis.input.ops[i];
    const model::Communicator& comm = analysis.job.communicators[origin.communicator];
    *f.add_evidence() = MemberEvidence(analysis.job, comm.members[origin.member], origin.op->raw.row(),
                                       absl::StrCat(OpText(origin.op->raw), " of ", comm.Label(), " is open"));
    ++lines;
  }
  f.set_refuted_by("a record that was written after the stall time had passed");
  f.mutable_next()->set_text("If the job was ended because it hung, let it stand for the stall time (RINGSCOPE_STALL_SECONDS) before "
                             "it is killed, or diagnose it while it lives.");
  f.mutable_next()->set_command("ringscope diagnose <flight directory> on the running job");
  return {c};
}

const Register kRegister("stall", FindStalls);

}  // namespace

std::vector<Candidate> FindStalls(const model::Job& job) {
  const StallAnalysis analysis(job);
  if (analysis.input.open && !analysis.input.hung) return EndedInFlight(analysis);
  return Writer(analysis).Run();
}

}  // namespace ringscope::reasoning
