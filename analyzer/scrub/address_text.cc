#include "analyzer/scrub/address_text.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_format.h>
#include <arpa/inet.h>

#include <algorithm>
#include <cctype>

namespace ringscope::scrub {
namespace {

bool Digit(char c) { return c >= '0' && c <= '9'; }
bool Hex(char c) { return Digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'f'); }
bool Word(char c) { return Digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_'; }
char Next(std::string_view text, size_t at) { return at < text.size() ? text[at] : '\0'; }

// "cudnn 8.9.2.26", "nvidia-cublas-cu12==12.1.3.1", "version: 2.21.5.1", "release-25.04.1.0".
bool AfterVersionWord(std::string_view text, size_t at) {
  std::string before = absl::AsciiStrToLower(absl::string_view(text.data(), at).substr(at > 32 ? at - 32 : 0));
  if (before.ends_with("==") || before.ends_with(">=") || before.ends_with("<=") || before.ends_with("~=")) return true;
  while (!before.empty() && !Word(before.back())) before.pop_back();
  size_t start = before.size();
  while (start > 0 && (Word(before[start - 1]) || before[start - 1] == '-')) --start;
  const std::string word = before.substr(start);
  if (word == "v") return true;
  for (const char* part : {"version", "cudnn", "cublas", "cufft", "curand", "cusolver", "cusparse", "nvjitlink", "nvtx", "nccl",
                           "firmware", "release", "driver", "cuda", "runtime", "-cu1", "torch", "ofed", "vbios"}) {
    if (absl::StrContains(word, part)) return true;
  }
  return false;
}

size_t Ip4At(std::string_view text, size_t at, Masks* masks, std::string* mask) {
  uint32_t address = 0;
  size_t i = at;
  for (int part = 0; part < 4; ++part) {
    if (part > 0 && Next(text, i++) != '.') return 0;
    uint32_t value = 0;
    const size_t start = i;
    while (Digit(Next(text, i)) && i - start < 3) value = value * 10 + static_cast<uint32_t>(text[i++] - '0');
    if (i == start || value > 255 || (i - start > 1 && text[start] == '0')) return 0;
    address = address << 8 | value;
  }
  const char next = Next(text, i);
  if (Word(next) || (next == '.' && Digit(Next(text, i + 1))) || AfterVersionWord(text, at)) return 0;
  const uint32_t out = masks->addresses().Of4(address);
  *mask = absl::StrFormat("%u.%u.%u.%u", out >> 24, out >> 16 & 255, out >> 8 & 255, out & 255);
  return i - at;
}

std::string Written(const Address6& address, std::string_view like) {
  const bool upper = std::any_of(like.begin(), like.end(), [](char c) { return c >= 'A' && c <= 'F'; });
  std::string out;
  // All eight groups of four digits, as GIDs are written; else the short form.
  if (like.size() == 39) {
    for (int i = 0; i < 16; i += 2) out += absl::StrFormat("%s%02x%02x", i == 0 ? "" : ":", address[i], address[i + 1]);
  } else {
    char buffer[INET6_ADDRSTRLEN];
    out = inet_ntop(AF_INET6, address.data(), buffer, sizeof(buffer));
  }
  if (upper) absl::AsciiStrToUpper(&out);
  return out;
}

std::string MaskOfMac(std::string_view mac, Masks* masks) {
  if (mac == "00:00:00:00:00:00" || absl::EqualsIgnoreCase(absl::string_view(mac.data(), mac.size()), "ff:ff:ff:ff:ff:ff"))
    return std::string(mac);
  return masks->Of(Kind::kMac, mac);
}

std::string MaskOfGuid(std::string_view digits, Masks* masks) {
  uint64_t guid = 0;
  if (!absl::SimpleHexAtoi(absl::string_view(digits.data(), digits.size()), &guid)) return std::string(digits);
  return absl::StrFormat("%016x", masks->addresses().OfGuid(guid));
}

// Hexadecimal groups between colons.
size_t ColonsAt(std::string_view text, size_t at, Masks* masks, std::string* mask) {
  size_t end = at;
  while (Hex(Next(text, end)) || Next(text, end) == ':' || Next(text, end) == '.') ++end;
  while (end > at && (text[end - 1] == '.' || (text[end - 1] == ':' && !(end - at > 2 && text[end - 2] == ':')))) --end;
  if (end <= at + 1 || Word(Next(text, end)) || end - at > 64) return 0;
  const std::string_view run = text.substr(at, end - at);
  const auto colons = static_cast<size_t>(std::count(run.begin(), run.end(), ':'));
  const bool pairs = colons >= 5 && run.size() == colons * 3 + 2 && run.find("::") == run.npos;
  if (pairs && (colons == 5 || colons == 19)) {
    bool even = true;
    for (size_t i = 0; i < run.size(); ++i) even = even && (run[i] == ':') == (i % 3 == 2);
    if (even && colons == 5) {
      *mask = MaskOfMac(run, masks);
      return run.size();
    }
    // IPoIB: flags and queue pair, the net, the port's GUID.
    if (even) {
      std::string digits(run.substr(36));
      digits.erase(std::remove(digits.begin(), digits.end(), ':'), digits.end());
      const std::string guid = MaskOfGuid(digits, masks);
      *mask = std::string(run.substr(0, 36));
      for (int i = 0; i < 8; ++i) *mask += (i > 0 ? ":" : "") + guid.substr(static_cast<size_t>(2 * i), 2);
      return run.size();
    }
  }
  // "7cfe:9003:00a4:1b3e" of ibv_devinfo.
  if (colons == 3 && run.size() == 19 && run[4] == ':' && run[9] == ':' && run[14] == ':') {
    std::string digits(run);
    digits.erase(std::remove(digits.begin(), digits.end(), ':'), digits.end());
    const std::string guid = MaskOfGuid(digits, masks);
    *mask = guid.substr(0, 4) + ":" + guid.substr(4, 4) + ":" + guid.substr(8, 4) + ":" + guid.substr(12);
    return run.size();
  }
  if (colons < 2 || (colons != 7 && run.find("::") == run.npos)) return 0;
  Address6 address;
  if (inet_pton(AF_INET6, std::string(run).c_str(), address.data()) != 1) return 0;
  // "dead::beef" may be C++: short ones count with the leading bits of real nets only.
  const bool known_net = (address[0] & 0xe0) == 0x20 || (address[0] & 0xfe) == 0xfc || address[0] == 0xfe;
  const bool digits = std::any_of(run.begin(), run.end(), Digit);
  if (colons < 7 && (!known_net || !digits) && run.find('.') == run.npos) return 0;
  const Address6 out = masks->addresses().Of6(address);
  *mask = out == address ? std::string(run) : Written(out, run);
  return run.size();
}

size_t UuidAt(std::string_view text, size_t at, Masks* masks, std::string* mask) {
  if (text.size() - at < 36) return 0;
  for (size_t i = 0; i < 36; ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[at + i] != '-' : !Hex(text[at + i])) return 0;
  }
  if (Hex(Next(text, at + 36))) return 0;
  *mask = masks->Of(Kind::kUuid, text.substr(at, 36));
  return 36;
}

// "0x7cfe900300a41b3e" behind a word with "guid" in it, "H-7cfe900300a41b3e" of ibnetdiscover. Sixteen digits are also NCCL's
// hashes and pointers, which stay.
size_t GuidAt(std::string_view text, size_t at, Masks* masks, std::string* mask) {
  size_t digits = 0, prefix = 0;
  if (text.substr(at, 2) == "0x") prefix = 2;
  while (Hex(Next(text, at + prefix + digits))) ++digits;
  if (digits < 12 || digits > 16 || Word(Next(text, at + prefix + digits))) return 0;
  const std::string before = absl::AsciiStrToLower(absl::string_view(text.data(), at).substr(at > 24 ? at - 24 : 0));
  const bool named = absl::StrContains(before, "guid");
  const bool node = prefix == 0 && digits == 16 && at >= 2 && text[at - 1] == '-' &&
                    absl::StrContains("SHR", text.substr(at - 2, 1).data()[0]) && (at == 2 || !Word(text[at - 3]));
  if (!named && !node) return 0;
  const std::string guid = MaskOfGuid(text.substr(at + prefix, digits), masks);
  if (absl::StrContains(before, "guid") && guid == std::string(text.substr(at + prefix, digits))) return 0;
  *mask = std::string(text.substr(at, prefix)) + guid;
  return prefix + digits;
}

}  // namespace

size_t MaskAddressAt(std::string_view text, size_t at, Masks* masks, std::string* mask) {
  const char c = text[at];
  if (!Hex(c) && c != ':') return 0;
  if (Digit(c)) {
    if (const size_t n = Ip4At(text, at, masks, mask); n > 0) return n;
  }
  if (Hex(c)) {
    if (const size_t n = UuidAt(text, at, masks, mask); n > 0) return n;
    if (const size_t n = GuidAt(text, at, masks, mask); n > 0) return n;
  }
  return ColonsAt(text, at, masks, mask);
}

}  // namespace ringscope::scrub
