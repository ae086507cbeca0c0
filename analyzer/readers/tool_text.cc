#include "analyzer/readers/tool_text.h"

#include <absl/strings/ascii.h>
#include <re2/re2.h>

#include <algorithm>
#include <cctype>

#include "analyzer/ingest/scan.h"
#include "analyzer/model/views.h"

namespace ringscope::ingest {
namespace {

re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

constexpr const char* kHeading =
    R"(^\s*(?:[=*#-]{2,}|#)\s*(?:(?:on|host|node|hostname|from)[ :=]+)?([A-Za-z][\w.-]*\d[\w.-]*|[\d.]{7,15})\s*)"
    R"((?:\([^)]*\)|[:,]?\s*\w{0,12})?\s*[=*#:-]*\s*$)";
constexpr const char* kPrompt = R"(^\s*\[?[\w.-]+@([A-Za-z0-9][\w.-]*)[: ][^#$]*\]?[#$] *(\S.*)?$)";

// Devices, tools and the like that a heading may name without meaning a host.
bool NoHost(std::string_view name) {
  static const RE2& known = *new RE2(
      R"((?i)^(?:mlx\d.*|eth\d.*|en[a-z0-9]*\d.*|ib\d.*|bond\d.*|gpu\d.*|lo|port\d.*|rank\d.*|link\d.*|ca\d*|v?\d+(?:\.\d+){0,2}|)"
      R"(hfi\d.*|bnxt.*|irdma.*|rdma.*|cuda\d.*|nccl\d.*|step\d.*|run\d.*|t\d+)$)");
  return RE2::PartialMatch(Piece(name), known);
}

}  // namespace

const std::vector<std::string>& HostOfOutput::Triggers() {
  static const auto& triggers = *new std::vector<std::string>{kHeading, kPrompt};
  return triggers;
}

bool HostOfOutput::Heading(const TextLine& line) {
  static const RE2& heading = *new RE2(kHeading);
  static const RE2& prompt = *new RE2(kPrompt);
  std::string name;
  if (RE2::PartialMatch(Piece(line.text), prompt, &name)) {
    host_ = name;
    return true;
  }
  if (!RE2::PartialMatch(Piece(line.text), heading, &name)) return false;
  if (!NoHost(name)) host_ = name;
  return true;
}

model::Speaker HostOfOutput::Whose(const TextLine& line) const {
  model::Speaker by = line.by;
  if (!host_.empty()) by.host = host_;
  return by;
}

std::string_view HostOfOutput::Strip(const TextLine& line, model::Speaker* by) {
  *by = Whose(line);
  std::string_view text = line.text;
  Scan scan(text);
  const std::string_view name = scan.While(Scan::HostChar);
  const bool like_a_host = Contains(name, "-") || std::any_of(name.begin(), name.end(), Scan::Digit);
  if (name.size() > 1 && like_a_host && scan.Literal(": ") && !NoHost(name)) {
    by->host = name;
    return scan.rest;
  }
  return text;
}

std::string LowerText(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

std::optional<uint64_t> LeadingNumber(std::string_view text) {
  uint64_t value = 0;
  size_t digits = 0;
  for (const char c : text) {
    if (Scan::Digit(c)) {
      if (++digits > 19) return std::nullopt;
      value = value * 10 + static_cast<uint64_t>(c - '0');
    } else if (c != ',' || digits == 0) {
      break;
    }
  }
  if (digits == 0) return std::nullopt;
  return value;
}

std::optional<uint64_t> SizeOf(std::string_view text, uint64_t unit) {
  Scan scan(text);
  int64_t whole = 0, part = 0;
  if (!scan.Number(&whole, 1, 12)) return std::nullopt;
  double value = static_cast<double>(whole);
  if (Scan fraction = scan; fraction.Char('.')) {
    const size_t before = fraction.rest.size();
    if (fraction.Number(&part, 1, 6)) {
      double scale = 1;
      for (size_t i = before - fraction.rest.size(); i > 0; --i) scale *= 10;
      value += static_cast<double>(part) / scale;
      scan = fraction;
    }
  }
  double factor = static_cast<double>(unit);
  if (!scan.rest.empty()) {
    static constexpr std::string_view kUnits = "KMGTP";
    const char letter = static_cast<char>(std::toupper(static_cast<unsigned char>(scan.rest[0])));
    const size_t at = kUnits.find(letter);
    if (at != kUnits.npos) {
      factor = 1024;
      for (size_t i = 0; i < at; ++i) factor *= 1024;
    } else if (letter == 'B') {
      factor = 1;
    } else {
      return std::nullopt;
    }
  }
  const double bytes = value * factor;
  if (!(bytes < 9e18)) return std::nullopt;
  return static_cast<uint64_t>(bytes);
}

std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  size_t i = 0;
  while (i < text.size()) {
    while (i < text.size() && (text[i] == ' ' || text[i] == '\t')) ++i;
    const size_t start = i;
    while (i < text.size() && text[i] != ' ' && text[i] != '\t') ++i;
    if (i > start) words.push_back(text.substr(start, i - start));
  }
  return words;
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

}  // namespace ringscope::ingest
