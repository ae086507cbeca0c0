// One entry: first what somebody on call needs, what is behind it after that.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_replace.h>

#include <algorithm>

#include "analyzer/encyclopedia/parts.h"
#include "analyzer/report/entry_text.h"

namespace ringscope::encyclopedia {
namespace {

class Page {
 public:
  Page(const catalog::Entry& entry, const Catalogue& catalogue, const Ids& ids) : e_(entry), all_(catalogue), ids_(ids) {}

  std::string Render(const catalog::Entry* before, const catalog::Entry* after) {
    Head();
    Confirm();
    Fixes();
    Verify();
    Symptoms();
    Lines();
    Mechanism();
    Claims();
    List("prevention", "So that it does not come back", e_.prevention());
    Perspectives();
    Alerts();
    Settings();
    Pointers();
    Related();
    References();
    End();
    absl::StrAppend(&out_, "<nav class=\"turn\" aria-label=\"Neighbouring entries\">", Turn("prev", "&larr; ", before, ""),
                    Turn("next", "", after, " &rarr;"), "</nav>\n</article>\n");
    return encyclopedia::Render({absl::StrCat(e_.id(), " ", e_.name(), " - Ringscope"), absl::StrCat(e_.id(), ".html"),
                                 absl::StrCat("<nav aria-label=\"On this page\"><h2>On this page</h2><ol>", toc_, "</ol></nav>"),
                                 out_, ""});
  }

 private:
  void Section(absl::string_view id, absl::string_view name) {
    End();
    absl::StrAppend(&toc_, "<li><a href=\"#", id, "\">", name, "</a></li>");
    absl::StrAppend(&out_, "<section id=\"", id, "\" aria-labelledby=\"h-", id, "\">\n<h2 id=\"h-", id, "\">", name, "</h2>\n");
    open_ = true;
  }
  void End() {
    if (open_) out_ += "</section>\n";
    open_ = false;
  }
  void P(absl::string_view text) { out_ += Element("p", text, ids_); }
  void List(absl::string_view id, absl::string_view name, const google::protobuf::RepeatedPtrField<std::string>& texts) {
    if (texts.empty()) return;
    Section(id, name);
    out_ += "<ul>\n";
    for (const std::string& text : texts) out_ += Element("li", text, ids_);
    out_ += "</ul>\n";
  }

  void Head() {
    const std::string layer = report::LayerName(e_.layer());
    absl::StrAppend(&out_, "<article>\n<p class=\"badges\"><a class=\"badge at\" href=\"index.html#layer=",
                    catalog::Layer::Value_Name(e_.layer()), "\">", Escaped(layer), "</a>");
    for (const std::string& tag : e_.tags())
      absl::StrAppend(&out_, " <a class=\"badge\" href=\"index.html#tag=", Escaped(absl::StrReplaceAll(tag, {{" ", "%20"}})),
                      "\">", Escaped(tag), "</a>");
    if (e_.status() == catalog::Status::not_established)
      out_ += " <span class=\"badge doubt\">not established: no source or record shows that it exists</span>";
    absl::StrAppend(&out_, "</p>\n<h1><span class=\"id\">", Escaped(e_.id()), "</span> ", Escaped(e_.name()),
                    "</h1>\n<div class=\"answer\"><h2>In one minute</h2>", Element("p", e_.quick_answer(), ids_),
                    "</div>\n<form id=\"fill\" hidden aria-label=\"Fill in the commands of this page\"></form>\n");
  }

  void Confirm() {
    Section("confirm", "How to confirm it");
    out_ += "<ol class=\"steps\">\n";
    for (const catalog::Check& check : e_.confirm()) {
      absl::StrAppend(&out_, "<li>", Element("h3", check.what(), ids_), CopyBlock(check.command()),
                      Element("p", check.answer(), ids_), "</li>\n");
    }
    out_ += "</ol>\n";
    if (e_.refutes().empty()) return;
    out_ += "<h3>It is something else when</h3>\n<ul class=\"refutes\">\n";
    for (const std::string& text : e_.refutes()) out_ += Element("li", text, ids_);
    out_ += "</ul>\n";
  }

  void Fixes() {
    Section("fix", "What to do, in this order");
    out_ += "<ol class=\"steps\">\n";
    for (const catalog::Fix& fix : e_.fixes()) {
      absl::StrAppend(&out_, "<li>", Element("h3", fix.what(), ids_), CopyBlock(fix.command()));
      if (!fix.cost().empty()) absl::StrAppend(&out_, "<p class=\"cost\"><b>Costs:</b> ", Linked(fix.cost(), ids_), "</p>");
      out_ += "</li>\n";
    }
    out_ += "</ol>\n";
  }

