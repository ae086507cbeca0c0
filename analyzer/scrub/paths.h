// Paths, component by component: what is a system's or public software's stays, the rest becomes "dir-3", "file-2.py".
#ifndef RINGSCOPE_ANALYZER_SCRUB_PATHS_H_
#define RINGSCOPE_ANALYZER_SCRUB_PATHS_H_

#include <functional>
#include <string>
#include <string_view>

#include "analyzer/scrub/masks.h"

namespace ringscope::scrub {

// Learned names in a component replaced.
using Names = std::function<std::string(std::string_view)>;

// Length of the path at `at`, which is at its "/" or the first letter of a relative one; 0: none. Ends before what ends a path in
// a log; `quoted`: blanks belong to it.
size_t PathLength(std::string_view text, size_t at, bool quoted);

// What follows a folder of users' homes is a user.
std::string MaskPath(std::string_view path, Masks* masks, const Names& names);

// A file's own name ("acme-rank3.log" -> "file-1-rank3.log"): the rank, and the host that `names` masked, are kept for the
// reader. `opaque`: a number always, and no host.
std::string MaskFileName(std::string_view name, Masks* masks, const Names& names, bool opaque = false);

// Source and result files by their ending: a name with it is a path even without a slash.
bool UserFileEnding(std::string_view word);

}  // namespace ringscope::scrub

#endif  // RINGSCOPE_ANALYZER_SCRUB_PATHS_H_
