#include "analyzer/reasoning/wait_graph_messages.h"

#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "analyzer/reasoning/wait_graph_progress.h"

namespace ringscope::reasoning {
namespace {

using model::Communicator;
using model::Member;
using model::Op;

// Rank, peer, send: messages launched, as the message counts say.
using Launched = std::map<std::tuple<int, int, bool>, uint64_t>;
constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();

bool SingleMessage(const Op& op) {
  return op.p2p() && op.raw.tail_tasks() == 0 && op.raw.peer() >= 0;
}
bool IsSend(const Op& op) { return op.raw.func() == trace::SEND; }

// Several messages in one row: those whose partner the other side has not launched, and those whose
// steps still run.
void AddSharedRow(const model::Job& job, const Communicator& c, int member, const Op& op,
                  const Launched& launched, const std::vector<int>& rank_of,
                  graph::Participation* p) {
  std::set<std::pair<int, bool>> moving;
  for (const model::Edge& edge : job.edges) {
    if (edge.communicator != c.index || !edge.p2p) continue;
    const auto runs = [&](const std::optional<model::EdgeSide>& side) {
      return side && Incomplete(*side) && side->position == op.position();
    };
    if (edge.from == member && runs(edge.sender)) moving.insert({edge.to, true});
    if (edge.to == member && runs(edge.receiver)) moving.insert({edge.from, false});
  }
  for (auto it = launched.lower_bound({member, std::numeric_limits<int>::min(), false});
       it != launched.end(); ++it) {
    const auto& [rank, peer, send] = it->first;
    if (rank != member) break;
    if (peer == member || peer < 0 || peer >= c.n_ranks || it->second == 0 || it->second == kAll)
      continue;
    const auto other = launched.find({peer, member, !send});
    const bool there = other != launched.end() && other->second >= it->second;
    if (there && moving.count({peer, send}) == 0) continue;
    p->messages.push_back({send, rank_of[peer], it->second});
  }
}

}  // namespace

void AddMessages(const model::Job& job, const std::vector<int>& rank_of, int comm, WaitInput* out) {
  const Communicator& c = job.communicators[out->comms[comm].communicator];
  Launched launched;
  for (const model::MessageCount& count : job.messages) {
    if (count.communicator != c.index) continue;
    if (count.sent) launched[{count.from, count.to, true}] = *count.sent;
    if (count.received) launched[{count.to, count.from, false}] = *count.received;
    // A side that lost count is taken to have all: no message is called unmatched for want of a
    // count.
    if (!count.sent && c.members[count.from].has_record())
      launched[{count.from, count.to, true}] = kAll;
    if (!count.received && c.members[count.to].has_record())
      launched[{count.to, count.from, false}] = kAll;
  }
  std::map<const Op*, graph::Message> numbers;
  for (const Member& m : c.members) {
    if (!m.has_record()) continue;
    std::map<std::tuple<int, bool>, uint64_t> listed, seen;
    for (const Op& op : m.ops) {
      if (SingleMessage(op) && op.enqueued != model::Truth::kNo)
        ++listed[{op.raw.peer(), IsSend(op)}];
    }
    // Messages in a shared row are in the count and not in the list.
    uint64_t tails = 0;
    for (const Op& op : m.ops) tails += op.p2p() && op.raw.tail_tasks() > 0;
    for (const Op& op : m.ops) {
      if (!SingleMessage(op)) continue;
      const int peer = op.raw.peer();
      const bool send = IsSend(op);
      auto it = launched.find({m.rank, peer, send});
      uint64_t& total = it != launched.end() ? it->second : launched[{m.rank, peer, send}];
      if (it == launched.end()) total = listed[{peer, send}];
      if (op.enqueued == model::Truth::kNo) {
        if (total != kAll) numbers[&op] = {send, peer, ++total};
      } else if (total != kAll && tails == 0) {
        const uint64_t behind = listed[{peer, send}] - ++seen[{peer, send}];
        if (total > behind) numbers[&op] = {send, peer, total - behind};
      }
    }
  }
  for (size_t i = 0; i < out->graph.ops.size(); ++i) {
    graph::Participation& p = out->graph.ops[i];
    if (p.comm != comm) continue;
    const Op& op = *out->ops[i].op;
    if (op.raw.tail_tasks() > 0) {
      p.shared = true;
      AddSharedRow(job, c, out->ops[i].member, op, launched, rank_of, &p);
    } else if (const auto it = numbers.find(&op); it != numbers.end()) {
      graph::Message message = it->second;
      if (message.peer >= 0 && message.peer < c.n_ranks) {
        message.peer = rank_of[message.peer];
        p.messages.push_back(message);
      }
    }
  }
  for (const auto& [key, number] : launched) {
    const auto& [rank, peer, send] = key;
    if (rank < 0 || peer < 0 || rank >= c.n_ranks || peer >= c.n_ranks) continue;
    out->graph.totals.push_back({comm, rank_of[rank], rank_of[peer], send, number});
  }
}

}  // namespace ringscope::reasoning
