// Reads stream files (proto/trace.proto, StreamChunk): what a process did, operation by operation. A file may be of any length:
// it is read chunk by chunk, and what it holds is handed out while it is read. Damage costs the damaged chunk.
#ifndef RINGSCOPE_ANALYZER_INGEST_STREAM_READER_H_
#define RINGSCOPE_ANALYZER_INGEST_STREAM_READER_H_

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/ingest/file_bytes.h"
#include "proto/trace.pb.h"

namespace ringscope::ingest {

inline constexpr std::string_view kStreamMagic = "RNGSTR01";
// Longest payload that is taken for a chunk; the recorder's are at most as long (recorder/flight/stream_pack.h).
inline constexpr uint32_t kMaxStreamChunkBytes = 1u << 20;

// One operation that was over. Times: ns of the host's CLOCK_MONOTONIC, 0 never; gpu_*: ns of the GPU's timer, 0 unknown.
struct StreamedOperation {
  const trace::StreamedCommunicator* communicator;  // nullptr: damaged. Valid during the call only
  const trace::Signature* signature;                // likewise, never nullptr
  uint64_t position;  // Operation.position
  uint32_t group;     // Operation.group
  trace::StreamedEnd end;
  int64_t entered_ns, returned_ns, enqueued_ns, started_ns, finished_ns, gpu_started_ns, gpu_finished_ns;
};

// A proxy step entered a state.
struct StreamedStep {
  const trace::StreamedTransfer* transfer;          // never nullptr. Valid during the call only
  const trace::StreamedCommunicator* communicator;  // nullptr: unknown, or of another process
  uint32_t step;
  trace::StepState state;  // STEP_FREE: it is done
  int64_t time_ns;
  uint64_t bytes;  // of the step, with the state that tells it; else 0
};

class StreamSink {
 public:
  virtual ~StreamSink() = default;
  // Before the operations and steps of each chunk.
  virtual void Chunk(const trace::StreamChunk&) {}
  virtual void Operation(const StreamedOperation&) {}
  virtual void Step(const StreamedStep&) {}
};

struct StreamSummary {
  trace::Trace head;  // process, clock and settings; empty when the first chunk is lost
  uint64_t chunks = 0, operations = 0, steps = 0;
  uint64_t first_sequence = 0, last_sequence = 0;  // of chunks; 0 none
  uint64_t missing_chunks = 0;                     // numbers between those that no readable chunk has
  uint64_t unfinished = 0;                         // operations with STILL_OPEN
  int64_t first_ns = 0, last_ns = 0;  // oldest `entered` or step, newest thing of any kind
  trace::StreamLoss lost;             // newest
  bool ended = false;                 // the process ended in order, and this is the last file of it
  bool torn = false;                  // damaged or cut; `notes` say where
  uint64_t bytes = 0;
  std::vector<std::string> notes;  // "file: byte N: what; remedy", the first few incidents
};

bool LooksLikeStream(std::string_view head);

// `name` is used in messages only; `sink` may be nullptr. kInvalidArgument: not a stream file. kDataLoss: not one chunk of it
// could be read.
absl::StatusOr<StreamSummary> ParseStream(std::string_view bytes, const std::string& name, StreamSink* sink);
// The same of a file, of which no more than two chunks are in memory at a time.
absl::StatusOr<StreamSummary> ReadStream(const std::string& path, StreamSink* sink, const Progress& progress = nullptr);

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_INGEST_STREAM_READER_H_
