// What the framework said of its own work: watchdog timeouts, mismatches, exits, exceptions, step times.
#ifndef RINGSCOPE_ANALYZER_MODEL_EVIDENCE_WORK_H_
#define RINGSCOPE_ANALYZER_MODEL_EVIDENCE_WORK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/model/evidence_place.h"

namespace ringscope::model {

struct WorkFacts {};

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_EVIDENCE_WORK_H_
