// Text as it comes: damage, floods, compression, junk. The catalogue's own signatures serve as the patterns.
#include "analyzer/ingest/text_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include <string>

#include "analyzer/ingest/collect.h"
#include "tests/unit/ingest/temp_dir.h"

namespace ringscope::ingest {
namespace {

using ringscope::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const char kFull[] = "n1:70:88 [0] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device";

model::Evidence Read(std::string_view bytes) {
  model::Evidence evidence;
  EXPECT_TRUE(ReadTextBytes("input", bytes, &evidence).ok());
  return evidence;
}

std::string Gzip(const std::string& bytes) {
  z_stream s = {};
  deflateInit2(&s, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&s, bytes.size()), 0);
  s.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  s.avail_in = static_cast<uInt>(bytes.size());
  s.next_out = reinterpret_cast<Bytef*>(out.data());
  s.avail_out = static_cast<uInt>(out.size());
  deflate(&s, Z_FINISH);
  out.resize(s.total_out);
  deflateEnd(&s);
  return out;
}

std::string Zstd(const std::string& bytes) {
  std::string out(ZSTD_compressBound(bytes.size()), 0);
  out.resize(ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 3));
  return out;
}

TEST(ReadText, KeepsLineSpeakerAndQuote) {
  const auto e = Read(std::string("first\r\n") + kFull + "\r\nlast");
  ASSERT_THAT(e.events, SizeIs(1));
  EXPECT_EQ(e.events[0].signature, "nccl-shm-no-space");
  EXPECT_EQ(e.events[0].where.line, 2u);
  EXPECT_EQ(e.events[0].by.host, "n1");
  EXPECT_EQ(e.events[0].text, kFull);
  EXPECT_EQ(e.files[0].lines, 3u);
}

TEST(ReadText, AMessageAfterAProgressBar) {
  const auto e = Read(std::string("10%|#  |\r20%|## |\r") + kFull + "\n");
  ASSERT_THAT(e.events, SizeIs(1));
  EXPECT_EQ(e.events[0].where.line, 1u);
}

TEST(ReadText, AFloodIsCountedNotKept) {
  std::string flood;
  for (int i = 0; i < 10000; ++i) flood += std::string(kFull) + "\n";
  const auto e = Read(flood);
  EXPECT_LE(e.events.size(), 300u);
  ASSERT_THAT(e.uncounted, SizeIs(1));
  EXPECT_EQ(e.events.size() + e.uncounted.begin()->second, 10000u);
}

TEST(ReadText, AnEndlessLineIsCutAndTheNextOneRead) {
  const auto e = Read(std::string(20 << 20, 'x') + "\n" + kFull + "\n");
  ASSERT_THAT(e.events, SizeIs(1));
  EXPECT_EQ(e.events[0].where.line, 2u);
  EXPECT_THAT(e.files[0].notes, ElementsAre(HasSubstr("line 1: longer than 64 KiB")));
}

TEST(ReadText, AnEndlessLineAtTheEnd) {
  const auto e = Read(std::string(kFull) + "\n" + std::string(3 << 20, 'x'));
  EXPECT_THAT(e.events, SizeIs(1));
  EXPECT_EQ(e.files[0].lines, 2u);
}

TEST(ReadText, OddBytesInAQuoteBecomeValidUtf8) {
  const auto e = Read(
      std::string("n1\xff:70:88 [0] NCCL WARN Call to posix_fallocate failed : No space left on device \xc3\xa4 \xed\xa0\x80 \x01\n"));
  ASSERT_THAT(e.events, SizeIs(1));
  EXPECT_THAT(e.events[0].text, HasSubstr("\xc3\xa4 ??? "));
}

// A terminal of 80 columns wrapped in the middle of a token.
TEST(ReadText, LinesWrappedByATerminalAreJoined) {
  const std::string line = kFull, other = "n1:70:88 [0] NCCL INFO " + std::string(57, 'y') + "zz\n";
  const std::string text = line.substr(0, 80) + "\n" + line.substr(80) + "\n" + other.substr(0, 80) + "\n" + other.substr(80) + kFull;
  std::string wrapped = text.substr(0, text.size() - line.size()) + line.substr(0, 80) + "\n" + line.substr(80) + "\n";
  const auto e = Read(wrapped);
  ASSERT_THAT(e.events, SizeIs(2));
  EXPECT_EQ(e.events[0].where.line, 1u);
  EXPECT_EQ(e.events[1].where.line, 5u);
  EXPECT_EQ(e.files[0].lines, 6u);
}

