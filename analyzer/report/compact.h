// A diagnosis as lines of the form "FILE:LINE: error: message", which editors and CI know from compilers (docs/verdicts.md).
#ifndef RINGSCOPE_ANALYZER_REPORT_COMPACT_H_
#define RINGSCOPE_ANALYZER_REPORT_COMPACT_H_

#include <string>

#include "proto/diagnosis.pb.h"

namespace ringscope::report {

std::string RenderCompact(const Diagnosis& diagnosis);

}  // namespace ringscope::report

#endif  // RINGSCOPE_ANALYZER_REPORT_COMPACT_H_
