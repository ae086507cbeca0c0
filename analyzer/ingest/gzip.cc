#include "analyzer/ingest/gzip.h"

#include <absl/strings/str_cat.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

namespace ringscope::ingest {

bool LooksLikeGzip(std::string_view head) { return head.substr(0, 2) == "\x1f\x8b"; }

absl::StatusOr<Inflated> Gunzip(std::string_view bytes, size_t limit, const std::string& name) {
  z_stream stream = {};
  if (inflateInit2(&stream, 15 + 16) != Z_OK)
    return absl::ResourceExhaustedError(absl::StrCat(name, ": no memory"));
  Inflated out;
  char buffer[65536];
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in =
      static_cast<uInt>(std::min<size_t>(bytes.size(), std::numeric_limits<uInt>::max()));
  int result = Z_OK;
  while (result == Z_OK && out.bytes.size() < limit) {
    stream.next_out = reinterpret_cast<Bytef*>(buffer);
    stream.avail_out = static_cast<uInt>(std::min(sizeof(buffer), limit - out.bytes.size()));
    const uInt room = stream.avail_out;
    result = inflate(&stream, Z_NO_FLUSH);
    out.bytes.append(buffer, room - stream.avail_out);
    if (stream.avail_out == room && stream.avail_in == 0) break;  // the compressed bytes end early
  }
  const uint64_t at = stream.total_in;
  inflateEnd(&stream);
  if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR && out.bytes.empty()) {
    return absl::DataLossError(absl::StrCat(
        name, ": byte ", at, ": damaged gzip data; copy the file again from its host"));
  }
  out.complete = result == Z_STREAM_END;
  return out;
}

}  // namespace ringscope::ingest
