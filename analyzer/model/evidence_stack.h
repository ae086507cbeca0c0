// Call stacks of processes at one moment: py-spy, gdb, eu-stack, faulthandler.
#ifndef RINGSCOPE_ANALYZER_MODEL_EVIDENCE_STACK_H_
#define RINGSCOPE_ANALYZER_MODEL_EVIDENCE_STACK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/model/evidence_place.h"

namespace ringscope::model {

struct StackFacts {};

}  // namespace ringscope::model

#endif  // RINGSCOPE_ANALYZER_MODEL_EVIDENCE_STACK_H_
