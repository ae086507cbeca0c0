// Reads a text file, plain or gzip, found as NAME or NAME.gz.
#ifndef RINGSCOPE_TESTS_REPLAY_TEXT_FILE_H_
#define RINGSCOPE_TESTS_REPLAY_TEXT_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ringscope::replay {

// NotFound when neither NAME nor NAME.gz exists; DataLoss for a damaged gzip stream.
absl::StatusOr<std::string> ReadText(const std::string& name);

// Lines without their ends; a last line without an end counts too.
std::vector<absl::string_view> Lines(absl::string_view text);

}  // namespace ringscope::replay

#endif  // RINGSCOPE_TESTS_REPLAY_TEXT_FILE_H_
