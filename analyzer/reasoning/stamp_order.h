// Which of two stamps is earlier, where that can be told at all.
#ifndef RINGSCOPE_ANALYZER_REASONING_STAMP_ORDER_H_
#define RINGSCOPE_ANALYZER_REASONING_STAMP_ORDER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "analyzer/model/model.h"

namespace ringscope::reasoning {

// b - a in nanoseconds; nullopt when the clocks cannot be compared. Stamps since boot compare only within one host (the caller
// knows). A stamp without a year is put into the other's year; one without a date is taken to be less than half a day away.
std::optional<int64_t> NsBetween(const model::Stamp& a, const model::Stamp& b, bool same_host);

// What wall clocks of two hosts may differ by where nothing tells. (With NTP it is milliseconds; hosts without were seen seconds apart.)
inline constexpr int64_t kHostClocksApartNs = 5'000'000'000;

// Whether a is surely before b: they differ by more than the clocks may. Stamps of two hosts are put right by what the job's records say
// of their clocks (Job::clocks) where both hosts have records; else kHostClocksApartNs is granted. `host`: as the line or its file
// tells; two empty ones are of two hosts unless `same_file`.
struct Told {
  const model::Stamp& time;
  const std::string& host;
};
bool SurelyBefore(const model::Job& job, const Told& a, const Told& b, bool same_file = false);
bool SameHostName(const std::string& a, const std::string& b);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_STAMP_ORDER_H_
