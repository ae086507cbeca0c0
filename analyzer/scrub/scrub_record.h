// Traces, flight files, streams and flight recorder dumps: read, masked field by field, written anew.
#ifndef RINGSCOPE_ANALYZER_SCRUB_SCRUB_RECORD_H_
#define RINGSCOPE_ANALYZER_SCRUB_SCRUB_RECORD_H_

#include <absl/status/statusor.h>
#include <google/protobuf/message.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/scrub/scrub_text.h"
#include "analyzer/scrub/scrubber.h"
#include "proto/trace.pb.h"

namespace ringscope::scrub {

// Hosts, users and jobs of a record, and the names in its texts.
void LearnTrace(const trace::Trace& trace, Scrubber* scrubber);
// All texts masked; fields that this program does not know are dropped, for nobody could say what they hold.
void ScrubTrace(trace::Trace* trace, Scrubber* scrubber);
// Every text of any message (a diagnosis) masked. `names`: files and what they are called when masked.
void ScrubMessage(google::protobuf::Message* message, Scrubber* scrubber,
                  const std::vector<std::pair<std::string, std::string>>& names = {});

// A trace file's bytes. The record of a flight file becomes a trace that says that it is one. kResourceExhausted: larger than a
// trace may be.
absl::StatusOr<std::string> TraceBytes(trace::Trace trace, bool torn, Scrubber* scrubber);

// A stream file, chunk by chunk. Damaged chunks are dropped (`dropped` counts their bytes).
absl::Status LearnStream(std::string_view bytes, Scrubber* scrubber);
absl::StatusOr<std::string> StreamBytes(std::string_view bytes, Scrubber* scrubber, uint64_t* dropped);

// A pickle of plain data as JSON, which `diagnose` reads as it reads the pickle. One that asks for code is refused.
absl::StatusOr<std::string> JsonOfPickle(std::string_view bytes);

}  // namespace ringscope::scrub

#endif  // RINGSCOPE_ANALYZER_SCRUB_SCRUB_RECORD_H_
