// An entry of the failure catalogue as part of a page.
#ifndef RINGSCOPE_ANALYZER_REPORT_HTML_ENTRY_H_
#define RINGSCOPE_ANALYZER_REPORT_HTML_ENTRY_H_

#include <functional>
#include <string>

#include "analyzer/report/html/writer.h"
#include "proto/catalog.pb.h"

namespace ringscope::report::html {

// Everything below the title: quick answer first. `fill`: turns a command of the catalogue into one for this case ({host} and the
// like); may be empty.
void EntryBody(const catalog::Entry& entry, const std::function<std::string(const std::string&)>& fill, Writer* out);

}  // namespace ringscope::report::html

#endif  // RINGSCOPE_ANALYZER_REPORT_HTML_ENTRY_H_
