// Directories as they are found after an incident: records among logs, links, pipes, damaged and
// enormous files.
#include "analyzer/ingest/collect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "analyzer/ingest/trace_reader.h"
#include "tests/unit/ingest/temp_dir.h"

namespace ringscope::ingest {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::TempDir;

std::string SmallTrace(int rank) {
  trace::Trace t;
  t.mutable_process()->set_rank(rank);
  t.mutable_process()->set_pid(100 + rank);
  return WriteTrace({t});
}

std::string Gzip(const std::string& data) {
  std::string out(compressBound(data.size()) + 64, '\0');
  z_stream s = {};
  deflateInit2(&s, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  s.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  s.avail_in = static_cast<uInt>(data.size());
  s.next_out = reinterpret_cast<Bytef*>(out.data());
  s.avail_out = static_cast<uInt>(out.size());
  deflate(&s, Z_FINISH);
  out.resize(s.total_out);
  deflateEnd(&s);
  return out;
}

std::vector<int> Ranks(const Collected& c) {
  std::vector<int> ranks;
  for (const auto& r : c.records) ranks.push_back(r.trace.process().rank());
  return ranks;
}

TEST(Collect, FindsRecordsByContentInATree) {
  TempDir dir;
  dir.Write("job.0/host0/rank0.trace", SmallTrace(0));
  dir.Write("job.0/host1/renamed-by-somebody", SmallTrace(1));
  dir.Write("job.0/host1/rank2.trace.gz", Gzip(SmallTrace(2)));
  dir.Write("nccl.log", "host0:1:2 [0] NCCL INFO NCCL_NET set by environment to Socket\n");
  dir.Write("nccl.log.gz", Gzip("host0:1:2 [0] NCCL INFO NCCL_BUFFSIZE set by environment to 4096.\n"));
  dir.Write("notes.txt", "call me\n");
  dir.Write("job.0/snapshot-now", "");  // the marker is part of the directory, nothing unknown
  const Collected c = Collect({dir.path()});
  EXPECT_THAT(Ranks(c), ElementsAre(0, 2, 1));
  EXPECT_THAT(c.problems, IsEmpty());
  EXPECT_THAT(c.evidence.files, SizeIs(3));
  EXPECT_THAT(c.evidence.settings, SizeIs(2));
  EXPECT_THAT(c.unknown, ElementsAre(dir / "notes.txt"));
  EXPECT_EQ(c.walked, 6);
  EXPECT_THAT(c.Sentences(),
              ElementsAre(HasSubstr("1 file holds nothing that was recognised")));
}

TEST(Collect, AFileGivenTwiceIsReadOnce) {
  TempDir dir;
  const std::string file = dir.Write("a/rank0.trace", SmallTrace(0));
  ASSERT_EQ(symlink(file.c_str(), (dir / "again.trace").c_str()), 0);
  EXPECT_THAT(Collect({dir.path(), file}).records, SizeIs(1));
}

TEST(Collect, LoopsOfLinksEnd) {
  TempDir dir;
  dir.Write("a/b/rank0.trace", SmallTrace(0));
  ASSERT_EQ(symlink("..", (dir / "a/b/up").c_str()), 0);
  ASSERT_EQ(symlink("self", (dir / "self").c_str()), 0);
  ASSERT_EQ(symlink("nowhere", (dir / "dangling").c_str()), 0);
  const Collected c = Collect({dir.path()});
  EXPECT_THAT(c.records, SizeIs(1));
  EXPECT_THAT(c.unknown, SizeIs(3));
}

TEST(Collect, LinksToDirectoriesAreNamedNotFollowed) {
  TempDir outside, dir;
  outside.Write("rank1.trace", SmallTrace(1));
  dir.Write("rank0.trace", SmallTrace(0));
  ASSERT_EQ(symlink(outside.path().c_str(), (dir / "root").c_str()), 0);
  const Collected walked = Collect({dir.path()});
  EXPECT_THAT(walked.records, SizeIs(1)) << "a link can lead to the whole machine";
  EXPECT_THAT(walked.unknown, Contains(HasSubstr("root (a link to a directory")));
  EXPECT_THAT(Collect({dir / "root"}).records, SizeIs(1)) << "given by name it is read";
}

TEST(Collect, NeverWaitsForAPipe) {
  TempDir dir;
  ASSERT_EQ(mkfifo((dir / "pipe.trace").c_str(), 0600), 0);
  dir.Write("rank0.trace", SmallTrace(0));
  const Collected c = Collect({dir.path(), dir / "pipe.trace"});
  EXPECT_THAT(c.records, SizeIs(1));
  EXPECT_THAT(c.unknown, Contains(HasSubstr("pipe.trace (not a regular file)")));
}

TEST(Collect, EnormousFilesAreNotRead) {
  TempDir dir;
  const std::string trace = dir.Write("rank0.trace", std::string(kTraceMagic));
  ASSERT_EQ(truncate(trace.c_str(), off_t{1} << 38), 0);
  const std::string other = dir.Write("core", "");
  ASSERT_EQ(truncate(other.c_str(), off_t{1} << 38), 0);
  const Collected c = Collect({dir.path()});
  EXPECT_THAT(c.records, IsEmpty());
  EXPECT_THAT(c.problems,
              ElementsAre(AllOf(HasSubstr("rank0.trace"), HasSubstr("274877906944 bytes"),
                                HasSubstr("leave it out"))));
  EXPECT_THAT(c.unknown, ElementsAre(other));
}

TEST(Collect, DamagedFilesDoNotHideTheOthers) {
  TempDir dir;
  dir.Write("empty.trace", "");
  dir.Write("cut.trace", SmallTrace(3).substr(0, 14));
  dir.Write("half.trace.gz", Gzip(SmallTrace(4)).substr(0, 12));
  dir.Write("noise.flight", std::string(5000, 'x'));
  dir.Write("short.flight", "RNGSCOPE");
  dir.Write("good.trace", SmallTrace(0));
  const Collected c = Collect({dir.path()});
  EXPECT_THAT(Ranks(c), ElementsAre(0));
  EXPECT_EQ(c.damaged, 4);
  EXPECT_THAT(c.problems, Contains(AllOf(HasSubstr("empty.trace: byte 0"), HasSubstr("empty"))));
  EXPECT_THAT(c.problems,
              Contains(AllOf(HasSubstr("cut.trace: byte 8"), HasSubstr("ends inside the head"))));
  EXPECT_THAT(c.problems, Contains(AllOf(HasSubstr("noise.flight: byte 0"),
                                         HasSubstr("not a Ringscope flight file"))));
  EXPECT_THAT(c.problems,
              Contains(AllOf(HasSubstr("short.flight: byte 8"), HasSubstr("inside its header"))));
}

TEST(Collect, AGzipBombStaysSmall) {
  TempDir dir;
  dir.Write("bomb.trace.gz", Gzip(std::string(kTraceMagic) + std::string(size_t{300} << 20, '\0')));
  const Collected c = Collect({dir.path()});
  EXPECT_THAT(c.records, IsEmpty());
  EXPECT_EQ(c.damaged, 1);
}

TEST(Collect, MissingAndUnreadablePathsAreCounted) {
  TempDir dir;
  Collected c = Collect({dir / "absent", dir.path()});
  EXPECT_EQ(c.missing, 1);
  EXPECT_THAT(c.problems, ElementsAre(AllOf(HasSubstr("absent"), HasSubstr("check the path"))));
  const std::string file = dir.Write("rank0.trace", SmallTrace(0));
  ASSERT_EQ(chmod(file.c_str(), 0), 0);
  if (access(file.c_str(), R_OK) == 0) GTEST_SKIP() << "runs as root: every file is readable";
  c = Collect({dir.path()});
  EXPECT_THAT(c.problems, ElementsAre(AllOf(HasSubstr("rank0.trace"),
                                            HasSubstr("as the user that ran the job"))));
}

TEST(Collect, SaysWhatItReads) {
  TempDir dir;
  dir.Write("a.trace", SmallTrace(0));
  std::vector<std::string> seen;
  Collect({dir.path()}, [&](const std::string& path, uint64_t, uint64_t) { seen.push_back(path); });
  EXPECT_THAT(seen, Contains(dir / "a.trace"));
}

}  // namespace
}  // namespace ringscope::ingest
