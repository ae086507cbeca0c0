// A minimal reader of trace containers for the recorder's own tests: frames, checksums, merged
// parts. The analyzer's reader is another one on purpose.
#ifndef RINGSCOPE_TESTS_UNIT_RECORDER_TRACE_FILE_H_
#define RINGSCOPE_TESTS_UNIT_RECORDER_TRACE_FILE_H_

#include <string.h>

#include <string>
#include <vector>

#include "proto/trace.pb.h"
#include "recorder/flight/crc32c.h"
#include "recorder/flight/encode.h"

namespace ringscope {

struct TraceFile {
  std::string error;  // empty: every chunk was whole
  trace::Trace trace;
  uint32_t chunks = 0;

  bool Complete() const {
    return error.empty() && trace.has_end() && trace.end().chunks() + 1 == chunks;
  }
};

inline TraceFile ReadTrace(const std::string& bytes) {
  TraceFile file;
  if (bytes.compare(0, 8, flight::kTraceMagic) != 0) {
    file.error = "no magic";
    return file;
  }
  size_t at = 8;
  while (at < bytes.size()) {
    uint32_t frame[2];
    if (bytes.size() - at < sizeof(frame)) {
      file.error = "torn frame";
      return file;
    }
    memcpy(frame, bytes.data() + at, sizeof(frame));
    at += sizeof(frame);
    if (bytes.size() - at < frame[0]) {
      file.error = "torn chunk";
      return file;
    }
    if (flight::Crc32c(bytes.data() + at, frame[0]) != frame[1]) {
      file.error = "checksum";
      return file;
    }
    if (!file.trace.MergeFromString(bytes.substr(at, frame[0]))) {
      file.error = "not a Trace";
      return file;
    }
    at += frame[0];
    ++file.chunks;
  }
  return file;
}

inline bool AppendTo(void* ctx, const void* data, size_t size) {
  static_cast<std::string*>(ctx)->append(static_cast<const char*>(data), size);
  return true;
}

// Encodes an image; *error gets the encoder's phrase.
inline std::string Encode(const void* image, size_t size, const flight::EncodeOptions& options = {},
                          std::string* error = nullptr) {
  static std::vector<uint64_t> scratch(flight::kEncodeScratchBytes / 8);
  std::string bytes;
  const flight::EncodeResult result = flight::EncodeTrace(
      image, size, options, scratch.data(), flight::kEncodeScratchBytes, AppendTo, &bytes);
  if (error) *error = result.error ? result.error : "";
  if (!result.error && result.bytes != bytes.size()) bytes = "wrong count of bytes";
  return bytes;
}

}  // namespace ringscope

#endif  // RINGSCOPE_TESTS_UNIT_RECORDER_TRACE_FILE_H_
