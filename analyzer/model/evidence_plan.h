// How NCCL connected the ranks, as its log (SUBSYS INIT, GRAPH) and its topology and graph files tell it.
#ifndef RINGSCOPE_ANALYZER_MODEL_EVIDENCE_PLAN_H_
#define RINGSCOPE_ANALYZER_MODEL_EVIDENCE_PLAN_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/model/bus_id.h"
#include "analyzer/model/evidence_place.h"

namespace ringscope::model {

// "Channel 00/0 : 0[0] -> 1[1] via P2P/IPC".
struct TransportLine {
  int channel = -1;
  int from = -1, to = -1;      // ranks in the communicator of the speaker
  std::string from_bracket, to_bracket;  // bus id up to 2.18.1, NVML device index since 2.18.3; as written
  std::string via;             // as written, "P2P/IPC/read", "SHM/direct/direct", "NET/IB/0/GDRDMA"
  bool send = false, receive = false;  // [send] / [receive] of network lines
  Where where;
  Speaker by;
};

struct PlanFacts {
  std::vector<TransportLine> transports;
};

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_EVIDENCE_PLAN_H_
