// The index: search, filters, all entries by the layer in which they arise.
#include <absl/strings/str_cat.h>

#include <map>
#include <set>

#include "analyzer/encyclopedia/parts.h"
#include "analyzer/report/entry_text.h"

namespace ringscope::encyclopedia {
namespace {

// What happens to the job; the other tags say what it concerns (catalog/entries/README.md).
const std::set<std::string>& kEffects = *new std::set<std::string>{"hang", "crash", "slow", "start", "wrong data"};

std::string Filter(absl::string_view kind, absl::string_view value, absl::string_view label) {
  return absl::StrCat("<button type=\"button\" class=\"chip\" aria-pressed=\"false\" data-", kind, "=\"", Escaped(value), "\">",
                      Escaped(label), "</button>\n");
}

}  // namespace

std::string IndexPage(const Catalogue& catalogue) {
  std::map<int, std::vector<const catalog::Entry*>> layers;
  std::set<std::string> effects, subjects;
  for (const catalog::Entry& entry : catalogue.entries.entry()) {
    layers[entry.layer()].push_back(&entry);
    for (const std::string& tag : entry.tags()) (kEffects.count(tag) > 0 ? effects : subjects).insert(tag);
  }
  std::string main =
      absl::StrCat("<h1>How distributed GPU jobs fail</h1>\n<p class=\"lead\">", catalogue.entries.entry_size(),
                   " failures of jobs that talk through NCCL: what each one is, what its signs really show, how to confirm and "
                   "refute it, what to do in "
                   "which order.</p>\n<search role=\"search\"><label for=\"q\">Search, or paste a line that was printed</label>\n"
                   "<textarea id=\"q\" rows=\"1\" autocomplete=\"off\" autocapitalize=\"off\" spellcheck=\"false\" "
                   "placeholder=\"HW-01 &middot; Xid 79 &middot; NCCL_IB_TIMEOUT &middot; hangs after checkpoint &middot; NCCL "
                   "WARN &hellip;\"></textarea>\n"
                   "<noscript><p>Searching needs JavaScript. All entries are listed below; your browser's own search works "
                   "too.</p></noscript>\n");
  main +=
      "<div class=\"filters\" id=\"filters\" hidden><div role=\"group\" aria-label=\"Where it arises\"><span>Arises in</span>\n";
  for (const auto& [layer, entries] : layers) {
    const auto value = static_cast<catalog::Layer::Value>(layer);
    main += Filter("layer", catalog::Layer::Value_Name(value), report::LayerName(value));
  }
  main += "</div>\n<div role=\"group\" aria-label=\"What it does and concerns\"><span>Does, concerns</span>\n";
  for (const std::string& tag : effects) main += Filter("tag", tag, tag);
  for (const std::string& tag : subjects) main += Filter("tag", tag, tag);
  main += "</div></div>\n</search>\n<section id=\"results\" hidden aria-label=\"Results\"></section>\n<div id=\"list\">\n";
  for (const auto& [layer, entries] : layers) {
    const auto value = static_cast<catalog::Layer::Value>(layer);
    const std::string name = catalog::Layer::Value_Name(value);
    absl::StrAppend(&main, "<section class=\"layer\" aria-labelledby=\"layer-", name, "\"><h2 id=\"layer-", name, "\">",
                    Escaped(report::LayerName(value)), "</h2>\n<ul class=\"entries\">\n");
    for (const catalog::Entry* entry : entries) {
      absl::StrAppend(&main, "<li data-id=\"", Escaped(entry->id()), "\"><a href=\"", Escaped(entry->id()),
                      ".html\"><span class=\"id\">", Escaped(entry->id()), "</span> ", Escaped(entry->name()), "</a>\n<p>",
                      Escaped(entry->quick_answer()), "</p></li>\n");
    }
    main += "</ul></section>\n";
  }
  main += "</div>\n<p id=\"none\" hidden>No entry has all of these marks.</p>\n";
  return Render({"Ringscope encyclopedia: how distributed GPU jobs fail", "index.html", "", main, SearchIndex(catalogue)});
}

}  // namespace ringscope::encyclopedia
