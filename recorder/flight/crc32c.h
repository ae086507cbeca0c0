// CRC-32C (Castagnoli, reflected polynomial 0x82f63b78), the checksum of trace chunks.
#ifndef RINGSCOPE_RECORDER_FLIGHT_CRC32C_H_
#define RINGSCOPE_RECORDER_FLIGHT_CRC32C_H_

#include <stddef.h>
#include <stdint.h>

namespace ringscope::flight {

struct Crc32cTable {
  uint32_t entry[256];
  constexpr Crc32cTable() : entry() {
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int k = 0; k < 8; ++k) c = c & 1 ? 0x82f63b78u ^ c >> 1 : c >> 1;
      entry[i] = c;
    }
  }
};
inline constexpr Crc32cTable kCrc32cTable;

inline uint32_t Crc32c(const void* data, size_t size) {
  const uint8_t* p = static_cast<const uint8_t*>(data);
  uint32_t c = 0xffffffff;
  for (size_t i = 0; i < size; ++i) c = kCrc32cTable.entry[(c ^ p[i]) & 0xff] ^ c >> 8;
  return ~c;
}

}  // namespace ringscope::flight

#endif  // RINGSCOPE_RECORDER_FLIGHT_CRC32C_H_
