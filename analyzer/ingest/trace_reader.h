// Reads the container of proto/trace.proto: chunks with a checksum each. Damage costs the damaged
// chunk, not the file.
#ifndef RINGSCOPE_ANALYZER_INGEST_TRACE_READER_H_
#define RINGSCOPE_ANALYZER_INGEST_TRACE_READER_H_

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/ingest/file_bytes.h"
#include "proto/trace.pb.h"

namespace ringscope::ingest {

inline constexpr std::string_view kTraceMagic = "RNGTRC01";
// A process writes tens of kilobytes, a few megabytes at most (recorder/flight/encode.h). Beyond
// this a file is not ours.
inline constexpr uint64_t kMaxTraceBytes = uint64_t{64} << 20;
inline constexpr uint32_t kMaxChunkBytes = 16u << 20;

struct TraceFile {
  trace::Trace trace;              // all readable chunks merged in order, unknown fields kept
  bool torn = false;               // something is missing: no end mark, or chunks before it
  uint32_t chunks = 0;             // read
  std::vector<std::string> notes;  // "file: byte N: what was damaged; remedy", one an incident
};

// True when the bytes begin like a trace.
bool LooksLikeTrace(std::string_view head);

// `name` is used in messages only. Fails (kInvalidArgument / kDataLoss) only when nothing could be
// read out of it.
absl::StatusOr<TraceFile> ParseTrace(std::string_view bytes, const std::string& name);
absl::StatusOr<TraceFile> ReadTrace(const std::string& path, const Progress& progress = nullptr);

// The container of one trace as bytes, `trace` in chunks of one part each; for tests and tools that
// rewrite traces.
std::string WriteTrace(const std::vector<trace::Trace>& parts);

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_INGEST_TRACE_READER_H_
