// Reads a text of any kind: cuts it into lines, cleans them, turns signatures into events and hands lines to the line readers.
#ifndef RINGSCOPE_ANALYZER_INGEST_TEXT_READER_H_
#define RINGSCOPE_ANALYZER_INGEST_TEXT_READER_H_

#include <absl/status/status.h>

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/ingest/byte_source.h"
#include "analyzer/ingest/file_bytes.h"
#include "analyzer/model/model.h"

namespace ringscope::ingest {

// True when the head of a file is text (any encoding of ASCII's letters): few control characters.
bool LooksLikeText(std::string_view head);

// True when the head is that of a document some reader knows (pickle is no text).
bool IsDocument(std::string_view head);

// Reads `source` to its end as the text `path`; a text that is one document goes to its reader. `head` is what was already read
// of it (it comes before what the source yields). Returns the source's error, if any; what came before it stands. What could
// not be read is in the file's notes.
absl::Status ReadText(const std::string& path, std::string head, ByteSource* source, model::Evidence* evidence,
                      std::vector<model::Record>* records, const Progress& progress = nullptr);

// The same of bytes in memory; for tests and fuzzers.
absl::Status ReadTextBytes(const std::string& path, std::string_view bytes, model::Evidence* evidence,
                           std::vector<model::Record>* records = nullptr);

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_INGEST_TEXT_READER_H_
