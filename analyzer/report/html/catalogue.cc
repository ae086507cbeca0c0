// What the catalogue knows of the cause.
#include "analyzer/report/html/context.h"
#include "analyzer/report/html/entry.h"
#include "analyzer/report/words.h"
#include "catalog/catalog.h"

namespace ringscope::report::html {

Section CatalogueSection(const Context& c) {
  Section section{"catalogue", "Cause", "What is known of this cause", {}};
  const catalog::Entry* entry = c.first != nullptr && CauseKnown(*c.first) ? catalog::FindEntry(c.first->cause().id()) : nullptr;
  if (entry == nullptr) return section;
  section.body << "<h3 class=\"entry-title\">" << entry->id() << " · " << entry->name() << "</h3>";
  EntryBody(
      *entry, [&c](const std::string& command) { return Filled(command, *c.first, c); }, &section.body);
  return section;
}

}  // namespace ringscope::report::html
