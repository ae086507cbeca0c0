// What launchers put before a line. Internal to analyzer/ingest.
#ifndef RINGSCOPE_ANALYZER_INGEST_LINE_WRAPPERS_H_
#define RINGSCOPE_ANALYZER_INGEST_LINE_WRAPPERS_H_

#include <string_view>

#include "analyzer/ingest/text_line.h"

namespace ringscope::ingest {

// Removes every launcher prefix and time stamp from the start of `text`; what they tell goes to `line`.
std::string_view StripWrappers(std::string_view text, TextLine* line);
// Splits NCCL's own prefix off `text` where there is one, sets nccl, nccl_source, speaker and quote. Returns the message.
std::string_view StripNcclPrefix(std::string_view text, TextLine* line);

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_INGEST_LINE_WRAPPERS_H_
