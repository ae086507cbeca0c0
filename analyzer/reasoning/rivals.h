// What else would look much like the first finding, and what tells the two apart.
#ifndef RINGSCOPE_ANALYZER_REASONING_RIVALS_H_
#define RINGSCOPE_ANALYZER_REASONING_RIVALS_H_

#include "proto/diagnosis.pb.h"

namespace ringscope::reasoning {

// Of the first finding of the diagnosis: the findings that it does not explain and that are as sure, and below `established` what
// looks alike by its nature (docs/localisation.md, What cannot be told apart). At most three.
void AddRivals(Diagnosis* diagnosis);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_RIVALS_H_
