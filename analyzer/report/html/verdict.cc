// The top of the page: who, what, how sure, in two lines; what to do now; how to know that it worked; what was not seen.
#include <absl/strings/str_cat.h>

#include <set>

#include "analyzer/model/ranks_text.h"
#include "analyzer/report/html/context.h"
#include "analyzer/report/html/page.h"
#include "analyzer/report/words.h"
#include "catalog/catalog.h"

namespace ringscope::report::html {
namespace {

// The hosts, where the finding names ranks or an edge alone: one has to log in somewhere.
std::string Where(const Context& c) {
  const Who& who = c.first->who();
  if (who.hosts_size() > 0) return "";
  const auto host = [&](int rank) { return c.job.HostOf(rank); };
  if (who.ranks_size() == 1 && !host(who.ranks(0)).empty()) return absl::StrCat(", on ", host(who.ranks(0)));
  if (who.edges_size() != 1) return "";
  const std::string from = host(who.edges(0).from()), to = host(who.edges(0).to());
  return from.empty() || to.empty() ? "" : absl::StrCat(", from ", from, " to ", to);
}

void SecondLine(const Context& c, Writer* out) {
  const Finding& f = *c.first;
  *out << "<p class=\"who\"><b>" << WhoText(f.who()) << Where(c) << "</b> <span class=\"sep\">·</span> "
       << Words(Kind::Value_Name(f.kind())) << " ";
  Chip(ToneOf(f.confidence()), Words(Confidence::Value_Name(f.confidence())), out);
  if (f.past()) Chip("info", "over: the job went on", out);
  *out << " <span class=\"sep\">·</span> cause ";
  if (const catalog::Entry* entry = CauseKnown(f) ? catalog::FindEntry(f.cause().id()) : nullptr; entry != nullptr) {
    *out << "<a href=\"#catalogue\">" << entry->id() << ", " << entry->name() << "</a> ";
    Chip(ToneOf(f.cause().confidence()), Words(Confidence::Value_Name(f.cause().confidence())), out);
  } else if (CauseKnown(f)) {
    *out << f.cause().id() << " ";
    Chip(ToneOf(f.cause().confidence()), Words(Confidence::Value_Name(f.cause().confidence())), out);
  } else {
    *out << "not established";
  }
  *out << "</p>";
  if (f.collateral().ranks_size() > 0) {
    *out << "<p class=\"muted\">Only waiting, nothing to do there: " << model::RanksText(Ints(f.collateral().ranks())) << "</p>";
  }
}

void NextStep(const Finding& f, Writer* out) {
  *out << "<div class=\"step\"><h2>Do this next</h2>";
  if (!f.next().text().empty()) *out << "<p>" << f.next().text() << "</p>";
  Command(f.next().command(), out);
  if (f.next().text().empty() && f.next().command().empty())
    *out << "<p class=\"muted\">Nothing in the evidence says what to look at.</p>";
  *out << "</div>";
}

// How to know that it is over: of the catalogue; else what would refute the finding.
void Verify(const Context& c, Writer* out) {
  const Finding& f = *c.first;
  const catalog::Entry* entry = CauseKnown(f) ? catalog::FindEntry(f.cause().id()) : nullptr;
  if (entry != nullptr && entry->verify_size() > 0) {
    *out << "<div class=\"step\"><h2>It is fixed when</h2><p>" << entry->verify(0).expected() << "</p>";
    Command(Filled(entry->verify(0).command(), f, c), out);
    *out << "</div>";
    return;
  }
  if (f.refuted_by().empty()) return;
  *out << "<div class=\"step\"><h2>This is wrong if there is</h2><p>" << f.refuted_by()
       << "</p><p class=\"muted small\">No way to verify a repair is named: the cause is not established, or not in the "
          "catalogue.</p></div>";
}

void NotSeen(const Context& c, Writer* out) {
  const int n = c.d.not_seen_size();
  if (n == 0) {
    *out << "<p class=\"muted small notseen\">Nothing that was looked for is missing from the evidence.</p>";
    return;
  }
  constexpr int kOpen = 3;
  *out << "<details class=\"notseen\"" << (n <= kOpen ? Markup(" open") : Markup(""))
       << "><summary><b>What was not seen</b> <span class=\"muted\">(" << n << ")</span></summary><ul>";
  for (const std::string& sentence : c.d.not_seen()) *out << "<li>" << sentence << "</li>";
  *out << "</ul></details>";
}

std::string Records(const Context& c) {
  std::set<std::string> hosts;
  for (const model::Process& p : c.job.processes) hosts.insert(p.host);
  const auto count = [](size_t n, const char* one, const char* more) { return absl::StrCat(n, " ", n == 1 ? one : more); };
  if (c.job.processes.empty()) return absl::StrCat("no record; ", count(c.job.evidence.files.size(), "text", "texts"), " read");
  return absl::StrCat("records of ", c.d.ranks_seen(), c.d.ranks_total() > 0 ? absl::StrCat(" of ", c.d.ranks_total()) : "",
                      " ranks, ", count(hosts.size(), "host", "hosts"), ", ",
                      count(c.job.communicators.size(), "communicator", "communicators"), ", ",
                      count(c.job.inputs.size(), "file", "files"));
}

}  // namespace

Writer VerdictSection(const Context& c) {
  Writer out;
  out << "<header class=\"card verdict " << ToneOf(c.d.state()) << "\" id=\"verdict\"><div class=\"top\">";
  Chip(ToneOf(c.d.state()), StateWord(c.d.state()), &out);
  if (!c.d.job().empty()) out << " <span class=\"muted\">job " << c.d.job() << "</span>";
  out << " <span class=\"muted\">" << Records(c)
      << "</span><span class=\"grow\"></span><button type=\"button\" id=\"theme\" aria-label=\"Light or "
         "dark\">Dark</button></div><h1>"
      << (c.first != nullptr ? c.first->title() : StateMeaning(c.d.state())) << "</h1>";
  if (c.first != nullptr) {
    SecondLine(c, &out);
  } else if (!c.d.summary().empty()) {
    out << "<p>" << c.d.summary() << "</p>";
  }
  if (!c.job.left_out.empty()) {
    out << "<p class=\"warntext\"><b>Not about</b> ";
    for (size_t i = 0; i < c.job.left_out.size() && i < 4; ++i) {
      if (i > 0) out << "; ";
      out << c.job.left_out[i];
    }
    if (c.job.left_out.size() > 4) out << " and " << c.job.left_out.size() - 4 << " more";
    out << ": their records lie here too.</p>";
  }
  if (c.first != nullptr) {
    out << "<div class=\"steps\">";
    NextStep(*c.first, &out);
    Verify(c, &out);
    out << "</div>";
  }
  NotSeen(c, &out);
  out << "</header>";
  return out;
}

}  // namespace ringscope::report::html
