// Masks of IPv4 and IPv6 addresses that keep what a reader reasons with: which of them lie in one net.
//
// IPv4: two addresses that share k leading bits have masks that share k leading bits, from the first octet's end on; the first
// octet becomes one of 240 to 254 (reserved, so no address of a real machine, and a mask is known by it). Addresses that say
// nothing of anybody stay: 0/8, 127/8, 169.254/16, 172.17/16 (Docker's own bridge), from 224 on. IPv6: the upper 64 bits become
// one of 2001:db8::/32, nets of one /48 stay in one /48; fe80 stays, the lower 64 bits become a number. Embedded IPv4 becomes its
// mask.
#ifndef RINGSCOPE_ANALYZER_SCRUB_ADDRESS_MASKS_H_
#define RINGSCOPE_ANALYZER_SCRUB_ADDRESS_MASKS_H_

#include <absl/container/flat_hash_map.h>

#include <array>
#include <cstdint>
#include <string>

namespace ringscope::scrub {

using Address6 = std::array<uint8_t, 16>;

class AddressMasks {
 public:
  uint32_t Of4(uint32_t address);  // host byte order
  Address6 Of6(const Address6& address);
  // The lower half of a GID, a port's GUID: 64 bits; the same number for the same GUID wherever it stands.
  uint64_t OfGuid(uint64_t guid);

  size_t count4() const { return v4_.size(); }
  size_t count6() const { return v6_.size(); }

  std::string Save() const;  // lines "ip4\tMASK\tORIGINAL"
  bool Load(const std::string& kind, const std::string& mask, const std::string& original);

 private:
  static bool Stays4(uint32_t address);
  void Learn4(uint32_t address, uint32_t mask);

  absl::flat_hash_map<uint32_t, uint32_t> v4_;
  // (leading bits, their count) of an original: whether the next bit is turned over in the mask.
  absl::flat_hash_map<uint64_t, bool> flips_;
  absl::flat_hash_map<uint8_t, uint8_t> tops_;  // first octet
  uint32_t overflow_ = 0;                       // nets of /24 whose first octet found no mask of its own
  absl::flat_hash_map<uint32_t, uint32_t> overflow_nets_;
  absl::flat_hash_map<uint64_t, uint32_t> nets48_, nets64_;
  absl::flat_hash_map<uint64_t, uint32_t> net_count_;  // of a /48
  absl::flat_hash_map<uint64_t, uint64_t> guids_;
  absl::flat_hash_map<std::string, std::string> v6_;  // for the count and the map
};

}  // namespace ringscope::scrub

#endif  // RINGSCOPE_ANALYZER_SCRUB_ADDRESS_MASKS_H_
