#include "analyzer/scrub/masks.h"

#include <gtest/gtest.h>

#include <random>

namespace ringscope::scrub {
namespace {

int SharedBits(uint32_t a, uint32_t b) { return a == b ? 32 : __builtin_clz(a ^ b); }

TEST(AddressMasks, ShareAsManyBitsAsTheOriginals) {
  AddressMasks masks;
  std::mt19937 random(7);
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  for (int i = 0; i < 400; ++i) {
    const uint32_t address = 10u << 24 | (random() % 3) << 16 | (random() % 9) << 8 | random() % 256;
    pairs.emplace_back(address, masks.Of4(address));
  }
  for (const auto& [a, mask_a] : pairs) {
    EXPECT_EQ(mask_a, masks.Of4(a));
    EXPECT_EQ(mask_a, masks.Of4(mask_a)) << "a mask is its own";
    EXPECT_GE(mask_a >> 24, 240u);
    for (const auto& [b, mask_b] : pairs) {
      ASSERT_EQ(SharedBits(a, b), SharedBits(mask_a, mask_b)) << std::hex << a << " " << b;
    }
  }
}

TEST(AddressMasks, ManyNetsNeverShareAMaskAndTheReservedStay) {
  AddressMasks masks;
  std::set<uint32_t> seen;
  for (uint32_t top = 1; top < 127; ++top) EXPECT_TRUE(seen.insert(masks.Of4(top << 24 | 7)).second) << top;
  for (const uint32_t kept : {0x00000000u, 0x7f000001u, 0xa9fe0304u, 0xac110002u, 0xe0000001u, 0xffffffffu})
    EXPECT_EQ(kept, masks.Of4(kept));
}

TEST(AddressMasks, SurviveTheMap) {
  Masks first;
  const uint32_t a = first.addresses().Of4(0x0a010203);
  const uint64_t guid = first.addresses().OfGuid(0x7cfe900300a41b3e);
  const std::string host = first.Of(Kind::kHost, "node-7\t\\x");
  Masks second;
  ASSERT_TRUE(second.Load(first.Save(), "map").ok());
  EXPECT_EQ(a, second.addresses().Of4(0x0a010203));
  EXPECT_EQ(guid, second.addresses().OfGuid(0x7cfe900300a41b3e));
  EXPECT_EQ(host, second.Of(Kind::kHost, "node-7\t\\x"));
  EXPECT_NE(host, second.Of(Kind::kHost, "node-8"));
  const uint32_t neighbour = second.addresses().Of4(0x0a010204);
  EXPECT_EQ(a >> 8, neighbour >> 8) << "nets go on";
  EXPECT_NE(a, neighbour);
  EXPECT_EQ(first.Save().size(), Masks(first).Save().size());
}

TEST(Masks, DamagedMapsAreRefusedWithTheirLine) {
  for (const char* text : {"", "x", "ringscope scrub map 2\n", "ringscope scrub map 1\nhost\t0\tn1\n",
                           "ringscope scrub map 1\nhost\tx\tn1\n", "ringscope scrub map 1\nhost 1 n1\n",
                           "ringscope scrub map 1\nip4\t0a000001\t0a000002\n", "ringscope scrub map 1\nwhat\t1\t2\n"}) {
    Masks masks;
    const auto status = masks.Load(text, "map");
    EXPECT_FALSE(status.ok()) << text;
    EXPECT_NE(std::string::npos, std::string(status.message()).find("map: line ")) << status.message();
  }
}

TEST(Masks, AMaskIsItsOwnAndItsNumberIsTakenByNobody) {
  Masks masks;
  masks.Reserve("peer host-1 and host-2.domain-1.example, user-1");
  EXPECT_EQ("host-1", masks.Of(Kind::kHost, "host-1"));
  EXPECT_EQ("host-3", masks.Of(Kind::kHost, "aardvark"));
  EXPECT_EQ("user-2", masks.Of(Kind::kUser, "bea"));
  EXPECT_EQ("domain-2.example", masks.Of(Kind::kDomain, "acme.com"));
  EXPECT_EQ("domain-2.example", masks.Of(Kind::kDomain, "domain-2.example"));
  EXPECT_TRUE(IsMask("secret-12"));
  for (const char* word : {"host-", "host-x", "host-01", "hosts-1", "host", "-1", "secret-1234567890123"})
    EXPECT_FALSE(IsMask(word)) << word;
}

}  // namespace
}  // namespace ringscope::scrub
