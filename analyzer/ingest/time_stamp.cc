#include "analyzer/ingest/time_stamp.h"

#include <absl/time/civil_time.h>
#include <absl/time/time.h>

namespace ringscope::ingest {
namespace {

using model::Stamp;

constexpr int64_t kSecond = 1'000'000'000;

// ".874", ",874": to nanoseconds.
int64_t TakeFraction(Scan* scan) {
  Scan ahead = *scan;
  if (!ahead.Char('.') && !ahead.Char(',')) return 0;
  const std::string_view digits = ahead.While(Scan::Digit);
  if (digits.empty()) return 0;
  int64_t ns = 0, unit = kSecond;
  for (size_t i = 0; i < digits.size() && i < 9; ++i) ns += (digits[i] - '0') * (unit /= 10);
  *scan = ahead;
  return ns;
}

bool TakeClock(Scan* scan, int64_t* ns) {
  Scan ahead = *scan;
  int64_t h = 0, m = 0, s = 0;
  if (!ahead.Number(&h, 2, 2) || !ahead.Char(':') || !ahead.Number(&m, 2, 2) || !ahead.Char(':') || !ahead.Number(&s, 2, 2))
    return false;
  if (h > 23 || m > 59 || s > 60) return false;
  *ns = (h * 3600 + m * 60 + s) * kSecond + TakeFraction(&ahead);
  *scan = ahead;
  return true;
}

// Midnight UTC of a date that exists.
bool Day(int64_t year, int64_t month, int64_t day, int64_t* ns) {
  if (year < 1970 || year > 2200 || month < 1 || month > 12 || day < 1 || day > 31) return false;
  const absl::CivilDay civil(year, static_cast<int>(month), static_cast<int>(day));
  *ns = absl::ToUnixSeconds(absl::FromCivil(civil, absl::UTCTimeZone())) * kSecond;
  return true;
}

int MonthNumber(std::string_view name) {
  static constexpr std::string_view kNames = "JanFebMarAprMayJunJulAugSepOctNovDec";
  if (name.size() != 3) return 0;
  for (size_t i = 0; i < 12; ++i) {
    if (kNames.substr(i * 3, 3) == name) return static_cast<int>(i) + 1;
  }
  return 0;
}

}  // namespace

bool TakeDateTime(Scan* scan, Stamp* stamp) {
  Scan ahead = *scan;
  int64_t year = 0, month = 0, day = 0, midnight = 0, clock = 0;
  if (!ahead.Number(&year, 4, 4)) return false;
  const char separator = ahead.rest.empty() ? 0 : ahead.rest[0];
  if (separator != '-' && separator != '/') return false;
  if (!ahead.Char(separator) || !ahead.Number(&month, 2, 2) || !ahead.Char(separator) || !ahead.Number(&day, 2, 2)) return false;
  if (!ahead.Char('T') && !ahead.Char(' ') && !ahead.Char('-')) return false;
  if (!TakeClock(&ahead, &clock) || !Day(year, month, day, &midnight)) return false;
  *stamp = {Stamp::Clock::kLocal, midnight + clock};
  Scan zone = ahead;
  if (zone.Char('Z')) {
    stamp->clock = Stamp::Clock::kRealtime;
    ahead = zone;
  } else {
    const bool minus = zone.Char('-');
    int64_t h = 0, m = 0;
    if ((minus || zone.Char('+')) && zone.Number(&h, 2, 2) && (zone.Char(':') || true) && zone.Number(&m, 2, 2)) {
      *stamp = {Stamp::Clock::kRealtime, stamp->ns - (minus ? -1 : 1) * (h * 3600 + m * 60) * kSecond};
      ahead = zone;
    }
  }
  *scan = ahead;
  return true;
}

bool TakeTimeOfDay(Scan* scan, Stamp* stamp) {
  int64_t ns = 0;
  if (!TakeClock(scan, &ns)) return false;
  *stamp = {Stamp::Clock::kOfDay, ns};
  return true;
}

bool DateWithoutYear(int64_t month, int64_t day, Stamp* of_day) {
  int64_t midnight = 0;
  if (!Day(2000, month, day, &midnight)) return false;
  *of_day = {Stamp::Clock::kLocal, midnight + of_day->ns};
  return true;
}

bool TakeSyslogTime(Scan* scan, Stamp* stamp) {
  Scan ahead = *scan;
  const int month = MonthNumber(ahead.While(Scan::Alpha));
  int64_t day = 0, clock = 0, midnight = 0;
  ahead.Spaces();
  if (month == 0 || !ahead.Number(&day, 1, 2) || !ahead.Char(' ') || !TakeClock(&ahead, &clock)) return false;
  // No year: any one with a February 29 serves; such stamps are compared among themselves only.
  if (!Day(2000, month, day, &midnight)) return false;
  *stamp = {Stamp::Clock::kLocal, midnight + clock};
  *scan = ahead;
  return true;
}

bool TakeDmesgTime(Scan* scan, Stamp* stamp) {
  Scan ahead = *scan;
  if (!ahead.Char('[')) return false;
  ahead.Spaces();
  int64_t seconds = 0, clock = 0, midnight = 0;
  if (ahead.Char('+')) {
    if (!ahead.Number(&seconds)) return false;
    TakeFraction(&ahead);
    if (!ahead.Char(']')) return false;
    *scan = ahead;
    return true;
  }
  if (ahead.Number(&seconds, 1, 10)) {
    if (ahead.rest.empty() || ahead.rest[0] != '.') return false;
    const int64_t fraction = TakeFraction(&ahead);
    if (ahead.Char('@') || ahead.Char('T')) ahead.While(Scan::HostChar);  // [12.3@4], [12.3  T567]: CPU or thread
    ahead.Spaces();
    if (ahead.Char('T') || ahead.Char('C')) ahead.While(Scan::Digit);
    if (!ahead.Char(']')) return false;
    *stamp = {Stamp::Clock::kBoot, seconds * kSecond + fraction};
    *scan = ahead;
    return true;
  }
  // Weekday, month, day, clock, year; or month, day, HH:MM.
  std::string_view word = ahead.While(Scan::Alpha);
  int month = MonthNumber(word);
  ahead.Spaces();
  if (month == 0) {
    month = MonthNumber(ahead.While(Scan::Alpha));
    ahead.Spaces();
  }
  int64_t day = 0, year = 0;
  if (month == 0 || !ahead.Number(&day, 1, 2) || !ahead.Char(' ')) return false;
  if (TakeClock(&ahead, &clock)) {
    if (!ahead.Char(' ') || !ahead.Number(&year, 4, 4) || !Day(year, month, day, &midnight)) return false;
    *stamp = {Stamp::Clock::kLocal, midnight + clock};
  } else {
    int64_t h = 0, m = 0;
    if (!ahead.Number(&h, 1, 2) || !ahead.Char(':') || !ahead.Number(&m, 2, 2)) return false;
  }
  if (!ahead.Char(']')) return false;
  *scan = ahead;
  return true;
}

}  // namespace ringscope::ingest
