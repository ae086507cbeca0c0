#include "analyzer/reasoning/message_waits.h"

#include <algorithm>

#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/quiet.h"

namespace ringscope::reasoning {

using model::Communicator;
using model::Job;
using model::Member;
using model::MessageCount;
using model::Op;

MessageWaits::MessageWaits(const Job& job) : job_(job) {
  for (const Communicator& c : job.communicators) {
    for (const Member& m : c.members) {
      if (m.has_record()) places_[KeyOf(m)].push_back({c.index, m.rank});
    }
  }
  for (const MessageCount& count : job.messages)
    counts_[{count.communicator, count.from, count.to}] = &count;
}

// More launched at one end than at the other; false when either side is not known.
bool MessageWaits::Surplus(int communicator, int from, int to, bool at_sender) const {
  const auto it = counts_.find({communicator, from, to});
  if (it == counts_.end() || !it->second->sent || !it->second->received) return false;
  return at_sender ? *it->second->sent > *it->second->received
                   : *it->second->received > *it->second->sent;
}

const std::vector<MessageWaits::Head>& MessageWaits::Heads(const RankKey& key) const {
  const auto [memo, fresh] = heads_.try_emplace(key);
  const auto it = places_.find(key);
  if (!fresh || it == places_.end()) return memo->second;
  std::vector<Head> open;
  for (const Place& place : it->second) {
    for (const Op& op : MemberAt(place).ops) {
      if (Open(op) && Stuck(job_, At(place), MemberAt(place), op)) open.push_back({place, &op});
    }
  }
  std::stable_sort(open.begin(), open.end(), [](const Head& a, const Head& b) {
    return a.second->raw.entered_ns() < b.second->raw.entered_ns();
  });
  std::map<uint64_t, const Op*> first;  // by stream
  std::set<std::pair<uint32_t, uint32_t>> running;  // threads and groups
  for (const Head& head : open) {
    if (head.second->started == model::Truth::kYes) running.insert({head.second->raw.thread(), head.second->raw.group()});
  }
  for (const Head& head : open) {
    const model::Op& op = *head.second;
    const bool sibling_runs = op.p2p() && op.raw.group() != 0 && running.count({op.raw.thread(), op.raw.group()}) != 0;
    const model::Op& oldest = *open.front().second;
    const bool of_oldest = op.p2p() && (&op == &oldest || (op.raw.group() != 0 && op.raw.group() == oldest.raw.group() &&
                                                           op.raw.thread() == oldest.raw.thread()));
    // In the queue of its GPU and not started: it waits for that GPU, or for something older, by an event, on another stream. (Of
    // messages NCCL does not always tell that they have started.)
    if (op.started == model::Truth::kNo && op.enqueued == model::Truth::kYes && !sibling_runs && !of_oldest) {
      first.try_emplace(op.raw.stream(), &op);
      continue;
    }
    const Op& before = *first.try_emplace(head.second->raw.stream(), head.second).first->second;
    const bool together = before.raw.group() != 0 &&
                          before.raw.group() == head.second->raw.group() &&
                          before.raw.thread() == head.second->raw.thread();
    if (&before == head.second || together || head.second->started != model::Truth::kNo)
      memo->second.push_back(head);
  }
  return memo->second;
}

bool MessageWaits::Waits(const RankKey& start, const RankKey& goal,
                         std::vector<RankKey>* through, bool collectives_only) const {
  std::map<RankKey, RankKey> from;
  std::vector<RankKey> queue{start};
  for (size_t i = 0; i < queue.size(); ++i) {
    for (const RankKey& next : WaitsFor(queue[i], collectives_only)) {
      if (next == start || from.count(next)) continue;
      from[next] = queue[i];
      if (next == goal) {
        for (RankKey at = from[next]; at != start; at = from[at]) through->push_back(at);
        return true;
      }
      queue.push_back(next);
    }
  }
  return false;
}

bool MessageWaits::EndsAtSomebody(const RankKey& start) const {
  std::set<RankKey> seen{start};
  std::vector<RankKey> queue{start};
  for (size_t i = 0; i < queue.size(); ++i) {
    const std::set<RankKey>& next = WaitsFor(queue[i], false);
    if (next.empty()) return true;
    for (const RankKey& key : next) {
      if (seen.insert(key).second) queue.push_back(key);
    }
  }
  return false;
}

bool MessageWaits::ShortOfCollectives(const RankKey& key) const {
  const auto it = places_.find(key);
  if (it == places_.end()) return false;
  for (const Place& place : it->second) {
    for (const Member& member : At(place).members) {
      if (member.collectives > MemberAt(place).collectives) return true;
    }
  }
  return false;
}

const std::set<RankKey>& MessageWaits::WaitsFor(const RankKey& key, bool collectives_only) const {
  const auto [memo, fresh] = waits_.try_emplace({key, collectives_only});
  std::set<RankKey>& others = memo->second;
  if (!fresh) return others;
  for (const auto& [place, op] : Heads(key)) {
    if (op->p2p()) {
      if (!collectives_only) AddPeers(At(place), MemberAt(place), *op, &others);
    } else {
      AddAbsent(At(place), MemberAt(place), op->position(), &others);
    }
  }
  return others;
}

// Members that have not joined the collective: not entered, or queued behind something.
void MessageWaits::AddAbsent(const Communicator& c, const Member& m, uint64_t position,
                             std::set<RankKey>* others) const {
  for (const Member& other : c.members) {
    if (!other.has_record() || other.rank == m.rank) continue;
    const Op* op = other.Collective(position);
    if (other.collectives < position || (op != nullptr && op->started == model::Truth::kNo))
      others->insert(KeyOf(other));
  }
}

// Peers of a message whose side of it is missing. A shared row of a large group does not name its
// peers: all with a message outstanding are meant.
void MessageWaits::AddPeers(const Communicator& c, const Member& m, const Op& op,
                            std::set<RankKey>* others) const {
  const bool named = op.raw.tail_tasks() == 0 && op.raw.peer() >= 0;
  const int first = named ? op.raw.peer() : 0;
  const int last = named ? op.raw.peer() : c.n_ranks - 1;
  for (int peer = first; peer <= last && peer < static_cast<int>(c.members.size()); ++peer) {
    const Member& other = c.members[peer];
    if (!other.has_record() || peer == m.rank) continue;
    const bool lacks_receive =
        Surplus(c.index, m.rank, peer, true) && (!named || op.raw.func() == trace::SEND);
    const bool lacks_send =
        Surplus(c.index, peer, m.rank, false) && (!named || op.raw.func() == trace::RECV);
    if (lacks_receive || lacks_send) others->insert(KeyOf(other));
  }
}

}  // namespace ringscope::reasoning
