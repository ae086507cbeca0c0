#include "analyzer/ingest/crc32c.h"

#include <array>
#include <cstring>

namespace ringscope::ingest {
namespace {

// Eight tables: table k advances a byte that lies k bytes before the end of an 8-byte group.
constexpr auto kTables = [] {
  std::array<std::array<uint32_t, 256>, 8> t{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) ? c >> 1 ^ 0x82f63b78u : c >> 1;
    t[0][i] = c;
  }
  for (uint32_t i = 0; i < 256; ++i) {
    for (size_t k = 1; k < 8; ++k) t[k][i] = t[k - 1][i] >> 8 ^ t[0][t[k - 1][i] & 255];
  }
  return t;
}();

uint32_t Load32(const unsigned char* p) {
  return uint32_t{p[0]} | uint32_t{p[1]} << 8 | uint32_t{p[2]} << 16 | uint32_t{p[3]} << 24;
}

}  // namespace

uint32_t Crc32c(std::string_view data) {
  const auto* p = reinterpret_cast<const unsigned char*>(data.data());
  size_t n = data.size();
  uint32_t crc = ~0u;
  for (; n >= 8; n -= 8, p += 8) {
    const uint32_t low = Load32(p) ^ crc;
    const uint32_t high = Load32(p + 4);
    crc = kTables[7][low & 255] ^ kTables[6][low >> 8 & 255] ^ kTables[5][low >> 16 & 255] ^
          kTables[4][low >> 24] ^ kTables[3][high & 255] ^ kTables[2][high >> 8 & 255] ^
          kTables[1][high >> 16 & 255] ^ kTables[0][high >> 24];
  }
  for (; n > 0; --n, ++p) crc = crc >> 8 ^ kTables[0][(crc ^ *p) & 255];
  return ~crc;
}

}  // namespace ringscope::ingest
