// Pages into a folder, which must hold nothing else.
#ifndef RINGSCOPE_ANALYZER_ENCYCLOPEDIA_WRITE_H_
#define RINGSCOPE_ANALYZER_ENCYCLOPEDIA_WRITE_H_

#include <absl/status/status.h>

#include <string>
#include <vector>

#include "analyzer/encyclopedia/pages.h"

namespace ringscope::encyclopedia {

// Makes `folder` where it is missing (not its parents). Pages of an earlier run are replaced, and removed where they are none any
// more. FailedPrecondition, and nothing is changed, when the folder holds anything that no run wrote. Other errors (no right,
// disk full) may leave some pages written; the next run repairs that.
absl::Status WritePages(const std::string& folder, const std::vector<File>& files);

}  // namespace ringscope::encyclopedia

#endif  // RINGSCOPE_ANALYZER_ENCYCLOPEDIA_WRITE_H_
