// One line of a capture: a JSON object of scalars. A parser of its own because a capture has up to
// 200,000 lines, of which nothing is kept but a few numbers.
#ifndef RINGSCOPE_TESTS_REPLAY_FLAT_JSON_H_
#define RINGSCOPE_TESTS_REPLAY_FLAT_JSON_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace ringscope::replay {

class FlatJson {
 public:
  struct Value {
    enum Kind { kNull, kBool, kNumber, kString } kind = kNull;
    absl::string_view text;  // number or literal as written; a string without its quotes, escapes
                             // left as they are
  };

  // False when the line is not one object of scalars; position() then says where reading stopped
  // (bytes from the start). The line must outlive the values.
  bool Parse(absl::string_view line);
  size_t position() const { return position_; }

  const Value* Find(absl::string_view key) const;
  bool Has(absl::string_view key) const { return Find(key) != nullptr; }
  // Missing, null, and values of another kind give the fallback. Integers may be written as 0x...
  // inside a string.
  uint64_t Unsigned(absl::string_view key, uint64_t fallback = 0) const;
  int64_t Signed(absl::string_view key, int64_t fallback = 0) const;
  bool True(absl::string_view key) const;
  absl::string_view Text(absl::string_view key) const;

 private:
  std::vector<std::pair<absl::string_view, Value>> fields_;
  size_t position_ = 0;
};

}  // namespace ringscope::replay

#endif  // RINGSCOPE_TESTS_REPLAY_FLAT_JSON_H_
