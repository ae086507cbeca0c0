#include "analyzer/report/node_text.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <vector>

#include "analyzer/report/style.h"

namespace ringscope::report {
namespace {

using node::Problem;
using node::Report;

constexpr size_t kMostAlike = 8;  // problems of one kind, as of each GPU, that are listed

std::string Padded(std::string text, size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

class Renderer {
 public:
  Renderer(const Report& report, const NodeTextOptions& options) : report_(report), options_(options), style_(options.colour) {}

  std::string Run() {
    Heading();
    for (const Report::Status status : {Report::failed, Report::warning}) {
      for (const node::Check& check : report_.checks()) Problems(check, status);
    }
    if (options_.quiet) return out_;
    std::string lines;
    for (const node::Check& check : report_.checks()) {
      if (check.status() < Report::warning) lines += Line(check);
    }
    if (!lines.empty()) absl::StrAppend(&out_, "\n", lines);
    return out_;
  }

 private:
  int Count(Report::Status status) const {
    return static_cast<int>(std::count_if(report_.checks().begin(), report_.checks().end(),
                                          [status](const node::Check& c) { return c.status() == status; }));
  }

  void Heading() {
    const int failed = Count(Report::failed), warnings = Count(Report::warning);
    const std::string host = Printable(report_.node().host());
    std::string text;
    if (failed > 0) absl::StrAppend(&text, failed, failed == 1 ? " check failed" : " checks failed");
    if (warnings > 0)
      absl::StrAppend(&text, failed > 0 ? ", " : "", warnings, failed > 0 ? "" : warnings == 1 ? " check" : " checks", " with warnings");
    if (text.empty())
      text = report_.status() == Report::not_present ? "nothing of what was asked for is here" : "nothing wrong found";
    if (report_.node().gpus_size() == 0 && failed == 0) text += " (no GPU here)";
    absl::StrAppend(&out_, style_.Bold("DOCTOR"), "  ", host, ": ", text, "\n");
    if (!report_.baseline().empty()) out_ += Wrapped("        compared with ", report_.baseline(), options_.width);
  }

  void Problems(const node::Check& check, Report::Status status) {
    std::vector<const Problem*> left;
    for (const Problem& problem : check.problems()) {
      if (problem.status() == status) left.push_back(&problem);
    }
    while (!left.empty()) {
      const Problem& first = *left[0];
      std::vector<const Problem*> alike, others;
      for (const Problem* p : left) (p->why() == first.why() && p->entry() == first.entry() ? alike : others).push_back(p);
      Alike(check.name(), status, alike);
      left = others;
    }
  }

  void Alike(const std::string& name, Report::Status status, const std::vector<const Problem*>& alike) {
    const std::string label = Padded(status == Report::failed ? "FAILED" : "WARNING", 9);
    out_ += "\n";
    for (size_t i = 0; i < alike.size() && i < kMostAlike; ++i) {
      const Problem& problem = *alike[i];
      const std::string seen =
          problem.baseline().empty() ? problem.seen() : absl::StrCat(problem.seen(), " (baseline: ", problem.baseline(), ")");
      std::string block = Wrapped(Padded(i == 0 ? label + name : "", kIndent), seen, options_.width);
      if (i == 0) block.replace(0, label.size(), status == Report::failed ? style_.Alarm(label) : style_.Warn(label));
      out_ += block;
    }
    const std::string indent(kIndent, ' ');
    if (alike.size() > kMostAlike) absl::StrAppend(&out_, indent, "and ", alike.size() - kMostAlike, " more\n");
    const Problem& first = *alike[0];
    out_ += Wrapped(indent, first.why(), options_.width);
    if (!first.fix().empty()) out_ += Wrapped(indent + "fix: ", first.fix(), options_.width);
    if (!first.entry().empty())
      absl::StrAppend(&out_, indent, "see: ", style_.Command("ringscope explain " + first.entry()), "\n");
  }

  std::string Line(const node::Check& check) {
    const char* word = check.status() == Report::ok ? "ok" : check.status() == Report::not_present ? "absent" : "unknown";
    const std::string text =
        check.status() == Report::could_not_tell && check.problems_size() > 0 ? check.problems(0).seen() : check.seen();
    return Wrapped(Padded(Padded(word, 9) + check.name(), kIndent), text, options_.width);
  }

  static constexpr size_t kIndent = 21;
  const Report& report_;
  const NodeTextOptions& options_;
  Style style_;
  std::string out_;
};

}  // namespace

std::string RenderNode(const node::Report& report, const NodeTextOptions& options) { return Renderer(report, options).Run(); }

}  // namespace ringscope::report
