// What a stream file holds, as text: who wrote it, how much of what, what is missing, the newest operations and steps.
#ifndef RINGSCOPE_TOOLS_SHOW_STREAM_H_
#define RINGSCOPE_TOOLS_SHOW_STREAM_H_

#include <absl/status/statusor.h>

#include <string>

#include "analyzer/ingest/file_bytes.h"

namespace ringscope::tools {

struct StreamTextOptions {
  bool colour = false;
  bool json = false;    // one object: the summary only
  int operations = 20;  // newest ones listed; -1 all
  int steps = 0;        // likewise
};

// Reads `path` and renders it. Everything from the file is made printable.
absl::StatusOr<std::string> ShowStream(const std::string& path, const StreamTextOptions& options,
                                       const ingest::Progress& progress);

}  // namespace ringscope::tools

#endif  // RINGSCOPE_TOOLS_SHOW_STREAM_H_
