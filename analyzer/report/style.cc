#include "analyzer/report/style.h"

#include <algorithm>

namespace ringscope::report {
namespace {

// Columns, taking each UTF-8 sequence for one.
size_t Columns(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

std::string Printable(const std::string& text) {
  std::string out = text;
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return out;
}

std::string Wrapped(const std::string& first, const std::string& text, int width) {
  const size_t indent = Columns(first);
  const size_t limit = static_cast<size_t>(std::max(width, 20));
  std::string out = first;
  size_t column = indent;
  bool line_empty = true;
  size_t at = 0;
  while (at < text.size()) {
    if (text[at] == ' ' || text[at] == '\n') {
      ++at;
      continue;
    }
    const size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const std::string word = Printable(text.substr(at, end - at));
    const size_t columns = Columns(word);
    if (!line_empty && column + 1 + columns > limit) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
      line_empty = true;
    }
    if (!line_empty) {
      out += ' ';
      ++column;
    }
    out += word;
    column += columns;
    line_empty = false;
    at = end;
  }
  return out + '\n';
}

}  // namespace ringscope::report
