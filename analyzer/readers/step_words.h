// The words of step logs. Internal to analyzer/readers.
#ifndef RINGSCOPE_ANALYZER_READERS_STEP_WORDS_H_
#define RINGSCOPE_ANALYZER_READERS_STEP_WORDS_H_

#include <string>
#include <string_view>

#include "analyzer/model/evidence_speed.h"

namespace ringscope::ingest {

// What a word or a column's name says its time was spent on: "fwd+bwd", "data_time", "reduce wait". kOther: no part of a step.
model::StepTime::Part PartOf(std::string_view name);

// Seconds in one of the unit: "ms" -> 0.001; 0 when it is no unit of time.
double UnitSeconds(std::string_view unit);

bool IsStepWord(std::string_view word);  // "step", "iter", "iteration", …
bool IsRankWord(std::string_view word);  // "rank", "worker", …

}  // namespace ringscope::ingest

#endif  // RINGSCOPE_ANALYZER_READERS_STEP_WORDS_H_
