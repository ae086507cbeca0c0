// The calls that NCCL's log lists with NCCL_DEBUG_SUBSYS=COLL: who asked for which operation with which arguments.
#ifndef RINGSCOPE_ANALYZER_MODEL_EVIDENCE_CALLS_H_
#define RINGSCOPE_ANALYZER_MODEL_EVIDENCE_CALLS_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "analyzer/model/evidence_place.h"

namespace ringscope::model {

// "AllReduce: opCount f7 sendbuff 0x… recvbuff 0x… count 512 datatype 7 op 0 root 0 comm 0x… [nranks=16] stream 0x…".
struct LoggedCall {
  // NCCL's counter of the communicator, as printed (hexadecimal). Stays 0 on communicators of one node since 2.27.
  uint64_t op_count = 0;
  uint64_t number = 0;  // our own: the n-th collective of this rank and communicator in the log, from 1
  uint64_t count = 0;   // elements
  int16_t datatype = -1, op = -1;  // ncclDataType_t, ncclRedOp_t
  int32_t root = -1;
  uint8_t function = 0;  // index in kLoggedFunctions
  Where where;
};

inline constexpr const char* kLoggedFunctions[] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce",
                                                   "AlltoAll",  "Gather",    "Scatter",       "Send",      "Recv"};
inline constexpr uint8_t kFirstMessage = 8;  // Send and Recv: not numbered, pairs need not agree with other pairs

// The calls of one rank on one communicator, newest kLoggedCalls of them in order.
struct CallHistory {
  Speaker by;
  std::string communicator;  // NCCL's pointer, as printed: means something in this process only
  int n_ranks = 0;           // 0: not printed
  uint64_t collectives = 0;  // all that were listed
  std::vector<LoggedCall> calls;  // collectives only
  uint64_t messages = 0;          // sends and receives listed
};
inline constexpr size_t kLoggedCalls = 2048;

struct CallFacts {
  std::vector<CallHistory> histories;
  std::map<std::tuple<std::string, int64_t, std::string>, size_t> index;  // (host, pid, communicator) -> histories
};

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_EVIDENCE_CALLS_H_
