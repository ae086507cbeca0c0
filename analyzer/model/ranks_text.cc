#include "analyzer/model/ranks_text.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

namespace ringscope::model {
namespace {

// Length of the longest run from `begin` whose neighbours differ by `step`.
size_t RunLength(const std::vector<int>& ranks, size_t begin, int64_t step) {
  size_t end = begin + 1;
  while (end < ranks.size() && int64_t{ranks[end]} - ranks[end - 1] == step) ++end;
  return end - begin;
}

}  // namespace

std::string RangeText(std::vector<int> ranks, int max_parts) {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::string text;
  int parts = 0;
  for (size_t i = 0; i < ranks.size(); ++parts) {
    if (parts == max_parts) {
      absl::StrAppend(&text, ",... (", ranks.size(), " ranks)");
      break;
    }
    if (i > 0) text += ',';
    absl::StrAppend(&text, ranks[i]);
    const size_t ones = RunLength(ranks, i, 1);
    if (ones >= 2) {
      absl::StrAppend(&text, ones == 2 ? "," : "-", ranks[i + ones - 1]);
      i += ones;
      continue;
    }
    const int64_t step = i + 1 < ranks.size() ? int64_t{ranks[i + 1]} - ranks[i] : 0;
    const size_t spaced = step > 1 ? RunLength(ranks, i, step) : 1;
    if (spaced >= 4) {
      absl::StrAppend(&text, "-", ranks[i + spaced - 1], "/", step);
      i += spaced;
      continue;
    }
    ++i;
  }
  return text;
}

std::string RanksText(const std::vector<int>& ranks) {
  if (ranks.empty()) return "no rank";
  const bool one = std::all_of(ranks.begin(), ranks.end(), [&](int r) { return r == ranks[0]; });
  return absl::StrCat(one ? "rank " : "ranks ", RangeText(ranks));
}

}  // namespace ringscope::model
