// Both sides of every edge brought together, those that another process drives (PXN) included, and
// the message counts.
#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "analyzer/model/build.h"
#include "analyzer/model/foreign_edges.h"

namespace ringscope::model {
namespace {

using EdgeKey = std::tuple<int, int, int, int, bool>;  // communicator, from, to, channel, p2p

class Joiner {
 public:
  Joiner(Job* job, Notes* notes)
      : job_(*job), notes_(*notes), rows_(IndexRows(*job)), handles_(*job, rows_) {}

  void Run() {
    for (const Process& p : job_.processes) {
      for (const trace::Edge& e : p.trace.edges()) {
        if (e.foreign()) continue;  // after all others: may need the receiving side
        const auto row = rows_[static_cast<size_t>(p.index)].find(e.communicator());
        if (row == rows_[static_cast<size_t>(p.index)].end()) continue;
        if (e.message_count()) {
          AddCount(p, e, row->second.communicator);
        } else {
          Add(p, e, row->second.communicator, e.current_position(), e.current_position_p2p());
        }
      }
    }
    for (const Process& p : job_.processes) {
      int lost = 0;
      for (const trace::Edge& e : p.trace.edges()) {
        if (e.foreign() && !e.message_count()) lost += AddForeign(p, e) ? 0 : 1;
      }
      if (lost > 0) {
        notes_.AddFor(
            p, absl::StrCat(
                   lost,
                   " edges driven for other processes (PXN) could not be joined to their owner"));
      }
    }
    FinishCounts();
  }

 private:
  // False when the ranks are not of that communicator.
  bool Add(const Process& p, const trace::Edge& e, int communicator, uint64_t position,
           bool position_p2p) {
    const Communicator& c = job_.communicators[static_cast<size_t>(communicator)];
    const auto n = static_cast<uint32_t>(c.n_ranks);
    if (e.rank() >= n || e.peer() >= n) return false;
    const int rank = static_cast<int>(e.rank()), peer = static_cast<int>(e.peer());
    const int from = e.send() ? rank : peer, to = e.send() ? peer : rank;
    const int channel = static_cast<int>(std::min<uint32_t>(e.channel(), 1u << 16));
    const auto [at, fresh] =
        index_.try_emplace(EdgeKey(communicator, from, to, channel, e.p2p()), job_.edges.size());
    if (fresh) {
      job_.edges.emplace_back();
      Edge& made = job_.edges.back();
      made.communicator = communicator;
      made.from = from;
      made.to = to;
      made.channel = channel;
      made.p2p = e.p2p();
    }
    Edge& edge = job_.edges[at->second];
    EdgeSide side;
    side.process = p.index;
    side.raw = &e;
    side.position = position;
    side.position_p2p = position != 0 && position_p2p;
    side.open = Open(e);
    auto& slot = e.send() ? edge.sender : edge.receiver;
    // Two rows of one direction (an evicted and re-made one, several connections, one of them driven for another process of the
    // machine): the one that moved last stands for it. All who drive it share the machine's clock.
    if (!slot || e.changed_ns() >= slot->raw->changed_ns()) {
      slot = side;
    }
    return true;
  }

  bool AddForeign(const Process& p, const trace::Edge& e) {
    EdgeOwners owners = handles_.OwnersOf(p, e);
    if (owners.gone) return !Open(e);
    if (owners.members.size() > 1) {
      // Processes that drew the same nonce: the owner is the one whose peer is there.
      std::erase_if(owners.members, [&](const RowRef& at) { return !Lacks(at.communicator, e); });
    }
    if (owners.members.size() == 1) {
      const RowRef& owner = owners.members[0];
      const Op* op = handles_.RunningOp(owner, e);
      return Add(p, e, owner.communicator, op == nullptr ? 0 : op->position(),
                 op != nullptr && op->p2p());
    }
    const int communicator = OnlyCommunicatorThatFits(p, e);
    return communicator >= 0 && Add(p, e, communicator, 0, false);
  }

  static bool Open(const trace::Edge& e) {
    return e.ops_started() != e.ops_stopped() || (e.has_current() && !e.current_stopped());
  }

  // The peer drives the other end of this channel of the communicator, and nobody drives ours.
  bool Lacks(int communicator, const trace::Edge& e) {
    const int from = static_cast<int>(e.send() ? e.rank() : e.peer());
    const int to = static_cast<int>(e.send() ? e.peer() : e.rank());
    const auto at =
        index_.find(EdgeKey(communicator, from, to, static_cast<int>(e.channel()), e.p2p()));
    if (at == index_.end()) return false;
    const Edge& edge = job_.edges[at->second];
    return e.send() ? edge.receiver && !edge.sender : edge.sender && !edge.receiver;
  }

