// What is cited, in its place: lines of texts with the lines around them, table entries of records in words.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>

#include "analyzer/report/cursors.h"
#include "analyzer/report/html/context.h"
#include "analyzer/report/html/page.h"
#include "analyzer/report/words.h"

namespace ringscope::report::html {
namespace {

constexpr size_t kMostColumns = 400;  // of a line; what is cut off is counted
constexpr int kMostFindings = 12, kMostOfOne = 12;

bool IsLine(const Evidence& e) { return e.line() > 0 && !e.source().empty(); }

void LineText(const std::string& line, Writer* out) {
  size_t cut = line.size();
  if (cut > kMostColumns) {
    cut = kMostColumns;
    while (cut > 0 && (static_cast<unsigned char>(line[cut]) & 0xc0) == 0x80) --cut;
  }
  std::string text = line.substr(0, cut);
  std::replace(text.begin(), text.end(), '\t', ' ');
  while (!text.empty() && text.back() == '\r') text.pop_back();
  *out << text;
  if (cut < line.size()) *out << "<span class=\"cut\"> … " << line.size() - cut << " bytes more</span>";
}

void Excerpt(const Context& c, const Evidence& e, Writer* out) {
  const auto file = c.lines.find(e.source());
  if (file == c.lines.end()) return;
  Writer rows;
  const uint32_t from = e.line() > kAround ? e.line() - kAround : 1;
  for (auto it = file->second.lower_bound(from); it != file->second.end() && it->first <= uint64_t{e.line()} + kAround; ++it) {
    rows << "<span class=\"row" << (it->first == e.line() ? Markup(" cited") : Markup("")) << "\"><span class=\"no\">"
         << it->first << "</span>";
    LineText(it->second, &rows);
    // The newline is what a copy takes.
    rows << "\n</span>";
  }
  if (!rows.empty()) *out << "<pre class=\"excerpt\" tabindex=\"0\">" << rows << "</pre>";
}

// An entry is a row of some table of the record; the evidence does not say of which. True when only an operation's can be meant.
bool OnlyAnOperation(const Context& c, const Evidence& e) {
  const auto process = c.process_of.find(e.rank());
  if (e.row() == 0 || process == c.process_of.end()) return false;
  const trace::Trace& trace = process->second->trace;
  const auto same = [&](const auto& entry) { return entry.row() == e.row(); };
  return std::none_of(trace.edges().begin(), trace.edges().end(), same) &&
         std::none_of(trace.calls().begin(), trace.calls().end(), same) &&
         std::none_of(trace.communicators().begin(), trace.communicators().end(), same);
}

// The operation of a record that a table entry names.
const model::Op* OpAt(const Context& c, const Evidence& e, const model::Communicator** of) {
  if (!OnlyAnOperation(c, e)) return nullptr;
  for (const model::Communicator& communicator : c.job.communicators) {
    for (const model::Member& m : communicator.members) {
      if (m.job_rank != e.rank() || !m.has_record()) continue;
      for (const model::Op& op : m.ops) {
        if (op.raw.row() == e.row()) {
          *of = &communicator;
          return &op;
        }
      }
    }
  }
  return nullptr;
}

std::string Before(const model::Process& process, int64_t ns) {
  if (ns == 0) return "";
  return absl::StrFormat("%.3f s before the end of the record", static_cast<double>(process.trace.written_ns() - ns) / 1e9);
}

void Entry(const Context& c, const Evidence& e, Writer* out) {
  const auto process = c.process_of.find(e.rank());
  const model::Communicator* communicator = nullptr;
  const model::Op* op = OpAt(c, e, &communicator);
  if (process == c.process_of.end() || op == nullptr) return;
  std::vector<std::string> parts = {
      absl::StrCat(op->p2p() ? "call " : "#", op->position(), " ", FuncName(op->raw.func()), " of ", op->raw.count(), " ",
                   trace::DataType_Name(op->raw.datatype()), " in ", communicator->Label()),
      Stage(*op)};
  if (const std::string when = Before(*process->second, op->raw.entered_ns()); !when.empty()) parts.push_back("entered " + when);
  if (const std::string when = Before(*process->second, op->raw.finished_ns()); !when.empty())
    parts.push_back("finished " + when);
  *out << "<p class=\"entry mono small\">" << std::string(absl::StrJoin(parts, "; ")) << "</p>";
}

}  // namespace

LineNumbers LinesWanted(const Diagnosis& diagnosis, const model::Job& job) {
  LineNumbers wanted;
  std::set<std::string> texts;
  for (const model::TextFile& file : job.evidence.files) texts.insert(file.path);
  for (int i = 0; i < diagnosis.findings_size() && i < kMostFindings; ++i) {
    const Finding& f = diagnosis.findings(i);
    for (int j = 0; j < f.evidence_size() && j < kMostOfOne; ++j) {
      const Evidence& e = f.evidence(j);
      if (!IsLine(e) || !texts.contains(e.source())) continue;
      const uint64_t last = uint64_t{e.line()} + kAround;
      for (uint64_t line = e.line() > kAround ? e.line() - kAround : 1; line <= last; ++line)
        wanted[e.source()].insert(static_cast<uint32_t>(line));
    }
  }
  return wanted;
}

Section EvidenceSection(const Context& c) {
  Section section{"evidence", "Evidence", "Evidence, in its place", {}};
  Writer& out = section.body;
  for (int i = 0; i < c.d.findings_size() && i < kMostFindings; ++i) {
    const Finding& f = c.d.findings(i);
    if (f.kind() == Kind::none || f.evidence_size() == 0) continue;
    out << "<details class=\"cites" << (i == 0 ? Markup("\" open") : Markup(" stays\"")) << "><summary>For finding " << i + 1
        << ": " << f.title() << "</summary><ol>";
    for (int j = 0; j < f.evidence_size(); ++j) {
      const Evidence& e = f.evidence(j);
      out << "<li id=\"e" << i + 1 << "-" << j + 1 << "\">" << e.text();
      if (const std::string source = SourceText(e); !source.empty()) out << "<div class=\"source mono\">" << source << "</div>";
      if (j < kMostOfOne && IsLine(e)) Excerpt(c, e, &out);
      if (e.rank() >= 0 && e.line() == 0) {
        Entry(c, e, &out);
        if (const std::string file = SplitSource(e.source()).second; !file.empty())
          out << "<div class=\"muted mono small\">" << file << "</div>";
      }
      out << "</li>";
    }
    out << "</ol></details>";
  }
  return section;
}

}  // namespace ringscope::report::html
