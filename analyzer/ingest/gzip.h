#ifndef RINGSCOPE_ANALYZER_INGEST_GZIP_H_
#define RINGSCOPE_ANALYZER_INGEST_GZIP_H_

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

namespace ringscope::ingest {

bool LooksLikeGzip(std::string_view head);

struct Inflated {
  std::string bytes;
  bool complete = false;  // false: cut at `limit`, or the compressed bytes end early
};

// What gzip'd `bytes` hold, at most `limit` bytes of it (a small file can inflate to any size).
// kDataLoss: damaged; the message holds the byte position, `name` is used in it only.
absl::StatusOr<Inflated> Gunzip(std::string_view bytes, size_t limit, const std::string& name);

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_INGEST_GZIP_H_
