#include <cstring>
#include <string>
#include <vector>

#include "recorder/flight/crc32c.h"
#include "recorder/flight/encode.h"
#include "tests/interface/dice.h"
#include "tests/interface/invariants.h"
#ifdef RINGSCOPE_WITH_PROTOBUF
#include "proto/trace.pb.h"
#endif

namespace ringscope::interface_model {
namespace {

bool Append(void* to, const void* data, size_t size) {
  static_cast<std::string*>(to)->append(static_cast<const char*>(data), size);
  return true;
}

}  // namespace

uint64_t CheckEncoding(const recorder::Image& image) {
  static std::vector<uint64_t> scratch(flight::kEncodeScratchBytes / 8);
  std::string bytes;
  const flight::EncodeResult result =
      flight::EncodeTrace(image.header, image.header->file_bytes, {}, scratch.data(),
                          flight::kEncodeScratchBytes, Append, &bytes);
  if (result.error != nullptr) Violation(std::string("the encoder says: ") + result.error);
  RequireEqual(result.bytes, bytes.size(), "bytes that the encoder says it wrote");
  Require(bytes.size() <= flight::kMaxTraceBytes, "the trace is larger than any may be");
  Require(bytes.compare(0, 8, flight::kTraceMagic) == 0, "the trace lacks its mark");
  uint32_t chunks = 0;
#ifdef RINGSCOPE_WITH_PROTOBUF
  trace::Trace trace;
#endif
  for (size_t at = 8; at < bytes.size(); ++chunks) {
    uint32_t frame[2];  // length, checksum
    Require(bytes.size() - at >= sizeof(frame), "the trace ends within a frame");
    std::memcpy(frame, bytes.data() + at, sizeof(frame));
    at += sizeof(frame);
    Require(bytes.size() - at >= frame[0], "the trace ends within a chunk");
    Require(flight::Crc32c(bytes.data() + at, frame[0]) == frame[1], "a chunk's checksum is wrong");
#ifdef RINGSCOPE_WITH_PROTOBUF
    Require(trace.MergeFromString(bytes.substr(at, frame[0])), "a chunk is no Trace message");
#endif
    at += frame[0];
  }
  RequireEqual(chunks, result.chunks, "chunks of the trace");
#ifdef RINGSCOPE_WITH_PROTOBUF
  Require(trace.has_end() && trace.end().chunks() + 1 == chunks, "the trace lacks its end");
#endif
  return bytes.size();
}

}  // namespace ringscope::interface_model
