#include "tools/man_page.h"

#include <algorithm>

namespace ringscope::tools {
namespace {

// Text of one line as roff: nothing in it is a request or an escape. Hyphens that are typed stay hyphens.
std::string Escaped(const std::string& text) {
  std::string out;
  if (!text.empty() && (text[0] == '.' || text[0] == '\'')) out += "\\&";
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '`' || c == '\'') {
      out += c == '`' ? "\\(ga" : "\\(aq";
    } else {
      out += c;
    }
  }
  return out;
}

std::string Upper(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  return text;
}

// Paragraphs are filled; a paragraph with an indented line stays as it is.
std::string Paragraphs(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t blank = std::min(text.find("\n\n", at), text.size());
    const std::string paragraph = text.substr(at, blank - at);
    const bool kept = paragraph.rfind("  ", 0) == 0 || paragraph.find("\n  ") != std::string::npos;
    out += kept ? ".PP\n.nf\n" : ".PP\n";
    for (size_t line = 0; line <= paragraph.size();) {
      const size_t end = std::min(paragraph.find('\n', line), paragraph.size());
      if (end > line) out += Escaped(paragraph.substr(line, end - line)) + "\n";
      line = end + 1;
    }
    if (kept) out += ".fi\n";
    at = blank + 2;
    while (at < text.size() && text[at] == '\n') ++at;
  }
  return out;
}

std::string Title(const std::string& name, const std::string& version, const std::string& summary) {
  return ".\\\" Made from the program's --help.\n.TH " + Upper(name) + " 1 \"\" \"ringscope " + version +
         "\" \"Ringscope\"\n.nh\n.ad l\n.SH NAME\n" + Escaped(name) + " \\- " + Escaped(summary) + "\n";
}

}  // namespace

std::string ManPage(const Command& command, const std::string& version) {
  const std::string name = std::string("ringscope-") + command.name;
  std::string out = Title(name, version, command.summary);
  out += ".SH SYNOPSIS\n.B ringscope " + std::string(command.name) + "\n" + Escaped(command.synopsis) + "\n";
  out += ".SH DESCRIPTION\n" + Paragraphs(command.help);
  if (!command.flags.empty()) out += ".SH OPTIONS\n";
  for (const Flag& flag : command.flags) {
    std::string values;
    for (const char* choice : flag.choices) values += (values.empty() ? "" : "|") + std::string(choice);
    out += ".TP\n.B " + Escaped(std::string("--") + flag.name + "=" + (values.empty() ? flag.value : values)) + "\n";
    out += Escaped(flag.meaning);
    if (flag.default_value[0] != 0) out += Escaped(std::string(" (default ") + flag.default_value + ")");
    out += "\n";
  }
  return out + ".SH SEE ALSO\n.BR ringscope (1)\n";
}

std::string ManPage(const std::vector<const Command*>& commands, const std::string& help, const std::string& version) {
  const size_t first = std::min(help.find("\n\n"), help.size());
  std::string out = Title("ringscope", version, "who failed first in a distributed GPU job that hangs, crashes or is slow");
  out += ".SH SYNOPSIS\n.B ringscope\nCOMMAND ...\n.SH DESCRIPTION\n" + Paragraphs(help.substr(0, first));
  out += ".SH COMMANDS\n";
  for (const Command* command : commands) {
    out += ".TP\n.BR " + Escaped(std::string("ringscope-") + command->name) + " (1)\n" + Escaped(command->summary) + "\n";
  }
  // What stands behind the list of commands, which is above already.
  const size_t list = help.rfind(std::string("  ") + commands.back()->name);
  const size_t rest = list == help.npos ? help.size() : help.find("\n\n", list);
  if (rest < help.size()) out += ".SH NOTES\n" + Paragraphs(help.substr(rest + 2));
  out += ".SH SEE ALSO\n";
  for (const Command* command : commands) {
    out += ".BR " + Escaped(std::string("ringscope-") + command->name) + " (1)" + (command == commands.back() ? "\n" : ",\n");
  }
  return out;
}

}  // namespace ringscope::tools
