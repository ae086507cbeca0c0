#include "analyzer/reasoning/stamp_order.h"

#include <absl/time/civil_time.h>
#include <absl/time/time.h>

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

}  // namespace ringscope::reasoning
