// What people tried and how it went: small tables of variants, written by hand beside the logs.
#ifndef RINGSCOPE_ANALYZER_MODEL_EVIDENCE_TRIALS_H_
#define RINGSCOPE_ANALYZER_MODEL_EVIDENCE_TRIALS_H_

#include <string>

#include "analyzer/model/evidence_place.h"

namespace ringscope::model {

// "7+8 ranks: hang 3/3".
struct Trial {
  enum class Outcome : uint8_t { kGood, kBad };
  std::string variant;  // "7+8 ranks", as written
  std::string result;   // "hang 3/3"
  Outcome outcome = Outcome::kGood;
  // How often it went badly, and of how many runs; 0 of 0: not told.
  int bad_runs = 0, runs = 0;
  std::string text;  // the line
  Where where;
  bool bad() const { return outcome == Outcome::kBad; }
};

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_EVIDENCE_TRIALS_H_
