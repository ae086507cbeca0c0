#include "analyzer/report/entry_text.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_replace.h>
#include <absl/strings/str_split.h>

#include "analyzer/report/style.h"

namespace ringscope::report {
namespace {

class Page {
 public:
  Page(const catalog::Entry& entry, const EntryTextOptions& options) : e_(entry), options_(options), style_(options.colour) {}

  std::string Render() {
    out_ = absl::StrCat(
        style_.Bold(absl::StrCat(e_.id(), "  ", e_.name())), "\n",
        style_.Dim(absl::StrCat(LayerName(e_.layer()), e_.status() == catalog::Status::not_established
                                                           ? "; not established: no source or record shows that it exists"
                                                           : "")),
        "\n");
    Paragraph("", e_.quick_answer());
    Section("How to confirm it");
    for (const catalog::Check& check : e_.confirm()) {
      Item(check.what());
      Command(check.command());
      if (!check.answer().empty()) out_ += Wrapped("    ", check.answer(), options_.width);
    }
    if (!e_.refutes().empty()) Section("It is something else when");
    for (const std::string& text : e_.refutes()) Item(text);
    Section("What to do, in this order");
    int number = 0;
    for (const catalog::Fix& fix : e_.fixes()) {
      out_ += Wrapped(absl::StrCat(" ", ++number, ". "), fix.what(), options_.width);
      Command(fix.command());
      if (!fix.cost().empty()) out_ += Wrapped("    costs: ", fix.cost(), options_.width);
    }
    if (!e_.verify().empty()) Section("How to know that it worked");
    for (const catalog::Verification& v : e_.verify()) {
      Command(v.command());
      if (!v.expected().empty()) out_ += Wrapped("    ", v.expected(), options_.width);
    }
    Section("What is seen, and what that really shows");
    for (const catalog::Symptom& s : e_.symptoms()) {
      Item(s.seen());
      out_ += Wrapped("    ", s.really_shows(), options_.width);
    }
    Lines();
    Section("How it comes about");
    Paragraph("  ", e_.mechanism());
    if (!e_.systems_affected().empty()) Section("Affected");
    for (const std::string& text : e_.systems_affected()) Item(text);
    if (!e_.claims().empty()) Section("What is told of it, examined");
    for (const catalog::Claim& claim : e_.claims()) {
      Item(absl::StrCat(catalog::Claim::Verdict_Name(claim.verdict()), ": ", claim.claim()));
      out_ += Wrapped("    ", claim.truth(), options_.width);
    }
    if (!e_.prevention().empty()) Section("So that it does not come back");
    for (const std::string& text : e_.prevention()) Item(text);
    if (options_.all) Rest();
    if (!e_.related().empty())
      absl::StrAppend(&out_, "\n", style_.Dim(absl::StrCat("Related: ", absl::StrJoin(e_.related(), ", "))), "\n");
    return out_;
  }

 private:
  void Section(const std::string& name) { absl::StrAppend(&out_, "\n", style_.Bold(name), "\n"); }
  void Paragraph(const std::string& first, const std::string& text) { out_ += Wrapped(first, text, options_.width); }
  void Item(const std::string& text) { out_ += Wrapped("  - ", text, options_.width); }
  // To be copied: not broken.
  void Command(const std::string& command) {
    if (!command.empty()) absl::StrAppend(&out_, "    ", style_.Command(Printable(command)), "\n");
  }
  void Lines() {
    if (e_.signatures().empty()) return;
    Section("Lines that it prints");
    for (const catalog::LineShape& line : e_.signatures()) {
      absl::StrAppend(&out_, "    ", Printable(line.example()), "\n");
      std::string more = line.versions().empty() ? "" : absl::StrCat("releases: ", line.versions());
      if (!line.lookalikes().empty())
        absl::StrAppend(&more, more.empty() ? "" : "; ", "looks like: ", absl::StrJoin(line.lookalikes(), ", "));
      if (!more.empty()) out_ += Wrapped("      ", more, options_.width);
    }
  }
  void Rest() {
    if (e_.has_perspectives()) {
      Section("Told to three people");
      out_ += Wrapped("  On call: ", e_.perspectives().on_call(), options_.width);
      out_ += Wrapped("  Engineer: ", e_.perspectives().engineer(), options_.width);
      out_ += Wrapped("  Manager: ", e_.perspectives().executive(), options_.width);
    }
    if (!e_.alerts().empty()) Section("To watch");
    for (const catalog::Alert& alert : e_.alerts()) Item(absl::StrCat(alert.watch(), ": ", alert.threshold()));
    if (!e_.settings().empty()) Section("To paste");
    for (const catalog::Setting& setting : e_.settings()) {
      Item(absl::StrCat(setting.where(), ": ", setting.why()));
      for (const absl::string_view line : absl::StrSplit(setting.snippet(), '\n')) Command(std::string(line));
    }
    if (!e_.references().empty()) Section("Rests on");
    for (const catalog::Reference& r : e_.references())
      Item(r.text().empty() ? "general knowledge" : absl::StrCat(r.text(), r.general_knowledge() ? " (general knowledge)" : ""));
  }

  const catalog::Entry& e_;
  const EntryTextOptions& options_;
  const Style style_;
  std::string out_;
};

}  // namespace

std::string LayerName(catalog::Layer::Value layer) {
  if (layer == catalog::Layer::nccl) return "NCCL";
  return absl::StrReplaceAll(catalog::Layer::Value_Name(layer), {{"_", " "}});
}

std::string RenderEntry(const catalog::Entry& entry, const EntryTextOptions& options) { return Page(entry, options).Render(); }

}  // namespace ringscope::report
