#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/stall_finder.h"

namespace ringscope::reasoning {

using graph::End;
using graph::Node;
using graph::Root;
using graph::Stage;

namespace {

constexpr size_t kMaxHops = 10;  // lines of evidence for one way
constexpr size_t kMaxEdgeLines = 8;

bool AtHost(End cls) {
  return cls == End::kRankDead || cls == End::kRankFrozen || cls == End::kRankLost ||
         cls == End::kRankExited;
}

std::string StepText(trace::StepState state) {
  switch (state) {
    case trace::SEND_GPU_WAIT:
      return "waits for its GPU to produce data";
    case trace::SEND_PEER_WAIT:
      return "waits for the receiver's clear-to-send";
    case trace::SEND_WAIT:
      return "waits for the network to complete a send";
    case trace::RECV_WAIT:
      return "waits for data";
    case trace::RECV_FLUSH_WAIT:
      return "waits for received data to reach GPU memory";
    case trace::RECV_GPU_WAIT:
      return "waits for its GPU to take received data";
    default:
      return "has no step open";
  }
}

}  // namespace

StallAnalysis::StallAnalysis(const model::Job& j) : job(j), input(BuildWaitInput(j)) {
  if (!input.hung) return;
  result = graph::Analyse(input.graph);
  for (size_t i = 0; i < input.graph.ops.size(); ++i) {
    const graph::Participation& op = input.graph.ops[i];
    op_index_[{op.comm, op.rank, op.position}] = static_cast<int>(i);
  }
  reverse_.resize(result.nodes.size());
  for (size_t n = 0; n < result.next.size(); ++n) {
    for (int to : result.next[n]) reverse_[to].push_back(static_cast<int>(n));
  }
  Group();
}

// The operation at which the root is waited for: of several the one whose wait began first.
void StallAnalysis::Place(const Root& root, int* comm, uint64_t* position) const {
  std::tuple<int, uint64_t, int> best{0, 0, -1};
  const auto consider = [&](const Node& node) {
    if (node.comm < 0) return;
    const std::tuple<int, uint64_t, int> at{input.comms[node.comm].began, node.position, node.comm};
    if (std::get<2>(best) < 0 || at < best) best = at;
  };
  std::deque<std::pair<int, int>> queue;
  for (int n : root.nodes) {
    consider(NodeAt(n));
    queue.emplace_back(n, 0);
  }
  // Hubs lie between the operation and the root.
  while (!queue.empty()) {
    const auto [n, depth] = queue.front();
    queue.pop_front();
    for (int from : reverse_[n]) {
      if (NodeAt(from).kind == Node::kOp || NodeAt(from).kind == Node::kUnmatched) {
        consider(NodeAt(from));
      } else if (depth < 3) {
        queue.emplace_back(from, depth + 1);
      }
    }
  }
  *comm = std::get<2>(best);
  *position = std::get<1>(best);
}

void StallAnalysis::Group() {
  std::map<std::tuple<int, int, int>, size_t> index;
  for (size_t i = 0; i < result.roots.size(); ++i) {
    const Root& root = result.roots[i];
    int comm = -1;
    uint64_t position = 0;
    Place(root, &comm, &position);
    // Edges of one communicator belong together whatever their kind; a cycle is one thing; what is
    // wrong with a process is so wherever it is waited for.
    int kind = static_cast<int>(root.cls), part = comm;
    if (root.cls == End::kNetControl || root.cls == End::kRecvFlush)
      kind = static_cast<int>(End::kNetEdge);
    if (root.cls == End::kCycle) part = static_cast<int>(i);
    if (AtHost(root.cls) || root.cls == End::kNoRecord) part = -1;
    const auto [it, fresh] = index.try_emplace({kind, part, 0}, groups.size());
    if (fresh) {
      groups.push_back({root.cls, {}, comm, position, {}, {}});
    }
    RootGroup& group = groups[it->second];
    group.roots.push_back(&root);
    group.nodes.insert(group.nodes.end(), root.nodes.begin(), root.nodes.end());
    const auto begin = [&](int c) { return c < 0 ? -1 : input.comms[c].began; };
    if (std::make_pair(begin(comm), position) < std::make_pair(begin(group.comm), group.position)) {
      group.comm = comm;
      group.position = position;
    }
  }
  for (RootGroup& group : groups) FindWaiting(&group);
  // Who has waited longest first: of two independent ends that one stopped the job.
  std::stable_sort(groups.begin(), groups.end(), [this](const RootGroup& a, const RootGroup& b) {
    return (a.comm < 0 ? -1 : input.comms[a.comm].began) < (b.comm < 0 ? -1 : input.comms[b.comm].began);
  });
}

void StallAnalysis::FindWaiting(RootGroup* group) const {
  std::vector<char> seen(result.nodes.size(), 0);
  std::vector<int> queue = group->nodes;
  for (int n : queue) seen[n] = 1;
  for (size_t i = 0; i < queue.size(); ++i) {
    const Node& node = NodeAt(queue[i]);
    if (node.kind == Node::kOp && Entered(node)) group->waiting.insert(node.rank);
    for (int from : reverse_[queue[i]]) {
      if (!seen[from]) {
        seen[from] = 1;
        queue.push_back(from);
      }
    }
  }
}

// ---- words
const model::Process* StallAnalysis::ProcessOf(int rank) const {
  const int p = input.ranks[rank].process;
  return p < 0 ? nullptr : &job.processes[p];
}

const model::Communicator& StallAnalysis::CommunicatorOf(int comm) const {
  return job.communicators[input.comms[comm].communicator];
}

const model::Member* StallAnalysis::MemberIn(int comm, int rank) const {
  if (comm >= 0) {
    const auto& ranks = input.graph.comms[comm].ranks;
    const auto at = std::find(ranks.begin(), ranks.end(), rank);
    if (at != ranks.end()) return &CommunicatorOf(comm).members[at - ranks.begin()];
  }
  return input.MemberOf(job, rank);
}

std::string StallAnalysis::RankName(int rank) const {
  const RankInfo& info = input.ranks[rank];
  if (info.job_rank >= 0) return absl::StrCat("rank ", info.job_rank);
  return RankText(job.communicators[info.communicator],
                  job.communicators[info.communicator].members[info.member]);
}

std::set<int> StallAnalysis::JobRanks(const std::set<int>& ranks) const {
  std::set<int> out;
  for (int r : ranks) {
    // Where no number in the job is known the number in the communicator is the best name there is.
    out.insert(input.ranks[r].job_rank >= 0 ? input.ranks[r].job_rank : input.ranks[r].member);
  }
  return out;
}

bool StallAnalysis::AllSeen(int comm) const { return MissingMembers(comm).empty(); }

int StallAnalysis::MembersSeen(int comm) const {
  int seen = 0;
  for (int r : input.graph.comms[comm].ranks)
    seen += input.graph.ranks[r].host != graph::Host::kNoRecord;
  return seen;
}

std::string StallAnalysis::MissingMembers(int comm) const {
  if (comm < 0) return "";
  std::vector<std::string> missing;
  size_t more = 0;
  for (int r : input.graph.comms[comm].ranks) {
    const model::Process* p = ProcessOf(r);
    if (input.graph.ranks[r].host != graph::Host::kNoRecord && (p == nullptr || !p->torn)) continue;
    if (missing.size() < 8) {
      missing.push_back(RankName(r));
    } else {
      ++more;
    }
  }
  return absl::StrCat(absl::StrJoin(missing, ", "),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

int StallAnalysis::IndexOf(const Node& op) const {
  const auto it = op_index_.find({op.comm, op.rank, op.position});
  return it == op_index_.end() ? -1 : it->second;
}

bool StallAnalysis::Entered(const Node& op) const {
  const int i = IndexOf(op);
  return i >= 0 && input.graph.ops[i].progress.Reached(Stage::kEntered);
}

uint32_t StallAnalysis::RowOf(const Node& op) const {
  const int i = IndexOf(op);
  return i < 0 ? 0 : input.ops[i].op->raw.row();
}

std::string StallAnalysis::OpName(const Node& op) const {
  const model::Member* m = MemberIn(op.comm, op.rank);
  const CommInfo& info = input.comms[op.comm];
  const model::Communicator& c = CommunicatorOf(op.comm);
  if (!info.p2p) {
    const model::Op* found = m == nullptr ? nullptr : m->Collective(op.position);
    for (const model::Member& other : c.members) {
      if (found != nullptr) break;
      found = other.Collective(op.position);
    }
    return absl::StrCat(found == nullptr ? "operation" : FuncText(found->raw.func()), " #",
                        op.position, " of ", c.Label());
  }
  if (m != nullptr) {
    for (const model::Op& found : m->ops) {
      if (!found.p2p() || found.position() != op.position) continue;
      const int peer = found.raw.peer();
      const bool send = found.raw.func() == trace::SEND;
      std::string name = found.raw.tail_tasks() > 0
                             ? absl::StrCat("group of ", found.raw.tail_tasks(), " messages")
                             : FuncText(found.raw.func());
      if (found.raw.tail_tasks() == 0 && peer >= 0 && peer < c.n_ranks) {
        absl::StrAppend(&name, send ? " to " : " from ", RankText(c, c.members[peer]));
      }
      return absl::StrCat(name, " (call ", op.position, ") of ", c.Label());
    }
  }
  return absl::StrCat("send or receive ", op.position, " of ", c.Label());
}

// What `node`, an operation, waits for when the way goes on to `next`.
std::string StallAnalysis::Hop(int n, int next) const {
  const Node& node = NodeAt(n);
  const Node& to = NodeAt(next);
  const std::string who = RankName(node.rank);
  const std::string what = OpName(node);
  switch (to.kind) {
    case Node::kOp: {
      const int a = IndexOf(node), b = IndexOf(to);
      const bool one_kernel = input.comms[node.comm].p2p && a >= 0 && b >= 0 &&
                              input.graph.ops[a].group != 0 &&
                              input.graph.ops[a].group == input.graph.ops[b].group;
      if (to.rank == node.rank && to.comm == node.comm && one_kernel) {
        return absl::StrCat("on ", who, " ", what, " runs in one kernel with ", OpName(to),
                            ", which has not finished");
      }
      if (to.rank == node.rank) {
        return absl::StrCat("on ", who, " ", what, " is queued behind ", OpName(to),
                            ", which has not finished");
      }
      if (input.comms[node.comm].p2p) {
        return absl::StrCat(who, " waits in ", what, " for ", RankName(to.rank),
                            ", which has not started its side of it");
      }
      return absl::StrCat(who, " waits in ", what, " for ", RankName(to.rank), ", which has not ",
                          Entered(to) ? "started it on its GPU" : "entered it");
    }
    case Node::kUnmatched:
      return absl::StrCat(who, " waits in ", what, ": ", RankName(to.rank),
                          " has not called message ", to.position, " of that direction");
    case Node::kMissingRecord:
      return absl::StrCat(who, " waits in ", what, "; of ", RankName(to.rank),
                          " there is no record");
    case Node::kHost:
      if (to.rank == node.rank) {
        const int i = IndexOf(node);
        if (i >= 0 && input.graph.ops[i].progress.Reached(Stage::kEnqueued))
          return absl::StrCat(who, " has enqueued ", what, "; its GPU has not started it");
        return absl::StrCat(who, " has entered ", what, " and the call has not enqueued it");
      }
      return absl::StrCat(who, " waits in ", what, " for ", RankName(to.rank));
    case Node::kGpu:
      if (to.rank == node.rank) return absl::StrCat(who, " waits in ", what, " for its own GPU");
      return absl::StrCat(who, " waits in ", what, " for the GPU of ", RankName(to.rank));
    default:
      return absl::StrCat(who, " waits in ", what);
  }
}

void StallAnalysis::AddEdgeEvidence(const Node& node, Finding* finding) const {
  size_t lines = 0;
  for (int e : node.edges) {
    const EdgeView& view = input.graph.edges[e];
    const model::Edge& edge = *input.edges[e];
    for (bool send : {true, false}) {
      const auto& side = send ? edge.sender : edge.receiver;
      const EdgeEnd& end = send ? view.send : view.recv;
      if (!side || lines >= kMaxEdgeLines) continue;
      const model::Process& p = job.processes[side->process];
      std::string text =
          absl::StrCat("edge ", RankName(view.from), " -> ", RankName(view.to), ", channel ",
                       view.channel, send ? ", sender: " : ", receiver: ");
      if (end.phase == EdgeEnd::kOpen) {
        absl::StrAppend(&text, end.done, " of ", end.total, " steps done, ", end.moved,
                        send ? " handed to the network, " : " arrived, ", StepText(end.state));
      } else if (end.phase == EdgeEnd::kOver) {
        absl::StrAppend(&text, "all steps done");
      } else {
        continue;
      }
      Evidence& evidence = *finding->add_evidence();
      evidence.set_text(std::move(text));
      const int rank = end.driver >= 0 ? end.driver : send ? view.from : view.to;
      evidence.set_rank(input.ranks[rank].job_rank);
      evidence.set_row(end.row);
      evidence.set_source(absl::StrCat(RankName(rank), " on ", p.host, " (", p.source, ")"));
      ++lines;
    }
  }
}

void StallAnalysis::Describe(const RootGroup& group, Candidate* candidate) const {
  Finding& finding = candidate->finding;
  finding.mutable_cause()->set_id("not established");
  candidate->stops_job = true;
  if (group.comm >= 0) {
    candidate->communicator = input.comms[group.comm].communicator;
    candidate->position = input.comms[group.comm].p2p ? 0 : group.position;
    if (finding.who().communicators().empty())
      finding.mutable_who()->add_communicators(CommunicatorOf(group.comm).Label());
  }
  std::set<int> collateral = JobRanks(group.waiting);
  for (int rank : finding.who().ranks()) collateral.erase(rank);
  AddRanks(collateral, finding.mutable_collateral()->mutable_ranks());

  // The longest of the shortest ways explains most; every waiting rank has its own.
  Root all;
  all.nodes = group.nodes;
  std::vector<int> best;
  size_t tried = 0;
  std::set<int> ranks_tried;
  for (int start : result.starts) {
    if (group.waiting.count(NodeAt(start).rank) == 0 ||
        !ranks_tried.insert(NodeAt(start).rank).second)
      continue;
    std::vector<int> path = result.Path(start, all);
    if (path.size() > best.size()) best = std::move(path);
    if (++tried == 16) break;
  }
  for (size_t i = 0; i + 1 < best.size() && i < kMaxHops; ++i) {
    const Node& node = NodeAt(best[i]);
    if (node.kind != Node::kOp || node.rank < 0) continue;
    const model::Member* m = MemberIn(node.comm, node.rank);
    if (m == nullptr || !m->has_record()) continue;
    if (!Entered(node)) continue;  // said by the hop before
    finding.add_chain(static_cast<uint32_t>(finding.evidence_size()));
    *finding.add_evidence() = MemberEvidence(job, *m, RowOf(node), Hop(best[i], best[i + 1]));
  }
}

}  // namespace ringscope::reasoning
