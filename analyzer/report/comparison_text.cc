#include "analyzer/report/comparison_text.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <vector>

#include "analyzer/report/style.h"

namespace ringscope::report {
namespace {

class Renderer {
 public:
  Renderer(const Comparison& c, const ComparisonTextOptions& options) : c_(c), options_(options), style_(options.colour) {}

  std::string Run() {
    absl::StrAppend(&out_, style_.Bold("DIFF"), "  ", Printable(c_.summary()), "\n");
    Section(Change::can_explain, "Can explain a worse run", 12);
    Section(Change::worth_a_look, "Worth a look", 8);
    Section(Change::harmless, "Harmless, or better", 3);
    if (!c_.not_compared().empty()) absl::StrAppend(&out_, "\n", style_.Bold("Not compared"), "\n");
    for (const std::string& text : c_.not_compared()) out_ += Wrapped("  - ", text, options_.width);
    return out_;
  }

 private:
  void Section(Change::Weight weight, const char* heading, int most) {
    int shown = 0, count = 0;
    for (const Change& change : c_.changes()) count += change.weight() == weight;
    if (count == 0) return;
    absl::StrAppend(&out_, "\n", style_.Bold(heading), "\n");
    for (const Change& change : c_.changes()) {
      if (change.weight() != weight) continue;
      if (!options_.all && shown++ >= most) continue;
      One(change);
    }
    if (!options_.all && count > most) absl::StrAppend(&out_, "  ... and ", count - most, " more; --all shows them\n");
  }

  // "edge 0->1, edge 1->0 and 6 more" as "edges 0->1, 1->0 and 6 more".
  static std::string Subjects(const Change& change) {
    constexpr int kNamed = 6;
    const int n = change.subjects_size();
    if (n == 0) return "";
    const std::string& first = change.subjects(0);
    const size_t blank = first.find(' ');
    const std::string kind = first.substr(0, blank == first.npos ? 0 : blank);
    const bool alike = !kind.empty() && n > 1 &&
                       std::all_of(change.subjects().begin(), change.subjects().end(),
                                   [&](const std::string& s) { return absl::StartsWith(s, kind + " "); });
    std::vector<std::string> names;
    for (int i = 0; i < n && i < kNamed; ++i) names.push_back(alike ? change.subjects(i).substr(blank + 1) : change.subjects(i));
    std::string text = absl::StrCat(alike ? kind + "s " : "", absl::StrJoin(names, ", "));
    if (n > kNamed) absl::StrAppend(&text, " and ", n - kNamed, " more");
    return text + ": ";
  }

  void One(const Change& change) {
    std::string text = absl::StrCat(Subjects(change), change.name(), ": ", change.good(), " -> ", change.bad());
    if (change.ratio() != 0)
      absl::StrAppend(&text, absl::StrFormat(" (%.2fx%s)", change.ratio(), change.subjects_size() > 1 ? " on average" : ""));
    out_ += Wrapped("  - ", text, options_.width);
    if (change.weight() == Change::can_explain && !change.explains().empty())
      out_ += Wrapped("      ", change.explains(), options_.width);
    if (options_.all && !change.confirm().empty()) out_ += Wrapped("      confirm: ", change.confirm(), options_.width);
    if (options_.all || change.weight() == Change::can_explain) {
      std::vector<std::string> sources;
      if (!change.good_source().empty()) sources.push_back("good: " + change.good_source());
      if (!change.bad_source().empty()) sources.push_back("bad: " + change.bad_source());
      if (!sources.empty())
        out_ += style_.Dim(Wrapped("      ", absl::StrCat("[", absl::StrJoin(sources, "; "), "]"), options_.width));
    }
  }

  const Comparison& c_;
  const ComparisonTextOptions& options_;
  Style style_;
  std::string out_;
};

}  // namespace

std::string RenderComparison(const Comparison& comparison, const ComparisonTextOptions& options) {
  return Renderer(comparison, options).Run();
}

}  // namespace ringscope::report
