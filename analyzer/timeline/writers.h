// A timeline as the bytes that viewers read.
#ifndef RINGSCOPE_ANALYZER_TIMELINE_WRITERS_H_
#define RINGSCOPE_ANALYZER_TIMELINE_WRITERS_H_

#include <string>

#include "analyzer/timeline/timeline.h"

namespace ringscope::timeline {

// Perfetto's protobuf (proto/perfetto.proto). Times are the job's, in ns since 1970.
std::string Perfetto(const Timeline& timeline);
// JSON of Chrome's trace viewer. Times are microseconds since the first slice, whose own time stands in otherData.
std::string Chrome(const Timeline& timeline);

}  // namespace ringscope::timeline

#endif  // RINGSCOPE_ANALYZER_TIMELINE_WRITERS_H_
