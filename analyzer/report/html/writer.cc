#include "analyzer/report/html/writer.h"

#include <stdio.h>

#include <cmath>
#include <cstdint>

namespace ringscope::report::html {
namespace {

constexpr uint32_t kInvalid = 0xffffffff;

// The code point at `at`, which moves behind it; kInvalid after one byte that begins none (overlong forms and surrogates are
// none).
uint32_t Next(std::string_view text, size_t* at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte((*at)++);
  if (first < 0x80) return first;
  const int more = first >= 0xf0 && first < 0xf5 ? 3 : first >= 0xe0 && first < 0xf0 ? 2 : first >= 0xc2 && first < 0xe0 ? 1 : 0;
  if (more == 0 || *at + static_cast<size_t>(more) > text.size()) return kInvalid;
  uint32_t point = first & (0x3fu >> more);
  for (int i = 0; i < more; ++i) {
    if ((byte(*at + static_cast<size_t>(i)) & 0xc0) != 0x80) return kInvalid;
    point = point << 6 | (byte(*at + static_cast<size_t>(i)) & 0x3fu);
  }
  if ((more == 2 && point < 0x800) || (more == 3 && point < 0x10000) || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
    return kInvalid;
  *at += static_cast<size_t>(more);
  return point;
}

// Shown as its number: it would otherwise be invisible, move what stands beside it, or break a line where there is none.
bool Hidden(uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c || c == 0x115f || c == 0x1160 || c == 0x180e ||
         (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0x3164 ||
         c == 0xfeff || (c >= 0xfff0 && c <= 0xfffb) || (c & 0xfffe) == 0xfffe || (c >= 0xe0000 && c <= 0xe0fff);
}

template <typename Ordinary>
std::string Each(std::string_view text, bool keep_lines, const Ordinary& ordinary) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const uint32_t c = Next(text, &at);
    if (c == kInvalid) {
      out += "\xef\xbf\xbd";
    } else if (keep_lines && (c == '\n' || c == '\t')) {
      out += static_cast<char>(c);
    } else if (Hidden(c)) {
      char number[16];
      snprintf(number, sizeof(number), "[U+%04X]", c);
      out += number;
    } else {
      ordinary(c, text.substr(begin, at - begin), &out);
    }
  }
  return out;
}

}  // namespace

std::string Shown(std::string_view text, bool keep_lines) {
  return Each(text, keep_lines, [](uint32_t, std::string_view bytes, std::string* out) { out->append(bytes); });
}

std::string Escaped(std::string_view text, bool keep_lines) {
  return Each(text, keep_lines, [](uint32_t c, std::string_view bytes, std::string* out) {
    switch (c) {
      case '&':
        *out += "&amp;";
        break;
      case '<':
        *out += "&lt;";
        break;
      case '>':
        *out += "&gt;";
        break;
      case '"':
        *out += "&quot;";
        break;
      case '\'':
        *out += "&#39;";
        break;
      default:
        out->append(bytes);
    }
  });
}

std::string JsonText(std::string_view text) {
  return '"' +
         Each(text, false,
              [](uint32_t c, std::string_view bytes, std::string* out) {
                if (c == '"' || c == '\\' || c == '<' || c == '>' || c == '&') {
                  char number[8];
                  snprintf(number, sizeof(number), "\\u%04x", c);
                  *out += number;
                } else {
                  out->append(bytes);
                }
              }) +
         '"';
}

Writer& Writer::operator<<(double number) {
  if (!std::isfinite(number)) number = 0;
  char text[32];
  int n = snprintf(text, sizeof(text), "%.1f", number);
  if (n > 2 && text[n - 1] == '0' && text[n - 2] == '.') n -= 2;
  std::string_view shown(text, static_cast<size_t>(n));
  out_ += shown == "-0" ? std::string_view("0") : shown;
  return *this;
}

}  // namespace ringscope::report::html
