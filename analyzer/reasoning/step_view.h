// What logged step times say: which rank is late, by which part of its step; which steps waited for their input.
#ifndef RINGSCOPE_ANALYZER_REASONING_STEP_VIEW_H_
#define RINGSCOPE_ANALYZER_REASONING_STEP_VIEW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/model/model.h"

namespace ringscope::reasoning {

struct LateRank {
  int rank = -1;
  model::StepTime::Part part = model::StepTime::Part::kOther;
  std::string name;  // of the part, as logged
  std::vector<const model::StepTime*> slow;  // its late steps
  std::vector<int64_t> steps;                // their numbers
  double seconds = 0, others = 0;            // medians over those steps
  size_t compared = 0;                       // steps in which the rank could be compared
  bool persistent = false;                   // late in most of them
};
// By rank. Times spent waiting for others convict nobody and are left out; so is a rank's whole step where its parts are known.
std::vector<LateRank> LateRanks(const model::Job& job);

struct InputStall {
  std::vector<const model::StepTime*> slow;   // input times of slow steps
  const model::StepTime* usual = nullptr;     // of an ordinary step
  double step_seconds = 0, input_seconds = 0, usual_seconds = 0;  // of the worst slow step; the median step
  bool always = false;                        // every step waits
  bool collectives_unchanged = false;         // their time did not grow in the slow steps
};
// Of one log in which whole steps and their input times are told.
bool FindInputStall(const model::Job& job, InputStall* stall);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_STEP_VIEW_H_
