#include "analyzer/report/text.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "analyzer/report/sheet.h"
#include "analyzer/report/style.h"
#include "analyzer/report/words.h"

namespace ringscope::report {
namespace {

// ---- for a terminal
class Terminal {
 public:
  explicit Terminal(const TextOptions& options) : width_(options.width), style_(options.colour) {}

  std::string Title(const Sheet& sheet) const {
    const std::string word = StateWord(sheet.state);
    const std::string plain = Wrapped(absl::StrCat(word, "  "), Printable(sheet.title), width_);
    std::string painted;
    switch (sheet.state) {
      case State::healthy:
        painted = style_.Good(word);
        break;
      case State::recovered:
      case State::unknown:
      case State::slow:
        painted = style_.Warn(word);
        break;
      default:
        painted = style_.Alarm(word);
    }
    std::string rest = plain.substr(word.size() + 2);
    rest.pop_back();
    return absl::StrCat(painted, "  ", style_.Bold(rest), "\n");
  }

  std::string Heading(const Section& section) const {
    if (section.heading.empty()) return "\n";
    std::string text = Wrapped("", Printable(section.heading), width_);
    text.pop_back();
    return absl::StrCat("\n", style_.Bold(text), "\n");
  }

  std::string One(const Line& line) const {
    switch (line.kind) {
      case Line::kPair: {
        std::string key = line.key;
        key.resize(std::max<size_t>(8, key.size() + 1), ' ');
        return Wrapped(key, line.text, width_);
      }
      case Line::kBullet:
        return Wrapped(absl::StrCat("  ", line.key.empty() ? "-" : line.key, " "), line.text, width_);
      case Line::kCommand:
        return absl::StrCat("  $ ", style_.Command(Printable(line.text)), "\n");
      case Line::kState: {
        std::string ranks = Printable(line.key);
        if (ranks.size() > 24) return Wrapped("    ", ranks, width_) + Wrapped("      ", line.text, width_);
        if (ranks.size() < 12) ranks.resize(12, ' ');
        return Wrapped(absl::StrCat("    ", ranks, "  "), line.text, width_);
      }
      case Line::kQuiet: {
        std::string text = Wrapped(absl::StrCat("  ", line.key), line.text, width_);
        text.pop_back();
        return absl::StrCat(style_.Dim(text), "\n");
      }
      default:
        return Wrapped("  ", line.text, width_);
    }
  }

