// What the kinds of pages share.
#ifndef RINGSCOPE_ANALYZER_ENCYCLOPEDIA_PARTS_H_
#define RINGSCOPE_ANALYZER_ENCYCLOPEDIA_PARTS_H_

#include <absl/strings/string_view.h>

#include <string>

#include "analyzer/encyclopedia/html.h"
#include "analyzer/encyclopedia/pages.h"

namespace ringscope::encyclopedia {

// A whole page around `main`. `aside` (a table of contents) and `data` (for the script, JSON) may be empty.
struct Frame {
  std::string title;
  std::string file;  // its own name, to mark where the reader is
  std::string aside, main, data;
};
std::string Render(const Frame& frame);

// In words: how far a line or code may be believed.
std::string RoleName(catalog::Role::Value role);
std::string RoleBadge(catalog::Role::Value role);
std::string XidRoleName(catalog::XidEntry::Role role);

// File and anchor at which a code stands: "completions.html#status-12".
std::string CodeAnchor(const catalog::CodeEntry& code);
std::string CodePage(const catalog::CodeEntry& code);
std::string CodeLabel(const catalog::CodeEntry& code);

std::string EntryPage(const catalog::Entry& entry, const catalog::Entry* before, const catalog::Entry* after,
                      const Catalogue& catalogue, const Ids& ids);
std::string IndexPage(const Catalogue& catalogue);
std::string ErrorsPage(const Catalogue& catalogue, const Ids& ids);
std::string VariablesPage(const Catalogue& catalogue, const Ids& ids);
std::string XidPage(const Catalogue& catalogue, const Ids& ids);
std::string CompletionsPage(const Catalogue& catalogue, const Ids& ids);

// What the index's script searches, as JSON.
std::string SearchIndex(const Catalogue& catalogue);

// Lines that the errors page shows: not those that only tell a fact.
bool Shown(const catalog::Signature& signature);

}  // namespace ringscope::encyclopedia

#endif  // RINGSCOPE_ANALYZER_ENCYCLOPEDIA_PARTS_H_
