#include "analyzer/scrub/secret_shapes.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <re2/re2.h>

#include <algorithm>

#include "analyzer/scrub/masks.h"

namespace ringscope::scrub {
namespace {

bool Digit(char c) { return c >= '0' && c <= '9'; }
bool Alnum(char c) { return Digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'z'); }
absl::string_view Absl(std::string_view text) { return {text.data(), text.size()}; }

// Random letters and digits change their class at every second character or so; words and symbols do not.
bool RandomLooking(std::string_view run) {
  size_t digits = 0, upper = 0, lower = 0, hex = 0, changes = 0;
  int before = -1;
  for (const char c : run) {
    const int kind = Digit(c) ? 0 : c >= 'A' && c <= 'Z' ? 1 : 2;
    digits += kind == 0;
    upper += kind == 1;
    lower += kind == 2;
    hex += kind == 0 || ((c | 32) >= 'a' && (c | 32) <= 'f');
    changes += before >= 0 && kind != before;
    before = kind;
  }
  if (run.size() >= 32 && hex == run.size() && digits > 3 && digits < run.size()) return true;
  return run.size() >= 24 && digits >= 3 && upper + lower >= 6 && (upper == 0 || lower == 0 ? run.size() >= 32 : true) &&
         changes * 3 >= run.size();
}

constexpr std::string_view kPrefixes[] = {"hf_",    "ghp_", "gho_",     "ghs_",  "ghu_",    "ghr_",      "github_pat_",
                                          "glpat-", "sk-",  "sk_live_", "xoxb-", "xoxp-",   "xoxa-",     "AKIA",
                                          "ASIA",   "eyJ",  "nvapi-",   "AIza",  "ya29.",   "dckr_pat_", "npm_",
                                          "pypi-",  "r8_",  "SG.",      "lsv2_", "gsk_",    "api_org_",  "wandb_v1_",
                                          "tskey-", "hvs.", "pat_",     "dapi",  "dop_v1_", "rk_live_",  "xapp-"};

// Names of secrets. Not NCCL's partition keys, not keys of stores, not a tokenizer's tokens.
const RE2& NamePattern() {
  static const RE2& pattern = *new RE2(
      R"((?i)((?:[a-z0-9]+[_.-])*(?:[a-z0-9]*token|[a-z0-9]*secret|[a-z0-9]*passw(?:or)?d|passphrase|passwort|pass)"
      R"(|pwd|[a-z0-9]*credentials?|authorization|auth|authkey|api[_-]?key|access[_-]?key(?:[_-]?id)?)"
      R"(|secret[_-]?key|private[_-]?key|signing[_-]?key|encryption[_-]?key|ssh[_-]?key|sas|sig|signature)"
      R"(|x-amz-signature|cookie|session[_-]?id|munge[_-]?key|[a-z0-9]+_key)(?:[_-](?:id|value|b64|base64|file|str)"
      R"(|string))?)(\\*["'`]?\s*(?:=>|:=|[=:])\s*\\*["'`]?|\\*["']\s*,\s*\\*["']|\s+))");
  return pattern;
}

// What looks like a name of a secret and is none.
bool InnocentName(std::string_view name) {
  const std::string low = absl::AsciiStrToLower(Absl(name));
  for (const char* start : {"nccl_", "ucx_",   "pkey",     "p_key",    "q_key",  "eos_",   "bos_",     "pad_",   "unk_",
                            "mask_", "cls_",   "sep_",     "num_",     "max_",   "min_",   "special_", "image_", "vocab_",
                            "stop_", "next_",  "input_",   "output_",  "per_",   "rkey",   "lkey",     "image_", "time_per_",
                            "sort_", "group_", "primary_", "foreign_", "cache_", "store_", "dict_",    "state_", "foreign_"})
    if (low.starts_with(start)) return true;
  for (const char* end : {"tokens", "_token_id", "token_id", "token_str", "per_token", "oken_file"})
    if (low.ends_with(end) && low != "access_token_id") return true;
  return low == "pass" || low == "sig" || low == "signature" || low == "sas" || low == "auth";
}

// Of these the value must look like one: they are also ordinary words.
bool WeakName(std::string_view name) {
  const std::string low = absl::AsciiStrToLower(Absl(name));
  return low == "token" || low == "secret" || low == "credential" || low == "credentials" || low == "cookie" ||
         low == "password" || low == "authorization" || low == "session_id" || low == "sessionid";
}

bool Innocent(std::string_view value, bool numbers_count) {
  const std::string low = absl::AsciiStrToLower(Absl(value));
  for (const char* word : {"true",       "false",
                           "none",       "null",
                           "nil",        "yes",
                           "no",         "on",
                           "off",        "unset",
                           "set",        "undefined",
                           "is",         "was",
                           "not",        "for",
                           "in",         "and",
                           "or",         "has",
                           "the",        "***",
                           "****",       "*****",
                           "******",     "********",
                           "[redacted]", "<redacted>",
                           "redacted",   "invalid",
                           "expired",    "missing",
                           "required",   "authentication",
                           "is:",        "error",
                           "file",       "from",
                           "with"})
    if (low == word) return true;
  return !numbers_count && std::all_of(value.begin(), value.end(), [](char c) { return Digit(c) || c == '.'; }) &&
         value.size() < 9;
}

void Names(std::string_view line, std::vector<Span>* spans) {
  absl::string_view rest = Absl(line);
  re2::StringPiece input(rest.data(), rest.size()), name, link;
  while (RE2::FindAndConsume(&input, NamePattern(), &name, &link)) {
    const size_t name_at = static_cast<size_t>(name.data() - line.data());
    const std::string_view name_text = line.substr(name_at, name.size());
    size_t begin = static_cast<size_t>(link.data() - line.data()) + link.size();
    const std::string_view link_text = line.substr(begin - link.size(), link.size());
    if (name_at > 0 && Alnum(line[name_at - 1])) continue;
    const bool blank = std::all_of(link_text.begin(), link_text.end(), [](char c) { return c == ' ' || c == '\t'; });
    // "--token VALUE": only behind dashes, a blank says nothing otherwise.
    const bool option = name_at >= 2 && line.substr(name_at - 2, 2) == "--";
    if (blank && !option) continue;
    if (InnocentName(name_text)) continue;
    const std::string low_name = absl::AsciiStrToLower(Absl(name_text));
    // "Authorization: Bearer X", "token Y".
    for (const std::string_view scheme : {"Bearer ", "bearer ", "Basic ", "basic ", "Token ", "token "}) {
      if (line.substr(begin).starts_with(scheme)) begin += scheme.size();
    }
    const char quote =
        begin > 0 && (line[begin - 1] == '"' || line[begin - 1] == '\'' || line[begin - 1] == '`') ? line[begin - 1] : '\0';
    size_t end = begin;
    if (quote != '\0') {
      const bool escaped = begin >= 2 && line[begin - 2] == '\\';
      while (end < line.size() && line[end] != quote &&
             !(escaped && line[end] == '\\' && end + 1 < line.size() && line[end + 1] == quote))
        ++end;
      if (end < line.size() && end > begin && line[end - 1] == '\\' && !escaped) {
        // A quote inside the value: up to the next that is not escaped.
        while (end < line.size() && (line[end] != quote || line[end - 1] == '\\')) ++end;
      }
    } else {
      while (end < line.size() && line[end] != ' ' && line[end] != '\t' && line[end] != '"' && line[end] != '\'' &&
             line[end] != '&' && line[end] != ',' && line[end] != ';' && line[end] != ')' && line[end] != '}' &&
             line[end] != ']' && line[end] != '<')
        ++end;
    }
    if (end <= begin) continue;
    const std::string_view value = line.substr(begin, end - begin);
    const bool strict = !WeakName(name_text) || option || quote != '\0' || link_text.find('=') != link_text.npos;
    if (Innocent(value, absl::StrContains(low_name, "pass") || absl::StrContains(low_name, "pwd"))) continue;
    if (value[0] == '/' || value[0] == '$' || value[0] == '<' || value[0] == '{' || value[0] == '[')
      continue;  // a file, a variable
    if (!strict && (value.size() < 8 || std::none_of(value.begin(), value.end(), Digit))) continue;
    if (quote != '\0' && WeakName(name_text) && value.find(' ') != value.npos && value.size() > 64) continue;  // a sentence
    spans->push_back({begin, end});
  }
}

void Bearers(std::string_view line, std::vector<Span>* spans) {
  static const RE2& pattern = *new RE2(R"((?i)\b(?:bearer|basic)\s+([A-Za-z0-9+/=._~-]{8,}))");
  re2::StringPiece input(line.data(), line.size()), value;
  while (RE2::FindAndConsume(&input, pattern, &value)) {
    const std::string_view text = line.substr(static_cast<size_t>(value.data() - line.data()), value.size());
    if (std::none_of(text.begin(), text.end(), Digit) && text.find('=') == text.npos && text.size() < 16) continue;
    const size_t begin = static_cast<size_t>(value.data() - line.data());
    spans->push_back({begin, begin + value.size()});
  }
}

// "https://user:password@host": both go; "ssh://git@host": the user is no secret and is looked at as one.
void Urls(std::string_view line, std::vector<Span>* spans) {
  for (size_t at = line.find("://"); at != line.npos; at = line.find("://", at + 3)) {
    const size_t begin = at + 3;
    size_t end = begin, last_at = line.npos, colon = line.npos;
    while (end < line.size() && end - begin < 512 && !absl::ascii_isspace(static_cast<unsigned char>(line[end])) &&
           line[end] != '"' && line[end] != '\'' && line[end] != '<' && line[end] != '>' && line[end] != '/') {
      if (line[end] == '@') last_at = end;
      if (line[end] == ':' && colon == line.npos) colon = end;
      ++end;
    }
    if (last_at == line.npos) {
      // A password may hold a slash: "user:pa/ss@host".
      if (colon == line.npos || (colon + 1 < line.size() && Digit(line[colon + 1]))) continue;
      size_t more = end;
      while (more < line.size() && more - begin < 256 && !absl::ascii_isspace(static_cast<unsigned char>(line[more])) &&
             line[more] != '"' && line[more] != '\'')
        if (line[more++] == '@') last_at = more - 1;
      if (last_at == line.npos) continue;
    }
    if (colon == line.npos || colon > last_at || last_at == begin) {
      if (last_at - begin >= 16) spans->push_back({begin, last_at});  // a token as the user
      continue;
    }
    spans->push_back({begin, last_at});
  }
}

}  // namespace

