// Tables of numbers, lines and variables.
#include <absl/strings/str_cat.h>

#include <set>
#include <vector>

#include "analyzer/encyclopedia/parts.h"

namespace ringscope::encyclopedia {
namespace {

using Columns = std::vector<std::string>;

// A table whose rows become cards on a narrow screen: each cell carries its column's name.
class Table {
 public:
  Table(absl::string_view kind, absl::string_view label, Columns columns) : columns_(std::move(columns)) {
    absl::StrAppend(&out_, "<table class=\"cards wide ", kind, "\" aria-label=\"", label, "\"><thead><tr>");
    for (const std::string& column : columns_) absl::StrAppend(&out_, "<th scope=\"col\">", column, "</th>");
    out_ += "</tr></thead><tbody>\n";
  }
  // `anchor` may be empty; cells are HTML. The first one heads its row.
  void Row(const std::string& anchor, const Columns& cells) {
    out_ += anchor.empty() ? "<tr>" : absl::StrCat("<tr id=\"", Escaped(anchor), "\">");
    for (size_t i = 0; i < cells.size(); ++i) {
      const char* tag = i == 0 ? "th scope=\"row\"" : "td";
      absl::StrAppend(&out_, "<", tag, cells[i].empty() ? " class=\"empty\"" : "", " data-label=\"", columns_[i], "\">", cells[i],
                      i == 0 ? "</th>" : "</td>");
    }
    out_ += "</tr>\n";
  }
  std::string Close() { return out_ + "</tbody></table>\n"; }

