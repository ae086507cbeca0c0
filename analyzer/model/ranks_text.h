// Lists of ranks for people: 16,384 ranks must stay one line.
#ifndef RINGSCOPE_ANALYZER_MODEL_RANKS_TEXT_H_
#define RINGSCOPE_ANALYZER_MODEL_RANKS_TEXT_H_

#include <string>
#include <vector>

namespace ringscope::model {

// "0-2,5,9-11"; sorted, without repetitions; "" for none. Evenly spaced ranks become "0-60/4"
// (every fourth) when there are at least four of them. At most `max_parts` parts are written, then
// ",... (N ranks)".
std::string RangeText(std::vector<int> ranks, int max_parts = 12);

// "rank 5" or "ranks 0-2,5"; "no rank" for none.
std::string RanksText(const std::vector<int>& ranks);

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_RANKS_TEXT_H_
