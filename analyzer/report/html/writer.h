// HTML in which markup and text cannot be confused: what stands between quotes in the program is markup, everything else is text.
//
//   out << "<p class=\"who\">" << host << "</p>";
//
// `host` may hold whatever a log held. The compiler refuses a std::string where markup is meant.
#ifndef RINGSCOPE_ANALYZER_REPORT_HTML_WRITER_H_
#define RINGSCOPE_ANALYZER_REPORT_HTML_WRITER_H_

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

namespace ringscope::report::html {

// Valid UTF-8 for people: bytes that are none become U+FFFD; control characters, line separators and the invisible characters
// that reorder or hide text (bidi controls, zero width) become visible, as "[U+202E]". `keep_lines`: newline and tab stay.
std::string Shown(std::string_view text, bool keep_lines = false);

// Shown() with & < > " ' as entities: safe as element text and as a quoted attribute.
std::string Escaped(std::string_view text, bool keep_lines = false);

// A JSON string with its quotes, of Shown(text), safe within a <script> of type application/json.
std::string JsonText(std::string_view text);

// A string that stands in the source.
class Markup {
 public:
  template <size_t N>
  consteval Markup(const char (&literal)[N]) : text_(literal, N - 1) {}  // NOLINT: conversion is the point
  constexpr std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

class Writer {
 public:
  Writer& operator<<(Markup markup) {
    out_.append(markup.text());
    return *this;
  }
  template <typename T>
  requires std::same_as<T, std::string> || std::same_as<T, std::string_view> Writer& operator<<(const T& text) {
    out_ += Escaped(text);
    return *this;
  }
  template <std::integral T>
  requires(!std::same_as<T, bool> && !std::same_as<T, char>) Writer& operator<<(T number) {
    out_ += std::to_string(number);
    return *this;
  }
  // With one decimal, without a trailing ".0": coordinates.
  Writer& operator<<(double number);
  // What another writer made.
  Writer& operator<<(const Writer& part) {
    out_ += part.out_;
    return *this;
  }
  // Escaped, with its lines: for <pre>.
  Writer& Lines(std::string_view text) {
    out_ += Escaped(text, true);
    return *this;
  }
  // JSON for a data block: made of JsonText() and numbers only.
  Writer& Json(std::string_view json) {
    out_ += json;
    return *this;
  }

  bool empty() const { return out_.empty(); }
  size_t size() const { return out_.size(); }
  const std::string& str() const { return out_; }

 private:
  std::string out_;
};

}  // namespace ringscope::report::html

#endif  // RINGSCOPE_ANALYZER_REPORT_HTML_WRITER_H_
