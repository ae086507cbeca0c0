// What a reader of text is, and how it makes itself known. A new source is one file in analyzer/readers/ with a static Register
// object, and its test; no other file changes.
//
// Two kinds. Most of what people have is lines: a paste holds NCCL's log, a traceback and a nvidia-smi table one after the
// other, so *line readers* watch every text for their own lines. What is one document (XML, JSON, pickle) goes to a *document
// reader*. Single lines that need no state are no reader at all: they are signatures (catalog/signatures/), which become events.
#ifndef RINGSCOPE_ANALYZER_INGEST_READERS_H_
#define RINGSCOPE_ANALYZER_INGEST_READERS_H_

#include <absl/status/status.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/ingest/text_line.h"
#include "analyzer/model/model.h"

namespace ringscope::ingest {

// What a reader writes to. Lives as long as the file is read.
struct FileContext {
  model::Evidence* evidence;
  std::vector<model::Record>* records;  // for documents that are histories of operations (flight recorder dumps)
  int file;                             // index in evidence->files
  model::TextFile& info() const { return evidence->files[file]; }
  // Says, for people, what could not be read ("line 7: a topology row has 3 columns, not 8; row left out"). Kept up to a limit,
  // then counted.
  void Note(std::string note) const;
};

// Reads its lines of one file. Made when the file's first matching line is met.
class LineReader {
 public:
  virtual ~LineReader() = default;
  // `line` matches a trigger, or the call before asked for it. Returns true to get the next line too, whatever it is (the rows
  // of a table, the rest of a traceback). Lines of other ranks may lie between: look at line.by.
  virtual bool Line(const TextLine& line) = 0;
  virtual void End() {}  // the file's end: hand over what is still open
};

struct LineReaderType {
  std::string name;                   // for people: "nvidia-smi topo -m"
  std::vector<std::string> triggers;  // RE2, matched anywhere in TextLine::text; cheap and specific
  std::unique_ptr<LineReader> (*make)(const FileContext& context);
};

struct DocumentReaderType {
  std::string name;
  // `head`: at least the first 16 KiB, or all. Says whether this document is of the reader's form; must not be fooled by a log
  // that quotes one.
  bool (*looks_like)(std::string_view head);
  uint64_t max_bytes;  // larger documents are refused with a note
  // An error is a note in the report; what was read before it stays. The message names position and remedy, not the file.
  absl::Status (*read)(std::string_view bytes, const FileContext& context);
};

struct RegisterReader {
  explicit RegisterReader(LineReaderType type);
  explicit RegisterReader(DocumentReaderType type);
};

// By name.
const std::vector<LineReaderType>& LineReaders();
const std::vector<DocumentReaderType>& DocumentReaders();

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_INGEST_READERS_H_
