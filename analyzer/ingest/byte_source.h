// Bytes of a file, a pipe given as "-", or a compressed file, piece by piece and bounded.
#ifndef RINGSCOPE_ANALYZER_INGEST_BYTE_SOURCE_H_
#define RINGSCOPE_ANALYZER_INGEST_BYTE_SOURCE_H_

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <string_view>

namespace ringscope::ingest {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Appends the next piece to `out`; false at the end. An error (kDataLoss: damaged compression; kResourceExhausted: more than
  // anything compressed may hold) ends the source; what came before stands. The message names file and position.
  virtual absl::StatusOr<bool> More(std::string* out) = 0;
};

bool LooksLikeZstd(std::string_view head);

// A regular file; gzip and zstd are recognised by content and unpacked. Never blocks on a FIFO or device: kInvalidArgument.
absl::StatusOr<std::unique_ptr<ByteSource>> OpenSource(const std::string& path);
// Standard input, once.
std::unique_ptr<ByteSource> StandardInput();
// `bytes` must outlive the source.
std::unique_ptr<ByteSource> BytesSource(std::string_view bytes);

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_INGEST_BYTE_SOURCE_H_
