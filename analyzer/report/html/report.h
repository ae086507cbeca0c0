// A diagnosis as a page for the engineer who is called at night: verdict and next action first, then what it rests on.
#ifndef RINGSCOPE_ANALYZER_REPORT_HTML_REPORT_H_
#define RINGSCOPE_ANALYZER_REPORT_HTML_REPORT_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "analyzer/model/model.h"
#include "proto/diagnosis.pb.h"

namespace ringscope::report::html {

// By path, as Evidence::source names it; then by line, from 1.
using LineNumbers = std::map<std::string, std::set<uint32_t>>;
using Lines = std::map<std::string, std::map<uint32_t, std::string>>;

// The lines that the page shows, those around what is cited with them. The reader of files lies elsewhere (analyzer/ingest):
// whoever calls this hands their texts to RenderReport(). A line that is missing there is left out.
LineNumbers LinesWanted(const Diagnosis& diagnosis, const model::Job& job);

// The whole document. Same arguments, same bytes.
std::string RenderReport(const Diagnosis& diagnosis, const model::Job& job, const Lines& lines);

}  // namespace ringscope::report::html

#endif  // RINGSCOPE_ANALYZER_REPORT_HTML_REPORT_H_
