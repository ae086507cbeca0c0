// How long collectives took once the last rank had come.
//
// In an all-to-all collective everybody waits for the last, and all end nearly together: the shortest kernel among the ranks is
// the transfer itself. That needs no common clock.
#ifndef RINGSCOPE_ANALYZER_MODEL_TRANSFERS_H_
#define RINGSCOPE_ANALYZER_MODEL_TRANSFERS_H_

#include <cstdint>
#include <vector>

#include "analyzer/model/model.h"

namespace ringscope::model {

// The calls of one kind in one communicator.
struct TransferSeries {
  const OpRecord* call = nullptr;  // one of them: function, datatype, count, algorithm, protocol, channels
  const Member* member = nullptr;  // whose `call` is
  struct Instance {
    uint64_t position = 0;
    int64_t ns = 0;  // GPU timer where all looked at have one, else the host's view
  };
  std::vector<Instance> instances;  // ascending positions
};

// Of all-reduce, all-gather, reduce-scatter and all-to-all, finished on all members with a record; without the communicator's
// first operation, which connects. Of large communicators every n-th member is looked at, at most kTransferMembers.
std::vector<TransferSeries> TransfersOf(const Communicator& communicator);
inline constexpr size_t kTransferMembers = 256;

// Bytes that nccl-tests counts for a collective of `n_ranks` (the whole vector): count times size of the type, times the ranks
// for all-gather and reduce-scatter, whose count is one rank's part. 0: type unknown.
uint64_t BytesOf(const OpRecord& op, int n_ranks);
// What a link carries, over bytes by time (nccl-tests, doc/PERFORMANCE.md): 2(n-1)/n for all-reduce, (n-1)/n for all-gather,
// reduce-scatter and all-to-all, 1 otherwise.
double BusFactor(trace::Func func, int n_ranks);

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_TRANSFERS_H_
