#include "analyzer/scrub/scrub_text.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "analyzer/ingest/text_line.h"
#include "analyzer/ingest/utf16.h"
#include "analyzer/ingest/wrapped_lines.h"

namespace ringscope::scrub {
namespace {

constexpr size_t kHead = 1 << 16;
constexpr size_t kPiece = 1 << 18;    // of a line without an end
constexpr size_t kMostRun = 1 << 20;  // without any place to cut

// `line`: a line, or a piece of one (`ends` is then false for all but the last).
using TakeLine = std::function<absl::Status(std::string_view line, bool ends)>;

absl::Status Lines(ingest::ByteSource* source, const TakeLine& take) {
  std::string buffer;
  bool more = true;
  absl::Status status;
  const auto refill = [&] {
    auto got = source->More(&buffer);
    if (!got.ok()) status = got.status();
    more = got.ok() && *got;
  };
  while (more && buffer.size() < kHead) refill();
  if (ingest::LooksLikeUtf16(buffer)) {
    // What is left of the error comes again with the source's next call.
    ingest::Utf16Source decoded(std::move(buffer), source);
    return Lines(&decoded, take);
  }
  if (std::string_view(buffer).substr(0, 3) == "\xef\xbb\xbf") buffer.erase(0, 3);
  ingest::LineCleaner cleaner;
  ingest::WrappedLines wrapped(&cleaner);
  wrapped.FindWidth(std::string_view(buffer).substr(0, kHead));
  absl::Status taken;
  const auto whole = [&](std::string_view line, uint32_t) {
    if (taken.ok()) taken = take(line, true);
  };
  bool inside = false;  // a line's pieces were taken
  while (taken.ok()) {
    size_t start = 0;
    for (size_t end; (end = buffer.find('\n', start)) != buffer.npos && taken.ok(); start = end + 1) {
      const std::string_view line = std::string_view(buffer).substr(start, end - start);
      if (inside || !wrapped.wraps()) {
        taken = take(line, true);
        inside = false;
      } else {
        wrapped.Line(line, 0, whole);
      }
    }
    buffer.erase(0, start);
    if (!taken.ok() || !more) break;
    while (buffer.size() > kPiece && taken.ok()) {
      size_t cut = buffer.find_last_of(" \t,;\"'{}[]()&|", kPiece);
      if (cut == buffer.npos) cut = buffer.find_first_of(" \t,;\"'{}[]()&|\n", kPiece);
      if (cut == buffer.npos && buffer.size() < kMostRun) break;
      if (cut == buffer.npos) {
        uint64_t left_out = 0;
        while (more && buffer.find_first_of(" \t,;\"'{}[]()&|\n") == buffer.npos) {
          left_out += buffer.size();
          buffer.clear();
          refill();
        }
        const size_t next = std::min(buffer.find_first_of(" \t,;\"'{}[]()&|\n"), buffer.size());
        left_out += next;
        buffer.erase(0, next);
        taken = take(absl::StrCat("[", left_out, " bytes without a break left out]"), false);
        inside = true;
        continue;
      }
      if (buffer[cut] == '\n') break;
      taken = take(std::string_view(buffer).substr(0, cut + 1), false);
      inside = true;
      buffer.erase(0, cut + 1);
    }
    if (!taken.ok()) break;
    refill();
  }
  if (taken.ok()) wrapped.End(whole);
  if (taken.ok() && (!buffer.empty() || inside)) taken = take(buffer, false);
  return taken.ok() ? status : taken;
}

}  // namespace

absl::Status LearnText(ingest::ByteSource* source, Scrubber* scrubber) {
  return Lines(source, [&](std::string_view line, bool) {
    scrubber->Learn(line);
    return absl::OkStatus();
  });
}

absl::Status ScrubText(ingest::ByteSource* source, Scrubber* scrubber, const Write& write) {
  KeyBlock block;
  std::string out;
  absl::Status status = Lines(source, [&](std::string_view line, bool ends) {
    bool drop = false;
    out += scrubber->Line(line, &block, &drop);
    if (ends && !drop) out += '\n';
    if (out.size() < kHead) return absl::OkStatus();
    const absl::Status written = write(out);
    out.clear();
    return written;
  });
  if (!out.empty()) {
    if (absl::Status written = write(out); !written.ok()) return written;
  }
  return status;
}

}  // namespace ringscope::scrub
