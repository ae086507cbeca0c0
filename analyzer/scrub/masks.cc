#include "analyzer/scrub/masks.h"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <vector>

namespace ringscope::scrub {
namespace {

constexpr std::string_view kWords[] = {"host", "domain", "user", "dir", "file", "job", "secret", "name", "serial"};
constexpr size_t kWordKinds = std::size(kWords);
constexpr std::string_view kTags[] = {"host", "domain", "user",       "dir",  "file", "job", "secret",
                                      "name", "serial", "job-number", "uuid", "guid", "mac"};
constexpr std::string_view kHead = "ringscope scrub map 1";
constexpr uint64_t kJobNumbers = 900000000, kMostNumber = 99999999;

// The kind and number of a mask of a word; false: it is none.
bool Parse(std::string_view word, size_t* kind, uint64_t* number) {
  if (word.ends_with(".example")) word.remove_suffix(8);
  const size_t dash = word.rfind('-');
  if (dash == word.npos || dash + 1 == word.size() || word.size() - dash > 9 || word[dash + 1] == '0') return false;
  for (*kind = 0; *kind < kWordKinds; ++*kind) {
    if (word.substr(0, dash) == kWords[*kind])
      return std::all_of(word.begin() + dash + 1, word.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
             absl::SimpleAtoi(absl::string_view(word.data() + dash + 1, word.size() - dash - 1), number);
  }
  return false;
}

bool FoldsCase(Kind kind) { return kind == Kind::kHost || kind == Kind::kDomain || kind >= Kind::kUuid; }

std::string Key(Kind kind, std::string_view original) {
  const absl::string_view text(original.data(), original.size());
  return FoldsCase(kind) ? absl::AsciiStrToLower(text) : std::string(original);
}

// Of the fixed forms: masks are told by their first digits.
bool IsFormMask(Kind kind, std::string_view original) {
  switch (kind) {
    case Kind::kJobNumber:
      return original.size() == 9 && original.starts_with("9000");
    case Kind::kUuid:
      return original.starts_with("00000000-0000-0000-0000-");
    case Kind::kGuid:
      return original.starts_with("020000fffe");
    case Kind::kMac:
      return original.starts_with("02:00:00:");
    default:
      return false;
  }
}

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\\\";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

std::string Unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char c = text[++i];
    out += c == 't' ? '\t' : c == 'n' ? '\n' : c;
  }
  return out;
}

}  // namespace

bool IsMask(std::string_view word) {
  size_t kind = 0;
  uint64_t number = 0;
  return Parse(word, &kind, &number);
}

std::string Masks::Text(Kind kind, uint64_t n) {
  switch (kind) {
    case Kind::kDomain:
      return absl::StrCat("domain-", n, ".example");
    case Kind::kJobNumber:
      return absl::StrCat(kJobNumbers + n % 100000);
    case Kind::kUuid:
      return absl::StrFormat("00000000-0000-0000-0000-%012u", n);
    case Kind::kGuid:
      return absl::StrFormat("020000fffe%06x", n & 0xffffff);
    case Kind::kMac:
      return absl::StrFormat("02:00:00:%02x:%02x:%02x", n >> 16 & 255, n >> 8 & 255, n & 255);
    default:
      return absl::StrCat(absl::string_view(kWords[static_cast<size_t>(kind)].data(), kWords[static_cast<size_t>(kind)].size()),
                          "-", n);
  }
}

std::string Masks::Of(Kind kind, std::string_view original) {
  if (original.empty() || IsMask(original) || IsFormMask(kind, original)) return std::string(original);
  const size_t k = static_cast<size_t>(kind);
  const auto [it, added] = map_[k].try_emplace(Key(kind, original), 0);
  if (added) {
    do ++last_[k];
    while (reserved_[k].contains(last_[k]));
    it->second = last_[k];
  }
  return Text(kind, it->second);
}

std::string Masks::Known(Kind kind, std::string_view original) const {
  const auto& map = map_[static_cast<size_t>(kind)];
  const auto it = map.find(Key(kind, original));
  return it == map.end() ? std::string() : Text(kind, it->second);
}

void Masks::Reserve(std::string_view text) {
  for (size_t at = text.find('-'); at != text.npos; at = text.find('-', at + 1)) {
    size_t start = at, end = at + 1;
    while (start > 0 && absl::ascii_islower(static_cast<unsigned char>(text[start - 1])) && at - start < 8) --start;
    while (end < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[end])) && end - at < 9) ++end;
    size_t kind = 0;
    uint64_t number = 0;
    if (end > at + 1 && Parse(text.substr(start, end - start), &kind, &number) && number <= kMostNumber)
      reserved_[kind].insert(number);
  }
}

std::string Masks::Save() const {
  std::string out = absl::StrCat(absl::string_view(kHead.data(), kHead.size()), "\n");
  for (size_t k = 0; k < map_.size(); ++k) {
    std::vector<std::pair<uint64_t, std::string_view>> sorted;
    for (const auto& [original, number] : map_[k]) sorted.emplace_back(number, original);
    std::sort(sorted.begin(), sorted.end());
    for (const auto& [number, original] : sorted)
      absl::StrAppend(&out, absl::string_view(kTags[k].data(), kTags[k].size()), "\t", number, "\t", Escaped(original), "\n");
  }
  return out + addresses_.Save();
}

absl::Status Masks::Load(std::string_view text, const std::string& name) {
  size_t line_number = 0;
  for (const absl::string_view line : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    ++line_number;
    const auto bad = [&](absl::string_view what) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": line ", line_number, ": ", what, "; give a file that --map wrote, or the name of a new one"));
    };
    if (line_number == 1) {
      if (std::string_view(line.data(), line.size()) != kHead) return bad("not a map of `ringscope scrub`");
      continue;
    }
    if (line.empty()) continue;
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits('\t', 2));
    uint64_t number = 0;
    if (parts.size() != 3) return bad("no three columns");
    const auto tag = std::find(std::begin(kTags), std::end(kTags), parts[0]);
    if (tag == std::end(kTags)) {
      if (!addresses_.Load(parts[0], parts[1], parts[2])) return bad("no kind and address that is known");
      continue;
    }
    if (!absl::SimpleAtoi(parts[1], &number) || number == 0 || number > kMostNumber) return bad("no number of a mask");
    const size_t k = static_cast<size_t>(tag - std::begin(kTags));
    map_[k][Unescaped(parts[2])] = number;
    last_[k] = std::max(last_[k], number);
  }
  return line_number < 2 ? absl::InvalidArgumentError(absl::StrCat(name, ": line 1: empty; give the name of a new file"))
                         : absl::OkStatus();
}

}  // namespace ringscope::scrub
