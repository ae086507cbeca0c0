// Operations that wait, but not yet for long enough to be called a stall. Somebody who asks in the first minute of a hang must
// not read "nothing wrong" and go to bed.
#ifndef RINGSCOPE_ANALYZER_REASONING_YOUNG_H_
#define RINGSCOPE_ANALYZER_REASONING_YOUNG_H_

#include <string>

#include "analyzer/model/model.h"

namespace ringscope::reasoning {

// One sentence: how many processes wait, for how long, and when to look again. Empty when nothing has been open without
// progress for kYoungSeconds (thresholds.h) in a process that still ran when its record was made.
std::string YoungWaits(const model::Job& job);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_YOUNG_H_
