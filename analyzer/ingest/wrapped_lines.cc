#include "analyzer/ingest/wrapped_lines.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "analyzer/model/views.h"

namespace ringscope::ingest {

void WrappedLines::FindWidth(std::string_view head) {
  std::vector<std::string_view> lines;
  for (size_t start = 0, end; (end = head.find('\n', start)) != head.npos; start = end + 1) {
    lines.push_back(head.substr(start, end - start));
    if (lines.back().ends_with('\r')) lines.back().remove_suffix(1);
  }
  size_t longest = 0;
  for (const std::string_view line : lines) longest = std::max(longest, line.size());
  if (longest < 60 || longest > 400) return;
  // Most lines of that width must go on in the next one, else the longest line is just that.
  size_t full = 0, continued = 0;
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    if (lines[i].size() != longest || !Prefixed(lines[i])) continue;
    ++full;
    continued += Continues(lines[i + 1]);
  }
  if (continued >= 2 && continued * 2 >= full) width_ = longest;
}

void WrappedLines::Line(std::string_view raw, uint32_t number, const Whole& whole) {
  if (width_ == 0) return whole(raw, number);
  while (!raw.empty() && raw.back() == '\r') raw.remove_suffix(1);
  if (!held_.empty()) {
    if (Continues(raw) && held_.size() < kMaxLine) {
      held_ += raw;
      if (raw.size() != width_) End(whole);
      return;
    }
    End(whole);
  }
  if (raw.size() == width_ && Prefixed(raw)) {
    held_ = raw;
    held_number_ = number;
    return;
  }
  whole(raw, number);
}

void WrappedLines::End(const Whole& whole) {
  if (held_.empty()) return;
  const std::string line = std::exchange(held_, {});
  whole(line, held_number_);
}

// Starts like a line of a log: the second half of a wrapped one does not.
bool WrappedLines::Prefixed(std::string_view raw) {
  const TextLine line = cleaner_->Clean(raw, {});
  return line.text.size() != raw.size() || raw.starts_with("[E") || raw.starts_with("[W") || raw.starts_with("[I");
}

bool WrappedLines::Continues(std::string_view raw) {
  return !raw.empty() && !Contains(" \t|+#[=-", raw.substr(0, 1)) && !Prefixed(raw);
}

}  // namespace ringscope::ingest