bool SecretShape(std::string_view word) {
  if (word.size() < 16 || IsMask(word)) return false;
  if (word.starts_with("_Z") || word.starts_with("0x")) return false;  // mangled names of C++, pointers
  for (const std::string_view prefix : kPrefixes) {
    if (!word.starts_with(prefix)) continue;
    const std::string_view rest = word.substr(prefix.size());
    if (rest.size() >= 12 && std::any_of(rest.begin(), rest.end(), Digit)) return true;
    // Some are letters alone: Hugging Face's always, an AWS key id now and then. No word has this length and form.
    const auto upper = [](char c) { return c >= 'A' && c <= 'Z'; };
    const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
    if (rest.size() == 16 && (prefix == "AKIA" || prefix == "ASIA") && std::all_of(rest.begin(), rest.end(), upper)) return true;
    if (rest.size() >= 30 && std::all_of(rest.begin(), rest.end(), [&](char c) { return upper(c) || lower(c); }) &&
        std::any_of(rest.begin(), rest.end(), upper) && std::any_of(rest.begin(), rest.end(), lower))
      return true;
  }
  size_t start = 0;
  for (size_t i = 0; i <= word.size(); ++i) {
    if (i < word.size() && word[i] != '-' && word[i] != '_' && word[i] != '.') continue;
    if (RandomLooking(word.substr(start, i - start))) return true;
    start = i + 1;
  }
  return false;
}

