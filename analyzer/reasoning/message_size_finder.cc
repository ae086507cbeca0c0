// Messages whose two ends disagree about their size: 4 MiB sent here, 8 MiB expected there.
//
// NCCL does not compare them (its documentation makes equal sizes the caller's duty). A receive that expects more than is sent
// waits for the rest, or takes it from the next message; one that expects less leaves data behind for the next receive. So it
// hangs at once, or later and elsewhere, or goes on with wrong data. Send and receive move bytes: another type of the same size
// is no difference.
//
// The n-th send from one rank to another belongs to the n-th receive there. Where either side lost count (rows without room,
// messages in a row that several share, a ring that has gone round) nothing is compared. The first difference counts; what
// differs later may follow from it.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/model/transfers.h"
#include "analyzer/reasoning/finder.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/quiet.h"

namespace ringscope::reasoning {
namespace {

using model::Communicator;
using model::Job;
using model::Member;
using model::MessageCount;
using model::Op;

uint64_t Bytes(const Op& op) { return model::BytesOf(op.raw, 1); }

bool Countable(const Job& job, const Member& member) {
  if (!member.has_record() || member.raw == nullptr || member.raw->partial_history()) return false;
  const model::Process& process = job.processes[static_cast<size_t>(member.process)];
  return !process.torn && CounterValue(process, "edge_no_row") == 0 && CounterValue(process, "comm_no_row") == 0 &&
         std::none_of(member.ops.begin(), member.ops.end(), [](const Op& op) { return op.p2p() && op.raw.tail_tasks() > 0; });
}

// By number, of those that the record still holds. `total` of them were launched; a call that has not launched anything is not in
// that count.
std::map<uint64_t, const Op*> Numbered(const Member& member, int peer, trace::Func func, uint64_t total) {
  std::vector<const Op*> launched;
  for (const Op& op : member.ops) {
    if (op.p2p() && op.raw.func() == func && op.raw.peer() == peer && op.enqueued != model::Truth::kNo) launched.push_back(&op);
  }
  std::map<uint64_t, const Op*> numbered;
  if (launched.size() > total) return numbered;
  for (size_t i = 0; i < launched.size(); ++i) numbered[total - launched.size() + i + 1] = launched[i];
  return numbered;
}

struct Difference {
  const Member *from = nullptr, *to = nullptr;
  const Op *send = nullptr, *receive = nullptr;
  uint64_t number = 0;
};

std::optional<Difference> FirstDifference(const Job& job, const Communicator& c, const MessageCount& count) {
  if (count.from == count.to || !count.sent || !count.received || count.relative) return std::nullopt;
  const Member &from = c.members[static_cast<size_t>(count.from)], &to = c.members[static_cast<size_t>(count.to)];
  if (!Countable(job, from) || !Countable(job, to)) return std::nullopt;
  const auto sends = Numbered(from, to.rank, trace::SEND, *count.sent);
  const auto receives = Numbered(to, from.rank, trace::RECV, *count.received);
  for (const auto& [number, send] : sends) {
    const auto receive = receives.find(number);
    if (receive == receives.end()) continue;
    const uint64_t out = Bytes(*send), in = Bytes(*receive->second);
    if (out != in && send->raw.datatype() != trace::TYPE_UNKNOWN && receive->second->raw.datatype() != trace::TYPE_UNKNOWN)
      return Difference{&from, &to, send, receive->second, number};
  }
  return std::nullopt;
}

// Ranks of the communicator that stand in something from then on.
std::set<int> Standing(const Job& job, const Communicator& c, bool* any) {
  std::set<int> ranks;
  for (const Member& m : c.members) {
    const bool stands = std::any_of(m.ops.begin(), m.ops.end(), [&](const Op& op) { return Open(op) && Stuck(job, c, m, op); });
    if (!stands) continue;
    *any = true;
    if (m.job_rank >= 0) ranks.insert(m.job_rank);
  }
  return ranks;
}

Candidate Describe(const Job& job, const Communicator& c, const std::vector<Difference>& all) {
  const Difference& first = all.front();
  Candidate candidate;
  candidate.order = Class::kMismatch;
  candidate.communicator = c.index;
  Finding& f = candidate.finding;
  f.set_kind(Kind::size_mismatch);
  f.set_confidence(Confidence::probable);
  f.mutable_who()->add_communicators(c.Label());
  constexpr size_t kCited = 4;
  for (size_t i = 0; i < all.size(); ++i) {
    const Difference& d = all[i];
    if (d.from->job_rank >= 0 && d.to->job_rank >= 0 && f.who().edges_size() < 64) {
      EdgeName* edge = f.mutable_who()->add_edges();
      edge->set_from(d.from->job_rank);
      edge->set_to(d.to->job_rank);
    }
    if (i >= kCited) continue;
    *f.add_evidence() = MemberEvidence(job, *d.from, d.send->raw.row(),
                                       absl::StrCat("message ", d.number, " to ", RankText(c, *d.to), ": ", OpText(d.send->raw),
                                                    ", ", Bytes(*d.send), " bytes"));
    *f.add_evidence() = MemberEvidence(job, *d.to, d.receive->raw.row(),
                                       absl::StrCat("message ", d.number, " from ", RankText(c, *d.from), ": ",
                                                    OpText(d.receive->raw), ", ", Bytes(*d.receive), " bytes"));
  }
  f.set_title(absl::StrCat(RankText(c, *first.from), " sends ", Bytes(*first.send), " bytes to ", RankText(c, *first.to),
                           ", which receives ", Bytes(*first.receive), " (message ", first.number,
                           " of that direction in communicator ", c.Label(),
                           "); which of the two is wrong is the program's intent",
                           all.size() > 1 ? absl::StrCat("; ", all.size() - 1, " more pairs differ") : ""));
  std::set<int> waiting = Standing(job, c, &candidate.stops_job);
  for (const Difference& d : all) waiting.erase(d.from->job_rank), waiting.erase(d.to->job_rank);
  AddRanks(waiting, f.mutable_collateral()->mutable_ranks());
  f.mutable_cause()->set_id("not established");
  f.set_refuted_by("a record of the program's calls in which both ends name the same size for this message");
  f.mutable_next()->set_text(
      "Compare the shape and type of the tensor on both sides: an uneven batch, a last micro-batch, another precision, a size "
      "that was "
      "not exchanged first. The next run with the command's settings prints each call with its size.");
  f.mutable_next()->set_command("TORCH_DISTRIBUTED_DEBUG=DETAIL NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL");
  return candidate;
}

std::vector<Candidate> Find(const Job& job) {
  std::map<int, std::vector<Difference>> differences;
  for (const MessageCount& count : job.messages) {
    if (count.communicator < 0) continue;
    const auto difference = FirstDifference(job, job.communicators[static_cast<size_t>(count.communicator)], count);
    if (difference) differences[count.communicator].push_back(*difference);
  }
  std::vector<Candidate> found;
  for (auto& [communicator, all] : differences) {
    std::stable_sort(all.begin(), all.end(), [](const Difference& a, const Difference& b) { return a.number < b.number; });
    found.push_back(Describe(job, job.communicators[static_cast<size_t>(communicator)], all));
  }
  return found;
}

const Register kRegister("message_size", Find);

}  // namespace
}  // namespace ringscope::reasoning
