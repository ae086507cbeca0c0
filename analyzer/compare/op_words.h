// Words for operations that are equal in both runs.
#ifndef RINGSCOPE_ANALYZER_COMPARE_OP_WORDS_H_
#define RINGSCOPE_ANALYZER_COMPARE_OP_WORDS_H_

#include <cstdint>
#include <string>

#include "analyzer/model/op_record.h"

namespace ringscope::compare {

// "AllReduce of 1048576 bfloat16".
std::string CallText(const model::OpRecord& op);
std::string SizeText(uint64_t bytes);
std::string TimeText(double ns);

}  // namespace ringscope::compare

#endif  // RINGSCOPE_ANALYZER_COMPARE_OP_WORDS_H_
