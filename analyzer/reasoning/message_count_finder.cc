// Point-to-point messages without a partner: sends a -> b launched by a against receives from a
// launched by b.
//
// Send and receive carry no number, so their count per pair and direction is the only key that
// joins them. A difference means something only when nothing more can come:
//   - rest: both sides ended in order; whatever was to be called was called. Nothing hangs, data is
//   missing.
//   - cycle: the surplus message is open, and the rank that did not make its partner waits, itself
//   or through others, for
//     the rank that holds the surplus. A rank that has merely not arrived yet (it sleeps, loads
//     data) waits for nobody inside NCCL and is no case for this finder, although its counts look
//     the same.
//   - through: the surplus is open and the other side ended its program without falling short of
//   anything else.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "analyzer/reasoning/finders.h"
#include "analyzer/reasoning/message_waits.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/thresholds.h"
#include "analyzer/reasoning/timeline.h"

namespace ringscope::reasoning {
namespace {

using model::Communicator;
using model::Job;
using model::Member;
using model::MessageCount;
using model::Op;

using Messages = std::vector<const MessageCount*>;  // of one communicator

// Nothing more will be called on this communicator by this rank, and nothing is pending.
bool Ended(const Job& job, const Member& member) {
  if (member.finalized_open || std::any_of(member.ops.begin(), member.ops.end(), Open))
    return false;
  return member.finalized || job.processes[member.process].life == model::Life::kExited;
}

// The counts of this rank are whole: none was lost for want of a row, and the record's end is
// there.
bool Countable(const Job& job, const Member& member) {
  if (!member.has_record()) return false;
  const model::Process& process = job.processes[member.process];
  return !process.torn && CounterValue(process, "edge_no_row") == 0 &&
         CounterValue(process, "comm_no_row") == 0;
}

enum class Case { kRest, kCycle, kThrough };

struct Pair {
  const MessageCount* count = nullptr;
  bool sender_has_more = false;
  int surplus = 0, shortfall = 0;  // ranks in the communicator
  Case what = Case::kRest;
  const Op* stands_in = nullptr;  // the surplus side's open operation; kRest: none
  std::vector<RankKey>
      through;  // kCycle: ranks over which the short side waits for the surplus side
  bool direct = false;  // kCycle: it does so without waiting for another message that lacks its partner
};

// The operation in which the surplus side stands because the partner is missing; nullptr when it
// stands elsewhere.
const Op* OpenSurplus(const MessageWaits& waits, const Communicator& c, const Pair& pair) {
  const auto& heads = waits.Heads(KeyOf(c.members[pair.surplus]));
  for (auto head = heads.rbegin(); head != heads.rend(); ++head) {
    const Op& op = *head->second;
    if (head->first.communicator != c.index || head->first.rank != pair.surplus || !op.p2p())
      continue;
    if (op.raw.tail_tasks() > 0) return &op;
    if (op.raw.peer() == pair.shortfall && (op.raw.func() == trace::SEND) == pair.sender_has_more)
      return &op;
  }
  return nullptr;
}

std::optional<Pair> Judge(const Job& job, const MessageWaits& waits, const Communicator& c,
                          const Messages& messages, const MessageCount& count) {
  if (count.from == count.to || !count.sent || !count.received || *count.sent == *count.received)
    return std::nullopt;
  const Member &from = c.members[count.from], &to = c.members[count.to];
  if (!Countable(job, from) || !Countable(job, to)) return std::nullopt;
  Pair pair;
  pair.count = &count;
  pair.sender_has_more = *count.sent > *count.received;
  pair.surplus = pair.sender_has_more ? count.from : count.to;
  pair.shortfall = pair.sender_has_more ? count.to : count.from;
  const Member &more = c.members[pair.surplus], &less = c.members[pair.shortfall];
  if (Ended(job, more) && Ended(job, less)) {
    // It left the program early if it is short of collectives too, in whatever communicator: then it left out more than a
    // message.
    if (waits.ShortOfCollectives(KeyOf(less))) return std::nullopt;
    pair.what = Case::kRest;
    return pair;
  }
  pair.stands_in = OpenSurplus(waits, c, pair);
  if (pair.stands_in == nullptr) return std::nullopt;
  if (waits.Waits(KeyOf(less), KeyOf(more), &pair.through)) {
    if (waits.EndsAtSomebody(KeyOf(less))) return std::nullopt;  // that is why it does not come to this message
    pair.what = Case::kCycle;
    std::vector<RankKey> ignored;
    pair.direct = waits.Waits(KeyOf(less), KeyOf(more), &ignored, true);
    return pair;
  }
  if (!Ended(job, less)) return std::nullopt;
  // It ended: early, if it is short of collectives or of other messages too; that is another
  // finder's case.
  if (waits.ShortOfCollectives(KeyOf(less))) return std::nullopt;
  for (const MessageCount* other : messages) {
    if (other == &count || (other->from != less.rank && other->to != less.rank)) continue;
    if (other->sent && other->received && *other->sent != *other->received) return std::nullopt;
  }
  pair.what = Case::kThrough;
  return pair;
}

// The number that the communicator's other pairs carry; 0 when there is no such number. A pair seen
// from one side only (the other side left no record) is a witness of its own, of half the weight.
uint64_t SiblingCount(const Messages& messages) {
  std::map<uint64_t, size_t> ends;
  size_t all = 0;
  for (const MessageCount* count : messages) {
    if (count->relative) return 0;
    if (count->from == count->to) continue;
    if (count->sent && count->received && *count->sent != *count->received) continue;
    for (const auto& side : {count->sent, count->received}) {
      if (!side || *side == 0) continue;
      ++ends[*side];
      ++all;
    }
  }
  for (const auto& [value, n] : ends) {
    // One short of two whole pairs: one pair seen whole and another from one side agree.
    if (n + 1 >= 2 * thresholds::kSiblingPairs &&
        static_cast<double>(n) >= thresholds::kSiblingShare * static_cast<double>(all)) {
      return value;
    }
  }
  return 0;
}

// Rank in the communicator that deviates from its siblings; -1 when they cannot tell.
int OddOne(const Pair& pair, uint64_t sibling) {
  if (sibling == 0) return -1;
  const uint64_t more = std::max(*pair.count->sent, *pair.count->received);
  const uint64_t less = std::min(*pair.count->sent, *pair.count->received);
  if (more == sibling) return pair.shortfall;
  if (less == sibling) return pair.surplus;
  return -1;
}

// On the way back between the two it is the other one that is short: which of the two messages was left out, and which has only
// not been reached, other pairs cannot tell.
bool EachIsShort(const Messages& messages, const MessageCount& count) {
  return std::any_of(messages.begin(), messages.end(), [&](const MessageCount* back) {
    if (back->from != count.to || back->to != count.from || !back->sent || !back->received || *back->sent == *back->received)
      return false;
    // Short of a send here and of a send there, or of receives: not the same rank.
    return (*back->sent > *back->received) == (*count.sent > *count.received);
  });
}

uint32_t CountRow(const Job& job, const Member& member, int peer, bool send) {
  for (const trace::Edge& edge : job.processes[member.process].trace.edges()) {
    if (edge.message_count() && !edge.foreign() &&
        edge.communicator() == (member.raw ? member.raw->row() : 0) &&
        static_cast<int>(edge.peer()) == peer && edge.send() == send) {
      return edge.row();
    }
  }
  return 0;
}

// Everything of one communicator that has the same culprit (or none) and the same ending.
struct Bundle {
  std::vector<Pair> pairs;
  int odd = -1;
};

std::string PairText(const Communicator& c, const Pair& pair) {
  const Member &from = c.members[pair.count->from], &to = c.members[pair.count->to];
  return absl::StrCat(RankText(c, from), " launched ", *pair.count->sent, " sends to ",
                      RankText(c, to), ", which launched ", *pair.count->received,
                      " receives from it");
}

void AddPair(const Job& job, const Communicator& c, const Pair& pair, Finding* finding) {
  const Member &from = c.members[pair.count->from], &to = c.members[pair.count->to];
  *finding->add_evidence() =
      MemberEvidence(job, from, CountRow(job, from, to.rank, true),
                     absl::StrCat(*pair.count->sent, " sends to ", RankText(c, to),
                                  " in communicator ", c.Label()));
  *finding->add_evidence() =
      MemberEvidence(job, to, CountRow(job, to, from.rank, false),
                     absl::StrCat(*pair.count->received, " receives from ", RankText(c, from),
                                  " in communicator ", c.Label()));
  if (pair.what != Case::kRest) {
    const Member& more = c.members[pair.surplus];
    *finding->add_evidence() =
        MemberEvidence(job, more, pair.stands_in->raw.row(),
                       absl::StrCat(OpText(pair.stands_in->raw), " does not finish"));
  }
  if (pair.what == Case::kCycle) {
    const Member& less = c.members[pair.shortfall];
    for (const Op& op : less.ops) {
      if (!Open(op)) continue;
      *finding->add_evidence() =
          MemberEvidence(job, less, op.raw.row(),
                         absl::StrCat("meanwhile ", RankText(c, less), " is in ", OpText(op.raw),
                                      ", which waits for ", RankText(c, c.members[pair.surplus]),
                                      ": it does not come back for the missing call"));
      break;
    }
  }
  if (finding->who().edges_size() < 64 && from.job_rank >= 0 && to.job_rank >= 0) {
    EdgeName* edge = finding->mutable_who()->add_edges();
    edge->set_from(from.job_rank);
    edge->set_to(to.job_rank);
  }
}

std::string Title(const Communicator& c, const Bundle& bundle, uint64_t sibling) {
  const Pair& pair = bundle.pairs.front();
  std::string more = bundle.pairs.size() > 1
                         ? absl::StrCat(" (and ", bundle.pairs.size() - 1, " more pairs)")
                         : "";
  if (bundle.odd >= 0) {
    const bool left_out = bundle.odd == pair.shortfall;
    const bool sends = (bundle.odd == pair.count->from);
    return absl::StrCat(RankText(c, c.members[bundle.odd]),
                        left_out ? " left out a " : " makes an additional ",
                        sends ? "send to " : "receive from ",
                        RankText(c, c.members[sends ? pair.count->to : pair.count->from]), ": ",
                        PairText(c, pair), "; other pairs carry ", sibling, " messages each", more);
  }
  if (pair.what == Case::kCycle && bundle.pairs.size() > 1) {
    return absl::StrCat("Ranks wait for each other in send and receive: ", PairText(c, pair), more);
  }
  return absl::StrCat("A message has no partner: ", PairText(c, pair), more);
}

Candidate Describe(const Job& job, const Communicator& c, const Bundle& bundle, uint64_t sibling) {
  Candidate candidate;
  candidate.order = Class::kMismatch;
  candidate.communicator = c.index;
  Finding& finding = candidate.finding;
  finding.set_kind(Kind::p2p_unmatched);
  finding.mutable_who()->add_communicators(c.Label());
  std::set<int> parties;  // who waits in the cycle, or exchanged the message
  constexpr size_t kCited = 8;
  for (size_t i = 0; i < bundle.pairs.size(); ++i) {
    const Pair& pair = bundle.pairs[i];
    candidate.stops_job |= pair.what != Case::kRest;
    parties.insert(c.members[pair.surplus].job_rank);
    parties.insert(c.members[pair.shortfall].job_rank);
    for (const RankKey& key : pair.through) parties.insert(key.second);
    if (i < kCited) AddPair(job, c, pair, &finding);
  }
  const bool complete = std::all_of(c.members.begin(), c.members.end(),
                                    [](const Member& member) { return member.has_record(); });
  if (bundle.odd >= 0) {
    AddRanks({c.members[bundle.odd].job_rank}, finding.mutable_who()->mutable_ranks());
  } else if (candidate.stops_job && bundle.pairs.size() > 1) {
    AddRanks(parties, finding.mutable_who()->mutable_ranks());  // a cycle is all of its ranks
  }
  finding.set_confidence(bundle.odd >= 0 && complete ? Confidence::established
                                                     : Confidence::probable);
  finding.set_title(Title(c, bundle, sibling));
  if (candidate.stops_job) {
    std::set<int> waiting = parties;
    for (const Member& member : c.members) {
      if (std::any_of(member.ops.begin(), member.ops.end(), Open)) waiting.insert(member.job_rank);
    }
    for (int rank : finding.who().ranks()) waiting.erase(rank);
    AddRanks(waiting, finding.mutable_collateral()->mutable_ranks());
  }
  finding.mutable_cause()->set_id("not established");
  finding.set_refuted_by(
      "a program in which the missing call comes later, from another thread or stream that does "
      "not depend on "
      "what this rank waits for");
  finding.mutable_next()->set_text(
      "Look for the send or receive that one side calls and the other does not: a branch, a "
      "micro-batch more or less, a wrong "
      "peer, or both sides sending first (then put both calls into one ncclGroup). The stacks show "
      "the line.");
  finding.mutable_next()->set_command("py-spy dump --pid <pid of each named rank>");
  return candidate;
}

}  // namespace

std::vector<Candidate> FindUnmatched(const model::Job& job) {
  const MessageWaits waits(job);
  std::map<int, Messages> by_communicator;
  for (const MessageCount& count : job.messages) {
    if (count.communicator >= 0) by_communicator[count.communicator].push_back(&count);
  }
  std::map<int, std::vector<Pair>> pairs;
  bool any_direct = false;
  for (const auto& [communicator, messages] : by_communicator) {
    for (const MessageCount* count : messages) {
      auto pair = Judge(job, waits, job.communicators[communicator], messages, *count);
      if (!pair) continue;
      any_direct |= pair->direct;
      pairs[communicator].push_back(*std::move(pair));
    }
  }
  std::vector<Candidate> candidates;
  for (auto& [communicator, found] : pairs) {
    const Communicator& c = job.communicators[communicator];
    const uint64_t sibling = SiblingCount(by_communicator[communicator]);
    std::map<std::pair<int, bool>, Bundle> bundles;
    for (Pair& pair : found) {
      // A rank that waits for a message has not come to its own later ones: where one pair's short side went on to a collective,
      // the others of the cycle only have not been reached.
      if (any_direct && pair.what == Case::kCycle && !pair.direct) continue;
      const int odd = EachIsShort(by_communicator[communicator], *pair.count) ? -1 : OddOne(pair, sibling);
      Bundle& bundle = bundles[{odd, pair.what == Case::kRest}];
      bundle.odd = odd;
      bundle.pairs.push_back(std::move(pair));
    }
    for (const auto& [key, bundle] : bundles)
      candidates.push_back(Describe(job, c, bundle, sibling));
  }
  return candidates;
}

static const Register kRegister("message count", FindUnmatched);

}  // namespace ringscope::reasoning
