// Order statistics of small samples. Medians, not means: one pause must not move them.
#ifndef RINGSCOPE_ANALYZER_REASONING_SAMPLES_H_
#define RINGSCOPE_ANALYZER_REASONING_SAMPLES_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ringscope::reasoning {

// 0 for an empty sample; of an even number the lower of the two in the middle.
inline int64_t Median(std::vector<int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Of an even number the upper of the two in the middle.
inline int64_t UpperMedian(std::vector<int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_SAMPLES_H_
