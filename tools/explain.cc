// ringscope explain: pages of the failure catalogue, by id, by number, by a line that a program printed, by words.
#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <stdio.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "analyzer/encyclopedia/pages.h"
#include "analyzer/encyclopedia/write.h"
#include "analyzer/ingest/signature_matcher.h"
#include "analyzer/ingest/text_line.h"
#include "analyzer/report/entry_text.h"
#include "analyzer/report/json.h"
#include "analyzer/report/style.h"
#include "catalog/catalog.h"
#include "catalog/search.h"
#include "tools/command.h"
#include "tools/nearest.h"

namespace ringscope::tools {
namespace {

constexpr int kWidth = 100;
constexpr size_t kMostCandidates = 8;

void Print(const std::string& text) { fwrite(text.data(), 1, text.size(), stdout); }

std::string OneLine(const catalog::Entry& entry) {
  std::string id = entry.id();
  id.resize(std::max<size_t>(id.size(), 8), ' ');
  return absl::StrCat(id, "  ", entry.name(), "\n");
}

int List(const report::Style& style) {
  std::map<int, std::vector<const catalog::Entry*>> layers;
  for (const catalog::Entry& entry : catalog::Entries().entry()) layers[entry.layer()].push_back(&entry);
  for (const auto& [layer, entries] : layers) {
    Print(absl::StrCat(style.Bold(report::LayerName(static_cast<catalog::Layer::Value>(layer))), "\n"));
    for (const catalog::Entry* entry : entries) Print(absl::StrCat("  ", OneLine(*entry)));
  }
  return kNothingWrong;
}

int Page(const catalog::Entry& entry, const Arguments& arguments) {
  if (arguments.Get("format") == "json") {
    const auto json = report::ToJson(entry);
    if (!json.ok()) {
      fprintf(stderr, "ringscope: %s\n", std::string(json.status().message()).c_str());
      return kInternal;
    }
    Print(*json);
    return kNothingWrong;
  }
  Print(report::RenderEntry(entry, {UseColour(arguments.Get("color")), kWidth, arguments.Get("all") == "yes"}));
  return kNothingWrong;
}

// "Xid 79", "xid79": the driver's number. True when `text` is one.
bool Xid(const std::string& text, const report::Style& style) {
  std::string lower = absl::AsciiStrToLower(text);
  const bool sxid = lower.rfind("sxid", 0) == 0;
  if (!sxid && lower.rfind("xid", 0) != 0) return false;
  int number = 0;
  if (!absl::SimpleAtoi(absl::StripLeadingAsciiWhitespace(absl::string_view(lower).substr(sxid ? 4 : 3)), &number)) return false;
  if (sxid) {
    const catalog::SxidEntry* entry = catalog::FindSxid(number);
    Print(entry == nullptr ? absl::StrCat("SXid ", number, " is not in the table; the driver's documentation may have it.\n")
                           : absl::StrCat(style.Bold(absl::StrCat("SXid ", number)), ": ", entry->meaning(), "\n"));
    return true;
  }
  const catalog::XidEntry* entry = catalog::FindXid(number);
  if (entry == nullptr) {
    Print(absl::StrCat("Xid ", number, " is not in the table; the driver's documentation may have it.\n"));
    return true;
  }
  Print(absl::StrCat(style.Bold(absl::StrCat("Xid ", number)), ": ", entry->meaning(), "\n"));
  if (!entry->action().empty()) Print(report::Wrapped("  do: ", entry->action(), kWidth));
  for (const catalog::DriverDefect& defect : catalog::Faults().driver_defect()) {
    if (defect.xid() == number)
      Print(report::Wrapped("  driver: ", absl::StrCat(defect.text(), " (", defect.from(), " up to ", defect.fixed(), ")"),
                            kWidth));
  }
  if (const catalog::Entry* page = catalog::FindEntry(entry->cause()); page != nullptr)
    Print(absl::StrCat("  page: ", OneLine(*page), report::Wrapped("        ", page->quick_answer(), kWidth)));
  return true;
}

// What of the catalogue's lines stands in the text; their causes in `causes`, likeliest first.
bool KnownLines(const std::string& text, const report::Style& style, std::vector<std::string>* causes) {
  const ingest::SignatureMatcher& matcher = ingest::SignatureMatcher::All();
  ingest::LineCleaner cleaner;
  std::set<const catalog::Signature*> told;
  uint32_t number = 0;
  for (const std::string& raw : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    const ingest::TextLine line = cleaner.Clean(raw, {-1, ++number});
    ingest::SignatureMatcher::Hits hits;
    if (!matcher.Match(line.text, &hits)) continue;
    for (const auto& [signature, pattern] : hits.signatures) {
      if (!told.insert(signature).second) continue;
      Print(absl::StrCat(style.Bold(report::Printable(std::string(line.quote))), "\n"));
      Print(report::Wrapped("  shows: ", signature->shows(), kWidth));
      if (signature->role() == catalog::Role::collateral)
        Print(report::Wrapped("  it is ",
                              "normally the consequence of a fault elsewhere: look for an earlier line of another rank", kWidth));
      if (signature->role() == catalog::Role::harmless) Print("  it is harmless\n");
      if (!signature->next().empty()) Print(report::Wrapped("  told apart by: ", signature->next(), kWidth));
      if (!signature->command().empty()) Print(absl::StrCat("  ", style.Command(signature->command()), "\n"));
      for (const std::string& id : signature->causes()) {
        if (std::find(causes->begin(), causes->end(), id) == causes->end()) causes->push_back(id);
      }
    }
  }
  return !told.empty();
}

int Text(const std::string& text, const report::Style& style) {
  std::vector<std::string> causes;
  const bool known = KnownLines(text, style, &causes);
  size_t shown = 0;
  for (const std::string& id : causes) {
    const catalog::Entry* entry = catalog::FindEntry(id);
    if (entry == nullptr || shown == kMostCandidates) continue;
    if (shown++ == 0) Print(causes.size() > 1 ? "\nWhat prints it, the likeliest first:\n" : "\nWhat prints it:\n");
    Print(absl::StrCat("  ", OneLine(*entry), report::Wrapped("            ", entry->quick_answer(), kWidth)));
  }
  if (known) {
    if (shown > 0) Print("\nA page: ringscope explain ID\n");
    return kNothingWrong;
  }
  const std::vector<catalog::Found> found = catalog::Search(text, kMostCandidates);
  if (found.empty()) {
    fprintf(stderr,
            "ringscope explain: nothing in the catalogue fits that. `ringscope explain --list` shows all entries; a log is read "
            "by `ringscope diagnose FILE`\n");
    return kUndetermined;
  }
  Print("No line that the catalogue knows. Entries with these words:\n");
  for (const catalog::Found& f : found)
    Print(absl::StrCat("  ", OneLine(*f.entry), report::Wrapped("            ", f.entry->quick_answer(), kWidth)));
  return kNothingWrong;
}

// The whole catalogue as pages in `folder`.
int Html(const std::string& folder) {
  const auto pages = encyclopedia::Pages({catalog::Entries(), catalog::Signatures(), catalog::Faults()});
  const absl::Status written = pages.ok() ? encyclopedia::WritePages(folder, *pages) : pages.status();
  if (!written.ok()) {
    fprintf(stderr, "ringscope explain: %s\n", report::Printable(std::string(written.message())).c_str());
    return pages.ok() ? kUsage : kInternal;
  }
  Print(absl::StrCat(pages->size(), " pages; open ", report::Printable(folder), "/index.html\n"));
  return kNothingWrong;
}

bool LooksLikeId(const std::string& text) {
  return text.size() <= 8 && text.find('-') != text.npos && text.find(' ') == text.npos;
}

int Run(const Arguments& arguments) {
  const report::Style style(UseColour(arguments.Get("color")));
  if (arguments.Get("list") == "yes") return List(style);
  if (const std::string folder = arguments.Get("html"); !folder.empty()) {
    if (arguments.positional().empty()) return Html(folder);
    fprintf(stderr, "ringscope explain: --html writes all entries; give no id or text beside it\n");
    return kUsage;
  }
  std::string text = absl::StrJoin(arguments.positional(), " ");
  if (text == "-") {
    text.clear();
    char part[4096];
    for (size_t n; text.size() < (1 << 20) && (n = fread(part, 1, sizeof(part), stdin)) > 0;) text.append(part, n);
  }
  if (absl::StripAsciiWhitespace(text).empty()) {
    fprintf(stderr,
            "ringscope explain: give an id (HW-01), a number (Xid 79), a line that was printed, or words; --list shows all\n");
    return kUsage;
  }
  text = std::string(absl::StripAsciiWhitespace(text));
  if (const catalog::Entry* entry = catalog::FindEntry(text); entry != nullptr) return Page(*entry, arguments);
  if (LooksLikeId(text)) {
    std::vector<std::string> ids;
    for (const catalog::Entry& entry : catalog::Entries().entry()) ids.push_back(entry.id());
    const std::string nearest = Nearest(absl::AsciiStrToUpper(text), ids);
    fprintf(stderr, "ringscope explain: there is no entry %s%s\n", report::Printable(text).c_str(),
            nearest.empty() ? "; --list shows all" : absl::StrCat("; did you mean ", nearest, "?").c_str());
    return kUsage;
  }
  if (arguments.Get("format") == "json") {
    fprintf(stderr, "ringscope explain: --format=json is for one entry; give its id\n");
    return kUsage;
  }
  if (Xid(text, style)) return kNothingWrong;
  return Text(text, style);
}

}  // namespace

const Command kExplain = {
    "explain",
    "ID | TEXT | - [--all] [--list] [--html=DIR] [--format=text|json] [--color=auto|always|never]",
    "pages of the failure catalogue: what a failure is, how to confirm, refute and fix it",
    "ID is what a finding calls its cause (HW-01). TEXT is a line that a program printed, quoted: what it really shows, what "
    "prints "
    "it, and\n"
    "what tells that apart; or \"Xid 79\"; or words to look for. With - the text is read from standard input.\n"
    "\n"
    "In commands {host}, {gpu}, {bus_id}, {rank}, {pid}, {nic} and {port} are to be filled in.\n"
    "\n"
    "Exit code: 0 something fits, 2 nothing does.\n",
    {{"all", {"yes", "no"}, "no", "also the perspectives, what to watch, settings to paste, references"},
     {"list", {"yes", "no"}, "no", "all entries, by the layer in which the failure arises"},
     {"html", {}, "", "write the whole catalogue as web pages, with search, into a folder that is new or empty", "DIR"},
     {"format", {"text", "json"}, "text", "of a page"},
     {"color", {"auto", "always", "never"}, "auto", "auto: only on a terminal"}},
    Run};

}  // namespace ringscope::tools
