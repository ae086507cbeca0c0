// Columns of a StreamChunk taken apart: whatever a hostile chunk holds, every index is checked and no more is handed out than
// the chunk's own bytes justify.
#ifndef RINGSCOPE_ANALYZER_INGEST_STREAM_COLUMNS_H_
#define RINGSCOPE_ANALYZER_INGEST_STREAM_COLUMNS_H_

#include "analyzer/ingest/stream_reader.h"

namespace ringscope::ingest {

// A chunk of the recorder holds 2,048 operations and 8,192 steps at most. Entries of zeros cost no bytes, so that without
// this bound a chunk of ten bytes could claim four billion.
inline constexpr uint32_t kMaxChunkEntries = 1u << 16;

// Hands out the operations and steps of `chunk` and adds them to `summary`. False when some of it makes no sense (an index
// beyond its list, too many entries); what makes sense was handed out.
bool HandOut(const trace::StreamChunk& chunk, StreamSink* sink, StreamSummary* summary);

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_INGEST_STREAM_COLUMNS_H_
