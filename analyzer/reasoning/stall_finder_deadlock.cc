// The waiting ends in a circle: messages without partner, communicators in different order.
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/stall_finder_words.h"

namespace ringscope::reasoning {
namespace {

using graph::Node;

class DeadlockWriter : public StallWords {
 public:
  using StallWords::StallWords;

  Candidate Unmatched(const RootGroup& group) const {
    std::set<int> lacking, having;
    for (int n : group.nodes) {
      lacking.insert(a_.NodeAt(n).rank);
      having.insert(a_.NodeAt(n).peer);
    }
    Candidate c = Start(group, Kind::p2p_unmatched, Confidence::probable);
    Finding& f = c.finding;
    // Where each lacks what the other has there is no culprit, only an order that cannot work.
    const bool mutual =
        std::any_of(lacking.begin(), lacking.end(), [&](int r) { return having.count(r) > 0; });
    if (!mutual) AddRanks(a_.JobRanks(lacking), f.mutable_who()->mutable_ranks());
    for (int n : group.nodes) {
      const Node& node = a_.NodeAt(n);
      const bool lacks_recv = node.unit == "recv";
      EdgeName& edge = *f.mutable_who()->add_edges();
      edge.set_from(*a_.JobRanks({lacks_recv ? node.peer : node.rank}).begin());
      edge.set_to(*a_.JobRanks({lacks_recv ? node.rank : node.peer}).begin());
      AddNote(&f, absl::StrCat(
                      a_.RankName(node.peer), " has called ", lacks_recv ? "send" : "receive", " ",
                      node.position, lacks_recv ? " to " : " from ", a_.RankName(node.rank),
                      ", which has not called the matching ", lacks_recv ? "receive" : "send",
                      " and waits for ", a_.RankName(node.peer), " elsewhere"));
    }
    const Node& first = a_.NodeAt(group.nodes[0]);
    f.set_title(
        mutual ? absl::StrCat("Ranks wait for each other in sends and receives of communicator ",
                              a_.CommunicatorOf(group.comm).Label())
               : absl::StrCat(a_.RankName(first.rank), " left out a ",
                              first.unit == "recv" ? "receive from " : "send to ",
                              a_.RankName(first.peer), " in communicator ",
                              a_.CommunicatorOf(group.comm).Label()));
    a_.Describe(group, &c);
    AddMissingNote(group, &f);
    f.set_refuted_by(
        "a program in which the missing call comes from another thread or stream that does not "
        "depend on this wait");
    SetNext(&f, "Look for the send or receive that one side calls and the other does not.",
            StackCommand(lacking));
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
    // Collectives of a communicator and its sends and receives run in the order of the calls, as one queue.
    const Kind::Value kind = !one               ? Kind::communicator_cycle
                             : comms.size() > 1 ? Kind::order_mismatch
                                                : Kind::p2p_unmatched;
    Candidate c = Start(group, kind, Confidence::probable);
    Finding& f = c.finding;
    for (int comm : comms) {
      if (!a_.AllSeen(comm)) f.set_confidence(Confidence::possible);
    }
    if (!one && !StreamsKnown(group)) {
      f.set_confidence(Confidence::possible);
      AddNote(&f, "this release of NCCL does not tell the streams: one stream a rank is assumed");
    }
    for (int index : communicators)
      f.mutable_who()->add_communicators(job_.communicators[index].Label());
    const std::set<int> odd = OddRanks(group);
    AddRanks(a_.JobRanks(odd), f.mutable_who()->mutable_ranks());
    std::vector<std::string> labels;
    for (int index : communicators) labels.push_back(job_.communicators[index].Label());
    f.set_title(absl::StrCat(
        one ? "Operations of communicator " : "Communicators ", absl::StrJoin(labels, ", "),
        " wait for each other",
        odd.empty()
            ? ""
            : absl::StrCat(": ", NamesText(odd), " issued them in another order than the others")));
    AddOrders(group, &f);
    a_.Describe(group, &c);
    AddNote(&f, "the cure is one order on all ranks; no hardware is implicated");
    f.set_refuted_by(
        "both kernels found running on one GPU (then they are not serialised, and this is no "
        "cycle)");
    SetNext(&f,
            "Find the code that issues these operations and make its order the same on all ranks.",
            StackCommand(odd.empty() ? ranks : odd));
    return c;
  }

