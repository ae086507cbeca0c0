// The container: what is whole is read, what is damaged is named and costs its chunk only.
#include "analyzer/ingest/trace_reader.h"

#include <gmock/gmock.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "analyzer/ingest/crc32c.h"

namespace ringscope::ingest {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Part k holds communicator row k, so that a lost chunk shows; the first one also says who wrote
// it.
std::vector<trace::Trace> Parts(int n) {
  std::vector<trace::Trace> parts(static_cast<size_t>(n));
  parts[0].mutable_process()->set_pid(4711);
  for (int k = 0; k < n; ++k) {
    trace::Communicator& c = *parts[static_cast<size_t>(k)].add_communicators();
    c.set_row(static_cast<uint32_t>(k) + 1);
    c.set_comm_id(0x123456789abcdef0u + static_cast<uint64_t>(k));
    c.set_name("part " + std::to_string(k));
  }
  return parts;
}

std::set<uint32_t> Rows(const TraceFile& file) {
  std::set<uint32_t> rows;
  for (const auto& c : file.trace.communicators()) rows.insert(c.row());
  return rows;
}

// Offset and size of each chunk (head included), the end mark's too.
std::vector<std::pair<size_t, size_t>> Chunks(const std::string& bytes) {
  std::vector<std::pair<size_t, size_t>> out;
  for (size_t at = 8; at < bytes.size();) {
    uint32_t length;
    memcpy(&length, bytes.data() + at, 4);
    out.emplace_back(at, 8 + length);
    at += 8 + length;
  }
  return out;
}

TEST(TraceReader, ReadsWhatWasWritten) {
  auto file = ParseTrace(WriteTrace(Parts(3)), "x.trace");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE(file->torn);
  EXPECT_THAT(file->notes, IsEmpty());
  EXPECT_EQ(file->chunks, 3u);
  EXPECT_EQ(file->trace.process().pid(), 4711);
  EXPECT_THAT(Rows(*file), ElementsAre(1, 2, 3));
}

TEST(TraceReader, UnknownFieldsSurviveARoundTrip) {
  auto parts = Parts(2);
  auto* unknown = parts[0].GetReflection()->MutableUnknownFields(&parts[0]);
  unknown->AddVarint(4321, 99);
  auto* nested = parts[1].mutable_communicators(0);
  nested->GetReflection()->MutableUnknownFields(nested)->AddLengthDelimited(777, "from the future");
  auto file = ParseTrace(WriteTrace(parts), "x.trace");
  ASSERT_TRUE(file.ok());
  auto again = ParseTrace(WriteTrace({file->trace}), "x.trace");
  ASSERT_TRUE(again.ok());
  const auto& top = again->trace.GetReflection()->GetUnknownFields(again->trace);
  ASSERT_EQ(top.field_count(), 1);
  EXPECT_EQ(top.field(0).number(), 4321);
  EXPECT_EQ(top.field(0).varint(), 99u);
  const auto& inner = again->trace.communicators(1).GetReflection()->GetUnknownFields(
      again->trace.communicators(1));
  ASSERT_EQ(inner.field_count(), 1);
  EXPECT_EQ(inner.field(0).length_delimited(), "from the future");
}

TEST(TraceReader, TruncatedAtEveryByteKeepsTheWholeChunks) {
  const std::string bytes = WriteTrace(Parts(4));
  const auto chunks = Chunks(bytes);
  for (size_t n = 0; n < bytes.size(); ++n) {
    auto file = ParseTrace(std::string_view(bytes).substr(0, n), "cut.trace");
    size_t whole = 0;
    for (const auto& [at, size] : chunks) whole += at + size <= n ? 1 : 0;
    if (whole == 0) {
      ASSERT_FALSE(file.ok()) << n;
      EXPECT_THAT(std::string(file.status().message()), HasSubstr("cut.trace: byte ")) << n;
      continue;
    }
    ASSERT_TRUE(file.ok()) << n << ": " << file.status();
    EXPECT_TRUE(file->torn) << n;
    ASSERT_THAT(file->notes, SizeIs(1)) << n;
    EXPECT_THAT(file->notes[0], HasSubstr("cut.trace: byte "));
    EXPECT_THAT(file->notes[0], HasSubstr("copy")) << "no remedy";
    EXPECT_EQ(Rows(*file).size(), whole) << n;
  }
}

TEST(TraceReader, AFlippedBitCostsItsChunkOnly) {
  const int kParts = 4;
  const std::string good = WriteTrace(Parts(kParts));
  const auto chunks = Chunks(good);
  for (size_t bit = 64; bit < good.size() * 8; ++bit) {
    std::string bytes = good;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    size_t hit = 0;
    while (bit / 8 >= chunks[hit].first + chunks[hit].second) ++hit;
    auto file = ParseTrace(bytes, "flip.trace");
    ASSERT_TRUE(file.ok()) << bit << ": " << file.status();
    EXPECT_TRUE(file->torn) << bit;
    ASSERT_FALSE(file->notes.empty()) << bit;
    EXPECT_THAT(file->notes[0], HasSubstr("byte " + std::to_string(chunks[hit].first) + ":"))
        << bit;
    std::set<uint32_t> expected;
    for (uint32_t k = 0; k < kParts; ++k) {
      if (k != hit) expected.insert(k + 1);
    }
    EXPECT_EQ(Rows(*file), expected) << "bit " << bit;
  }
}

TEST(TraceReader, GarbageBetweenChunksIsSkipped) {
  const std::string good = WriteTrace(Parts(3));
  const auto chunks = Chunks(good);
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::string bytes = good;
    std::string garbage;
    for (uint32_t n = random() % 100; n > 0; --n) garbage.push_back(static_cast<char>(random()));
    if (round % 3 == 0) garbage.assign(round, '\0');  // what a crashed file system leaves
    if (garbage.empty()) continue;
    bytes.insert(chunks[static_cast<size_t>(round) % chunks.size()].first, garbage);
    auto file = ParseTrace(bytes, "garbage.trace");
    ASSERT_TRUE(file.ok());
    EXPECT_THAT(Rows(*file), ElementsAre(1, 2, 3)) << round;
    EXPECT_FALSE(file->notes.empty());
  }
}

