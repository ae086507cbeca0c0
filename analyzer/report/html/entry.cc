#include "analyzer/report/html/entry.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include "analyzer/report/entry_text.h"
#include "analyzer/report/html/page.h"

namespace ringscope::report::html {
namespace {

class Body {
 public:
  Body(const catalog::Entry& entry, const std::function<std::string(const std::string&)>& fill, Writer* out)
      : e_(entry), fill_(fill), out_(*out) {}

  void Write() {
    out_ << "<p class=\"muted small\">" << LayerName(e_.layer());
    if (e_.status() == catalog::Status::not_established)
      out_ << "; <b>not established</b>: no source or record shows that it exists";
    out_ << "</p><p class=\"quick\">" << e_.quick_answer() << "</p>";
    if (e_.has_perspectives() && !e_.perspectives().on_call().empty())
      out_ << "<p><b>The next ten minutes.</b> " << e_.perspectives().on_call() << "</p>";
    Confirm();
    List("It is something else when", e_.refutes());
    Fixes();
    Verify();
    Symptoms();
    Lines();
    if (!e_.mechanism().empty()) out_ << "<h3>How it comes about</h3><p>" << e_.mechanism() << "</p>";
    List("Affected", e_.systems_affected());
    Claims();
    List("So that it does not come back", e_.prevention());
    Watch();
    Paste();
    if (!e_.related().empty()) out_ << "<p class=\"muted\">Related: " << std::string(absl::StrJoin(e_.related(), ", ")) << "</p>";
  }

 private:
  std::string Fill(const std::string& command) const { return fill_ ? fill_(command) : command; }

  template <typename Texts>
  void List(Markup title, const Texts& texts) {
    if (texts.empty()) return;
    out_ << "<h3>" << title << "</h3><ul>";
    for (const std::string& text : texts) out_ << "<li>" << text << "</li>";
    out_ << "</ul>";
  }
  void Confirm() {
    if (e_.confirm().empty()) return;
    out_ << "<h3>How to confirm it</h3><ul>";
    for (const catalog::Check& check : e_.confirm()) {
      out_ << "<li>" << check.what();
      Command(Fill(check.command()), &out_);
      if (!check.answer().empty()) out_ << "<div class=\"muted\">" << check.answer() << "</div>";
      out_ << "</li>";
    }
    out_ << "</ul>";
  }
  void Fixes() {
    if (e_.fixes().empty()) return;
    out_ << "<h3>What to do, in this order</h3><ol>";
    for (const catalog::Fix& fix : e_.fixes()) {
      out_ << "<li>" << fix.what();
      Command(Fill(fix.command()), &out_);
      if (!fix.cost().empty()) out_ << "<div class=\"muted\">Costs: " << fix.cost() << "</div>";
      out_ << "</li>";
    }
    out_ << "</ol>";
  }
  void Verify() {
    if (e_.verify().empty()) return;
    out_ << "<h3>How to know that it worked</h3>";
    for (const catalog::Verification& v : e_.verify()) {
      Command(Fill(v.command()), &out_);
      out_ << "<p>" << v.expected() << "</p>";
    }
  }
  void Symptoms() {
    if (e_.symptoms().empty()) return;
    out_ << "<h3>What is seen, and what that really shows</h3><ul>";
    for (const catalog::Symptom& s : e_.symptoms())
      out_ << "<li>" << s.seen() << "<br><span class=\"muted\">" << s.really_shows() << "</span></li>";
    out_ << "</ul>";
  }
  void Lines() {
    if (e_.signatures().empty()) return;
    out_ << "<h3>Lines that it prints</h3>";
    for (const catalog::LineShape& line : e_.signatures()) {
      out_ << "<pre class=\"wrap\">" << line.example() << "</pre>";
      if (line.versions().empty() && line.lookalikes().empty()) continue;
      out_ << "<p class=\"muted small\">";
      if (!line.versions().empty()) out_ << "Releases: " << line.versions() << ". ";
      if (!line.lookalikes().empty()) out_ << "Looks like: " << std::string(absl::StrJoin(line.lookalikes(), ", "));
      out_ << "</p>";
    }
  }
  void Claims() {
    if (e_.claims().empty()) return;
    out_ << "<h3>What is told of it, examined</h3><ul>";
    for (const catalog::Claim& claim : e_.claims())
      out_ << "<li><b>" << catalog::Claim::Verdict_Name(claim.verdict()) << ":</b> " << claim.claim() << "<br>" << claim.truth()
           << "</li>";
    out_ << "</ul>";
  }
  void Watch() {
    if (e_.alerts().empty()) return;
    out_ << "<h3>What monitoring should watch</h3><ul>";
    for (const catalog::Alert& alert : e_.alerts()) out_ << "<li>" << alert.watch() << ": " << alert.threshold() << "</li>";
    out_ << "</ul>";
  }
  void Paste() {
    if (e_.settings().empty()) return;
    out_ << "<h3>Settings</h3>";
    for (const catalog::Setting& setting : e_.settings()) {
      out_ << "<p>" << setting.where() << ": " << setting.why() << "</p><pre class=\"wrap\">";
      out_.Lines(setting.snippet());
      out_ << "</pre>";
    }
  }

  const catalog::Entry& e_;
  const std::function<std::string(const std::string&)>& fill_;
  Writer& out_;
};

}  // namespace

void EntryBody(const catalog::Entry& entry, const std::function<std::string(const std::string&)>& fill, Writer* out) {
  Body(entry, fill, out).Write();
}

}  // namespace ringscope::report::html
