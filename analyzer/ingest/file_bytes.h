// Bytes of a file, read once and whole. Every reader takes bytes, so that tests and fuzzers need no
// files.
#ifndef RINGSCOPE_ANALYZER_INGEST_FILE_BYTES_H_
#define RINGSCOPE_ANALYZER_INGEST_FILE_BYTES_H_

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <string>

namespace ringscope::ingest {

// Called now and then with what is being read; never more than a few times a second is worth
// showing, the caller decides.
using Progress =
    std::function<void(const std::string& path, uint64_t bytes_done, uint64_t bytes_total)>;

// The first `limit` bytes of a regular file. Never blocks on a FIFO or a device: those are refused
// (kInvalidArgument). kNotFound: no such file; kPermissionDenied, kUnavailable: cannot be read. The
// message names the file and the remedy.
absl::StatusOr<std::string> ReadHead(const std::string& path, size_t limit);

// The whole file; kResourceExhausted when it holds more than `limit` bytes.
absl::StatusOr<std::string> ReadWhole(const std::string& path, uint64_t limit,
                                      const Progress& progress = nullptr);

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_INGEST_FILE_BYTES_H_
