// All findings: the first open, the others folded.
#include <absl/strings/str_cat.h>

#include <vector>

#include "analyzer/model/ranks_text.h"
#include "analyzer/report/html/context.h"
#include "analyzer/report/html/page.h"
#include "analyzer/report/words.h"
#include "catalog/catalog.h"

namespace ringscope::report::html {
namespace {

void EvidenceList(const Finding& f, int index, Writer* out) {
  if (f.evidence().empty()) return;
  *out << "<h3>Evidence</h3><ul>";
  int shown = 0;
  for (const Evidence& e : f.evidence()) {
    *out << "<li>" << e.text();
    const std::string source = SourceText(e);
    if (!source.empty())
      *out << " <a class=\"source mono\" href=\"#e" << index + 1 << "-" << shown + 1 << "\">" << source << "</a>";
    *out << "</li>";
    ++shown;
  }
  *out << "</ul>";
}

void Checks(const Finding& f, Writer* out) {
  if (f.checks().empty()) return;
  *out << "<h3>If this is so, then</h3><ul class=\"checks\">";
  for (const Check& check : f.checks()) {
    *out << "<li>";
    if (check.outcome() == Check::holds) Chip("good", "holds", out);
    if (check.outcome() == Check::fails) Chip("alarm", "fails", out);
    if (check.outcome() == Check::not_seen) Chip("", "not seen", out);
    *out << " " << check.expects();
    if (!check.seen().empty()) *out << " <span class=\"muted\">– " << check.seen() << "</span>";
    if (!check.source().empty()) *out << " <span class=\"source mono\">" << SplitSource(check.source()).first << "</span>";
    *out << "</li>";
  }
  *out << "</ul>";
}

void Rivals(const Finding& f, Writer* out) {
  if (f.rivals().empty()) return;
  *out << "<h3>It could also be</h3><ul>";
  for (const Rival& rival : f.rivals()) {
    *out << "<li>" << rival.text();
    if (rival.finding() > 0) *out << " (<a href=\"#f" << rival.finding() + 1 << "\">finding " << rival.finding() + 1 << "</a>)";
    if (!rival.told_apart_by().empty()) *out << "<br><span class=\"muted\">Told apart by: " << rival.told_apart_by() << "</span>";
    *out << "</li>";
  }
  *out << "</ul>";
}

void Commands(const Finding& f, const Context& c, Writer* out) {
  if (!f.next().text().empty() || !f.next().command().empty()) {
    *out << "<h3>Next</h3>";
    if (!f.next().text().empty()) *out << "<p>" << f.next().text() << "</p>";
    Command(f.next().command(), out);
  }
  const catalog::Entry* entry = CauseKnown(f) ? catalog::FindEntry(f.cause().id()) : nullptr;
  if (entry == nullptr) return;
  if (entry->confirm_size() > 0) {
    *out << "<h3>Confirm the cause</h3><p>" << entry->confirm(0).what() << "</p>";
    Command(Filled(entry->confirm(0).command(), f, c), out);
    if (!entry->confirm(0).answer().empty()) *out << "<p class=\"muted\">" << entry->confirm(0).answer() << "</p>";
  }
  if (entry->verify_size() > 0) {
    *out << "<h3>Verify the repair</h3><p>" << entry->verify(0).expected() << "</p>";
    Command(Filled(entry->verify(0).command(), f, c), out);
  }
}

void One(const Context& c, int index, int explained_by, Writer* out) {
  const Finding& f = c.d.findings(index);
  *out << "<details class=\"finding\" id=\"f" << index + 1 << "\"" << (index == 0 ? Markup(" open") : Markup(""))
       << "><summary><span class=\"num\">" << index + 1 << "</span> " << (f.title().empty() ? WhoText(f.who()) : f.title())
       << " ";
  Chip(ToneOf(f.confidence()), Words(Confidence::Value_Name(f.confidence())), out);
  if (f.past()) Chip("info", "over", out);
  if (explained_by >= 0) *out << " <span class=\"muted small\">follows from finding " << explained_by + 1 << "</span>";
  *out << "</summary><div class=\"body\"><table class=\"facts\"><tr><th>who</th><td>" << WhoText(f.who())
       << "</td></tr><tr><th>what</th><td>" << Words(Kind::Value_Name(f.kind())) << ", "
       << Words(Confidence::Value_Name(f.confidence())) << "</td></tr><tr><th>cause</th><td>";
  if (CauseKnown(f)) {
    *out << f.cause().id();
    if (const catalog::Entry* entry = catalog::FindEntry(f.cause().id()); entry != nullptr) *out << ", " << entry->name();
    *out << ", " << Words(Confidence::Value_Name(f.cause().confidence()));
  } else {
    *out << "not established";
  }
  *out << "</td></tr>";
  if (f.collateral().ranks_size() > 0) {
    *out << "<tr><th>only waiting</th><td>" << model::RanksText(Ints(f.collateral().ranks())) << " ("
         << f.collateral().ranks_size() << ")</td></tr>";
  }
  if (f.explains_size() > 0) {
    *out << "<tr><th>explains</th><td>";
    for (int i = 0; i < f.explains_size(); ++i) {
      if (i > 0) *out << ", ";
      *out << "<a href=\"#f" << f.explains(i) + 1 << "\">finding " << f.explains(i) + 1 << "</a>";
    }
    *out << "</td></tr>";
  }
  if (!f.refuted_by().empty()) *out << "<tr><th>refuted by</th><td>" << f.refuted_by() << "</td></tr>";
  *out << "</table>";
  EvidenceList(f, index, out);
  Checks(f, out);
  Rivals(f, out);
  Commands(f, c, out);
  *out << "</div></details>";
}

}  // namespace

Section FindingsSection(const Context& c) {
  Section section{"findings", "Findings", "All findings", {}};
  std::vector<int> explained(static_cast<size_t>(c.d.findings_size()), -1);
  for (int i = 0; i < c.d.findings_size(); ++i) {
    for (const uint32_t j : c.d.findings(i).explains()) {
      if (j < explained.size() && explained[j] < 0) explained[j] = i;
    }
  }
  if (!c.d.summary().empty() && c.first != nullptr) section.body << "<p>" << c.d.summary() << "</p>";
  bool any = false;
  for (int i = 0; i < c.d.findings_size(); ++i) {
    if (c.d.findings(i).kind() == Kind::none) continue;
    any = true;
    One(c, i, explained[static_cast<size_t>(i)], &section.body);
  }
  if (!any) section.body << "<p class=\"muted\">None.</p>";
  return section;
}

}  // namespace ringscope::report::html
