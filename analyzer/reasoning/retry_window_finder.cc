// Status 12 because the adapter gave up too early, or because a congested network lost what it sent: retry settings below
// NCCL's own, and counters of congestion.
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "analyzer/model/views.h"
#include "analyzer/reasoning/network_text.h"

namespace ringscope::reasoning {
namespace {

// Below this a link's brief trouble or a busy switch ends the job; NCCL's oldest default was 0.5 s (timeout 14, 7 retries).
constexpr double kTooShortSeconds = 0.4;
constexpr uint64_t kManyDrops = 100;

// Counters of a network that drops or holds back.
bool CongestionCounter(std::string_view name) {
  for (const char* known :
       {"local_ack_timeout_err", "packet_seq_err", "out_of_sequence", "out_of_buffer", "np_cnp_sent", "rp_cnp_handled",
        "np_ecn_marked_roce_packets", "roce_adp_retrans", "roce_slow_restart", "rx_discards_phy", "rx_out_of_buffer",
        "implied_nak_seq_err", "port_xmit_discards", "tx_discards_phy", "rnr_nak_retry_err"}) {
    if (name == known) return true;
  }
  return (name.starts_with("rx_prio") || name.starts_with("tx_prio")) &&
         (name.ends_with("_pause") || name.ends_with("_discards") || name.ends_with("_pause_duration"));
}

std::optional<int> ValueOf(const model::Setting* setting) {
  int value = 0;
  if (setting == nullptr || !absl::SimpleAtoi(setting->value, &value) || value < 0 || value > 31) return std::nullopt;
  return value;
}

// Time until status 12: 4.096 us times two to the timeout, once and for each retry.
double Window(int timeout, int retries) { return 4.096e-6 * std::exp2(timeout) * (retries + 1); }

std::vector<Candidate> FindRetryWindow(const model::Job& job) {
  const auto completions = Completions(job);
  if (!AnyStatus(completions, kRetryExceeded)) return {};
  const model::Setting* timeout_setting = SettingOf(job, "NCCL_IB_TIMEOUT");
  const model::Setting* retry_setting = SettingOf(job, "NCCL_IB_RETRY_CNT");
  const std::optional<int> timeout = ValueOf(timeout_setting), retries = ValueOf(retry_setting);
  const int release = OldestNccl(job);
  const int default_timeout = release == 0 || release >= 22304 ? 20 : release >= 21403 ? 18 : 14;
  const double window = Window(timeout.value_or(default_timeout), retries.value_or(7));
  const bool is_short = (timeout || retries) && timeout.value_or(default_timeout) != 0 && window < kTooShortSeconds &&
                        window < Window(default_timeout, 7);

  std::vector<model::CounterChange> rises;
  for (const model::CounterChange& c : model::CounterChanges(job.evidence)) {
    if (CongestionCounter(c.after->name) && c.delta >= kManyDrops) rises.push_back(c);
  }
  std::vector<const model::NetworkCounter*> totals;
  if (rises.empty()) {
    for (const model::NetworkCounter& c : job.evidence.network.counters) {
      if (CongestionCounter(c.name) && c.value >= kManyDrops) totals.push_back(&c);
    }
  }
  // Totals since boot alone say little of this job.
  if (!is_short && rises.empty() && totals.empty()) return {};
  const std::optional<Sign> worked = WorkedBefore(job, *completions.front().event);
  const Confidence::Value confidence = is_short || !rises.empty() ? Confidence::probable : Confidence::possible;
  const std::string title =
      is_short ? absl::StrFormat(
                     "The adapter gives up after %.3g s (NCCL_IB_TIMEOUT=%d, NCCL_IB_RETRY_CNT=%d): a busy network is enough "
                     "for status 12%s",
                     window, timeout.value_or(default_timeout), retries.value_or(7),
                     rises.empty() && totals.empty() ? "" : ", and counters show congestion")
      : !rises.empty()
          ? std::string("The network loses or holds back packets: congestion counters rose, and transfers ended with status 12")
          : std::string(
                "Transfers ended with status 12 and congestion counters are not zero; their totals do not say when they rose");
  Candidate candidate = Say(Kind::edge_failed, confidence, is_short || !rises.empty() ? Layer::kConfiguration : Layer::kNetwork,
                            title, "NET-04", "nccl-ib-completion");
  candidate.stops_job = is_short || !rises.empty();
  candidate.state = State::crashed;
  Finding& finding = candidate.finding;
  CiteCompletions(job, completions, 3, &finding);
  CiteSettings(job, "NCCL_IB_TIMEOUT", 3, &finding);
  CiteSettings(job, "NCCL_IB_RETRY_CNT", 3, &finding);
  for (size_t i = 0; i < rises.size() && i < 6; ++i) {
    const auto& c = rises[i];
    Cite(
        job, c.after->where,
        absl::StrCat(c.after->by.host, " ", c.after->device, " ", c.after->name, ": ", c.before->value, " -> ", c.after->value),
        &finding);
  }
  for (size_t i = 0; i < totals.size() && i < 6; ++i)
    Cite(job, totals[i]->where,
         absl::StrCat(totals[i]->by.host, " ", totals[i]->device, " ", totals[i]->name, " ", totals[i]->value), &finding);
  if (worked) Cite(job, worked->where, worked->text, &finding);
  std::vector<const model::Event*> reporters;
  for (const Completion& c : completions) reporters.push_back(c.event);
  OnlyReported(reporters, &finding);
  finding.set_refuted_by(
      "the same error with NCCL's own retry settings and flat pause, drop and CNP counters on adapters and switches");
  SetNext(is_short ? "Unset NCCL_IB_TIMEOUT and NCCL_IB_RETRY_CNT (defaults 20 and 7 since NCCL 2.23), then look at "
                     "congestion: PFC, ECN and traffic class (NCCL_IB_TC) on adapters and switches."
                   : "Pause, drop and CNP counters of adapters and switch ports during the job; PFC, ECN and traffic class "
                     "(NCCL_IB_TC); NCCL_IB_TIMEOUT=22 rides out short congestion.",
          "ethtool -S <interface> | grep -E 'pause|discard|cnp|out_of'; grep . /sys/class/infiniband/*/ports/1/hw_counters/*",
          &finding);
  return {candidate};
}

const Register kRegister("retry_window", FindRetryWindow);

}  // namespace
}  // namespace ringscope::reasoning
