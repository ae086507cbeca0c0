// A cursor over a string: the few moves that taking a log line apart needs. Internal to analyzer/ingest and the readers.
#ifndef RINGSCOPE_ANALYZER_INGEST_SCAN_H_
#define RINGSCOPE_ANALYZER_INGEST_SCAN_H_

#include <cstdint>
#include <string_view>

namespace ringscope::ingest {

struct Scan {
  std::string_view rest;

  explicit Scan(std::string_view text) : rest(text) {}
  bool Literal(std::string_view text) {
    if (rest.substr(0, text.size()) != text) return false;
    rest.remove_prefix(text.size());
    return true;
  }
  bool Char(char c) {
    if (rest.empty() || rest[0] != c) return false;
    rest.remove_prefix(1);
    return true;
  }
  // Decimal digits, `least` to `most` of them.
  bool Number(int64_t* value, size_t least = 1, size_t most = 18) {
    size_t n = 0;
    int64_t v = 0;
    while (n < rest.size() && n < most && rest[n] >= '0' && rest[n] <= '9') v = v * 10 + (rest[n++] - '0');
    if (n < least) return false;
    rest.remove_prefix(n);
    *value = v;
    return true;
  }
  template <typename Is>
  std::string_view While(Is is) {
    size_t n = 0;
    while (n < rest.size() && is(rest[n])) ++n;
    const std::string_view taken = rest.substr(0, n);
    rest.remove_prefix(n);
    return taken;
  }
  void Spaces() {
    While([](char c) { return c == ' ' || c == '\t'; });
  }
  static bool Digit(char c) { return c >= '0' && c <= '9'; }
  static bool Alpha(char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; }
  static bool HostChar(char c) { return Digit(c) || Alpha(c) || c == '.' || c == '-' || c == '_'; }
};

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_INGEST_SCAN_H_
