// Words for operations that are equal in both runs.
#ifndef RINGSCOPE_ANALYZER_COMPARE_OP_WORDS_H_
#define RINGSCOPE_ANALYZER_COMPARE_OP_WORDS_H_

#include <cstdint>
#include <string>

#include "analyzer/model/op_record.h"

namespace ringscope::compare {

// Bytes that nccl-tests counts for a collective of `n_ranks` (the whole vector): count times size of the type, times the ranks
// for all-gather and reduce-scatter, whose count is one rank's part. 0: type unknown.
uint64_t BytesOf(const model::OpRecord& op, int n_ranks);
// Bandwidth of a link that it takes, over bytes by time (nccl-tests, doc/PERFORMANCE.md): 2(n-1)/n for all-reduce, (n-1)/n for
// all-gather, reduce-scatter and all-to-all, 1 otherwise.
double BusFactor(trace::Func func, int n_ranks);
// "AllReduce of 1048576 bfloat16".
std::string CallText(const model::OpRecord& op);
std::string SizeText(uint64_t bytes);
std::string TimeText(double ns);

}  // namespace ringscope::compare

#endif  // RINGSCOPE_ANALYZER_COMPARE_OP_WORDS_H_
