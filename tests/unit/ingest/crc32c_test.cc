#include "analyzer/ingest/crc32c.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace ringscope::ingest {
namespace {

// Bit by bit, as the definition says.
uint32_t Reference(const std::string& data) {
  uint32_t crc = ~0u;
  for (unsigned char byte : data) {
    crc ^= byte;
    for (int i = 0; i < 8; ++i) crc = (crc & 1) ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
  }
  return ~crc;
}

TEST(Crc32c, KnownAnswers) {  // RFC 3720, B.4
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
}

TEST(Crc32c, EqualsTheDefinitionForAllLengths) {
  std::mt19937 random(1);
  std::string data;
  for (int n = 0; n < 300; ++n) {
    EXPECT_EQ(Crc32c(data), Reference(data)) << n;
    data.push_back(static_cast<char>(random()));
  }
}

}  // namespace
}  // namespace ringscope::ingest