  void Verify() {
    if (e_.verify().empty()) return;
    Section("verify", "How to know that it worked");
    for (const catalog::Verification& v : e_.verify())
      absl::StrAppend(&out_, "<div class=\"item\">", CopyBlock(v.command()), Element("p", v.expected(), ids_), "</div>\n");
  }

  void Symptoms() {
    if (e_.symptoms().empty()) return;
    Section("symptoms", "What is seen, and what that really shows");
    out_ +=
        "<table class=\"cards\"><thead><tr><th scope=\"col\">Seen</th><th scope=\"col\">Really shows</th></tr></thead><tbody>\n";
    for (const catalog::Symptom& s : e_.symptoms())
      absl::StrAppend(&out_, "<tr><td data-label=\"Seen\">", Linked(s.seen(), ids_), "</td><td data-label=\"Really shows\">",
                      Linked(s.really_shows(), ids_), "</td></tr>\n");
    out_ += "</tbody></table>\n";
  }

  void Lines() {
    if (e_.signatures().empty()) return;
    Section("lines", "Lines that it prints");
    for (const catalog::LineShape& line : e_.signatures()) {
      absl::StrAppend(&out_, "<div class=\"item line\"><pre class=\"log\"><code>", Escaped(line.example()),
                      "</code></pre>\n<dl>");
      absl::StrAppend(&out_, "<div><dt>Releases</dt><dd>", Escaped(line.versions()), "</dd></div>");
      if (!line.lookalikes().empty())
        absl::StrAppend(&out_, "<div><dt>Looks like</dt><dd>", EntryLinks(line.lookalikes(), ids_), "</dd></div>");
      absl::StrAppend(&out_, "<div><dt>Pattern</dt><dd><code>", Escaped(line.pattern()), "</code></dd></div>");
      for (const catalog::Signature& s : all_.signatures.signature()) {
        if (s.id() == line.catalogued_as() && Shown(s))
          absl::StrAppend(&out_, "<div><dt>Known as</dt><dd><a href=\"errors.html#", Escaped(s.id()), "\">", Escaped(s.id()),
                          "</a></dd></div>");
      }
      out_ += "</dl></div>\n";
    }
  }

  void Mechanism() {
    Section("mechanism", "How it comes about");
    P(e_.mechanism());
    if (e_.systems_affected().empty()) return;
    out_ += "<h3>Affected</h3>\n<ul>\n";
    for (const std::string& text : e_.systems_affected()) out_ += Element("li", text, ids_);
    out_ += "</ul>\n";
  }

  void Claims() {
    if (e_.claims().empty()) return;
    Section("claims", "What is told of it, examined");
    out_ +=
        "<table class=\"cards\"><thead><tr><th scope=\"col\">It is said</th><th scope=\"col\">Verdict</th>"
        "<th scope=\"col\">What may be said instead</th></tr></thead><tbody>\n";
    for (const catalog::Claim& claim : e_.claims()) {
      const std::string verdict = catalog::Claim::Verdict_Name(claim.verdict());
      absl::StrAppend(&out_, "<tr><td data-label=\"It is said\">", Linked(claim.claim(), ids_),
                      "</td><td data-label=\"Verdict\"><span class=\"badge claim-", verdict, "\">", verdict,
                      "</span></td><td data-label=\"Instead\">", Linked(claim.truth(), ids_), "</td></tr>\n");
    }
    out_ += "</tbody></table>\n";
  }

  void Perspectives() {
    if (!e_.has_perspectives()) return;
    Section("perspectives", "Told to three people");
    const catalog::Perspectives& p = e_.perspectives();
    absl::StrAppend(&out_, "<div class=\"three\"><div><h3>On call</h3>", Element("p", p.on_call(), ids_),
                    "</div><div><h3>Engineer</h3>", Element("p", p.engineer(), ids_), "</div><div><h3>Manager</h3>",
                    Element("p", p.executive(), ids_), "</div></div>\n");
  }

