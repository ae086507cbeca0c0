#include "recorder/flight/encode.h"

#include <string.h>

#include "recorder/flight/crc32c.h"
#include "recorder/flight/encoder.h"

namespace ringscope::flight {
namespace {

// Chunks are closed at the first entry behind this size: what a torn tail can lose.
constexpr size_t kChunkTarget = 32 << 10;
constexpr size_t kOpsBytes = sizeof(OpView) * kMostRingRows;
static_assert(kEncodeScratchBytes > kOpsBytes + (512 << 10));

// Puts chunks together and hands them to the sink.
class Chunks {
 public:
  Chunks(void* buffer, size_t size, Sink sink, void* ctx, EncodeResult* result)
      : writer_(buffer, size), sink_(sink), ctx_(ctx), result_(result) {}

  WireWriter& writer() { return writer_; }

  void Magic() { Send(kTraceMagic, 8); }

  // Writes one entry by calling `encode`; closes the chunk before it if little room is left, and
  // after it if it is full. An entry that does not fit even into an empty chunk is dropped and
  // reported by false.
  template <typename F>
  bool Entry(size_t expected, F encode) {
    if (writer_.size() && writer_.room() < expected) Close();
    for (int attempt = 0; attempt < 2; ++attempt) {
      const size_t before = writer_.size();
      encode();
      if (!writer_.overflow()) {
        if (writer_.size() >= kChunkTarget) Close();
        return true;
      }
      writer_.Rewind(before);
      if (before == 0) return false;
      Close();
    }
    return false;
  }

  void Close() {
    const size_t n = writer_.size();
    if (n == 0) return;
    uint8_t frame[8];
    const uint32_t words[2] = {static_cast<uint32_t>(n), Crc32c(writer_.data(), n)};
    for (int i = 0; i < 8; ++i) frame[i] = static_cast<uint8_t>(words[i / 4] >> 8 * (i % 4));
    Send(frame, sizeof(frame));
    Send(writer_.data(), n);
    ++result_->chunks;
    writer_.Rewind(0);
  }

 private:
  void Send(const void* data, size_t size) {
    if (result_->error) return;
    if (!sink_(ctx_, data, size)) {
      result_->error = "the sink failed";
      return;
    }
    result_->bytes += size;
  }

  WireWriter writer_;
  Sink sink_;
  void* ctx_;
  EncodeResult* result_;
};

}  // namespace

EncodeResult EncodeTrace(const void* data, size_t size, const EncodeOptions& options, void* scratch,
                         size_t scratch_bytes, Sink sink, void* ctx) {
  EncodeResult result;
  if (scratch_bytes < kEncodeScratchBytes || reinterpret_cast<uintptr_t>(scratch) % 8 != 0) {
    result.error = "too little working memory";
    return result;
  }
  ImageView image;
  result.error = image.Open(data, size);
  if (result.error) return result;

  uint8_t* memory = static_cast<uint8_t*>(scratch);
  Chunks chunks(memory + kOpsBytes, scratch_bytes - kOpsBytes, sink, ctx, &result);
  Encoder e(image, options, chunks.writer());
  e.ops = reinterpret_cast<OpView*>(memory);
  TakeSurvey(&e);

  // What matters most comes first: a torn file loses its tail.
  chunks.Magic();
  chunks.Entry(kEntryBytes, [&] { EncodeHead(&e); });
  chunks.Entry(kEntryBytes, [&] { EncodeNotSeen(&e); });
  chunks.Close();
  const auto communicators = [&](bool open) {
    for (uint32_t i = 0; i < image.comms.count && !result.error; ++i) {
      if ((e.survey.comm_open[i] != 0) == open) {
        chunks.Entry(kChunkTarget, [&] { EncodeCommunicator(&e, i); });
      }
    }
  };
  communicators(true);
  for (uint32_t i = 0; i < image.edges.count && !result.error; ++i) {
    chunks.Entry(kEntryBytes, [&] { EncodeEdge(&e, i); });
  }
  for (uint32_t i = 0; i < image.threads.count && !result.error; ++i) {
    chunks.Entry(kEntryBytes, [&] { EncodeCall(&e, i); });
  }
  communicators(false);
  chunks.Close();
  chunks.Entry(kEntryBytes, [&] {
    const WireWriter::Mark end = e.w.Begin(100);
    e.w.Uint(1, result.chunks);
    e.w.End(end);
  });
  chunks.Close();
  return result;
}

bool EncodeIdentityOf(const void* data, size_t size, WireWriter* w) {
  ImageView image;
  if (image.Open(data, size) != nullptr) return false;
  const EncodeOptions options;
  Encoder e(image, options, *w);
  EncodeIdentity(&e);
  return true;
}

}  // namespace ringscope::flight
