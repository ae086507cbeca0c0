// Walks what the user gave, recognises files by their content and reads those that are records.
// Nothing is fatal: whatever cannot be read, or is not ours, is counted and named.
#ifndef RINGSCOPE_ANALYZER_INGEST_COLLECT_H_
#define RINGSCOPE_ANALYZER_INGEST_COLLECT_H_

#include <string>
#include <vector>

#include "analyzer/ingest/file_bytes.h"
#include "analyzer/model/model.h"

namespace ringscope::ingest {

// A stream file (stream_reader.h): history, no state of a process, so it is no record.
struct CollectedStream {
  std::string path;
  uint64_t operations = 0, steps = 0;
  uint64_t lost = 0;  // operations and steps that the process counted as lost
};

struct Collected {
  std::vector<model::Record> records;
  std::vector<CollectedStream> streams;
  std::vector<std::string> problems;   // "file: byte N: what; remedy", damaged and unreadable files
  model::Evidence evidence;            // what logs and tool output say (the text files among them)
  std::vector<std::string> unknown;    // files that are nothing we know, texts that hold nothing we know
  int missing = 0;                     // given paths that do not exist or could not be opened
  int damaged = 0;                     // records from which nothing could be read
  int walked = 0;                      // files looked at
  // Something was read: a record, or a text in which a reader or a signature found its own.
  bool anything() const;

  // One sentence each, for Job::not_seen: the problems, then the other lists shortened.
  std::vector<std::string> Sentences() const;
};

// `paths` are files or directories (walked recursively, symbolic links followed, each file and
// directory once), or "-" for standard input. FIFOs, sockets and devices are never opened. Files
// compressed with gzip or zstd are looked into. kTake: the records' histories are out of their columns (model::TakeHistories), for
// who builds a job of them; kLeave: the records are as they were written.
enum class Histories { kLeave, kTake };
Collected Collect(const std::vector<std::string>& paths, const Progress& progress = nullptr, Histories histories = Histories::kLeave);

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_INGEST_COLLECT_H_
