// A page that is one file: nothing is loaded, nothing runs but what stands in assets/.
//
// The page's policy (meta http-equiv Content-Security-Policy) is `default-src 'none'`; each style and script is named by its
// hash. A text that got out of its place could not run or load anything even then.
#ifndef RINGSCOPE_ANALYZER_REPORT_HTML_PAGE_H_
#define RINGSCOPE_ANALYZER_REPORT_HTML_PAGE_H_

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/report/html/writer.h"

namespace ringscope::report::html {

// Files of assets/, as they are in the program.
namespace assets {
std::string_view PageCss();    // colours of light and dark, type, cards, tables, print: every page
std::string_view PageJs();     // copy buttons, theme: every page
std::string_view ReportCss();  // of the report alone
std::string_view ReportJs();
}  // namespace assets

struct Page {
  std::string title;                      // text
  Writer body;                            // within <body>; no style attribute, no event attribute: the policy refuses both
  std::vector<std::string_view> styles;   // besides PageCss()
  std::vector<std::string_view> scripts;  // besides PageJs()
};

// The whole document.
std::string Render(const Page& page);

// A command with a button that copies it. Nothing for an empty one.
void Command(std::string_view command, Writer* out);

}  // namespace ringscope::report::html

#endif  // RINGSCOPE_ANALYZER_REPORT_HTML_PAGE_H_
