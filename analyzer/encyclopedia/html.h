// Pieces of HTML. Whatever comes from the catalogue goes through Escaped, Linked or CommandText: it is text, never markup.
#ifndef RINGSCOPE_ANALYZER_ENCYCLOPEDIA_HTML_H_
#define RINGSCOPE_ANALYZER_ENCYCLOPEDIA_HTML_H_

#include <absl/strings/string_view.h>
#include <google/protobuf/repeated_field.h>

#include <functional>
#include <map>
#include <string>

namespace ringscope::encyclopedia {

// Ids that have a page, with the entry's name: what Linked turns into links.
using Ids = std::map<std::string, std::string, std::less<>>;

// As report::html::Escaped, with its lines.
std::string Escaped(absl::string_view text);

// Escaped, and each id of `ids` that stands alone in it is a link to its page.
std::string Linked(absl::string_view text, const Ids& ids);

// Escaped, with {host} and the like marked up, so that a reader can fill them in.
std::string CommandText(absl::string_view command);

// A command or text to copy, as a block.
std::string CopyBlock(absl::string_view text);

// "<tag>escaped and linked</tag>", nothing for an empty text.
std::string Element(absl::string_view tag, absl::string_view text, const Ids& ids);

// Links to entries: "HW-01, NET-02"; an id without a page stays text.
std::string EntryLinks(const google::protobuf::RepeatedPtrField<std::string>& causes, const Ids& ids);

// As report::html::JsonText.
std::string JsonString(absl::string_view text);

}  // namespace ringscope::encyclopedia

#endif  // RINGSCOPE_ANALYZER_ENCYCLOPEDIA_HTML_H_
