// A diagnosis as one JSON object, with the names of proto/diagnosis.proto (docs/verdicts.md). Other
// tools rely on them.
#ifndef RINGSCOPE_ANALYZER_REPORT_JSON_H_
#define RINGSCOPE_ANALYZER_REPORT_JSON_H_

#include <absl/status/statusor.h>
#include <google/protobuf/message.h>

#include <string>

namespace ringscope::report {

// Diagnosis.schema_version of what this version prints.
inline constexpr unsigned kDiagnosisSchema = 1;

// Any of our messages, pretty-printed, ending in a newline. Field names are those of the .proto,
// fields without presence are printed even when zero or empty, enum values by name. 64-bit integers
// are strings (JSON numbers cannot hold them).
absl::StatusOr<std::string> ToJson(const google::protobuf::Message& message);

}  // namespace ringscope::report

#endif  // RINGSCOPE_ANALYZER_REPORT_JSON_H_
