// NICs, ports, counters, addresses: what ibstat, perfquery, ethtool, ip and the like show at one moment.
#ifndef RINGSCOPE_ANALYZER_MODEL_EVIDENCE_NETWORK_H_
#define RINGSCOPE_ANALYZER_MODEL_EVIDENCE_NETWORK_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/model/evidence_place.h"

namespace ringscope::model {

struct NetworkFacts {};

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_EVIDENCE_NETWORK_H_
