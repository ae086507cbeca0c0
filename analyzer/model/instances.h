// Communicators being joined: which records are the ranks of one. Internal to analyzer/model/.
#ifndef RINGSCOPE_ANALYZER_MODEL_INSTANCES_H_
#define RINGSCOPE_ANALYZER_MODEL_INSTANCES_H_

#include <cstdint>
#include <map>
#include <vector>

#include "analyzer/model/build.h"

namespace ringscope::model {

struct Entry {
  int process;
  const trace::Communicator* raw;
  int64_t created;  // CLOCK_REALTIME; 0 unknown
};
using Sequence = std::vector<Entry>;  // of one rank of one process, in order of creation

struct Instance {
  std::map<uint32_t, Entry> by_rank;
  int64_t created = 0;
};

// Puts each entry of a sequence into the instance that still lacks its rank and was created at
// about its time, in the order of the sequence; makes instances where there are too few.
void Place(const Sequence& sequence, std::vector<Instance>* instances);

// Where NCCL told no size (profiler API below v4).
struct UntoldCommunicator {
  Instance instance;
  uint64_t id = 0;  // 0: none was told either
  int number = 0;   // n-th with this id
  uint32_t n_ranks = 0;
  bool size_known = false;  // else n_ranks is as many as are known to exist
};
// Joins what such processes wrote. What cannot be told apart is left out and said.
std::vector<UntoldCommunicator> JoinUntold(const Job& job, const std::vector<Entry>& entries,
                                           Notes* notes);

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_INSTANCES_H_
