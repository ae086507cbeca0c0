#include "analyzer/ingest/text_line.h"

#include <absl/strings/ascii.h>

#include <cstring>

#include "analyzer/ingest/line_wrappers.h"
#include "analyzer/ingest/scan.h"

namespace ringscope::ingest {
namespace {

// "[36m", "[0;1m", with or without the escape byte before it: its length, or 0.
size_t ColourLength(std::string_view text) {
  size_t i = 0;
  if (i < text.size() && text[i] == '\x1b') ++i;
  if (i >= text.size() || text[i] != '[') return 0;
  size_t j = i + 1;
  while (j < text.size() && (Scan::Digit(text[j]) || text[j] == ';' || text[j] == '?')) ++j;
  if (j >= text.size()) return 0;
  if (i == 1) return Scan::Alpha(text[j]) ? j + 1 : 0;           // any control sequence
  return text[j] == 'm' && j > i + 1 && j - i <= 9 ? j + 1 : 0;  // the escape byte was lost on the way
}

struct Escape {
  const char* text;
  char byte;
};
constexpr Escape kHtml[] = {{"&gt;", '>'}, {"&lt;", '<'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&#39;", '\''}};

bool NeedsWork(std::string_view raw) {
  if (raw.empty()) return false;
  if (memchr(raw.data(), '\x1b', raw.size()) || memchr(raw.data(), '&', raw.size()) || raw[0] == '>') return true;
  // A colour without its escape byte, or "[net_ib.cc:1909](http://net_ib.cc:1909/)".
  for (size_t at = raw.find('['); at != raw.npos; at = raw.find('[', at + 1)) {
    if (ColourLength(raw.substr(at)) > 0) return true;
  }
  return raw.find("](http") != raw.npos;
}

}  // namespace

std::string_view LineCleaner::Plain(std::string_view raw) {
  if (!NeedsWork(raw)) return raw;
  buffer_.clear();
  if (raw.starts_with("> ")) raw.remove_prefix(2);
  for (size_t i = 0; i < raw.size();) {
    if (const size_t n = raw[i] == '\x1b' || raw[i] == '[' ? ColourLength(raw.substr(i)) : 0; n > 0) {
      i += n;
      continue;
    }
    if (raw[i] == '&') {
      bool replaced = false;
      for (const Escape& e : kHtml) {
        if (!raw.substr(i).starts_with(e.text)) continue;
        buffer_ += e.byte;
        i += strlen(e.text);
        replaced = true;
        break;
      }
      if (replaced) continue;
    }
    if (raw[i] == '[') {
      const size_t middle = raw.find("](http", i);
      const size_t close = middle == raw.npos ? raw.npos : raw.find(')', middle);
      if (close != raw.npos && middle - i < 80 && close - middle < 200 &&
          raw.substr(i + 1, middle - i - 1).find('[') == raw.npos) {
        buffer_.append(raw.substr(i + 1, middle - i - 1));
        i = close + 1;
        continue;
      }
    }
    if (raw[i] != '\x1b') buffer_ += raw[i];
    ++i;
  }
  return buffer_;
}

TextLine LineCleaner::Clean(std::string_view raw, model::Where where) {
  TextLine line;
  line.raw = raw;
  line.where = where;
  std::string_view text = Plain(raw);
  text = StripWrappers(text, &line);
  line.text = StripNcclPrefix(text, &line);
  if (line.by.rank < 0) line.by.rank = file_rank_;
  if (line.by.host.empty()) line.by.host = file_host_;
  return line;
}

namespace {

// "gpu-17.rack2.stall.2.stacks.txt": what `ringscope run` collected (supervisor/README.md). The host; empty: another kind of
// name.
std::string_view HostOfEvidence(std::string_view name) {
  for (const std::string_view when : {".start.", ".stall.", ".end."}) {
    const size_t at = name.rfind(when);
    if (at == name.npos || at == 0) continue;
    Scan rest(name.substr(at + when.size()));
    int64_t number = 0;
    if (rest.Number(&number, 1, 6) && !rest.rest.empty()) rest.rest.remove_prefix(1);
    for (const std::string_view what :
         {"nvlink-s", "nvlink-e", "topo-p2p", "smi-q", "infiniband", "kernel", "stacks", "command"}) {
      if (rest.rest.substr(0, what.size()) == what && rest.rest.substr(what.size()) == ".txt") return name.substr(0, at);
    }
  }
  return {};
}

}  // namespace

NameHints HintsOfName(std::string_view path) {
  NameHints hints;
  if (const std::string_view host = HostOfEvidence(path.substr(path.rfind('/') + 1)); !host.empty()) {
    hints.host = std::string(host);
    return hints;
  }
  const std::string name = absl::AsciiStrToLower(std::string(path.substr(path.rfind('/') + 1)));
  const std::string_view original = path.substr(path.rfind('/') + 1);
  if (size_t at = name.find("rank"); at != name.npos) {
    Scan a(std::string_view(name).substr(at + 4));
    if (!a.rest.empty() && (a.rest[0] == '-' || a.rest[0] == '_' || a.rest[0] == '.')) a.rest.remove_prefix(1);
    int64_t rank = 0;
    if (a.Number(&rank, 1, 6) && (a.rest.empty() || !Scan::Alpha(a.rest[0]))) hints.rank = static_cast<int>(rank);
  }
  for (const char* word : {"host", "node", "nodename-", "hostname-"}) {
    const size_t at = name.find(word);
    if (at == name.npos || (at > 0 && Scan::Alpha(name[at - 1]))) continue;
    const std::string_view rest = original.substr(at);
    size_t n = strlen(word);
    // "host7", "hostA", "host-7"; "hostnames" is none.
    if (n + 1 < rest.size() && rest[n] == '-' && Scan::Digit(rest[n + 1])) ++n;
    if (n >= rest.size() || !(Scan::Digit(rest[n]) || (rest[n] >= 'A' && rest[n] <= 'Z'))) continue;
    while (n < rest.size() && (Scan::Digit(rest[n]) || Scan::Alpha(rest[n]))) ++n;
    if (n > strlen(word)) hints.host = std::string(rest.substr(0, n));
    break;
  }
  return hints;
}

}  // namespace ringscope::ingest
