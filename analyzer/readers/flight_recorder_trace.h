// One dump of PyTorch's flight recorder as a record: what this rank called, in which process groups, and how far it got.
#ifndef RINGSCOPE_ANALYZER_READERS_FLIGHT_RECORDER_TRACE_H_
#define RINGSCOPE_ANALYZER_READERS_FLIGHT_RECORDER_TRACE_H_

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "analyzer/ingest/value_tree.h"
#include "proto/trace.pb.h"

namespace ringscope::ingest {

struct DumpSource {
  std::string path;  // the file's name holds the rank
  std::string host;  // from the file's name; may be empty
  int rank = -1;     // told by what the dump is part of; else -1
};

struct DumpRecord {
  trace::Trace trace;
  std::vector<std::string> notes;  // what could not be read of it
};

// `dump` is the dictionary of a dump. An error when it is none.
absl::StatusOr<DumpRecord> TraceOfDump(const ValueTree& tree, ValueTree::Id dump, const DumpSource& source);

// Dictionary with the keys that only such a dump has.
bool IsDump(const ValueTree& tree, ValueTree::Id id);

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_READERS_FLIGHT_RECORDER_TRACE_H_
