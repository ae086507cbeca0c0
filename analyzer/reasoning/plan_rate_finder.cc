// Large ring collectives that stay far below what NCCL itself planned: the bandwidth of its ring by its log, the time by the
// records.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <vector>

#include "analyzer/model/transfers.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/text_evidence.h"
#include "analyzer/reasoning/thresholds.h"

namespace ringscope::reasoning {
namespace {

// The ring of the whole job by its log: GB/s of all channels; the least that any rank planned.
struct Planned {
  double rate = 0;
  model::Where where;
  std::string text;
};

Planned RingOf(const model::Job& job, int n_ranks) {
  Planned least;
  for (const model::RankPlan& plan : job.evidence.plan.plans) {
    if (plan.split || plan.n_ranks != n_ranks) continue;
    for (const model::PlanPattern& p : plan.patterns) {
      if (p.pattern != 4 || p.channels <= 0) continue;  // the ring
      const double bw = p.bw_inter > 0 ? std::min(p.bw_intra, p.bw_inter) : p.bw_intra;
      const double rate = p.channels * bw;
      if (rate > 0 && (least.rate == 0 || rate < least.rate))
        least = {rate, p.where, absl::StrFormat("%d channels x %.1f GB/s", p.channels, bw)};
    }
  }
  return least;
}

std::vector<Candidate> FindPlanRate(const model::Job& job) {
  for (const model::Communicator& c : job.communicators) {
    if (c.n_ranks < 2 || c.n_ranks != job.world_size) continue;
    const Planned planned = RingOf(job, c.n_ranks);
    if (planned.rate == 0) continue;
    for (const model::TransferSeries& s : model::TransfersOf(c)) {
      const double bytes = static_cast<double>(model::BytesOf(*s.call, c.n_ranks));
      if (s.call->algo() != trace::RING || s.call->proto() != trace::SIMPLE || bytes < thresholds::kPlanRateBytes ||
          s.instances.size() < thresholds::kTransferWindow)
        continue;
      std::vector<int64_t> times;
      for (const auto& instance : s.instances) times.push_back(instance.ns);
      std::nth_element(times.begin(), times.begin() + static_cast<int64_t>(times.size() / 2), times.end());
      const double busbw = bytes / static_cast<double>(times[times.size() / 2]) * model::BusFactor(s.call->func(), c.n_ranks);
      if (busbw <= 0 || busbw >= thresholds::kPlanRateShare * planned.rate) continue;
      Candidate candidate =
          Say(Kind::degraded_plan, Confidence::possible, Layer::kReport,
              absl::StrFormat("Large transfers reach %.1f GB/s of bus bandwidth, the ring that NCCL planned has %.0f", busbw,
                              planned.rate),
              "");
      candidate.order = Class::kPlan;
      candidate.state = State::slow;
      Cite(job, planned.where, absl::StrCat("ring as planned: ", planned.text), &candidate.finding);
      *candidate.finding.add_evidence() = MemberEvidence(
          job, *s.member, s.call->row(),
          absl::StrCat(OpText(*s.call), ": median transfer of ", times.size(), " is ", DurationText(times[times.size() / 2])));
      candidate.finding.set_refuted_by(
          "compute that runs beside the collectives, which slows NCCL's kernels; the same size alone in all_reduce_perf");
      SetNext("The same size without anything beside it; then pair by pair, to see which edge holds the ring back.",
              "all_reduce_perf -b 64M -e 1G -f 2 -g 8; sendrecv_perf", &candidate.finding);
      return {candidate};
    }
  }
  return {};
}

const Register kRegister("plan rate", FindPlanRate);

}  // namespace
}  // namespace ringscope::reasoning
