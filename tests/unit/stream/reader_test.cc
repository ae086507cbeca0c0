// Stream files as they are found: cut, damaged, hostile, long.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>

#include "tests/unit/ingest/temp_dir.h"
#include "tests/unit/stream/collecting.h"

namespace ringscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using flight::StreamBatch;
using ingest::ParseStream;
using ingest::ReadStream;
using testing::Collecting;
using testing::CommOf;
using testing::Framed;
using testing::PackedChunk;
using testing::StreamFileOf;

// Chunk `n` of a stream: `ops` collectives that follow those of the chunks before, and 4 steps.
std::string Chunk(uint64_t n, uint32_t ops = 3, bool last = false) {
  auto batch = std::make_unique<StreamBatch>();
  batch->comms[batch->comm_count++] = CommOf(0, 77);
  for (uint32_t i = 0; i < ops; ++i) {
    flight::StreamOp& op = batch->ops[batch->op_count++];
    op = {};
    op.position = (n - 1) * ops + i + 1;
    op.entered = 1000000 * op.position;
    op.returned = op.entered + 500;
  }
  batch->transfers[batch->transfer_count++] = {1, 3, 4, 0, true, false, 0, n};
  for (uint32_t i = 0; i < 4; ++i) batch->steps[batch->step_count++] = {0, i, 5000000 * n + i, i == 2 ? 4096u : 0u};
  return PackedChunk(batch.get(), n, last);
}

TEST(StreamReader, ReadsWhatIsThere) {
  Collecting seen;
  const auto s = ParseStream(StreamFileOf({Chunk(1), Chunk(2), Chunk(3, 3, true)}), "f", &seen);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_FALSE(s->torn);
  EXPECT_TRUE(s->ended);
  EXPECT_EQ(s->chunks, 3u);
  EXPECT_EQ(s->missing_chunks, 0u);
  EXPECT_THAT(seen.Positions(77), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9));
  ASSERT_THAT(seen.steps, SizeIs(12));
  EXPECT_EQ(seen.steps[2].step.state, trace::SEND_WAIT);
  EXPECT_EQ(seen.steps[2].step.bytes, 4096u);
  EXPECT_EQ(seen.steps[3].step.state, trace::STEP_FREE);
  EXPECT_EQ(seen.steps[0].transfer.peer(), 4u);
}

TEST(StreamReader, ACutFileKeepsItsWholeChunks) {
  const std::string whole = StreamFileOf({Chunk(1), Chunk(2)});
  const size_t first = 8 + Chunk(1).size();
  for (size_t n = 0; n < whole.size(); ++n) {
    SCOPED_TRACE(n);
    Collecting seen;
    const auto s = ParseStream(whole.substr(0, n), "f", &seen);
    EXPECT_THAT(seen.ops, SizeIs(n >= first ? 3 : 0));
    if (n < 8) {
      EXPECT_FALSE(s.ok());
    } else if (n == 8 || n == first) {
      EXPECT_TRUE(s.ok() && !s->torn);  // nothing tells that more was to come
    } else if (n < first) {
      EXPECT_EQ(s.status().code(), absl::StatusCode::kDataLoss);
    } else {
      ASSERT_TRUE(s.ok()) << s.status();
      EXPECT_TRUE(s->torn);
      EXPECT_THAT(s->notes, SizeIs(1));
    }
  }
}

TEST(StreamReader, DamageCostsTheDamagedChunk) {
  const std::string file = StreamFileOf({Chunk(1), Chunk(2), Chunk(3)});
  const size_t begin = 8 + Chunk(1).size(), end = begin + Chunk(2).size();
  for (size_t at = begin; at < end; ++at) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      SCOPED_TRACE(at);
      std::string bad = file;
      bad[at] = static_cast<char>(bad[at] ^ flip);
      Collecting seen;
      const auto s = ParseStream(bad, "f", &seen);
      ASSERT_TRUE(s.ok()) << s.status();
      EXPECT_TRUE(s->torn);
      EXPECT_THAT(seen.Positions(77), ElementsAre(1, 2, 3, 7, 8, 9));
      EXPECT_EQ(s->missing_chunks, 1u);
    }
  }
}

