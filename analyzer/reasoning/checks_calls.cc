// Ranks that do not make the same call disagree about the steps between them; ranks that wait for each other are all inside NCCL.
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "analyzer/reasoning/checks.h"
#include "analyzer/reasoning/op_text.h"

namespace ringscope::reasoning {
namespace {

void Mismatch(const CheckedPlace& place, std::vector<Check>* checks) {
  const std::string expects = "the two ends of an edge at that rank expect different numbers of steps";
  bool compared = false;
  for (const model::Edge& e : place.job.edges) {
    if (e.communicator != place.communicator.index || e.p2p || !e.sender || !e.receiver) continue;
    const auto& members = place.communicator.members;
    if (place.Names(members[static_cast<size_t>(e.from)]) == place.Names(members[static_cast<size_t>(e.to)])) continue;
    if (e.sender->position != place.position || e.receiver->position != place.position) continue;
    const uint32_t sends = e.sender->raw->full_steps(), receives = e.receiver->raw->full_steps();
    if (sends == 0 || receives == 0) continue;
    compared = true;
    if (sends == receives) continue;
    checks->push_back(Holds(expects, absl::StrCat(EdgeText(place, e), ": ", sends, " to send, ", receives, " to receive"),
                            SourceText(place.job, members[static_cast<size_t>(e.to)])));
    return;
  }
  if (compared)
    checks->push_back(
        NotSeen(expects, "they expect the same number, as calls do whose sizes round to it: the calls alone decide"));
}

void Cycle(const CheckedPlace& place, std::vector<Check>* checks) {
  const std::string expects = "every rank of the cycle is inside NCCL and waits there";
  for (const model::Member* m : place.who) {
    if (!m->has_record()) {
      checks->push_back(NotSeen(expects, absl::StrCat("the record of ", RankText(place.communicator, *m))));
      return;
    }
    bool waits = false;
    for (const model::Communicator& c : place.job.communicators) {
      for (const model::Member& other : c.members) {
        if (!other.has_record() || !SameRank(other, *m)) continue;
        waits |= std::any_of(other.ops.begin(), other.ops.end(), [](const model::Op& op) {
          return op.finished != model::Truth::kYes && op.full && op.raw.unfinished();
        });
      }
    }
    if (!waits) {
      checks->push_back(
          Fails(expects, absl::StrCat(RankText(place.communicator, *m), " has no operation open"), SourceText(place.job, *m)));
      return;
    }
  }
  checks->push_back(Holds(expects, absl::StrCat("all ", place.who.size(), " have an operation open"), "records of these ranks"));
}

const RegisterChecks kMismatch({Kind::collective_mismatch, Kind::size_mismatch, Kind::order_mismatch}, Mismatch);
const RegisterChecks kCycle({Kind::communicator_cycle}, Cycle);

}  // namespace
}  // namespace ringscope::reasoning
