#include "analyzer/report/html/report.h"

#include <absl/strings/str_cat.h>

#include "analyzer/report/html/context.h"
#include "analyzer/report/html/page.h"
#include "analyzer/report/words.h"

namespace ringscope::report::html {

std::string RenderReport(const Diagnosis& diagnosis, const model::Job& job, const Lines& lines) {
  const Context c(diagnosis, job, lines);
  const Section sections[] = {RingSection(c),   ProgressSection(c), TimelineSection(c),  CountersSection(c), EvidenceSection(c),
                              FabricSection(c), FindingsSection(c), CatalogueSection(c), InputsSection(c)};
  Page page;
  page.title =
      absl::StrCat(StateWord(diagnosis.state()), ": ", c.first != nullptr ? c.first->title() : StateMeaning(diagnosis.state()));
  page.styles = {assets::ReportCss()};
  page.scripts = {assets::ReportJs()};
  Writer& out = page.body;
  out << "<a class=\"skip\" href=\"#verdict\">To the verdict</a><main>" << VerdictSection(c)
      << "<nav aria-label=\"Parts of this report\">";
  for (const Section& s : sections) {
    if (!s.body.empty()) out << "<a href=\"#" << std::string_view(s.id) << "\">" << std::string_view(s.name) << "</a>";
  }
  out << "</nav>";
  for (const Section& s : sections) {
    if (s.body.empty()) continue;
    const std::string_view id = s.id;
    out << "<section class=\"card\" id=\"" << id << "\" aria-labelledby=\"h-" << id << "\"><h2 id=\"h-" << id << "\">"
        << std::string_view(s.title) << "</h2>" << s.body << "</section>";
  }
  out << "</main>\n";
  return Render(page);
}

}  // namespace ringscope::report::html
