// Lines that a terminal wrapped at its width, put together again. Internal to the analyzer.
#ifndef RINGSCOPE_ANALYZER_INGEST_WRAPPED_LINES_H_
#define RINGSCOPE_ANALYZER_INGEST_WRAPPED_LINES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "analyzer/ingest/text_line.h"

namespace ringscope::ingest {

class WrappedLines {
 public:
  // `cleaner` tells how a line of a log starts; it must outlive this.
  explicit WrappedLines(LineCleaner* cleaner) : cleaner_(cleaner) {}
  // Looks at the first lines of a text: most that fill a width of 60 to 400 must go on in the next one.
  void FindWidth(std::string_view head);
  bool wraps() const { return width_ != 0; }

  // A line as it stands in the file, and its number. `whole` gets each line that is whole, with the number of its first part.
  using Whole = std::function<void(std::string_view line, uint32_t number)>;
  void Line(std::string_view raw, uint32_t number, const Whole& whole);
  void End(const Whole& whole);

 private:
  bool Prefixed(std::string_view raw);
  bool Continues(std::string_view raw);
  LineCleaner* cleaner_;
  size_t width_ = 0;
  std::string held_;  // a line that fills the width and may go on
  uint32_t held_number_ = 0;
};

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_INGEST_WRAPPED_LINES_H_
