// The encoder on images that are cut, flipped or made up: never a crash, never an endless loop,
// always a well-formed trace or a plain refusal. Run under asan and ubsan these tests are worth
// most.
#include <gtest/gtest.h>

#include <random>

#include "recorder/flight/encode.h"
#include "tests/unit/recorder/test_image.h"
#include "tests/unit/recorder/trace_file.h"

namespace ringscope {
namespace {

// Some of everything.
void Populate(TestImage& image) {
  for (uint32_t c = 0; c < 5; ++c) {
    image.AddComm(c);
    for (uint32_t i = 0; i < 200; ++i) image.AddFinished(c, i, i + 1, kStart + i * 1000);
    OpSpec open;
    open.row = 200;
    open.position = 201;
    open.entered = kStart + kSecond;
    image.AddOp(c, open);
    for (uint32_t e = 0; e < 8; ++e) {
      EdgeRow& edge = image.AddEdge(c * 100 + e, c, e, e & 1);
      Set(edge.current, flight::MakeHandle(77, flight::HandleKind::kProxyOp, uint64_t{12} << 32));
      Set(edge.steps, 0x0001000200030004);
    }
  }
  Set(image.image().threads[1].tid, 5);
  Set(image.image().threads[1].call, 3);
  Set(image.image().siblings[0].who, 9);
  Set(image.header()->stalls[0].what, uint64_t{1} << 63 | 200);
}

// Exactly `size` bytes on the heap, so that asan sees a read behind them.
class Exact {
 public:
  Exact(const unsigned char* from, size_t size)
      : words_(new uint64_t[(size + 7) / 8]), size_(size) {
    memcpy(words_.get(), from, size);
  }
  std::string Encode(std::string* error) const {
    return ringscope::Encode(words_.get(), size_, {}, error);
  }
  unsigned char* bytes() { return reinterpret_cast<unsigned char*>(words_.get()); }

 private:
  std::unique_ptr<uint64_t[]> words_;
  size_t size_;
};

void Check(const Exact& image) {
  std::string error;
  const std::string bytes = image.Encode(&error);
  if (!error.empty()) return;
  const TraceFile file = ReadTrace(bytes);
  EXPECT_TRUE(file.Complete()) << file.error;
  EXPECT_LE(bytes.size(), flight::kMaxTraceBytes);
}

TEST(HostileImage, EveryLength) {
  TestImage image;
  Populate(image);
  for (size_t size = 0; size < 8192; size += size < 256 ? 1 : 61) Check(Exact(image.base(), size));
  for (size_t size = 8192; size < image.size(); size += 39989) Check(Exact(image.base(), size));
}

TEST(HostileImage, CutFileTellsWhatIsMissing) {
  TestImage image;
  Populate(image);
  std::string error;
  const TraceFile file = ReadTrace(Exact(image.base(), 300000).Encode(&error));
  EXPECT_EQ(error, "");
  ASSERT_TRUE(file.Complete());
  EXPECT_EQ(file.trace.communicators_size(), 5);
  bool told = false;
  for (const std::string& s : file.trace.not_seen())
    told |= s.find("300000 of") != std::string::npos;
  EXPECT_TRUE(told);
}

TEST(HostileImage, RefusalsArePlain) {
  TestImage image;
  const auto refusal = [&](size_t size) {
    std::string error;
    Exact(image.base(), size).Encode(&error);
    return error;
  };
  EXPECT_EQ(refusal(0), "the file is empty");
  EXPECT_NE(refusal(100).find("cut inside its header"), std::string::npos);
  image.header()->version = 9;
  EXPECT_NE(refusal(image.size()).find("format version"), std::string::npos);
  image.header()->byte_order = 0x04030201;
  EXPECT_NE(refusal(image.size()).find("byte order"), std::string::npos);
  image.header()->magic[0] = 'X';
  EXPECT_NE(refusal(image.size()).find("no flight file"), std::string::npos);
}

TEST(HostileImage, RandomBitFlips) {
  std::mt19937_64 random(20);
  for (int round = 0; round < 60; ++round) {
    TestImage image;
    Populate(image);
    Exact copy(image.base(), image.size());
    const int flips = 1 << random() % 14;
    for (int i = 0; i < flips; ++i) {
      // Half of them where they hurt most: header, text, communicators.
      const size_t at = random() % (random() % 2 ? 196608 : image.size());
      if (at < 16) continue;  // magic, version and byte order: refused, see above
      copy.bytes()[at] ^= static_cast<unsigned char>(1 << random() % 8);
    }
    Check(copy);
  }
}

TEST(HostileImage, RandomWords) {
  std::mt19937_64 random(21);
  for (int round = 0; round < 12; ++round) {
    TestImage image;
    Exact copy(image.base(), image.size());
    // Tables of nothing but garbage, in which every index and time is wrong.
    auto* words = reinterpret_cast<uint64_t*>(copy.bytes());
    for (size_t i = 4096 / 8; i < image.size() / 8; ++i) {
      words[i] = round % 3 == 0 ? ~uint64_t{0} : random() >> (round % 3 == 1 ? 0 : random() % 64);
    }
    Check(copy);
  }
}

TEST(HostileImage, RingsThatOverlapOrLeaveTheTable) {
  TestImage image;
  Populate(image);
  const uint64_t rings[] = {0xffffffffffffffff, 16383 | uint64_t{255} << 32,
                            16384 | uint64_t{255} << 32, uint64_t{0xffffffff} << 32,
                            0x80000000 | uint64_t{0x80000000} << 32};
  for (const uint64_t ring : rings) {
    for (uint32_t c = 0; c < 5; ++c) Set(image.comm(c).ring, ring);
    Check(Exact(image.base(), image.size()));
  }
}

TEST(HostileImage, TablesWhereNoneCanBe) {
  TestImage image;
  Populate(image);
  for (uint32_t table = 0; table < 7; ++table) {
    for (const uint64_t offset :
         {uint64_t{0}, uint64_t{1}, uint64_t{1} << 63, ~uint64_t{0}, image.size() - 8}) {
      TestImage other;
      Populate(other);
      other.header()->tables[table].offset = offset;
      other.header()->tables[table].rows = 0xffffffff;
      Check(Exact(other.base(), other.size()));
    }
    TestImage other;
    Populate(other);
    other.header()->tables[table].row_bytes = 0;
    other.header()->table_count = 0xffffffff;
    Check(Exact(other.base(), other.size()));
  }
}

TEST(HostileImage, TimesThatOverflow) {
  for (const uint64_t rate : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
    for (const uint64_t anchor : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
      TestImage image;
      Populate(image);
      image.header()->tick_ns_q32 = rate;
      Set(image.header()->last_anchor.ticks, anchor);
      Set(image.header()->last_anchor.monotonic_ns, ~anchor);
      Set(image.header()->first_anchor.ticks, anchor / 2);
      Check(Exact(image.base(), image.size()));
    }
  }
}

}  // namespace
}  // namespace ringscope