void SecretValues(std::string_view line, std::vector<Span>* spans) {
  spans->clear();
  static const RE2& hint =
      *new RE2(R"((?i)token|secret|passw|passphrase|pwd|credential|auth|key|bearer|basic|sig|sas=|cookie|session|://)");
  if (!RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), hint)) return;
  Names(line, spans);
  Bearers(line, spans);
  Urls(line, spans);
  std::sort(spans->begin(), spans->end(),
            [](const Span& a, const Span& b) { return a.begin != b.begin ? a.begin < b.begin : a.end > b.end; });
  size_t kept = 0;
  for (const Span& s : *spans) {
    if (kept > 0 && s.begin < (*spans)[kept - 1].end) {
      (*spans)[kept - 1].end = std::max((*spans)[kept - 1].end, s.end);
      continue;
    }
    (*spans)[kept++] = s;
  }
  spans->resize(kept);
}

bool KeyBlock::Line(std::string_view line, std::string* out, bool* drop) {
  *drop = false;
  static const RE2& end = *new RE2(R"(-----END [A-Z0-9 ]*-----)");
  static const RE2& body = *new RE2(
      R"(^[\s>|#*"']*(?:[A-Za-z0-9+/=]{8,}|[A-Za-z0-9+/]{1,80}={0,2}|(?:Proc-Type|DEK-Info|Comment|Version): .*)?[\s"',\\n]*$)");
  const re2::StringPiece text(line.data(), line.size());
  if (!inside_) {
    re2::StringPiece input = text, match;
    if (line.find("-----BEGIN") == line.npos) return false;
    static const RE2& found = *new RE2(R"((-----BEGIN [A-Z0-9 ]*(?:PRIVATE KEY|CERTIFICATE|SECRET|KEY BLOCK)[A-Z ]*-----))");
    if (!RE2::FindAndConsume(&input, found, &match)) return false;
    const size_t start = static_cast<size_t>(match.data() - line.data());
    prefix_ = std::string(line.substr(0, start));
    *out = prefix_ + "[key block left out]";
    re2::StringPiece after = input;
    if (RE2::FindAndConsume(&after, end)) {
      *out += std::string(after.data(), after.size());
    } else {
      inside_ = true;
    }
    return true;
  }
  re2::StringPiece after = text;
  if (RE2::FindAndConsume(&after, end)) {
    inside_ = false;
    *out = std::string(after.data(), after.size());
    *drop = out->empty();
    return true;
  }
  // Behind what a launcher puts before a line. Lines of logs between those of the block end it: it was cut short.
  static const RE2& prefixed = *new RE2(R"(^.{0,60}[\]:>|]\s+([A-Za-z0-9+/]{16,}={0,2})\s*$)");
  std::string_view own = line;
  if (!prefix_.empty() && own.starts_with(prefix_)) own.remove_prefix(prefix_.size());
  if (RE2::FullMatch(re2::StringPiece(own.data(), own.size()), body) || RE2::PartialMatch(text, prefixed)) {
    *drop = true;
    return true;
  }
  inside_ = false;
  return false;
}

}  // namespace ringscope::scrub
