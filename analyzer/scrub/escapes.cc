#include "analyzer/scrub/escapes.h"

#include <algorithm>
#include <cstring>

namespace ringscope::scrub {
namespace {

bool Digit(char c) { return c >= '0' && c <= '9'; }
bool Alpha(char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; }
int HexValue(char c) {
  if (Digit(c)) return c - '0';
  const char low = static_cast<char>(c | 32);
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

// Length of a control sequence at the start of `text`; 0: none.
size_t ControlLength(std::string_view text) {
  if (text[0] == '\x1b') {
    if (text.size() < 2) return 1;
    if (text[1] == ']') {  // title, link: up to BEL or ESC backslash
      for (size_t i = 2; i < text.size() && i < 4096; ++i) {
        if (text[i] == '\a') return i + 1;
        if (text[i] == '\x1b') return i + 1 < text.size() && text[i + 1] == '\\' ? i + 2 : i;
      }
      return 2;
    }
    if (text[1] != '[') return text[1] == '(' || text[1] == ')' ? std::min<size_t>(3, text.size()) : 2;
    size_t i = 2;
    while (i < text.size() && text[i] >= 0x20 && text[i] < 0x40) ++i;
    return i < text.size() && text[i] >= 0x40 && text[i] < 0x7f ? i + 1 : i;
  }
  // The escape byte was lost on the way: "[36m".
  if (text[0] != '[') return 0;
  size_t i = 1;
  while (i < text.size() && i < 9 && (Digit(text[i]) || text[i] == ';')) ++i;
  return i > 1 && i < text.size() && text[i] == 'm' ? i + 1 : 0;
}

bool Plain(int value) { return value > 0x20 && value < 0x7f && value != '"' && value != '\'' && value != '\\' && value != '%'; }

}  // namespace

bool Unescape(std::string_view line, std::string* out) {
  const bool json = line.find("\\u00") != line.npos || line.find("\\/") != line.npos;
  const bool url = line.find('%') != line.npos;
  const bool invisible = line.find("\xe2\x80") != line.npos || line.find("\xef\xbb\xbf") != line.npos;
  if (!json && !url && !invisible && line.find('\x1b') == line.npos && line.find('[') == line.npos &&
      line.find('\b') == line.npos)
    return false;
  out->clear();
  bool changed = false;
  for (size_t i = 0; i < line.size();) {
    const char c = line[i];
    if (c == '\x1b' || c == '[') {
      if (const size_t n = ControlLength(line.substr(i)); n > 0) {
        i += n;
        changed = true;
        continue;
      }
    }
    if (c == '\b') {  // overstruck, as by man and old progress bars
      while (!out->empty() && (static_cast<unsigned char>(out->back()) & 0xc0) == 0x80) out->pop_back();
      if (!out->empty()) out->pop_back();
      ++i;
      changed = true;
      continue;
    }
    if (json && c == '\\' && i + 1 < line.size()) {
      if (line[i + 1] == '\\') {  // an escaped backslash escapes nothing
        out->append("\\\\");
        i += 2;
        continue;
      }
      if (line[i + 1] == '/') {
        *out += '/';
        i += 2;
        changed = true;
        continue;
      }
      if (line.substr(i + 1, 3) == "u00" && i + 6 <= line.size()) {
        const int high = HexValue(line[i + 4]), low = HexValue(line[i + 5]);
        if (high >= 0 && low >= 0 && Plain(high * 16 + low)) {
          *out += static_cast<char>(high * 16 + low);
          i += 6;
          changed = true;
          continue;
        }
      }
    }
    if (url && c == '%' && i + 2 < line.size()) {
      const int high = HexValue(line[i + 1]), low = HexValue(line[i + 2]);
      // "90%20" and "5 %FD" are no escapes: a letter or a sign must stand before.
      const bool inside =
          i > 0 && !Digit(line[i - 1]) && (Alpha(line[i - 1]) || std::strchr("/:=@.-_&?", line[i - 1]) != nullptr);
      const bool escaped = inside || (i > 0 && line.find("%3A%2F") != line.npos);
      if (escaped && high >= 2 && low >= 0 && Plain(high * 16 + low)) {
        *out += static_cast<char>(high * 16 + low);
        i += 3;
        changed = true;
        continue;
      }
    }
    // Zero-width characters inside a word.
    if (invisible && line.substr(i, 2) == "\xe2\x80" && i + 2 < line.size() && line[i + 2] >= '\x8b' && line[i + 2] <= '\x8f') {
      i += 3;
      changed = true;
      continue;
    }
    if (invisible && i > 0 && line.substr(i, 3) == "\xef\xbb\xbf") {
      i += 3;
      changed = true;
      continue;
    }
    *out += c;
    ++i;
  }
  return changed;
}

}  // namespace ringscope::scrub
