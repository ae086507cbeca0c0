// Is this node fit for a job? The checks of `ringscope doctor`.
#ifndef RINGSCOPE_DOCTOR_DOCTOR_H_
#define RINGSCOPE_DOCTOR_DOCTOR_H_

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "doctor/place.h"
#include "proto/node.pb.h"

namespace ringscope::doctor {

// Every question, at most `seconds` each, all at the same time. Forks; never fails as a whole.
node::Node LookAtNode(const Place& place, double seconds);

// Names of checks that `names` does not have.
std::vector<std::string> UnknownNames(const std::vector<std::string>& names);

// The checks `only` (empty: all) without `skip`, by name. `before`: a baseline; nullptr: none.
node::Report Judge(const node::Node& node, const node::Node* before, const std::vector<std::string>& only,
                   const std::vector<std::string>& skip);

// A baseline as JSON, written beside `file` and then moved there.
absl::Status SaveBaseline(const node::Node& node, const std::string& ringscope_version, const std::string& file);
// NotFound: cannot be read; InvalidArgument: no baseline, damaged, or of a newer Ringscope. The message names file and remedy.
absl::StatusOr<node::Baseline> ReadBaseline(const std::string& file);

}  // namespace ringscope::doctor

#endif  // RINGSCOPE_DOCTOR_DOCTOR_H_
