#include "analyzer/report/compact.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>

#include "analyzer/report/style.h"
#include "analyzer/report/words.h"

namespace ringscope::report {
namespace {

// Newlines become blanks, other control characters '?': what an input holds makes no lines of its own.
std::string OneLine(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  return Printable(text);
}

std::string Place(const Evidence* e) {
  if (e == nullptr || e->line() == 0 || e->source().empty()) return "ringscope";
  return absl::StrCat(OneLine(e->source()), ":", e->line());
}

std::string Who(const Finding& f) {
  std::string text;
  if (f.who().ranks_size() > 0) {
    text = absl::StrCat(" (ranks ", absl::StrJoin(f.who().ranks(), ","), ")");
  } else if (f.who().edges_size() > 0) {
    text = absl::StrCat(" (edge ", f.who().edges(0).from(), "->", f.who().edges(0).to(),
                        f.who().edges_size() > 1 ? absl::StrCat(" and ", f.who().edges_size() - 1, " more") : "", ")");
  } else if (f.who().hosts_size() > 0) {
    text = absl::StrCat(" (", absl::StrJoin(f.who().hosts(), ","), ")");
  }
  return text;
}

void AddFinding(const Finding& f, std::string* out) {
  const auto first = std::find_if(f.evidence().begin(), f.evidence().end(), [](const Evidence& e) { return e.line() > 0; });
  const bool fault = !f.past() && f.kind() != Kind::undetermined && f.confidence() >= Confidence::probable;
  const char* weight = f.kind() == Kind::none ? "note" : fault ? "error" : "warning";
  absl::StrAppend(out, Place(first == f.evidence().end() ? nullptr : &*first), ": ", weight, ": ", OneLine(f.title()), " [",
                  Kind::Value_Name(f.kind()), ", ", Confidence::Value_Name(f.confidence()),
                  f.cause().confidence() != Confidence::not_established ? absl::StrCat(", ", f.cause().id()) : "",
                  f.past() ? ", over" : "", "]", OneLine(Who(f)), "\n");
  for (const Evidence& e : f.evidence()) {
    const std::string source = e.line() > 0 ? "" : SourceText(e);
    absl::StrAppend(out, Place(&e), ": note: ", OneLine(source.empty() ? e.text() : absl::StrCat(e.text(), " [", source, "]")),
                    "\n");
  }
  if (!f.next().text().empty() || !f.next().command().empty()) {
    absl::StrAppend(out, "ringscope: note: next: ", OneLine(f.next().text()),
                    f.next().command().empty() ? "" : absl::StrCat(" (", OneLine(f.next().command()), ")"), "\n");
  }
}

}  // namespace

std::string RenderCompact(const Diagnosis& diagnosis) {
  std::string out;
  for (const Finding& f : diagnosis.findings()) AddFinding(f, &out);
  if (out.empty())
    absl::StrAppend(&out, "ringscope: note: ", State::Value_Name(diagnosis.state()), ": ", OneLine(diagnosis.summary()), "\n");
  for (const std::string& not_seen : diagnosis.not_seen())
    absl::StrAppend(&out, "ringscope: note: not seen: ", OneLine(not_seen), "\n");
  return out;
}

}  // namespace ringscope::report
