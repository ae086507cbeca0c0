// What is removed from a flight directory, and what is never touched, whatever lies there.
#include <sys/sysmacros.h>

#include <fstream>

#include "recorder/flight_file.h"
#include "recorder/sys.h"
#include "tests/unit/recorder/process_fixture.h"

namespace ringscope::recorder {
namespace {

class ReapTest : public ProcessTest {
 protected:
  ReapTest() {
    mkdir(flight_.c_str(), 0700);
    memset(&identity_, 0, sizeof(identity_));
    CopyText(identity_.host, sizeof(identity_.host), "h");
  }
  static std::string Name(const std::string& rest) { return "ringscope-j.0-h-" + rest + ".flight"; }
  std::string Path(const std::string& rest) const { return flight_ + "/" + Name(rest); }

  // A record whose process is gone, `age` seconds old.
  std::string Dead(const std::string& rest, uint32_t rank, int age, const char* local_rank = "") {
    std::vector<char> bytes(flight::kTablesAt, 0);
    auto* header = reinterpret_cast<flight::FileHeader*>(bytes.data());
    memcpy(header->magic, flight::kMagic, sizeof(header->magic));
    header->version = flight::kVersion;
    header->byte_order = flight::kByteOrder;
    header->rank_hint = rank;
    header->pid = 0x7ffffff;  // beyond what the kernel gives
    CopyText(header->host, sizeof(header->host), "h");
    const std::string text = std::string("local_rank=") + local_rank;
    if (*local_rank) memcpy(bytes.data() + 4096, text.c_str(), text.size());
    bytes[4096 + 64] = 'x';
    std::ofstream(Path(rest), std::ios::binary).write(bytes.data(), static_cast<long>(bytes.size()));
    Age(Path(rest), age);
    return Path(rest);
  }
  static void Age(const std::string& path, int seconds) {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const timespec times[2] = {{now.tv_sec - seconds, 0}, {now.tv_sec - seconds, 0}};
    utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW);
  }
  static bool There(const std::string& path) {
    struct stat st;
    return lstat(path.c_str(), &st) == 0;
  }
  void Reap(const char* own = "") { ReapFlightFiles(flight_.c_str(), identity_, own); }

