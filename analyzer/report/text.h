// A diagnosis for the engineer who is called at night: what, who, how sure, why, what next; then the rest. For a terminal, and as
// Markdown for a ticket.
#ifndef RINGSCOPE_ANALYZER_REPORT_TEXT_H_
#define RINGSCOPE_ANALYZER_REPORT_TEXT_H_

#include <string>

#include "analyzer/model/model.h"
#include "proto/diagnosis.pb.h"

namespace ringscope::report {

struct TextOptions {
  bool colour = false;
  int width = 80;          // columns; commands and names of files are not broken
  int lines = 40;          // at most, as far as what must be said allows; 0: everything
  int communicators = 12;  // shown at most; those with something open first
};

std::string RenderText(const Diagnosis& diagnosis, const model::Job& job, const TextOptions& options);

// The same sections; `lines` and `width` as above, colour is not used.
std::string RenderMarkdown(const Diagnosis& diagnosis, const model::Job& job, const TextOptions& options);

}  // namespace ringscope::report

#endif  // RINGSCOPE_ANALYZER_REPORT_TEXT_H_
