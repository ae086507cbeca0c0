#include "analyzer/ingest/cited_lines.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "analyzer/ingest/utf16.h"

namespace ringscope::ingest {
namespace {

constexpr size_t kHead = 4;

class Lines {
 public:
  explicit Lines(const std::set<uint32_t>& wanted) : wanted_(wanted), next_(wanted.begin()) {}

  bool complete() const { return next_ == wanted_.end(); }
  void Take(std::string_view bytes) {
    while (!bytes.empty() && !complete()) {
      const size_t end = std::min(bytes.find('\n'), bytes.size());
      if (line_ == *next_) {
        text_.append(bytes.substr(0, std::min(end, kMostOfALine - std::min(kMostOfALine, text_.size()))));
        any_ = true;
      }
      if (end == bytes.size()) return;
      End();
      bytes.remove_prefix(end + 1);
    }
  }
  // The last line may lack its newline.
  void End() {
    if (complete()) return;
    if (line_ == *next_) {
      found_[line_] = std::exchange(text_, {});
      ++next_;
      any_ = false;
    }
    ++line_;
  }
  std::map<uint32_t, std::string> Found() {
    if (any_) End();
    return std::move(found_);
  }

 private:
  const std::set<uint32_t>& wanted_;
  std::set<uint32_t>::const_iterator next_;
  uint32_t line_ = 1;
  bool any_ = false;  // something of the line that is wanted next was seen
  std::string text_;
  std::map<uint32_t, std::string> found_;
};

}  // namespace

std::map<uint32_t, std::string> CitedLines(ByteSource* source, const std::set<uint32_t>& wanted) {
  std::set<uint32_t> lines = wanted;
  lines.erase(0);
  Lines found(lines);
  std::string head;
  bool more = true;
  const auto refill = [&](ByteSource* from, std::string* into) {
    const auto got = from->More(into);
    more = got.ok() && *got;
  };
  while (more && head.size() < kHead) refill(source, &head);
  if (LooksLikeUtf16(head)) {
    Utf16Source decoded(std::move(head), source);
    more = true;
    for (std::string piece; more && !found.complete(); piece.clear()) {
      refill(&decoded, &piece);
      found.Take(piece);
    }
    return found.Found();
  }
  if (head.starts_with("\xef\xbb\xbf")) head.erase(0, 3);
  found.Take(head);
  for (std::string piece; more && !found.complete(); piece.clear()) {
    refill(source, &piece);
    found.Take(piece);
  }
  return found.Found();
}

std::map<std::string, std::map<uint32_t, std::string>> CitedLines(const std::map<std::string, std::set<uint32_t>>& wanted) {
  std::map<std::string, std::map<uint32_t, std::string>> found;
  for (const auto& [path, lines] : wanted) {
    if (path == "-" || path == "(standard input)") continue;
    if (const auto source = OpenSource(path); source.ok()) found[path] = CitedLines(source->get(), lines);
  }
  return found;
}

}  // namespace ringscope::ingest
