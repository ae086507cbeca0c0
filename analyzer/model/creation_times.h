// When communicators were made, on one clock, before there is a better one (clocks.h needs them joined). Internal to analyzer/model/.
#ifndef RINGSCOPE_ANALYZER_MODEL_CREATION_TIMES_H_
#define RINGSCOPE_ANALYZER_MODEL_CREATION_TIMES_H_

#include <cstdint>
#include <vector>

#include "analyzer/model/model.h"

namespace ringscope::model {

// Making a communicator is a thing that its members do together: those that cannot be taken for another one (an id and size that no
// process has twice) were made at one time. How far the wall clocks of hosts are apart there, the widest first, is what is added to
// each process's creation times; by process, 0 for hosts that share none.
std::vector<int64_t> CreationShifts(const Job& job);

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_CREATION_TIMES_H_
