// Reads a flight file (recorder/flight/format.h) into a Trace, with the encoder that the process
// itself uses. The file may be live, of a dead process, copied from another machine, cut or
// hostile.
#ifndef RINGSCOPE_ANALYZER_INGEST_FLIGHT_READER_H_
#define RINGSCOPE_ANALYZER_INGEST_FLIGHT_READER_H_

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/ingest/file_bytes.h"
#include "proto/trace.pb.h"

namespace ringscope::ingest {

// Larger than any flight file by far; a file beyond it is not read.
inline constexpr uint64_t kMaxFlightBytes = uint64_t{64} << 20;

struct FlightFile {
  trace::Trace trace;              // reason REASON_FLIGHT_FILE
  bool torn = false;               // shorter than its header says: tables at the end are missing
  std::vector<std::string> notes;  // "file: byte N: what; remedy"
  int64_t read_realtime_ns =
      0;  // CLOCK_REALTIME when it was read, if this is the owner's machine; else 0
};

bool LooksLikeFlight(std::string_view head);

// Bytes only: Liveness says nothing of lock and process. kInvalidArgument: not a flight file, other
// byte order or version; kDataLoss: damaged so that nothing can be read.
absl::StatusOr<FlightFile> ParseFlight(std::string_view bytes, const std::string& name);

// Also looks, where the file lies on the machine of its owner (same boot), whether the owner lives:
// its lock on the file, and /proc/PID/stat when the pid still belongs to it.
absl::StatusOr<FlightFile> ReadFlight(const std::string& path, const Progress& progress = nullptr);

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_INGEST_FLIGHT_READER_H_
