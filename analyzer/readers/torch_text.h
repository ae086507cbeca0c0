// Small parts shared by the readers of torch's lines.
#ifndef RINGSCOPE_ANALYZER_READERS_TORCH_TEXT_H_
#define RINGSCOPE_ANALYZER_READERS_TORCH_TEXT_H_

#include <re2/re2.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/model/evidence.h"

namespace ringscope::ingest {

inline re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

// A quotation for people: printable ASCII, at most model::kMaxQuote bytes.
inline std::string QuoteOf(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  std::string quote(text.substr(0, model::kMaxQuote));
  for (char& c : quote) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20) c = ' ';
    if (byte >= 0x7f) c = '?';
  }
  while (!quote.empty() && quote.back() == ' ') quote.pop_back();
  return quote;
}

// "[0, 1, 2]" without the brackets. What is no number is left out; at most 64 Ki numbers.
inline std::vector<int> RankList(std::string_view text) {
  std::vector<int> ranks;
  for (size_t i = 0; i < text.size() && ranks.size() < (1u << 16);) {
    if (text[i] < '0' || text[i] > '9') {
      ++i;
      continue;
    }
    int64_t n = 0;
    for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) n = std::min<int64_t>(n * 10 + (text[i] - '0'), 1 << 30);
    if (n < (1 << 20)) ranks.push_back(static_cast<int>(n));
  }
  return ranks;
}

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_READERS_TORCH_TEXT_H_