 private:
  int width_;
  Style style_;
};

// ---- for a ticket
// Markdown's own characters in text that is not ours; a line that begins with "#" or ">" is ours alone.
std::string Escaped(const std::string& text) {
  std::string out;
  for (char c : Printable(text)) {
    if (c == '\\' || c == '`' || c == '*' || c == '_' || c == '[' || c == ']' || c == '<' || c == '>' || c == '|' || c == '#' ||
        c == '~')
      out += '\\';
    out += c;
  }
  return out;
}
// As code, whatever backticks it holds.
std::string Code(const std::string& text) {
  const std::string plain = Printable(text);
  size_t longest = 0, run = 0;
  for (char c : plain) longest = std::max(longest, run = c == '`' ? run + 1 : 0);
  const std::string fence(longest + 1, '`');
  return longest > 0 ? absl::StrCat(fence, " ", plain, " ", fence) : absl::StrCat("`", plain, "`");
}

class Markdown {
 public:
  std::string Title(const Sheet& sheet) const {
    return absl::StrCat("### ", StateWord(sheet.state), ": ", Escaped(sheet.title), "\n\n");
  }
  std::string Heading(const Section& section) const {
    return section.heading.empty() ? "\n" : absl::StrCat("\n**", Escaped(section.heading), "**\n\n");
  }
  std::string One(const Line& line) const {
    switch (line.kind) {
      case Line::kPair:
        return absl::StrCat("- **", Escaped(line.key), "**: ", Escaped(line.text), "\n");
      case Line::kBullet: {
        const bool number = !line.key.empty() && line.key.back() == '.';
        return absl::StrCat(number ? line.key : "-", " ", Escaped(line.text), "\n");
      }
      case Line::kState:
        return absl::StrCat("- ", Escaped(line.key), ": ", Escaped(line.text), "\n");
      case Line::kCommand:
        return absl::StrCat("  ", Code(line.text), "  \n");
      default:
        return absl::StrCat(Escaped(line.text), "  \n");
    }
  }
};

template <typename Form>
size_t Height(const Form& form, const Section& section) {
  std::string text = form.Heading(section);
  for (const Line& line : section.lines) text += form.One(line);
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

// The beginning of a long quotation, and where it stands: "…  [file:12]".
void Shorten(Line* line) {
  constexpr size_t kLong = 240, kBegin = 170;
  std::string& text = line->text;
  if (line->kind != Line::kBullet || text.size() <= kLong) return;
  const size_t source = text.back() == ']' ? text.rfind("  [") : text.npos;
  const std::string place = source == text.npos ? "" : text.substr(source);
  if (source != text.npos && source <= kLong) return;
  size_t end = kBegin;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // within a UTF-8 character
  if (const size_t blank = text.rfind(' ', end); blank != text.npos && blank > kBegin / 2) end = blank;
  text = absl::StrCat(text.substr(0, end), " …", place);
}

// Takes the last lines off those sections that can best do without, until the whole fits. What is left out is named.
template <typename Form>
std::string Trim(const Form& form, size_t most, Sheet* sheet) {
  if (most == 0) return "";
  const std::string title = form.Title(*sheet);
  size_t height = static_cast<size_t>(std::count(title.begin(), title.end(), '\n')) + 2;  // the line that says so
  for (const Section& s : sheet->sections) height += Height(form, s);
  if (height <= most + 2) return "";
  height = static_cast<size_t>(std::count(title.begin(), title.end(), '\n')) + 2;
  for (Section& s : sheet->sections) {
    if (s.dispensable > 0) {
      for (Line& line : s.lines) Shorten(&line);
    }
    height += Height(form, s);
  }
  std::vector<std::string> left_out;
  bool sparing = true;  // then no more than a line of each
  while (height > most) {
    Section* loses = nullptr;
    for (Section& s : sheet->sections) {
      const size_t keep = sparing ? s.keep : std::min<size_t>(s.keep, 1);
      if (s.dispensable > 0 && s.lines.size() > keep && (loses == nullptr || s.dispensable > loses->dispensable)) loses = &s;
    }
    if (loses == nullptr && !sparing) break;
    if (loses == nullptr) {
      sparing = false;
      continue;
    }
    height -= Height(form, *loses);
    loses->lines.pop_back();
    // A heading of a part without that part.
    while (!loses->lines.empty() && loses->lines.back().kind == Line::kText && loses->lines.size() > loses->keep)
      loses->lines.pop_back();
    if (std::find(left_out.begin(), left_out.end(), loses->name) == left_out.end()) left_out.push_back(loses->name);
    if (!loses->lines.empty()) height += Height(form, *loses);
  }
  sheet->sections.erase(
      std::remove_if(sheet->sections.begin(), sheet->sections.end(), [](const Section& s) { return s.lines.empty(); }),
      sheet->sections.end());
  return left_out.empty() ? "" : absl::StrCat("More with --verbose: ", absl::StrJoin(left_out, ", "), ".");
}

template <typename Form>
std::string Render(const Form& form, const Diagnosis& diagnosis, const model::Job& job, const TextOptions& options) {
  SheetOptions sheet_options;
  sheet_options.all = options.lines == 0;
  sheet_options.communicators = options.communicators;
  Sheet sheet = MakeSheet(diagnosis, job, sheet_options);
  const std::string left_out = Trim(form, static_cast<size_t>(std::max(options.lines, 0)), &sheet);
  std::string out = form.Title(sheet);
  for (const Section& section : sheet.sections) {
    if (&section != &sheet.sections.front()) out += form.Heading(section);
    for (const Line& line : section.lines) out += form.One(line);
  }
  if (!left_out.empty()) {
    Section foot;
    absl::StrAppend(&out, form.Heading(foot), form.One({Line::kQuiet, "", left_out}));
  }
  return out;
}

}  // namespace

std::string RenderText(const Diagnosis& diagnosis, const model::Job& job, const TextOptions& options) {
  return Render(Terminal(options), diagnosis, job, options);
}
std::string RenderMarkdown(const Diagnosis& diagnosis, const model::Job& job, const TextOptions& options) {
  return Render(Markdown(), diagnosis, job, options);
}

}  // namespace ringscope::report