  void Alerts() {
    if (e_.alerts().empty()) return;
    Section("alerts", "What to watch");
    out_ +=
        "<table class=\"cards\"><thead><tr><th scope=\"col\">Watch</th><th scope=\"col\">Call somebody "
        "when</th></tr></thead><tbody>\n";
    for (const catalog::Alert& alert : e_.alerts())
      absl::StrAppend(&out_, "<tr><td data-label=\"Watch\">", Linked(alert.watch(), ids_),
                      "</td><td data-label=\"Call somebody when\">", Linked(alert.threshold(), ids_), "</td></tr>\n");
    out_ += "</tbody></table>\n";
  }

  void Settings() {
    if (e_.settings().empty()) return;
    Section("settings", "To paste");
    for (const catalog::Setting& setting : e_.settings())
      absl::StrAppend(&out_, "<div class=\"item\">", Element("h3", setting.where(), ids_), CopyBlock(setting.snippet()),
                      Element("p", setting.why(), ids_), "</div>\n");
  }

  // Numbers and variables of the tables that name this entry.
  void Pointers() {
    std::string items;
    const auto named = [&](const auto& causes) { return std::find(causes.begin(), causes.end(), e_.id()) != causes.end(); };
    for (const catalog::XidEntry& x : all_.tables.xid()) {
      if (x.cause() == e_.id())
        absl::StrAppend(&items, "<li><a href=\"xid.html#xid-", x.number(), "\">Xid ", x.number(), "</a> ", Escaped(x.meaning()),
                        "</li>\n");
    }
    for (const catalog::CodeEntry& code : all_.tables.code()) {
      if (named(code.causes()))
        absl::StrAppend(&items, "<li><a href=\"", CodePage(code), "\">", Escaped(CodeLabel(code)), "</a></li>\n");
    }
    for (const catalog::VariableUse& v : all_.tables.variable_use()) {
      if (named(v.causes()))
        absl::StrAppend(&items, "<li><a href=\"variables.html#", Escaped(v.name()), "\"><code>", Escaped(v.name()),
                        "</code></a> ", Escaped(v.use()), "</li>\n");
    }
    if (items.empty()) return;
    Section("pointers", "Numbers and variables that lead here");
    absl::StrAppend(&out_, "<ul class=\"plain\">\n", items, "</ul>\n");
  }

  void Related() {
    if (e_.related().empty()) return;
    Section("related", "Related");
    out_ += "<ul class=\"related\">\n";
    for (const std::string& id : e_.related()) {
      const auto& entries = all_.entries.entry();
      const auto it = std::find_if(entries.begin(), entries.end(), [&](const catalog::Entry& e) { return e.id() == id; });
      if (it == entries.end()) {
        absl::StrAppend(&out_, "<li>", Escaped(id), "</li>\n");
      } else {
        absl::StrAppend(&out_, "<li><a href=\"", Escaped(id), ".html\"><span class=\"id\">", Escaped(id), "</span> ",
                        Escaped(it->name()), "</a></li>\n");
      }
    }
    out_ += "</ul>\n";
  }

  void References() {
    if (e_.references().empty()) return;
    Section("references", "Rests on");
    out_ += "<ul class=\"small\">\n";
    for (const catalog::Reference& r : e_.references()) {
      std::vector<std::string> parts;
      for (const int part : r.supports())
        parts.push_back(catalog::Reference::Part_Name(static_cast<catalog::Reference::Part>(part)));
      absl::StrAppend(&out_, "<li>", r.text().empty() ? "General knowledge" : Linked(r.text(), ids_),
                      r.general_knowledge() && !r.text().empty() ? " (general knowledge)" : "",
                      parts.empty() ? "" : absl::StrCat(" <span class=\"dim\">for ", absl::StrJoin(parts, ", "), "</span>"),
                      "</li>\n");
    }
    out_ += "</ul>\n";
  }

  std::string Turn(absl::string_view rel, absl::string_view first, const catalog::Entry* to, absl::string_view last) const {
    if (to == nullptr) return "<span></span>";
    return absl::StrCat("<a rel=\"", rel, "\" href=\"", Escaped(to->id()), ".html\">", first, Escaped(to->id()), " ",
                        Escaped(to->name()), last, "</a>");
  }

  const catalog::Entry& e_;
  const Catalogue& all_;
  const Ids& ids_;
  std::string out_, toc_;
  bool open_ = false;
};

}  // namespace

std::string EntryPage(const catalog::Entry& entry, const catalog::Entry* before, const catalog::Entry* after,
                      const Catalogue& catalogue, const Ids& ids) {
  return Page(entry, catalogue, ids).Render(before, after);
}

}  // namespace ringscope::encyclopedia
