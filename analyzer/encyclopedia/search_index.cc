// What the index's script searches.
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include <set>

#include "analyzer/encyclopedia/parts.h"

namespace ringscope::encyclopedia {
namespace {

template <typename Strings>
std::string Array(const Strings& strings) {
  std::string out;
  for (const auto& s : strings) absl::StrAppend(&out, out.empty() ? "" : ",", JsonString(s));
  return absl::StrCat("[", out, "]");
}

// RE2's pattern as JavaScript understands it: groups without their names; the flag of a whole pattern goes first, before a space.
std::string ScriptPattern(absl::string_view pattern) {
  const bool any_case = absl::ConsumePrefix(&pattern, "(?i)");
  std::string out = any_case ? "i " : " ";
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\' && i + 1 < pattern.size()) {
      absl::StrAppend(&out, pattern.substr(i++, 2));
    } else if (const size_t end = pattern.find('>', i); pattern.substr(i, 4) == "(?P<" && end != absl::string_view::npos) {
      out += "(?:";
      i = end;
    } else {
      out += pattern[i];
    }
  }
  return out;
}

std::string TextOf(const catalog::Entry& e) {
  std::string text = absl::StrCat(e.quick_answer(), " ", e.mechanism());
  for (const catalog::Symptom& s : e.symptoms()) absl::StrAppend(&text, " ", s.seen(), " ", s.really_shows());
  for (const catalog::LineShape& line : e.signatures()) absl::StrAppend(&text, " ", line.example());
  for (const std::string& system : e.systems_affected()) absl::StrAppend(&text, " ", system);
  for (const catalog::Fix& fix : e.fixes()) absl::StrAppend(&text, " ", fix.what(), " ", fix.command());
  return text;
}

std::string EntryIndex(const catalog::Entry& e) {
  std::vector<std::string> patterns;
  for (const catalog::LineShape& line : e.signatures()) patterns.push_back(ScriptPattern(line.pattern()));
  return absl::StrCat("{\"id\":", JsonString(e.id()), ",\"name\":", JsonString(e.name()),
                      ",\"layer\":", JsonString(catalog::Layer::Value_Name(e.layer())), ",\"tags\":", Array(e.tags()),
                      ",\"answer\":", JsonString(e.quick_answer()), ",\"lines\":", Array(patterns),
                      ",\"text\":", JsonString(TextOf(e)), "}");
}

std::string LineIndex(const catalog::Signature& s) {
  std::vector<std::string> patterns;
  for (const std::string& pattern : s.patterns()) patterns.push_back(ScriptPattern(pattern));
  return absl::StrCat("{\"id\":", JsonString(s.id()), ",\"role\":", JsonString(catalog::Role::Value_Name(s.role())),
                      ",\"believe\":", JsonString(RoleName(s.role())), ",\"shows\":", JsonString(s.shows()),
                      ",\"next\":", JsonString(s.next()), ",\"shown\":", Shown(s) ? "true" : "false",
                      ",\"causes\":", Array(s.causes()), ",\"patterns\":", Array(patterns), "}");
}

// Rows of tables: what is looked for, where it stands, what it says.
std::string Row(absl::string_view kind, absl::string_view key, absl::string_view label, absl::string_view page,
                absl::string_view text, const std::string& causes) {
  return absl::StrCat("{\"kind\":", JsonString(kind), ",\"key\":", JsonString(key), ",\"label\":", JsonString(label),
                      ",\"page\":", JsonString(page), ",\"text\":", JsonString(text), ",\"causes\":", causes, "}");
}

}  // namespace

std::string SearchIndex(const Catalogue& catalogue) {
  std::string entries, lines, rows;
  const auto add = [](std::string* to, const std::string& item) { absl::StrAppend(to, to->empty() ? "" : ",\n", item); };
  for (const catalog::Entry& e : catalogue.entries.entry()) add(&entries, EntryIndex(e));
  for (const catalog::Signature& s : catalogue.signatures.signature()) add(&lines, LineIndex(s));
  for (const catalog::XidEntry& x : catalogue.tables.xid()) {
    const std::string key = absl::StrCat(x.number());
    add(&rows, Row("xid", key, absl::StrCat("Xid ", key, " ", x.name()), absl::StrCat("xid.html#xid-", key), x.meaning(),
                   x.cause().empty() ? "[]" : absl::StrCat("[", JsonString(x.cause()), "]")));
  }
  for (const catalog::SxidEntry& x : catalogue.tables.sxid()) {
    for (int n = x.first(); n <= x.last(); ++n)
      add(&rows,
          Row("sxid", absl::StrCat(n), absl::StrCat("SXid ", n), absl::StrCat("xid.html#sxid-", x.first()), x.meaning(), "[]"));
  }
  for (const catalog::CodeEntry& code : catalogue.tables.code()) {
    const char* kind = code.table() == catalog::CodeEntry::ib_completion ? "status"
                       : code.table() == catalog::CodeEntry::cuda_error  ? "cuda"
                                                                         : "result";
    add(&rows, Row(kind, absl::StrCat(code.number()), CodeLabel(code), CodePage(code), code.indicates(), Array(code.causes())));
  }
  std::set<std::string> used;
  for (const catalog::VariableUse& v : catalogue.tables.variable_use()) {
    used.insert(v.name());
    add(&rows, Row("variable", v.name(), v.name(), absl::StrCat("variables.html#", v.name()), v.use(), Array(v.causes())));
  }
  for (const catalog::Variable& v : catalogue.tables.variable()) {
    if (used.count(v.name()) == 0)
      add(&rows, Row("variable", v.name(), v.name(), absl::StrCat("variables.html#", v.name()), v.effect(), "[]"));
  }
  return absl::StrCat("{\"entries\":[", entries, "],\n\"lines\":[", lines, "],\n\"rows\":[", rows, "]}");
}

}  // namespace ringscope::encyclopedia
