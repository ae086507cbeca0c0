// Undoes what a name or a secret can hide behind.
#ifndef RINGSCOPE_ANALYZER_SCRUB_ESCAPES_H_
#define RINGSCOPE_ANALYZER_SCRUB_ESCAPES_H_

#include <string>
#include <string_view>

namespace ringscope::scrub {

// Without terminal control sequences (with or without their escape byte, as ingest::LineCleaner reads them), with JSON's \u002f
// and
// \/ and a URL's %2F as the characters they stand for (printable ASCII only, never a quote or a backslash). True when anything
// changed; `out` is then the text.
bool Unescape(std::string_view line, std::string* out);

}  // namespace ringscope::scrub

#endif  // RINGSCOPE_ANALYZER_SCRUB_ESCAPES_H_
