// Words of style for text that goes to a terminal. Without colour every function returns its text
// unchanged.
#ifndef RINGSCOPE_ANALYZER_REPORT_STYLE_H_
#define RINGSCOPE_ANALYZER_REPORT_STYLE_H_

#include <string>

namespace ringscope::report {

class Style {
 public:
  explicit Style(bool colour) : colour_(colour) {}
  std::string Bold(const std::string& text) const { return Wrap("1", text); }
  std::string Alarm(const std::string& text) const { return Wrap("1;31", text); }
  std::string Good(const std::string& text) const { return Wrap("1;32", text); }
  std::string Warn(const std::string& text) const { return Wrap("1;33", text); }
  std::string Dim(const std::string& text) const { return Wrap("2", text); }
  std::string Command(const std::string& text) const { return Wrap("36", text); }

 private:
  std::string Wrap(const char* code, const std::string& text) const {
    if (!colour_ || text.empty()) return text;
    return std::string("\x1b[") + code + "m" + text + "\x1b[0m";
  }
  bool colour_;
};

// `text` broken at blanks into lines of at most `width` columns; the first line begins with
// `first`, the others with as many blanks. A word that does not fit stays whole. Ends in a newline.
// Control characters in `text` become '?': what a record holds must not be able to drive a
// terminal.
std::string Wrapped(const std::string& first, const std::string& text, int width);

// `text` with every control character (newlines too) replaced by '?'.
std::string Printable(const std::string& text);

}  // namespace ringscope::report

#endif  // RINGSCOPE_ANALYZER_REPORT_STYLE_H_
