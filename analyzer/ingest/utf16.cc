#include "analyzer/ingest/utf16.h"

#include <utility>

namespace ringscope::ingest {
namespace {

void Append(char32_t c, std::string* out) {
  if (c < 0x80) {
    *out += static_cast<char>(c);
  } else if (c < 0x800) {
    *out += {static_cast<char>(0xc0 | c >> 6), static_cast<char>(0x80 | (c & 0x3f))};
  } else if (c < 0x10000) {
    *out += {static_cast<char>(0xe0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3f)), static_cast<char>(0x80 | (c & 0x3f))};
  } else {
    *out += {static_cast<char>(0xf0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 0x3f)),
             static_cast<char>(0x80 | (c >> 6 & 0x3f)), static_cast<char>(0x80 | (c & 0x3f))};
  }
}

}  // namespace

bool LooksLikeUtf16(std::string_view head) {
  // Not UTF-32, whose mark begins alike.
  return (head.starts_with("\xff\xfe") && !head.starts_with(std::string_view("\xff\xfe\0\0", 4))) || head.starts_with("\xfe\xff");
}

Utf16Source::Utf16Source(std::string head, ByteSource* source)
    : pending_(std::move(head)), source_(source), big_endian_(pending_.starts_with("\xfe\xff")) {
  if (LooksLikeUtf16(pending_)) pending_.erase(0, 2);
}

absl::StatusOr<bool> Utf16Source::More(std::string* out) {
  if (pending_.size() < 2) {
    const auto more = source_->More(&pending_);
    if (!more.ok()) return more;
    if (!*more) {
      const bool rest = !pending_.empty() || high_ != 0;
      if (rest) *out += '?';
      pending_.clear();
      high_ = 0;
      return rest;
    }
  }
  Decode(out);
  return true;
}

void Utf16Source::Decode(std::string* out) {
  const auto byte = [&](size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(pending_[i])); };
  size_t i = 0;
  for (; i + 1 < pending_.size(); i += 2) {
    const char32_t unit = big_endian_ ? byte(i) << 8 | byte(i + 1) : byte(i + 1) << 8 | byte(i);
    const bool high = unit >= 0xd800 && unit < 0xdc00, low = unit >= 0xdc00 && unit < 0xe000;
    if (low && high_ != 0) {
      Append(0x10000 + ((high_ - 0xd800) << 10) + (unit - 0xdc00), out);
      high_ = 0;
      continue;
    }
    if (high_ != 0) *out += '?';
    high_ = high ? unit : 0;
    if (low) *out += '?';
    if (!high && !low) Append(unit, out);
  }
  pending_.erase(0, i);
}

}  // namespace ringscope::ingest
