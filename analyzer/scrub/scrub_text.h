// Texts of any size, piece by piece.
#ifndef RINGSCOPE_ANALYZER_SCRUB_SCRUB_TEXT_H_
#define RINGSCOPE_ANALYZER_SCRUB_SCRUB_TEXT_H_

#include <absl/status/status.h>

#include <functional>
#include <string>
#include <string_view>

#include "analyzer/ingest/byte_source.h"
#include "analyzer/scrub/scrubber.h"

namespace ringscope::scrub {

// The first pass over a text.
absl::Status LearnText(ingest::ByteSource* source, Scrubber* scrubber);

// The second. Lines that a terminal wrapped are written whole (a name may be cut by the wrapping), colours are left out, UTF-16
// becomes UTF-8. A line without an end is worked on in pieces cut at blanks, commas or quotes; what has none of them for a
// megabyte is left out and said in the output. An error of `write` ends it.
using Write = std::function<absl::Status(std::string_view bytes)>;
absl::Status ScrubText(ingest::ByteSource* source, Scrubber* scrubber, const Write& write);

}  // namespace ringscope::scrub

#endif  // RINGSCOPE_ANALYZER_SCRUB_SCRUB_TEXT_H_
