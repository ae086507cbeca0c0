// All-to-alls that do not add up: ranks may split as they like, but what all of them send is what all of them receive.
//
// Only records that tell both sides of the call can be added up (dumps of PyTorch's flight recorder), and only those of all
// members. Which rank's splits are wrong a sum does not tell.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "analyzer/model/safe_math.h"
#include "analyzer/reasoning/call_sequence.h"
#include "analyzer/reasoning/finder.h"
#include "analyzer/reasoning/op_text.h"

namespace ringscope::reasoning {
namespace {

struct Sum {
  uint64_t in = 0, out = 0;
  bool whole = true;
};

void Add(uint64_t value, uint64_t* sum) {
  if (__builtin_add_overflow(*sum, value, sum)) *sum = std::numeric_limits<uint64_t>::max();
}

Sum SumOf(const model::Communicator& c, uint64_t position) {
  Sum sum;
  for (const model::Member& m : c.members) {
    const model::Op* op = m.Collective(position);
    if (op == nullptr || op->raw.func() != trace::ALL_TO_ALL || (op->raw.count() == 0 && op->raw.output_count() == 0)) {
      sum.whole = false;
      break;
    }
    Add(op->raw.count(), &sum.in);
    Add(op->raw.output_count(), &sum.out);
  }
  return sum;
}

Candidate Describe(const model::Job& job, const model::Communicator& c, uint64_t position, const Sum& sum) {
  Candidate candidate;
  candidate.order = Class::kMismatch;
  candidate.communicator = c.index;
  candidate.position = position;
  Finding& f = candidate.finding;
  f.set_kind(Kind::size_mismatch);
  f.set_confidence(Confidence::probable);
  f.mutable_who()->add_communicators(c.Label());
  f.set_title(absl::StrCat("In AlltoAll #", position, " of communicator ", c.Label(), " the ranks send ", sum.in,
                           " elements altogether and expect ", sum.out,
                           ": their splits do not agree; which rank's are wrong a sum does not tell"));
  constexpr size_t kCited = 16;
  for (size_t i = 0; i < c.members.size() && i < kCited; ++i) {
    const model::Member& m = c.members[i];
    const model::OpRecord& op = m.Collective(position)->raw;
    *f.add_evidence() = MemberEvidence(
        job, m, op.row(),
        absl::StrCat("operation ", position, ": sends ", op.count(), ", expects ", op.output_count(), CallText(job, m, op)));
  }
  AddRanks(WaitingSince(job, c, position, &candidate.stops_job), f.mutable_collateral()->mutable_ranks());
  f.mutable_cause()->set_id("not established");
  f.set_refuted_by("the split sizes of all ranks, if what each sends to each other is what that one expects");
  f.mutable_next()->set_text(
      "Print input and output splits of every rank before this call: the pair that disagrees is the fault (a router that "
      "counts tokens differently, sizes exchanged from an older step).");
  f.mutable_next()->set_command("TORCH_DISTRIBUTED_DEBUG=DETAIL");
  return candidate;
}

std::vector<Candidate> FindAllToAll(const model::Job& job) {
  std::vector<Candidate> out;
  for (const model::Communicator& c : job.communicators) {
    const bool all = std::all_of(c.members.begin(), c.members.end(),
                                 [](const model::Member& m) { return m.raw != nullptr && m.raw->from_dump(); });
    if (!all || c.members.empty()) continue;
    const model::Member& first = c.members.front();
    for (const uint32_t i : first.by_position) {
      const model::Op& op = first.ops[i];
      if (op.raw.func() != trace::ALL_TO_ALL) continue;
      const Sum sum = SumOf(c, op.position());
      if (!sum.whole || sum.in == sum.out) continue;
      out.push_back(Describe(job, c, op.position(), sum));
      break;  // what follows follows from it
    }
  }
  return out;
}

const Register kRegister("all to all", FindAllToAll);

}  // namespace
}  // namespace ringscope::reasoning
