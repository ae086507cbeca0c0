// Collectives that became slow in mid-run although nobody is late: the transfer itself takes longer than earlier in the same job
// (docs/localisation.md, Slow transfers). Which edge or adapter it is, kernels do not tell; slow_edge_finder may.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <vector>

#include "analyzer/model/transfers.h"
#include "analyzer/reasoning/finder.h"
#include "analyzer/reasoning/op_text.h"
#include "analyzer/reasoning/thresholds.h"

namespace ringscope::reasoning {
namespace {

int64_t Quantile(std::vector<int64_t> values, double share) {
  const size_t at = std::min(values.size() - 1, static_cast<size_t>(share * static_cast<double>(values.size())));
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(at), values.end());
  return values[at];
}

// Consecutive instances of one kind.
struct Window {
  uint64_t first = 0, last = 0;  // positions
  int64_t low = 0, middle = 0, high = 0;
};

std::vector<Window> Windows(const model::TransferSeries& series) {
  std::vector<Window> windows;
  const size_t n = series.instances.size(), size = thresholds::kTransferWindow;
  // From the end backwards, so that the newest window is whole.
  for (size_t end = n; end >= size; end -= size) {
    std::vector<int64_t> values;
    for (size_t i = end - size; i < end; ++i) values.push_back(series.instances[i].ns);
    windows.insert(windows.begin(), {series.instances[end - size].position, series.instances[end - 1].position,
                                     Quantile(values, 0.1), Quantile(values, 0.5), Quantile(values, 0.9)});
  }
  return windows;
}

struct Slowdown {
  const Window* usual = nullptr;
  const Window* since = nullptr;
  const Window* now = nullptr;
  double ratio = 0;
};

// All windows from some point to the end are slower than the best one before, and apart from it: their fast instances are slower
// than its slow ones. Two of them at least, since one may be a checkpoint or a neighbour's job.
Slowdown Find(const std::vector<Window>& windows) {
  Slowdown found;
  if (windows.size() < 3) return found;
  const auto slow = [](const Window& w, const Window& usual) {
    return static_cast<double>(w.middle) >= thresholds::kTransferSlow * static_cast<double>(usual.middle) && w.low > usual.high;
  };
  size_t best = 0;
  for (size_t i = 1; i + 2 < windows.size(); ++i) {
    if (windows[i].middle < windows[best].middle) best = i;
  }
  size_t since = windows.size();
  while (since > best + 1 && slow(windows[since - 1], windows[best])) --since;
  if (windows.size() - since < 2) return found;
  found = {&windows[best], &windows[since], &windows.back(), 0};
  found.ratio = static_cast<double>(found.now->middle) / static_cast<double>(found.usual->middle);
  return found;
}

std::string RateText(const model::TransferSeries& s, const model::Communicator& c, int64_t ns) {
  const double bytes = static_cast<double>(model::BytesOf(*s.call, c.n_ranks));
  if (bytes < thresholds::kBandwidthBytes || ns <= 0) return "";
  return absl::StrFormat(" (%.1f GB/s busbw)", bytes / static_cast<double>(ns) * model::BusFactor(s.call->func(), c.n_ranks));
}

std::vector<Candidate> FindSlowTransfers(const model::Job& job) {
  std::vector<Candidate> found;
  for (const model::Communicator& c : job.communicators) {
    // Of one communicator the kind with the most to show.
    Candidate best;
    double worst = 0;
    for (const model::TransferSeries& s : model::TransfersOf(c)) {
      if (s.instances.size() < 3 * thresholds::kTransferWindow) continue;
      if (static_cast<double>(model::BytesOf(*s.call, c.n_ranks)) < thresholds::kBandwidthBytes) continue;
      const std::vector<Window> windows = Windows(s);
      const Slowdown slow = Find(windows);
      if (slow.usual == nullptr || slow.ratio <= worst || slow.now->middle - slow.usual->middle < thresholds::kTransferFloorNs)
        continue;
      worst = slow.ratio;
      Candidate candidate;
      candidate.order = Class::kSlow;
      candidate.communicator = c.index;
      Finding& f = candidate.finding;
      f.set_kind(Kind::undetermined);
      f.set_confidence(Confidence::possible);
      f.set_title(absl::StrCat("Transfers of ", OpText(*s.call), " in communicator ", c.Label(), " take ",
                               absl::StrFormat("%.1f", slow.ratio), " times as long since operation ", slow.since->first,
                               " as before: ", DurationText(slow.usual->middle), " -> ", DurationText(slow.now->middle),
                               "; no rank is late for it, so a link, a path or other traffic is slower"));
      f.mutable_who()->add_communicators(c.Label());
      *f.add_evidence() = MemberEvidence(
          job, *s.member, s.call->row(),
          absl::StrCat("shortest kernel of the ranks, median of operations ", slow.usual->first, " to ", slow.usual->last, ": ",
                       DurationText(slow.usual->middle), RateText(s, c, slow.usual->middle), "; of ", slow.now->first, " to ",
                       slow.now->last, ": ", DurationText(slow.now->middle), RateText(s, c, slow.now->middle)));
      f.mutable_cause()->set_id("not established");
      f.set_refuted_by("work beside the collectives that began at the same time (overlapped compute slows NCCL's kernels, too)");
      f.mutable_next()->set_text(
          "What changed then: kernel logs and port counters of all hosts at that time (link speed, retries, pause frames), "
          "clocks of the "
          "GPUs; then the steps of the edges (RINGSCOPE_STREAM=steps) or the same benchmark host pair by host pair.");
      f.mutable_next()->set_command("dmesg -T | grep -iE 'mlx5|link|Xid'; perfquery -x; nvidia-smi -q -d PERFORMANCE,CLOCK");
      best = std::move(candidate);
    }
    if (worst > 0) found.push_back(std::move(best));
  }
  return found;
}

const Register kRegister("slow transfer", FindSlowTransfers);

}  // namespace
}  // namespace ringscope::reasoning