TEST(ReadText, TablesOfEqualWidthAreNotJoined) {
  const std::string row = "| " + std::string(76, 'x') + " |\n";
  const auto e = Read(row + row + row + kFull + "\n" + kFull + "\n");
  EXPECT_THAT(e.events, SizeIs(2));
}

TEST(ReadText, Utf16WithAByteOrderMark) {
  for (const bool big : {false, true}) {
    std::string bytes = big ? "\xfe\xff" : "\xff\xfe";
    for (const char c : std::string(kFull) + "\r\n") bytes += big ? std::string{0, c} : std::string{c, 0};
    bytes += big ? std::string("\xd8\x3d\xde\x00\xdc\x00\x00", 7) : std::string("\x3d\xd8\x00\xde\x00\xdc\x00", 7);
    EXPECT_TRUE(LooksLikeText(bytes));
    EXPECT_THAT(Read(bytes).events, SizeIs(1));
  }
  EXPECT_THAT(Read("\xff\xfe").events, IsEmpty());
  EXPECT_THAT(Read("\xff").events, IsEmpty());
}

TEST(ReadText, EmptyAndNewlinesOnly) {
  EXPECT_THAT(Read("").events, IsEmpty());
  EXPECT_EQ(Read("\n\n\n").files[0].lines, 3u);
}

TEST(Collect, CompressedTextIsUnpacked) {
  TempDir dir;
  const std::string line = std::string(kFull) + "\n";
  dir.Write("a.log.gz", Gzip(line));
  dir.Write("b.log.zst", Zstd(line));
  dir.Write("c.log.gz", Gzip(line) + Gzip(line));  // appended, as log rotation does
  dir.Write("d.log.zst", Zstd(line) + Zstd(line));
  const Collected c = Collect({dir.path()});
  EXPECT_THAT(c.evidence.events, SizeIs(6));
  EXPECT_THAT(c.problems, IsEmpty());
}

TEST(Collect, DamagedCompressionIsNamedAndWhatCameBeforeStands) {
  TempDir dir;
  std::string text;
  for (int i = 0; i < 60000; ++i) text += "line " + std::to_string(i * 7919) + "\n";
  const std::string packed = Gzip(kFull + ("\n" + text)), zpacked = Zstd(kFull + ("\n" + text));
  dir.Write("cut.gz", packed.substr(0, packed.size() - 100));
  dir.Write("cut.zst", zpacked.substr(0, zpacked.size() - 100));
  std::string flipped = packed;
  flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 0x55);
  dir.Write("flipped.gz", flipped);
  const Collected c = Collect({dir.path()});
  EXPECT_THAT(c.evidence.events, SizeIs(3));
  EXPECT_THAT(c.problems, ElementsAre(HasSubstr("cut.gz: byte"), HasSubstr("cut.zst: byte"), HasSubstr("flipped.gz: byte")));
}

TEST(Collect, BombsEndEarly) {
  TempDir dir;
  std::string zeros(64 << 20, '\n');
  std::string bomb = Zstd(zeros);
  for (int i = 0; i < 6; ++i) bomb += bomb;  // 4 GiB of newlines in a few hundred KiB
  dir.Write("bomb.log.zst", bomb);
  dir.Write("fine.log", std::string(kFull) + "\n");
  const Collected c = Collect({dir.path()});
  EXPECT_THAT(c.problems, ElementsAre(HasSubstr("unpacks to more than")));
  EXPECT_THAT(c.evidence.events, SizeIs(1));
}

TEST(Collect, JunkAndPipesAreNamedNotRead) {
  TempDir dir;
  std::string junk;
  for (int i = 0; i < 100000; ++i) junk += static_cast<char>(i * 2654435761u >> 13);
  dir.Write("core.1234", junk);
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);
  const Collected c = Collect({dir.path(), dir / "pipe"});
  EXPECT_THAT(c.unknown, ::testing::Contains(HasSubstr("core.1234")));
  EXPECT_THAT(c.unknown, ::testing::Contains(HasSubstr("pipe (not a regular file)")));
  EXPECT_FALSE(c.anything());
}

}  // namespace
}  // namespace ringscope::ingest