  Identity identity_;
};

TEST_F(ReapTest, TheNewestTwoOfEachRankStay) {
  for (uint32_t rank = 0; rank < 3; ++rank) {
    for (int age = 1; age <= 4; ++age) {
      Dead("rank" + std::to_string(rank) + "-1-" + std::to_string(age), rank, age * 100);
    }
  }
  // Another rank, but the same local rank: it is the local one that counts.
  for (int age = 1; age <= 4; ++age) Dead("rank9-1-" + std::to_string(age), 8u + static_cast<uint32_t>(age), age * 100, "5");
  Reap();
  for (const char* rank : {"rank0", "rank1", "rank2", "rank9"}) {
    for (int age = 1; age <= 4; ++age) {
      EXPECT_EQ(There(Path(std::string(rank) + "-1-" + std::to_string(age))), age <= 2) << rank << " " << age;
    }
  }
}

TEST_F(ReapTest, NeverMoreThanSixtyFour) {
  for (uint32_t rank = 0; rank < 300; ++rank) Dead("rank" + std::to_string(rank) + "-1-1", rank, static_cast<int>(rank));
  Reap();
  EXPECT_THAT(Flights(), SizeIs(kKeptInAll));
  for (uint32_t rank = 0; rank < 300; ++rank) {
    EXPECT_EQ(There(Path("rank" + std::to_string(rank) + "-1-1")), rank < kKeptInAll) << rank;
  }
}

TEST_F(ReapTest, WhatIsNoneOfOursIsNotTouched) {
  // Three dead ones of the same rank would be one too many; everything else is older still.
  for (int age = 1; age <= 3; ++age) Dead("rank0-1-" + std::to_string(age), 0, age * 10);
  const std::string target = dir_.path() + "/target";
  rename(Dead("rank0-1-9", 0, 9999).c_str(), target.c_str());
  std::vector<std::string> others;
  const auto other = [&](const std::string& path) { others.push_back(path); };
  ASSERT_EQ(symlink(target.c_str(), Path("rank0-2-1").c_str()), 0);
  other(Path("rank0-2-1"));
  ASSERT_EQ(symlink("nowhere", Path("rank0-2-2").c_str()), 0);
  other(Path("rank0-2-2"));
  ASSERT_EQ(mkfifo(Path("rank0-2-3").c_str(), 0600), 0);  // opening it would block
  other(Path("rank0-2-3"));
  ASSERT_EQ(mkdir(Path("rank0-2-4").c_str(), 0700), 0);
  std::ofstream(Path("rank0-2-4") + "/file") << "x";
  other(Path("rank0-2-4") + "/file");
  std::ofstream(Path("rank0-2-5")) << "not a flight file, but a name like one";
  other(Path("rank0-2-5"));
  Age(Path("rank0-2-5"), 99999);
  other(Dead("rank0-2-6", 0, 99999));  // with a name that is not ours
  rename(others.back().c_str(), (flight_ + "/ringscope-x.flight.old").c_str());
  others.back() = flight_ + "/ringscope-x.flight.old";
  other(Dead("rank0-2-7", 0, 99999));  // another version
  {
    std::fstream file(others.back(), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(offsetof(flight::FileHeader, version));
    file.put(99);
  }
  Age(others.back(), 99999);
  std::ofstream(Path("rank0-2-8")) << std::string(100, '\0');  // in the making
  other(Path("rank0-2-8"));
  other(Dead("rank0-2-9", 0, 99999));  // somebody lives there
  {
    std::fstream file(others.back(), std::ios::binary | std::ios::in | std::ios::out);
    std::string stat = ReadAll("/proc/self/stat");
    uint64_t start;
    char state;
    ASSERT_TRUE(ParseProcStat(stat.c_str(), &start, &state));
    const int32_t pid = getpid();
    file.seekp(offsetof(flight::FileHeader, pid));
    file.write(reinterpret_cast<const char*>(&pid), sizeof(pid));
    file.seekp(offsetof(flight::FileHeader, process_start));
    file.write(reinterpret_cast<const char*>(&start), sizeof(start));
  }
  Age(others.back(), 99999);
  if (geteuid() == 0) {
    other(Dead("rank0-3-1", 0, 99999));  // of another user
    ASSERT_EQ(chown(others.back().c_str(), 65534, 65534), 0);
    if (mknod(Path("rank0-3-2").c_str(), S_IFCHR | 0600, makedev(1, 3)) == 0) other(Path("rank0-3-2"));
  }
  alarm(30);
  Reap();
  alarm(0);
  EXPECT_TRUE(There(target));
  for (const std::string& path : others) EXPECT_TRUE(There(path)) << path;
  EXPECT_TRUE(There(Path("rank0-1-1")) && There(Path("rank0-1-2")));
  EXPECT_FALSE(There(Path("rank0-1-3")));
}

TEST_F(ReapTest, FilesWhoseMakerDiedGoAfterAWhile) {
  std::ofstream(Path("rank0-1-1")) << std::string(4096, '\0');
  std::ofstream(Path("rank0-1-2")) << "";
  std::ofstream(Path("rank0-1-3")) << std::string(4096, '\0');
  Age(Path("rank0-1-1"), 120);
  Age(Path("rank0-1-2"), 120);
  Age(Path("rank0-1-3"), 5);
  Reap();
  EXPECT_FALSE(There(Path("rank0-1-1")));
  EXPECT_FALSE(There(Path("rank0-1-2")));
  EXPECT_TRUE(There(Path("rank0-1-3")));
}

TEST_F(ReapTest, ManyAtOnce) {
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 40; ++i) Dead("rank0-1-" + std::to_string(i), 0, 1000 + i);
    std::vector<pid_t> pids;
    for (int i = 0; i < 6; ++i) {
      const pid_t pid = fork();
      if (pid == 0) {
        Reap();
        _exit(0);
      }
      pids.push_back(pid);
    }
    for (const pid_t pid : pids) {
      int status;
      waitpid(pid, &status, 0);
      EXPECT_EQ(status, 0);
    }
    EXPECT_THAT(Flights(), SizeIs(kKeptPerRank));
    EXPECT_TRUE(There(Path("rank0-1-0")) && There(Path("rank0-1-1")));
  }
}

// ---- the directory itself: /dev/shm is everybody's, so ours may have been made by somebody else

TEST_F(ReapTest, ADirectoryOfSomebodyElseIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  ASSERT_EQ(chown(flight_.c_str(), 65534, 65534), 0);
  Child child([] {
    if (!Start()) _exit(1);
    _exit(0);
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
  EXPECT_THAT(Flights(), SizeIs(0));
  EXPECT_THAT(child.Stderr(), HasSubstr("it belongs to somebody else"));
  EXPECT_THAT(Traces(), SizeIs(1));
}

TEST_F(ReapTest, ADirectoryThatOthersMayWriteToIsRefused) {
  for (const mode_t mode : {0770u, 0707u, 01777u}) {
    chmod(flight_.c_str(), mode);
    Child child([] {
      if (!Start()) _exit(1);
      _exit(0);
    });
    EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
    EXPECT_THAT(Flights(), SizeIs(0));
    EXPECT_THAT(child.Stderr(), HasSubstr("others may write to it"));
  }
}

}  // namespace
}  // namespace ringscope::recorder
