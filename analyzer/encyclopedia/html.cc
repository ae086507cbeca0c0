#include "analyzer/encyclopedia/html.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>

#include "analyzer/report/html/writer.h"

namespace ringscope::encyclopedia {
namespace {

bool OfId(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_'; }

bool Placeholder(absl::string_view word) {
  if (word.empty() || word.size() > 16) return false;
  for (const char c : word) {
    if (!absl::ascii_islower(static_cast<unsigned char>(c)) && c != '_') return false;
  }
  return true;
}

}  // namespace

std::string Escaped(absl::string_view text) { return report::html::Escaped({text.data(), text.size()}, true); }

std::string Linked(absl::string_view text, const Ids& ids) {
  std::string out;
  size_t plain = 0;  // what is not written yet begins here
  for (size_t i = 0; i < text.size();) {
    if (!OfId(text[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && OfId(text[end])) ++end;
    const absl::string_view word = text.substr(i, end - i);
    if (const auto it = ids.find(word); it != ids.end()) {
      absl::StrAppend(&out, Escaped(text.substr(plain, i - plain)), "<a href=\"", Escaped(word), ".html\" title=\"",
                      Escaped(it->second), "\">", Escaped(word), "</a>");
      plain = end;
    }
    i = end;
  }
  return absl::StrCat(out, Escaped(text.substr(plain)));
}

std::string CommandText(absl::string_view command) {
  std::string out;
  size_t plain = 0;
  for (size_t i = 0; i < command.size(); ++i) {
    if (command[i] != '{') continue;
    // ${name} is the shell's.
    const size_t end = command.find('}', i);
    if (end == absl::string_view::npos || (i > 0 && command[i - 1] == '$')) continue;
    const absl::string_view name = command.substr(i + 1, end - i - 1);
    if (!Placeholder(name)) continue;
    absl::StrAppend(&out, Escaped(command.substr(plain, i - plain)), "<var data-fill=\"", name, "\">{", name, "}</var>");
    plain = end + 1;
    i = end;
  }
  return absl::StrCat(out, Escaped(command.substr(plain)));
}

std::string CopyBlock(absl::string_view text) {
  return text.empty() ? "" : absl::StrCat("<div class=\"copy\"><pre><code>", CommandText(text), "</code></pre></div>\n");
}

std::string Element(absl::string_view tag, absl::string_view text, const Ids& ids) {
  if (text.empty()) return "";
  return absl::StrCat("<", tag, ">", Linked(text, ids), "</", tag.substr(0, tag.find(' ')), ">\n");
}

std::string EntryLinks(const google::protobuf::RepeatedPtrField<std::string>& causes, const Ids& ids) {
  std::string out;
  for (const std::string& id : causes) absl::StrAppend(&out, out.empty() ? "" : ", ", Linked(id, ids));
  return out;
}

std::string JsonString(absl::string_view text) { return report::html::JsonText({text.data(), text.size()}); }

}  // namespace ringscope::encyclopedia
