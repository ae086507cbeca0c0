#include "analyzer/report/words.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_replace.h>

#include "analyzer/model/ranks_text.h"

namespace ringscope::report {

std::string Words(const std::string& enum_name) { return absl::StrReplaceAll(enum_name, {{"_", " "}}); }

std::string StateWord(State::Value state) { return absl::AsciiStrToUpper(Words(State::Value_Name(state))); }

std::string StateMeaning(State::Value state) {
  switch (state) {
    case State::healthy:
      return "nothing wrong found";
    case State::recovered:
      return "something stood still and went on";
    case State::unknown:
      return "the evidence does not say what state the job is in";
    default:
      return "no finding explains it";
  }
}

std::string WhoText(const Who& who) {
  std::vector<std::string> parts;
  if (who.edges_size() > 0) {
    std::vector<std::string> edges;
    for (const auto& e : who.edges()) edges.push_back(absl::StrCat(e.from(), " -> ", e.to()));
    if (edges.size() > 8) {
      const size_t all = edges.size();
      edges.resize(8);
      edges.push_back(absl::StrCat("... (", all, " edges)"));
    }
    parts.push_back(absl::StrCat(edges.size() == 1 ? "edge " : "edges ", absl::StrJoin(edges, ", ")));
  }
  if (who.ranks_size() > 0) parts.push_back(model::RanksText(Ints(who.ranks())));
  const auto names = [&parts](const auto& list, const char* what) {
    if (list.empty()) return;
    std::vector<std::string> shown(list.begin(), list.end());
    const size_t all = shown.size();
    if (all > 6) shown.resize(6);
    // "GPU 3 (0000:41:00.0)" says what it is by itself.
    const bool tells = absl::StrContains(shown[0], what);
    std::string text = absl::StrCat(tells ? "" : what, absl::StrJoin(shown, ", "));
    if (all > 6) absl::StrAppend(&text, " and ", all - 6, " more");
    parts.push_back(std::move(text));
  };
  names(who.hosts(), "on ");
  // Some say it themselves: "GPU 3 (0000:61:00.0)".
  names(who.gpus(), who.gpus_size() > 0 && who.gpus(0).rfind("GPU ", 0) == 0 ? "" : "GPU ");
  names(who.links(), "link ");
  names(who.communicators(), "in ");
  return parts.empty() ? "nobody" : absl::StrJoin(parts, ", ");
}

std::pair<std::string, std::string> SplitSource(const std::string& source) {
  const size_t open = source.find(" (");
  if (open == std::string::npos || source.back() != ')') return {source, ""};
  return {source.substr(0, open), source.substr(open + 2, source.size() - open - 3)};
}

std::string SourceText(const Evidence& e) {
  std::string at = e.rank() >= 0 ? SplitSource(e.source()).first : e.source();
  if (e.rank() >= 0 && at.empty()) at = absl::StrCat("rank ", e.rank());
  if (e.line() > 0) absl::StrAppend(&at, at.empty() ? "" : ":", e.line());
  if (e.rank() >= 0 && e.line() == 0) absl::StrAppend(&at, at.empty() ? "" : ", ", "table entry ", e.row());
  return at;
}

bool Leads(const Diagnosis& d) { return d.findings_size() > 0 && d.findings(0).kind() != Kind::none; }

bool CauseKnown(const Finding& f) { return !f.cause().id().empty() && f.cause().id() != "not established"; }

}  // namespace ringscope::report