 private:
  Columns columns_;
  std::string out_;
};

std::string Notes(const Catalogue& catalogue, catalog::TableNote::Page page, const Ids& ids) {
  std::string out;
  for (const catalog::TableNote& note : catalogue.tables.note()) {
    if (note.page() == page)
      absl::StrAppend(&out, "<li>", Linked(note.text(), ids), " <span class=\"source\">", Linked(note.reference(), ids),
                      "</span></li>\n");
  }
  return out.empty() ? "" : absl::StrCat("<ul class=\"notes\">\n", out, "</ul>\n");
}

std::string Filter(absl::string_view label) {
  return absl::StrCat("<p class=\"narrow\" hidden><label for=\"q\">", label,
                      "</label> <input id=\"q\" type=\"search\" autocomplete=\"off\"></p>\n");
}

std::string Source(absl::string_view text, const Ids& ids) {
  return text.empty() ? "" : absl::StrCat("<span class=\"source\">", Linked(text, ids), "</span>");
}

std::string Heading(absl::string_view id, absl::string_view text) {
  return absl::StrCat("<h2 id=\"", id, "\">", text, "</h2>\n");
}

std::string Paragraph(absl::string_view text, const Ids& ids) { return Element("p", text, ids); }

// Entries with their names: an id alone says nothing to who sees it for the first time.
template <typename Strings>
std::string EntryList(const Strings& causes, const Ids& ids) {
  std::string out;
  for (const std::string& id : causes) {
    const auto it = ids.find(id);
    absl::StrAppend(&out, "<li>", Linked(id, ids), it == ids.end() ? "" : absl::StrCat(" ", Escaped(it->second)), "</li>");
  }
  return out.empty() ? "" : absl::StrCat("<ul class=\"names\">", out, "</ul>");
}

std::string Contents(absl::string_view items) {
  return absl::StrCat("<nav class=\"contents\" aria-label=\"On this page\"><ul>", items, "</ul></nav>\n");
}

std::string Codes(const Catalogue& catalogue, catalog::CodeEntry::Table table, absl::string_view label, const Ids& ids) {
  Table out("codes", label, {"Code", "It says", "It really indicates", "Entries, likeliest first"});
  for (const catalog::CodeEntry& code : catalogue.tables.code()) {
    if (code.table() != table) continue;
    out.Row(
        CodeAnchor(code),
        {absl::StrCat("<b>", code.number(), "</b> <code>", Escaped(code.name()), "</code>",
                      code.since().empty() ? "" : absl::StrCat(" <span class=\"dim\">since ", Escaped(code.since()), "</span>")),
         Linked(code.says(), ids),
         absl::StrCat(
             RoleBadge(code.role()), Paragraph(code.indicates(), ids),
             code.next().empty() ? "" : absl::StrCat("<p class=\"next\"><b>Look at:</b> ", Linked(code.next(), ids), "</p>")),
         absl::StrCat(EntryList(code.causes(), ids), Source(code.reference(), ids))});
  }
  return out.Close();
}

constexpr struct {
  catalog::Role::Value role;
  const char* id;
  const char* heading;
} kRoles[] = {{catalog::Role::cause, "names", "Lines that name a fault where it arises"},
              {catalog::Role::symptom, "symptoms", "Lines whose reason may lie elsewhere"},
              {catalog::Role::collateral, "collateral", "Lines that are normally the consequence of a fault elsewhere"},
              {catalog::Role::harmless, "harmless", "Lines that look like errors and are none"},
              {catalog::Role::instruction, "instructions", "Lines that say what to do about another line"}};

bool OfNccl(const catalog::Signature& s) { return s.source().find("ccl") != std::string::npos; }

std::string Lines(const Catalogue& catalogue, bool nccl, catalog::Role::Value role, absl::string_view label, const Ids& ids) {
  Table out("lines", label, {"Line", "It really shows", "Entries, likeliest first", "Releases and source"});
  bool any = false;
  for (const catalog::Signature& s : catalogue.signatures.signature()) {
    if (s.role() != role || OfNccl(s) != nccl || s.examples().empty()) continue;
    any = true;
    out.Row(s.id(),
            {absl::StrCat("<code class=\"log\">", Escaped(s.examples(0)), "</code><span class=\"dim\">", Escaped(s.source()),
                          "</span>"),
             absl::StrCat(
                 Paragraph(s.shows(), ids),
                 s.next().empty() ? "" : absl::StrCat("<p class=\"next\"><b>Told apart by:</b> ", Linked(s.next(), ids), "</p>"),
                 s.command().empty() ? "" : CopyBlock(s.command())),
             EntryList(s.causes(), ids), absl::StrCat(Escaped(s.versions()), " ", Source(s.reference(), ids))});
  }
  return any ? out.Close() : "";
}

constexpr struct {
  catalog::VariableUse::Group group;
  const char* id;
  const char* heading;
} kGroups[] = {{catalog::VariableUse::see, "see", "To see more"},
               {catalog::VariableUse::paths, "paths", "Paths between GPUs, algorithms"},
               {catalog::VariableUse::network, "network", "Network"},
               {catalog::VariableUse::start, "start", "Start and placement"},
               {catalog::VariableUse::launch, "launch", "Launch and graphs"},
               {catalog::VariableUse::framework, "framework", "PyTorch"}};

const catalog::Variable* Find(const Catalogue& catalogue, const std::string& name) {
  for (const catalog::Variable& variable : catalogue.tables.variable()) {
    if (variable.name() == name) return &variable;
  }
  return nullptr;
}

std::string Releases(const catalog::Variable& v) {
  const std::string reader = v.reader().empty() ? "NCCL" : v.reader();
  if (v.since().empty() && v.until().empty()) return Escaped(reader);
  return Escaped(absl::StrCat(reader, v.since().empty() ? "" : absl::StrCat(" from ", v.since()),
                              v.until().empty() ? "" : absl::StrCat(", gone in ", v.until())));
}

// Values that may hurt by themselves.
std::string Risks(const catalog::Variable& v, const Ids& ids) {
  std::string out;
  for (const catalog::Variable::Risk& risk : v.risk()) {
    absl::StrAppend(&out, "<p class=\"next\">Values <code>", Escaped(risk.values()), "</code>: ", Linked(risk.text(), ids),
                    risk.entry().empty() ? "" : absl::StrCat(" (", Linked(risk.entry(), ids), ")"),
                    risk.fix().empty() ? "" : absl::StrCat("; <code>", Escaped(risk.fix()), "</code>"), "</p>");
  }
  return out;
}

}  // namespace

std::string ErrorsPage(const Catalogue& catalogue, const Ids& ids) {
  std::string contents, tables;
  const auto add = [&](const std::string& id, const std::string& text, const std::string& table) {
    if (table.empty()) return;
    absl::StrAppend(&contents, "<li><a href=\"#", id, "\">", text, "</a></li>");
    absl::StrAppend(&tables, Heading(id, text), table);
  };
  add("results", "What NCCL's functions return", Codes(catalogue, catalog::CodeEntry::nccl_result, "NCCL results", ids));
  for (const bool nccl : {true, false}) {
    for (const auto& [role, id, text] : kRoles) {
      const std::string name = absl::StrCat(nccl ? "NCCL: " : "Others: ", text);
      add(absl::StrCat(nccl ? "nccl-" : "other-", id), name, Lines(catalogue, nccl, role, name, ids));
    }
    if (nccl) add("cuda", "What CUDA returns", Codes(catalogue, catalog::CodeEntry::cuda_error, "CUDA errors", ids));
  }
  return Render({"What errors really indicate - Ringscope", "errors.html", "",
                 absl::StrCat("<h1>What errors really indicate</h1>\n", Notes(catalogue, catalog::TableNote::errors, ids),
                              Contents(contents), Filter("Show only rows with"), tables),
                 ""});
}

std::string VariablesPage(const Catalogue& catalogue, const Ids& ids) {
  std::string contents, tables;
  std::set<std::string> shown;
  const auto add = [&](const char* id, const char* text, Table* table) {
    absl::StrAppend(&tables, Heading(id, text), table->Close());
    absl::StrAppend(&contents, "<li><a href=\"#", id, "\">", text, "</a></li>");
  };
  for (const auto& [group, id, text] : kGroups) {
    Table out("variables", text, {"Variable", "Effect", "Cost and risk", "Matters for", "Releases, source"});
    for (const catalog::VariableUse& use : catalogue.tables.variable_use()) {
      if (use.group() != group) continue;
      shown.insert(use.name());
      const catalog::Variable* variable = Find(catalogue, use.name());
      out.Row(use.name(), {absl::StrCat("<code>", Escaped(use.name()), "</code>"), Linked(use.use(), ids),
                           absl::StrCat(Linked(use.cost(), ids), variable == nullptr ? "" : Risks(*variable, ids)),
                           EntryList(use.causes(), ids),
                           absl::StrCat(variable == nullptr ? "" : Releases(*variable), Source(use.reference(), ids))});
    }
    add(id, text, &out);
  }
  Table out("others", "Other variables", {"Variable", "Effect", "Risk", "Releases"});
  for (const catalog::Variable& variable : catalogue.tables.variable()) {
    if (shown.count(variable.name()) > 0) continue;
    out.Row(variable.name(), {absl::StrCat("<code>", Escaped(variable.name()), "</code>"), Linked(variable.effect(), ids),
                              Risks(variable, ids), Releases(variable)});
  }
  add("others", "All others that are known", &out);
  return Render({"Environment variables - Ringscope", "variables.html", "",
                 absl::StrCat("<h1>Environment variables for finding and getting by</h1>\n",
                              Notes(catalogue, catalog::TableNote::variables, ids), Contents(contents),
                              Filter("Show only rows with"), tables),
                 ""});
}

std::string XidPage(const Catalogue& catalogue, const Ids& ids) {
  std::string main = absl::StrCat("<h1>Xid: errors of the GPU driver</h1>\n", Notes(catalogue, catalog::TableNote::xid, ids),
                                  Filter("Show only rows with"));
  Table xids("xids", "Xid", {"Xid", "Meaning", "Role", "What to do", "Entry, source"});
  for (const catalog::XidEntry& x : catalogue.tables.xid()) {
    std::string defects;
    for (const catalog::DriverDefect& d : catalogue.tables.driver_defect()) {
      if (d.xid() == x.number())
        absl::StrAppend(&defects, "<p class=\"next\"><b>Driver:</b> ", Linked(d.text(), ids), " (", Escaped(d.from()), " up to ",
                        Escaped(d.fixed()), ") ", Source(d.reference(), ids), "</p>");
    }
    xids.Row(
        absl::StrCat("xid-", x.number()),
        {absl::StrCat("<b>", x.number(), "</b> ", x.name().empty() ? "" : absl::StrCat("<code>", Escaped(x.name()), "</code>")),
         absl::StrCat(Linked(x.meaning(), ids), defects),
         absl::StrCat("<span class=\"badge xid-", catalog::XidEntry::Role_Name(x.role()), "\">", XidRoleName(x.role()),
                      "</span>"),
         Linked(x.action(), ids),
         absl::StrCat(EntryList(std::vector<std::string>(x.cause().empty() ? 0 : 1, x.cause()), ids),
                      Source(x.reference(), ids))});
  }
  main += xids.Close();
  Table sxids("xids", "SXid", {"SXid", "Meaning", "Role", "Source"});
  for (const catalog::SxidEntry& x : catalogue.tables.sxid()) {
    sxids.Row(absl::StrCat("sxid-", x.first()),
              {absl::StrCat("<b>", x.first(), x.last() != x.first() ? absl::StrCat(" to ", x.last()) : "", "</b>"),
               Linked(x.meaning(), ids),
               absl::StrCat("<span class=\"badge xid-", catalog::XidEntry::Role_Name(x.role()), "\">", XidRoleName(x.role()),
                            "</span>"),
               Source(x.reference(), ids)});
  }
  absl::StrAppend(&main, Heading("sxid", "SXid: errors of NVSwitches up to Hopper"), sxids.Close());
  return Render({"Xid: errors of the GPU driver - Ringscope", "xid.html", "", main, ""});
}

std::string CompletionsPage(const Catalogue& catalogue, const Ids& ids) {
  return Render({"InfiniBand completion status - Ringscope", "completions.html", "",
                 absl::StrCat("<h1>InfiniBand and RoCE: status of a completion</h1>\n",
                              Notes(catalogue, catalog::TableNote::completions, ids), Filter("Show only rows with"),
                              Codes(catalogue, catalog::CodeEntry::ib_completion, "Completion status", ids)),
                 ""});
}

}  // namespace ringscope::encyclopedia
