// Arithmetic on values that a damaged or hostile record may have set: saturates instead of
// overflowing.
#ifndef RINGSCOPE_ANALYZER_MODEL_SAFE_MATH_H_
#define RINGSCOPE_ANALYZER_MODEL_SAFE_MATH_H_

#include <cstdint>
#include <limits>

namespace ringscope::model {

inline int64_t SatAdd(int64_t a, int64_t b) {
  int64_t sum;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
}

inline int64_t SatSub(int64_t a, int64_t b) {
  int64_t difference;
  if (!__builtin_sub_overflow(a, b, &difference)) return difference;
  return b < 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
}

inline int64_t SatCast(uint64_t v) {
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  return static_cast<int64_t>(v < kMax ? v : kMax);
}

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_SAFE_MATH_H_
