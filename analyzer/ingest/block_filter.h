// Finds the few lines of a large log that can matter, a block at a time, with Vectorscan where it was found when building.
// RE2 decides; this only spares it (and the cleaning of lines) the rest. A line that it passes over cannot match.
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
  // Offsets just behind each match in `block` (whole lines), ascending, without repetition. Every line of which some cleaned
  // form could match has at least one inside it, or at its end.
  virtual const std::vector<size_t>& Scan(std::string_view block) = 0;
};

// A pattern whose matches in a raw line include those in the cleaned one: without anchors. For tests.
std::string WithoutAnchors(std::string_view pattern);

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_INGEST_BLOCK_FILTER_H_
