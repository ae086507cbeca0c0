// Which of two stamps is earlier, where that can be told at all.
#ifndef RINGSCOPE_ANALYZER_REASONING_STAMP_ORDER_H_
#define RINGSCOPE_ANALYZER_REASONING_STAMP_ORDER_H_

#include <cstdint>
#include <optional>

#include "analyzer/model/evidence_place.h"

namespace ringscope::reasoning {

// b - a in nanoseconds; nullopt when the clocks cannot be compared. Stamps since boot compare only within one host (the caller
// knows). A stamp without a year is put into the other's year; one without a date is taken to be less than half a day away.
std::optional<int64_t> NsBetween(const model::Stamp& a, const model::Stamp& b, bool same_host);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_STAMP_ORDER_H_
