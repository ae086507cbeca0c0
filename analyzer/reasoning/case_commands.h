// Commands with the case's own host, process, GPU and port in them, so that they can be pasted.
#ifndef RINGSCOPE_ANALYZER_REASONING_CASE_COMMANDS_H_
#define RINGSCOPE_ANALYZER_REASONING_CASE_COMMANDS_H_

#include "analyzer/model/model.h"
#include "proto/diagnosis.pb.h"

namespace ringscope::reasoning {

// Fills placeholders of Next.command, and Finding.confirm, verify, fixes and Cause.name from the catalogue's entry of the cause.
// Only values that a shell takes as they are go in; what the evidence does not tell stays a placeholder in angle brackets
// ("<host>").
void FillCommands(const model::Job& job, Diagnosis* diagnosis);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_CASE_COMMANDS_H_