  bool StreamsKnown(const RootGroup& group) const {
    for (int n : group.nodes) {
      const Node& node = a_.NodeAt(n);
      if (node.kind != Node::kOp) continue;
      const model::Member* m = a_.MemberIn(node.comm, node.rank);
      if (m == nullptr) continue;
      for (const model::Op& op : m->ops) {
        if (op.position() == node.position && op.p2p() == a_.input.comms[node.comm].p2p &&
            op.raw.stream() == 0 && !op.raw.from_api()) {
          return false;
        }
      }
    }
    return true;
  }

  struct Order {
    int runs = -1, queued = -1;  // of the graph's communicators
    int running = -1;            // node of what runs
    int waiting = -1;            // node of what is queued behind it
  };
  // Which communicator's operation each rank runs while the other's is queued behind it.
  std::map<int, Order> Orders(const RootGroup& group) const {
    std::map<int, Order> orders;
    for (int n : group.nodes) {
      const Node& node = a_.NodeAt(n);
      if (node.kind != Node::kOp) continue;
      for (int to : a_.result.next[n]) {
        const Node& other = a_.NodeAt(to);
        if (other.kind == Node::kOp && other.rank == node.rank && other.comm != node.comm) {
          orders[node.rank] = {other.comm, node.comm, to, n};
        }
      }
    }
    return orders;
  }
  std::set<int> OddRanks(const RootGroup& group) const {
    const auto orders = Orders(group);
    std::map<std::pair<int, int>, std::set<int>> camps;
    for (const auto& [rank, order] : orders) camps[{order.runs, order.queued}].insert(rank);
    if (camps.size() != 2) return {};
    const auto& a = camps.begin()->second;
    const auto& b = camps.rbegin()->second;
    // Two camps of opposite order, one of them smaller; half against half tells nothing.
    const auto &x = camps.begin()->first, &y = camps.rbegin()->first;
    if (x.first != y.second || x.second != y.first || a.size() == b.size()) return {};
    return a.size() < b.size() ? a : b;
  }
  void AddOrders(const RootGroup& group, Finding* f) const {
    const auto orders = Orders(group);
    const std::set<int> odd = OddRanks(group);
    // Whoever differs, and two of those who do it as the most do.
    std::vector<int> cited(odd.begin(), odd.end());
    size_t others = 0;
    for (const auto& [rank, order] : orders) {
      if (odd.count(rank) > 0 || (!odd.empty() && ++others > 2)) continue;
      cited.push_back(rank);
    }
    if (cited.size() > 8) cited.resize(8);
    for (int rank : cited) {
      const Order& order = orders.at(rank);
      const model::Member* m = a_.MemberIn(order.queued, rank);
      if (m == nullptr || !m->has_record()) continue;
      const Node &running = a_.NodeAt(order.running), &waiting = a_.NodeAt(order.waiting);
      *f->add_evidence() =
          MemberEvidence(job_, *m, a_.RowOf(waiting),
                         absl::StrCat(a_.RankName(rank), " runs ", a_.OpName(running), " and has ",
                                      a_.OpName(waiting), " queued behind it"));
    }
    if (others > 2) AddNote(f, absl::StrCat("so do ", others - 2, " more ranks"));
  }
};

}  // namespace

Candidate DescribeUnmatched(const StallAnalysis& a, const RootGroup& group) {
  return DeadlockWriter(a).Unmatched(group);
}
Candidate DescribeCycle(const StallAnalysis& a, const RootGroup& group) {
  return DeadlockWriter(a).Cycle(group);
}

}  // namespace ringscope::reasoning