TEST(StreamReader, GoesOnBehindGarbage) {
  Collecting seen;
  const auto s =
      ParseStream(StreamFileOf({Chunk(1), std::string(100000, '\0'), Chunk(2), std::string(5000, '\x08'), Chunk(3)}), "f", &seen);
  ASSERT_TRUE(s.ok());
  EXPECT_TRUE(s->torn);
  EXPECT_THAT(seen.ops, SizeIs(9));
}

TEST(StreamReader, RefusesWhatIsNoStream) {
  EXPECT_EQ(ParseStream("", "f", nullptr).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ParseStream("RNGTRC01....", "f", nullptr).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(ParseStream("hello world", "some/file", nullptr).status().message()), HasSubstr("some/file: byte 0"));
  EXPECT_EQ(ReadStream("/nonexistent/x.stream", nullptr).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadStream("/dev/null", nullptr).status().code(), absl::StatusCode::kInvalidArgument);
}

// Chunks with a right checksum that lie: more entries than there is anything for, indices beyond their lists.
TEST(StreamReader, HostileChunksAreBounded) {
  trace::StreamChunk huge;
  huge.set_sequence(1);
  huge.mutable_operations()->set_count(0xffffffff);
  huge.mutable_operations()->add_signatures();
  huge.mutable_steps()->set_count(0xffffffff);
  huge.mutable_steps()->add_transfers();
  trace::StreamChunk indices;
  indices.set_sequence(2);
  indices.mutable_operations()->set_count(2);
  indices.mutable_operations()->add_signatures();
  indices.mutable_operations()->add_communicator(1u << 31);
  indices.mutable_operations()->add_signature(0);
  indices.mutable_operations()->add_signature(9);
  indices.mutable_steps()->set_count(2);
  indices.mutable_steps()->add_transfers()->set_communicator(5);
  indices.mutable_steps()->add_transfer(0);
  indices.mutable_steps()->add_transfer(-1);
  Collecting seen;
  const auto s = ParseStream(
      StreamFileOf({Framed(huge.SerializeAsString()), Framed(indices.SerializeAsString()), Framed("\x08\x01\xff"), Chunk(3)}), "f",
      &seen);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_TRUE(s->torn);
  EXPECT_THAT(s->notes, SizeIs(3));
  EXPECT_EQ(s->operations, (1u << 16) + 1 + 3);
  EXPECT_EQ(s->steps, (1u << 16) + 1 + 4);
  EXPECT_THAT(seen.Positions(77), ElementsAre(7, 8, 9));
}

// Longer than the reader's window by far, with damage in the middle: read in pieces it is the same as read whole.
TEST(StreamReader, ALongFileIsReadInPieces) {
  testing::TempDir dir;
  std::vector<std::string> chunks;
  size_t bytes = 0;
  for (uint64_t n = 1; bytes < (5u << 20); ++n) {
    chunks.push_back(Chunk(n, 1500));
    bytes += chunks.back().size();
    if (n % 100 == 0) chunks.push_back(std::string(300000 + n, static_cast<char>(n)));
  }
  const std::string file = StreamFileOf(chunks);
  const std::string path = dir.Write("a.stream", file);
  Collecting whole, pieces;
  const auto a = ParseStream(file, path, &whole);
  uint64_t progress = 0;
  const auto b = ReadStream(path, &pieces, [&](const std::string&, uint64_t done, uint64_t) { progress = done; });
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(progress, file.size());
  EXPECT_EQ(a->operations, b->operations);
  EXPECT_EQ(a->chunks, b->chunks);
  EXPECT_EQ(a->bytes, b->bytes);
  EXPECT_EQ(whole.Positions(77), pieces.Positions(77));
  EXPECT_EQ(whole.ops.size() % 1500, 0u);
  EXPECT_GT(whole.ops.size(), 100000u);
}

}  // namespace
}  // namespace ringscope
