#include "analyzer/encyclopedia/pages.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "analyzer/encyclopedia/parts.h"

namespace ringscope::encyclopedia {
namespace {

constexpr size_t kMostLetters = 64;

// Part of a file's name and of links: letters, digits, dashes, beginning with a letter.
bool NamesAFile(const std::string& id) {
  return !id.empty() && id.size() <= kMostLetters && absl::ascii_isalpha(static_cast<unsigned char>(id[0])) &&
         std::all_of(id.begin(), id.end(), [](unsigned char c) { return absl::ascii_isalnum(c) || c == '-'; });
}

}  // namespace

absl::StatusOr<std::vector<File>> Pages(const Catalogue& catalogue) {
  Ids ids;
  for (const catalog::Entry& entry : catalogue.entries.entry()) {
    if (!NamesAFile(entry.id()) || !ids.emplace(entry.id(), entry.name()).second)
      return absl::InvalidArgumentError(
          absl::StrCat("the id of an entry is not letters, digits and dashes, or is there twice: ", Escaped(entry.id())));
  }
  std::vector<File> files = {{"index.html", IndexPage(catalogue)},
                             {"errors.html", ErrorsPage(catalogue, ids)},
                             {"variables.html", VariablesPage(catalogue, ids)},
                             {"xid.html", XidPage(catalogue, ids)},
                             {"completions.html", CompletionsPage(catalogue, ids)}};
  const auto& entries = catalogue.entries.entry();
  for (int i = 0; i < entries.size(); ++i) {
    files.push_back(
        {absl::StrCat(entries[i].id(), ".html"), EntryPage(entries[i], i > 0 ? &entries[i - 1] : nullptr,
                                                           i + 1 < entries.size() ? &entries[i + 1] : nullptr, catalogue, ids)});
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.name < b.name; });
  return files;
}

}  // namespace ringscope::encyclopedia
