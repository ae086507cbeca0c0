#include "analyzer/scrub/address_masks.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace ringscope::scrub {
namespace {

constexpr uint32_t kFirstTop = 240, kOverflowTop = 254;
constexpr uint64_t kGuidMask = 0x020000fffe000000;  // a locally administered EUI-64; the number in the last three bytes

uint64_t Upper(const Address6& a) {
  uint64_t v = 0;
  for (int i = 0; i < 8; ++i) v = v << 8 | a[i];
  return v;
}
uint64_t Lower(const Address6& a) {
  uint64_t v = 0;
  for (int i = 8; i < 16; ++i) v = v << 8 | a[i];
  return v;
}
void Put(Address6* a, int at, uint64_t v) {
  for (int i = 7; i >= 0; --i, v >>= 8) (*a)[at + i] = static_cast<uint8_t>(v);
}

// ::ffff:a.b.c.d, and the RoCE GIDs that are written like it.
bool Embeds4(const Address6& a) {
  return std::all_of(a.begin(), a.begin() + 10, [](uint8_t b) { return b == 0; }) && a[10] == 0xff && a[11] == 0xff;
}

}  // namespace

bool AddressMasks::Stays4(uint32_t a) {
  const uint32_t top = a >> 24;
  return top == 0 || top == 127 || top >= 224 || a >> 16 == 0xa9fe || a >> 16 == 0xac11;
}

uint32_t AddressMasks::Of4(uint32_t address) {
  if (Stays4(address)) return address;
  if (const auto it = v4_.find(address); it != v4_.end()) return it->second;
  uint32_t mask = 0;
  const auto top = tops_.find(static_cast<uint8_t>(address >> 24));
  if (top != tops_.end()) {
    mask = uint32_t{top->second} << 24;
  } else if (tops_.size() < kOverflowTop - kFirstTop) {
    mask = static_cast<uint32_t>(kFirstTop + tops_.size()) << 24;
  } else {
    // Addresses of more than fourteen /8: their nets of /24 are numbered.
    const auto [net, added] = overflow_nets_.try_emplace(address >> 8, overflow_);
    overflow_ += added && overflow_ < 0xffff;
    const uint32_t out = kOverflowTop << 24 | net->second << 8 | (address & 0xff);
    v4_[address] = out;
    return out;
  }
  // The first address below a branch takes the branch 0, the last bit aside: masks then read like .1, .2 of the first net.
  for (int bit = 23; bit >= 0; --bit) {
    const uint64_t prefix = uint64_t{address >> (bit + 1)} << 8 | static_cast<uint64_t>(bit);
    const uint32_t own = address >> bit & 1;
    const auto flip = flips_.find(prefix);
    const uint32_t want = bit == 0 ? 1 : 0;
    mask |= (flip == flips_.end() ? want : own ^ static_cast<uint32_t>(flip->second)) << bit;
  }
  Learn4(address, mask);
  return mask;
}

void AddressMasks::Learn4(uint32_t address, uint32_t mask) {
  v4_[address] = mask;
  tops_[static_cast<uint8_t>(address >> 24)] = static_cast<uint8_t>(mask >> 24);
  for (int bit = 23; bit >= 0; --bit) {
    const uint64_t prefix = uint64_t{address >> (bit + 1)} << 8 | static_cast<uint64_t>(bit);
    flips_[prefix] = ((address ^ mask) >> bit & 1) != 0;
  }
}

uint64_t AddressMasks::OfGuid(uint64_t guid) {
  if (guid == 0 || guid == ~uint64_t{0} || guid >> 24 == kGuidMask >> 24) return guid;
  const auto [it, added] = guids_.try_emplace(guid, guids_.size() + 1);
  return kGuidMask | (it->second & 0xffffff);
}

Address6 AddressMasks::Of6(const Address6& a) {
  Address6 out = a;
  if (Embeds4(a)) {
    const uint32_t v4 = uint32_t{a[12]} << 24 | uint32_t{a[13]} << 16 | uint32_t{a[14]} << 8 | a[15];
    const uint32_t mask = Of4(v4);
    for (int i = 0; i < 4; ++i) out[12 + i] = static_cast<uint8_t>(mask >> (24 - 8 * i));
    return out;
  }
  const uint64_t upper = Upper(a), lower = Lower(a);
  const bool local = a[0] == 0xfe && (a[1] & 0xc0) == 0x80;
  if (a[0] == 0xff || (upper == 0 && lower <= 1) || upper >> 32 == 0x20010db8) return out;
  // Small numbers below fe80 (gateways, and masks) say nothing of a machine.
  if (local && lower < 0x10000) return out;
  Put(&out, 8, upper == 0 || lower < 0x10000 ? lower : OfGuid(lower));
  if (local || upper == 0) return out;
  const auto net48 = nets48_.try_emplace(upper >> 16, static_cast<uint32_t>(nets48_.size() + 1)).first->second;
  auto [net64, added] = nets64_.try_emplace(upper, 0);
  if (added) net64->second = ++net_count_[upper >> 16];
  Put(&out, 0, uint64_t{0x20010db8} << 32 | uint64_t{net48 & 0xffff} << 16 | (net64->second & 0xffff));
  v6_.try_emplace(std::string(a.begin(), a.end()), std::string(out.begin(), out.end()));
  return out;
}

std::string AddressMasks::Save() const {
  std::vector<std::string> lines;
  for (const auto& [original, mask] : v4_) lines.push_back(absl::StrFormat("ip4\t%08x\t%08x", mask, original));
  for (const auto& [net, number] : overflow_nets_) lines.push_back(absl::StrFormat("ip4-net\t%x\t%x", number, net));
  for (const auto& [guid, number] : guids_) lines.push_back(absl::StrFormat("interface\t%x\t%x", number, guid));
  for (const auto& [net, number] : nets48_) lines.push_back(absl::StrFormat("ip6-48\t%x\t%x", number, net));
  for (const auto& [net, number] : nets64_) lines.push_back(absl::StrFormat("ip6-64\t%x\t%x", number, net));
  std::sort(lines.begin(), lines.end());
  std::string out;
  for (const std::string& line : lines) absl::StrAppend(&out, line, "\n");
  return out;
}

bool AddressMasks::Load(const std::string& kind, const std::string& mask_text, const std::string& original_text) {
  uint64_t mask = 0, original = 0;
  if (!absl::SimpleHexAtoi(mask_text, &mask) || !absl::SimpleHexAtoi(original_text, &original)) return false;
  const auto number = static_cast<uint32_t>(mask);
  if (kind == "ip4") {
    if (mask >> 24 == kOverflowTop) {
      v4_[static_cast<uint32_t>(original)] = number;
      return true;
    }
    if (mask >> 24 < kFirstTop || mask > UINT32_MAX || Stays4(static_cast<uint32_t>(original))) return false;
    Learn4(static_cast<uint32_t>(original), number);
  } else if (kind == "ip4-net") {
    overflow_nets_[static_cast<uint32_t>(original)] = number;
    overflow_ = std::max(overflow_, std::min(number + 1, uint32_t{0xffff}));
  } else if (kind == "interface") {
    guids_[original] = mask;
  } else if (kind == "ip6-48") {
    nets48_[original] = number;
  } else if (kind == "ip6-64") {
    nets64_[original] = number;
    net_count_[original >> 16] = std::max(net_count_[original >> 16], number);
  } else {
    return false;
  }
  return true;
}

}  // namespace ringscope::scrub
