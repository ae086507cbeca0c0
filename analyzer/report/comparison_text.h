// A comparison of two runs for people.
#ifndef RINGSCOPE_ANALYZER_REPORT_COMPARISON_TEXT_H_
#define RINGSCOPE_ANALYZER_REPORT_COMPARISON_TEXT_H_

#include <string>

#include "proto/comparison.pb.h"

namespace ringscope::report {

struct ComparisonTextOptions {
  bool colour = false;
  bool all = false;  // every change and its sources; else the first ones
  int width = 100;
};
std::string RenderComparison(const Comparison& comparison, const ComparisonTextOptions& options);

}  // namespace ringscope::report

#endif  // RINGSCOPE_ANALYZER_REPORT_COMPARISON_TEXT_H_
