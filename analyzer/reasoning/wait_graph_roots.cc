#include "analyzer/reasoning/wait_graph_roots.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "analyzer/reasoning/wait_graph_components.h"

namespace ringscope::reasoning::graph {
namespace {

End HostEnd(Host host) {
  switch (host) {
    case Host::kDead:
      return End::kRankDead;
    case Host::kFrozen:
      return End::kRankFrozen;
    case Host::kLost:
      return End::kRankLost;
    case Host::kExited:
      return End::kRankExited;
    case Host::kApi:
      return End::kInApi;
    case Host::kNoRecord:
      return End::kNoRecord;
    default:
      return End::kNotEntered;
  }
}

// Nothing: not an end of waiting (an operation that is over).
bool EndOf(const Input& in, const Node& node, End* cls) {
  switch (node.kind) {
    case Node::kHost:
      *cls = HostEnd(in.ranks[node.rank].host);
      return true;
    case Node::kGpu:
      *cls = End::kGpuStalled;
      return true;
    case Node::kUnit:
      *cls = End::kInsideNode;
      return true;
    case Node::kEdge:
      *cls = End::kNetEdge;
      return true;
    case Node::kControl:
      *cls = End::kNetControl;
      return true;
    case Node::kFlush:
      *cls = End::kRecvFlush;
      return true;
    case Node::kUnequal:
      *cls = End::kUnequalSteps;
      return true;
    case Node::kComm:
      *cls = End::kAmbiguous;
      return true;
    case Node::kMissingRecord:
      *cls = End::kNoRecord;
      return true;
    default:
      return false;
  }
}

bool Hub(const Node& node) { return node.kind >= Node::kLateHub; }

}  // namespace

void AddRoots(const Input& input, Result* result) {
  for (const std::vector<int>& component : SinkComponents(result->next)) {
    Root root;
    bool unmatched = false;
    for (int n : component) {
      if (Hub(result->nodes[n])) continue;
      unmatched |= result->nodes[n].kind == Node::kUnmatched;
      root.nodes.push_back(n);
    }
    if (root.nodes.empty()) continue;
    if (component.size() > 1) {
      root.cls = unmatched ? End::kUnmatched : End::kCycle;
      if (unmatched) {
        std::erase_if(root.nodes, [&](int n) { return result->nodes[n].kind != Node::kUnmatched; });
      }
    } else if (!EndOf(input, result->nodes[root.nodes[0]], &root.cls)) {
      continue;
    }
    std::sort(root.nodes.begin(), root.nodes.end());
    result->roots.push_back(std::move(root));
  }
  std::sort(result->roots.begin(), result->roots.end(),
            [](const Root& a, const Root& b) { return a.nodes < b.nodes; });
}

namespace {

// Signatures go first: a mismatch explains any later symptom of that operation.
bool SignatureRoots(const Input& input, Result* result) {
  std::map<std::pair<int, uint64_t>, std::vector<const Signature*>> by_op;
  for (const Signature& s : input.signatures) by_op[{s.comm, s.position}].push_back(&s);
  for (const auto& [op, list] : by_op) {
    std::map<std::string, size_t> votes;
    for (const Signature* s : list) ++votes[s->text];
    size_t most = 0;
    for (const auto& [text, n] : votes) most = std::max(most, n);
    if (votes.size() < 2) continue;
    // With no majority all of them are named: which half is wrong cannot be told.
    const bool tie = std::count_if(votes.begin(), votes.end(),
                                   [&](const auto& v) { return v.second == most; }) > 1;
    for (const Signature* s : list) {
      if (!tie && votes[s->text] == most) continue;
      result->roots.push_back({End::kSignature, {static_cast<int>(result->nodes.size())}});
      result->nodes.push_back(
          {.kind = Node::kHost, .comm = op.first, .position = op.second, .rank = s->rank});
      result->next.emplace_back();
    }
    return true;
  }
  return false;
}

// An error that names its peer is direct evidence of the edge; a timeout towards a dead peer is
// that peer's.
bool ErrorRoots(const Input& input, Result* result) {
  if (input.errors.empty()) return false;
  std::set<int> gone;
  bool all_timeouts = true;
  for (const AsyncError& e : input.errors) {
    all_timeouts &= e.timeout;
    const Host host = input.ranks[e.peer].host;
    if (host == Host::kDead || host == Host::kExited) gone.insert(e.peer);
  }
  const auto add = [&](End cls, Node node) {
    result->roots.push_back({cls, {static_cast<int>(result->nodes.size())}});
    result->nodes.push_back(std::move(node));
    result->next.emplace_back();
  };
  if (all_timeouts && !gone.empty()) {
    for (int peer : gone) add(End::kRankDead, {.kind = Node::kHost, .rank = peer});
  } else {
    for (const AsyncError& e : input.errors)
      add(End::kNetEdge, {.kind = Node::kEdge, .rank = e.rank, .peer = e.peer});
  }
  return true;
}

}  // namespace

bool AddEarlyRoots(const Input& input, Result* result) {
  return SignatureRoots(input, result) || ErrorRoots(input, result);
}

std::vector<int> Result::Path(int start, const Root& root) const {
  std::vector<int> from(nodes.size(), -2);
  std::vector<int> queue{start};
  from[start] = -1;
  const std::set<int> goal(root.nodes.begin(), root.nodes.end());
  for (size_t i = 0; i < queue.size(); ++i) {
    if (goal.count(queue[i])) {
      std::vector<int> path;
      for (int n = queue[i]; n >= 0; n = from[n]) {
        if (!Hub(nodes[n])) path.push_back(n);
      }
      std::reverse(path.begin(), path.end());
      return path;
    }
    for (int n : next[queue[i]]) {
      if (from[n] != -2) continue;
      from[n] = queue[i];
      queue.push_back(n);
    }
  }
  return {};
}

std::string Name(const Input& input, const Node& node) {
  const std::string rank = std::to_string(node.rank), peer = std::to_string(node.peer);
  const std::string comm = node.comm >= 0 ? input.comms[node.comm].name : "";
  switch (node.kind) {
    case Node::kOp:
      return "K" + comm + std::to_string(node.position) + "@" + rank;
    case Node::kHost:
      return "H" + rank;
    case Node::kGpu:
      return "G" + rank;
    case Node::kEdge:
      return "E" + rank + "->" + peer;
    case Node::kControl:
      return "E" + peer + "->" + rank;  // the clear-to-send goes against the data
    case Node::kFlush:
      return "F" + peer;
    case Node::kUnit:
      return "N" + node.unit;
    case Node::kUnequal:
      return "S" + rank + "->" + peer;
    case Node::kComm:
      return "C:" + comm + std::to_string(node.position);
    case Node::kUnmatched:
      return "U" + rank + "->" + peer;
    case Node::kMissingRecord:
      return "R" + rank;
    default:
      return "";
  }
}

std::string Name(End cls) {
  switch (cls) {
    case End::kSignature:
      return "signature-mismatch";
    case End::kRankDead:
      return "rank-dead";
    case End::kRankFrozen:
      return "rank-frozen";
    case End::kRankLost:
      return "rank-lost";
    case End::kRankExited:
      return "rank-exited";
    case End::kNotEntered:
      return "not-entered";
    case End::kInApi:
      return "in-nccl-api";
    case End::kGpuStalled:
      return "gpu-stalled";
    case End::kInsideNode:
      return "inside-node";
    case End::kNetEdge:
      return "net-edge";
    case End::kNetControl:
      return "net-control";
    case End::kRecvFlush:
      return "recv-flush";
    case End::kUnequalSteps:
      return "unequal-steps";
    case End::kUnmatched:
      return "unmatched-p2p";
    case End::kCycle:
      return "deadlock-cycle";
    case End::kAmbiguous:
      return "ambiguous-inside-comm";
    case End::kNoRecord:
      return "no-record";
  }
  return "";
}

}  // namespace ringscope::reasoning::graph