  // Without a readable handle: the one communicator with the owner's rank on this machine whose
  // peer drives the other end of this channel while nobody drives ours.
  int OnlyCommunicatorThatFits(const Process& relay, const trace::Edge& e) {
    int found = -1;
    for (const Communicator& c : job_.communicators) {
      const auto n = static_cast<uint32_t>(c.n_ranks);
      if (e.rank() >= n || e.peer() >= n || !Lacks(c.index, e)) continue;
      const Member& owner = c.members[e.rank()];
      // A relay is a member of the communicator too, so an owner without a record can be told as
      // well.
      const bool here = owner.has_record()
                            ? SameMachine(job_.processes[static_cast<size_t>(owner.process)], relay)
                            : IsMember(c, relay);
      if (!here) continue;
      if (found >= 0) return -1;
      found = c.index;
    }
    return found;
  }

  static bool IsMember(const Communicator& c, const Process& p) {
    return std::any_of(c.members.begin(), c.members.end(),
                       [&](const Member& m) { return m.process == p.index; });
  }

  void AddCount(const Process&, const trace::Edge& e, int communicator) {
    const auto n =
        static_cast<uint32_t>(job_.communicators[static_cast<size_t>(communicator)].n_ranks);
    if (e.rank() >= n || e.peer() >= n) return;
    const int rank = static_cast<int>(e.rank()), peer = static_cast<int>(e.peer());
    MessageCount& count = counts_[{communicator, e.send() ? rank : peer, e.send() ? peer : rank}];
    auto& mine = e.send() ? count.sent : count.received;
    mine = mine.value_or(0) + e.steps_total();
  }

  // A side with a record and no row for the peer has launched nothing to it, unless rows were lost.
  void FinishCounts() {
    for (auto& [key, count] : counts_) {
      std::tie(count.communicator, count.from, count.to) = key;
      const Communicator& c = job_.communicators[static_cast<size_t>(count.communicator)];
      if (!count.sent && CountsAll(c.members[static_cast<size_t>(count.from)])) count.sent = 0;
      if (!count.received && CountsAll(c.members[static_cast<size_t>(count.to)]))
        count.received = 0;
      MakeRelative(c, &count);
      job_.messages.push_back(count);
    }
  }

  // Where a ring has gone round, how many messages there were is not known. What both sides have finished is taken to be the same
  // number of messages; what each has called beyond that is in its record.
  static void MakeRelative(const Communicator& c, MessageCount* count) {
    const Member& from = c.members[static_cast<size_t>(count->from)];
    const Member& to = c.members[static_cast<size_t>(count->to)];
    const auto partial = [](const Member& m) { return m.raw != nullptr && m.raw->partial_history(); };
    if (!partial(from) && !partial(to)) return;
    count->relative = true;
    const auto open = [](const Member& m, int peer, trace::Func func) {
      uint64_t n = 0;
      for (const Op& op : m.ops) n += op.p2p() && op.raw.peer() == peer && op.raw.func() == func && op.raw.unfinished();
      return n;
    };
    const uint64_t sending = open(from, to.rank, trace::SEND), receiving = open(to, from.rank, trace::RECV);
    const uint64_t sent = count->sent.value_or(0), received = count->received.value_or(0);
    const uint64_t finished = std::max(sent - std::min(sent, sending), received - std::min(received, receiving));
    if (count->sent) count->sent = finished + sending;
    if (count->received) count->received = finished + receiving;
  }

  bool CountsAll(const Member& m) {
    if (!m.has_record()) return false;
    const Process& p = job_.processes[static_cast<size_t>(m.process)];
    if (p.torn) return false;
    for (const auto& counter : p.trace.counters()) {
      if (counter.name() == "edge_no_row" && counter.value() > 0) return false;
    }
    return true;
  }

  Job& job_;
  Notes& notes_;
  const std::vector<std::map<uint32_t, RowRef>> rows_;
  ForeignHandles handles_;
  absl::flat_hash_map<EdgeKey, size_t> index_;
  std::map<std::tuple<int, int, int>, MessageCount> counts_;
};

}  // namespace

void JoinEdges(Job* job, Notes* notes) { Joiner(job, notes).Run(); }

}  // namespace ringscope::model
