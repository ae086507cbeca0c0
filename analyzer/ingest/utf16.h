// UTF-16 with a byte order mark, as shells of Windows write what they redirect, turned into UTF-8.
#ifndef RINGSCOPE_ANALYZER_INGEST_UTF16_H_
#define RINGSCOPE_ANALYZER_INGEST_UTF16_H_

#include <string>
#include <string_view>

#include "analyzer/ingest/byte_source.h"

namespace ringscope::ingest {

bool LooksLikeUtf16(std::string_view head);

// What `head` (already read) and then `source` hold. `source` must outlive it. A surrogate without its other half, or an odd
// byte at the end, becomes "?".
class Utf16Source : public ByteSource {
 public:
  Utf16Source(std::string head, ByteSource* source);
  absl::StatusOr<bool> More(std::string* out) override;

 private:
  void Decode(std::string* out);
  std::string pending_;
  ByteSource* source_;
  bool big_endian_;
  char32_t high_ = 0;  // a high surrogate that waits for its other half
};

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_INGEST_UTF16_H_
