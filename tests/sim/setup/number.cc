#include "tests/sim/setup/number.h"

#include <stdlib.h>

namespace ringscope::sim {
namespace {

std::optional<int64_t> Digits(const std::string& text, const char* digits, int base, int64_t least, int64_t most) {
  if (text.empty() || text.size() > 15 || text.find_first_not_of(digits) != text.npos) return std::nullopt;
  const int64_t value = strtoll(text.c_str(), nullptr, base);
  if (value < least || value > most) return std::nullopt;
  return value;
}

}  // namespace

std::optional<int64_t> Whole(const std::string& text, int64_t least, int64_t most) {
  return Digits(text, "0123456789", 10, least, most);
}
std::optional<int64_t> Hexadecimal(const std::string& text, int64_t least, int64_t most) {
  return Digits(text, "0123456789abcdefABCDEF", 16, least, most);
}
std::optional<double> Decimal(const std::string& text, double more_than, double most) {
  if (text.empty() || text.size() > 15 || text == "." || text.find_first_not_of("0123456789.") != text.npos ||
      text.find('.') != text.rfind('.'))
    return std::nullopt;
  const double value = strtod(text.c_str(), nullptr);
  if (!(value > more_than && value <= most)) return std::nullopt;
  return value;
}

std::string Shown(const std::string& text) {
  constexpr size_t kMost = 120;
  std::string shown;
  for (const char c : text.substr(0, kMost)) shown += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return text.size() > kMost ? shown + "..." : shown;
}

}  // namespace ringscope::sim
