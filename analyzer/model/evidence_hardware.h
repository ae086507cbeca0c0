// GPUs, their links and counters, the fabric: what nvidia-smi, DCGM and the like show at one moment.
#ifndef RINGSCOPE_ANALYZER_MODEL_EVIDENCE_HARDWARE_H_
#define RINGSCOPE_ANALYZER_MODEL_EVIDENCE_HARDWARE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/model/bus_id.h"
#include "analyzer/model/evidence_place.h"

namespace ringscope::model {

struct HardwareFacts {};

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_EVIDENCE_HARDWARE_H_
