// Finds the few lines of a large log that can matter, a block at a time, with Vectorscan where it was found when building.
// RE2 decides; this only spares it most lines. A line that it passes over cannot match.
#ifndef RINGSCOPE_ANALYZER_INGEST_BLOCK_FILTER_H_
#define RINGSCOPE_ANALYZER_INGEST_BLOCK_FILTER_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ringscope::ingest {

class BlockFilter {
 public:
  // Of all signatures and triggers, compiled at the first call (a fraction of a second: not worth it for small inputs).
  // nullptr: built without Vectorscan, or a pattern is beyond it.
  static BlockFilter* All();
  // Of these patterns (RE2 syntax).
  static std::unique_ptr<BlockFilter> Make(const std::vector<std::string>& patterns);
  virtual ~BlockFilter() = default;
  // Offsets just behind each text found in `block` (whole lines), ascending. A line without any inside it, or at its end, can
  // only match a pattern that has no text of its own: Other() tells, of the cleaned line.
  virtual const std::vector<size_t>& Scan(std::string_view block) = 0;
  virtual bool Other(std::string_view text) const = 0;
};

// Texts of which every match of the pattern contains at least one; empty when there are none (classes only). Texts are looked
// for many times faster than patterns.
struct RequiredText {
  std::string text;
  bool caseless = false;
};
std::vector<RequiredText> RequiredTexts(std::string_view pattern);

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_INGEST_BLOCK_FILTER_H_
