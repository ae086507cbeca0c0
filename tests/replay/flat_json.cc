#include "tests/replay/flat_json.h"

#include <charconv>

namespace ringscope::replay {
namespace {

void SkipBlanks(absl::string_view s, size_t& i) {
  while (i < s.size() && (s[i] == ' ' || s[i] == '\t' || s[i] == '\r')) ++i;
}

bool ReadString(absl::string_view s, size_t& i, absl::string_view& out) {
  if (i >= s.size() || s[i] != '"') return false;
  const size_t begin = ++i;
  while (i < s.size() && s[i] != '"') i += s[i] == '\\' ? 2 : 1;
  if (i >= s.size()) return false;
  out = s.substr(begin, i - begin);
  ++i;
  return true;
}

}  // namespace

bool FlatJson::Parse(absl::string_view line) {
  fields_.clear();
  size_t& i = position_;
  i = 0;
  SkipBlanks(line, i);
  if (i >= line.size() || line[i] != '{') return false;
  ++i;
  for (;;) {
    SkipBlanks(line, i);
    absl::string_view key;
    if (!ReadString(line, i, key)) return false;
    SkipBlanks(line, i);
    if (i >= line.size() || line[i] != ':') return false;
    ++i;
    SkipBlanks(line, i);
    if (i >= line.size()) return false;
    Value value;
    if (line[i] == '"') {
      value.kind = Value::kString;
      if (!ReadString(line, i, value.text)) return false;
    } else {
      const size_t begin = i;
      while (i < line.size() && line[i] != ',' && line[i] != '}' && line[i] != ' ') ++i;
      value.text = line.substr(begin, i - begin);
      if (value.text == "null") {
        value.kind = Value::kNull;
      } else if (value.text == "true" || value.text == "false") {
        value.kind = Value::kBool;
      } else {
        double number;
        const auto end = value.text.data() + value.text.size();
        const auto [rest, error] = std::from_chars(value.text.data(), end, number);
        if (error != std::errc() || rest != end) {
          i = begin;
          return false;
        }
        value.kind = Value::kNumber;
      }
    }
    fields_.emplace_back(key, value);
    SkipBlanks(line, i);
    if (i >= line.size()) return false;
    if (line[i] == '}') break;
    if (line[i] != ',') return false;
    ++i;
  }
  ++i;
  SkipBlanks(line, i);
  return i == line.size();
}

const FlatJson::Value* FlatJson::Find(absl::string_view key) const {
  for (const auto& [name, value] : fields_) {
    if (name == key) return &value;
  }
  return nullptr;
}

uint64_t FlatJson::Unsigned(absl::string_view key, uint64_t fallback) const {
  const Value* value = Find(key);
  if (value == nullptr) return fallback;
  absl::string_view text = value->text;
  int base = 10;
  if (value->kind == Value::kString) {
    if (text == "(nil)") return 0;
    if (text.substr(0, 2) != "0x") return fallback;
    text.remove_prefix(2);
    base = 16;
  } else if (value->kind != Value::kNumber) {
    return fallback;
  }
  if (base == 10 && !text.empty() && text[0] == '-') return static_cast<uint64_t>(Signed(key));
  uint64_t number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return result.ec == std::errc() ? number : fallback;
}

int64_t FlatJson::Signed(absl::string_view key, int64_t fallback) const {
  const Value* value = Find(key);
  if (value == nullptr || value->kind != Value::kNumber) return fallback;
  int64_t number = 0;
  const auto result =
      std::from_chars(value->text.data(), value->text.data() + value->text.size(), number);
  return result.ec == std::errc() ? number : fallback;
}

bool FlatJson::True(absl::string_view key) const {
  const Value* value = Find(key);
  return value != nullptr && value->text == "true" && value->kind == Value::kBool;
}

absl::string_view FlatJson::Text(absl::string_view key) const {
  const Value* value = Find(key);
  return value != nullptr && value->kind == Value::kString ? value->text : absl::string_view();
}

}  // namespace ringscope::replay
