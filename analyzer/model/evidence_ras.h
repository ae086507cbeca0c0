// What NCCL's RAS answered, one snapshot a query (text since 2.24, JSON since 2.28.7).
#ifndef RINGSCOPE_ANALYZER_MODEL_EVIDENCE_RAS_H_
#define RINGSCOPE_ANALYZER_MODEL_EVIDENCE_RAS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/model/evidence_place.h"

namespace ringscope::model {

struct RasFacts {};

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_EVIDENCE_RAS_H_
