#include "analyzer/reasoning/stamp_order.h"

#include <absl/time/civil_time.h>
#include <absl/time/time.h>

#include "analyzer/model/safe_math.h"

namespace ringscope::reasoning {
namespace {

using Clock = model::Stamp::Clock;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kDay = 86'400 * kSecond;
// 2000-01-01 and 2001-01-01: the year in which a stamp without one is kept (analyzer/ingest/time_stamp.cc).
constexpr int64_t kYear2000 = 946'684'800 * kSecond;
constexpr int64_t kYear2001 = 978'307'200 * kSecond;

bool WithoutYear(int64_t ns) { return ns >= kYear2000 && ns < kYear2001; }

int64_t InYear2000(int64_t ns) {
  const absl::CivilSecond civil = absl::ToCivilSecond(absl::FromUnixNanos(ns), absl::UTCTimeZone());
  const absl::CivilSecond moved(2000, civil.month(), civil.day(), civil.hour(), civil.minute(), civil.second());
  return absl::ToUnixSeconds(absl::FromCivil(moved, absl::UTCTimeZone())) * kSecond + (ns % kSecond + kSecond) % kSecond;
}

int64_t Wrapped(int64_t difference, int64_t period) {
  difference %= period;
  if (difference > period / 2) difference -= period;
  if (difference < -period / 2) difference += period;
  return difference;
}

}  // namespace

std::optional<int64_t> NsBetween(const model::Stamp& a, const model::Stamp& b, bool same_host) {
  if (!a.known() || !b.known()) return std::nullopt;
  if (a.clock == Clock::kBoot || b.clock == Clock::kBoot) {
    if (a.clock != b.clock || !same_host) return std::nullopt;
    return b.ns - a.ns;
  }
  if (a.clock == Clock::kOfDay || b.clock == Clock::kOfDay) {
    if (a.clock == Clock::kRealtime || b.clock == Clock::kRealtime) return std::nullopt;  // the zone of the other is unknown
    return Wrapped(b.ns % kDay - a.ns % kDay, kDay);
  }
  if (a.clock != b.clock) return std::nullopt;  // one with a zone, one without
  if (WithoutYear(a.ns) != WithoutYear(b.ns)) return Wrapped(InYear2000(b.ns) - InYear2000(a.ns), 366 * kDay);
  return b.ns - a.ns;
}

bool SameHostName(const std::string& a, const std::string& b) {
  return !a.empty() && a.substr(0, a.find('.')) == b.substr(0, b.find('.'));
}

namespace {

const model::HostClock* ClockOf(const model::Job& job, const std::string& host) {
  for (const model::HostClock& clock : job.clocks) {
    if (clock.error_ns >= 0 && SameHostName(clock.host, host)) return &clock;
  }
  return nullptr;
}

}  // namespace

bool SurelyBefore(const model::Job& job, const Told& a, const Told& b, bool same_file) {
  const bool same_host = same_file ? a.host == b.host : SameHostName(a.host, b.host);
  const auto ns = NsBetween(a.time, b.time, same_host);
  if (!ns) return false;
  if (same_host) return *ns > 0;
  const model::HostClock *of_a = ClockOf(job, a.host), *of_b = ClockOf(job, b.host);
  if (of_a == nullptr || of_b == nullptr) return *ns > kHostClocksApartNs;
  const int64_t right = model::SatSub(*ns, model::SatSub(of_b->ahead_ns, of_a->ahead_ns));
  return right > model::SatAdd(of_a->error_ns, of_b->error_ns);
}

}  // namespace ringscope::reasoning