TEST(TraceReader, AMissingChunkIsMissed) {
  std::string bytes = WriteTrace(Parts(3));
  const auto chunks = Chunks(bytes);
  bytes.erase(chunks[1].first, chunks[1].second);
  auto file = ParseTrace(bytes, "x.trace");
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->torn);
  EXPECT_THAT(file->notes, ElementsAre(HasSubstr("1 of 3 chunks are missing")));
}

TEST(TraceReader, ARightChecksumOverNonsenseIsNotATrace) {
  std::string bytes(kTraceMagic);
  const std::string payload = "\xff\xff\xff\xff";
  const uint32_t length = 4, crc = Crc32c(payload);
  bytes.append(reinterpret_cast<const char*>(&length), 4)
      .append(reinterpret_cast<const char*>(&crc), 4)
      .append(payload);
  EXPECT_FALSE(ParseTrace(bytes, "x").ok());
}

TEST(TraceReader, LengthsBeyondTheFileDoNotAllocate) {
  std::string bytes(kTraceMagic);
  for (uint32_t length : {0xffffffffu, 0x7fffffffu, kMaxChunkBytes + 1, kMaxChunkBytes}) {
    bytes.append(reinterpret_cast<const char*>(&length), 4).append(4, 'c');
  }
  EXPECT_FALSE(ParseTrace(bytes, "x").ok());
}

TEST(TraceReader, ForeignAndEmptyFilesAreNamed) {
  const auto empty = ParseTrace("", "e.trace");
  EXPECT_THAT(std::string(empty.status().message()),
              HasSubstr("e.trace: byte 0: the file is empty"));
  const auto foreign = ParseTrace("#!/bin/sh\necho hello\n", "f.trace");
  EXPECT_THAT(std::string(foreign.status().message()), HasSubstr("not a Ringscope trace"));
  EXPECT_EQ(ReadTrace("/nonexistent/x.trace").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace ringscope::ingest
