// Directories that are missing, full, read-only, small, or somebody else's: the job runs on.
#include "tests/unit/recorder/process_fixture.h"

namespace ringscope::recorder {
namespace {

// ---- places that are no good

TEST_F(ProcessTest, NoPlaceForTraces) {
  setenv("RINGSCOPE_DIR", "/proc/nowhere", 1);
  Child child([] {
    if (!Start()) _exit(1);
    const uint64_t context = Communicator();
    Complete(context);
    CloseCommunicator(Current(), context);
    AskSnapshot(flight::Reason::kRequest);
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
  EXPECT_THAT(child.StderrLines(), SizeIs(1));
  EXPECT_THAT(child.Stderr(), HasSubstr("no trace could be written in /proc/nowhere"));
  ASSERT_THAT(Flights(), SizeIs(1));
  EXPECT_FALSE(FlightTrace(Flights()[0]).liveness().clean());
}

TEST_F(ProcessTest, AFileWhereTheDirectoryShouldBe) {
  close(open(traces_.c_str(), O_CREAT | O_WRONLY, 0600));
  Child child([] {
    if (!Start()) _exit(1);
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
  EXPECT_THAT(child.StderrLines(), SizeIs(1));
  EXPECT_THAT(Flights(), SizeIs(1));
}

TEST_F(ProcessTest, FlightDirectoryOfSomebodyElse) {
  mkdir(flight_.c_str(), 0777);
  chmod(flight_.c_str(), 0777);
  Child child([] {
    if (!Start()) _exit(1);
    if (Load(Current()->header->state) & flight::kStatePrivateMemory) _exit(2);
    _exit(0);
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
  EXPECT_THAT(child.StderrLines(), SizeIs(1));
  EXPECT_THAT(child.Stderr(), HasSubstr("others may write to it"));
  EXPECT_THAT(Flights(), SizeIs(0));
  EXPECT_THAT(FilesBelow(traces_), SizeIs(1));  // the second place
}

TEST_F(ProcessTest, ALinkInPlaceOfTheFlightDirectory) {
  mkdir((dir_.path() + "/target").c_str(), 0700);
  ASSERT_EQ(symlink((dir_.path() + "/target").c_str(), flight_.c_str()), 0);
  Child child([] {
    if (!Start()) _exit(1);
    _exit(0);
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
  EXPECT_THAT(FilesBelow(dir_.path() + "/target"), SizeIs(0));
}

TEST_F(ProcessTest, NowhereButMemory) {
  setenv("RINGSCOPE_FLIGHT_DIR", "/proc/a", 1);
  setenv("RINGSCOPE_DIR", "/proc/b", 1);
  Stall("0.2");
  Child child([] {
    if (!Start()) _exit(1);
    if (!(Load(Current()->header->state) & flight::kStatePrivateMemory)) _exit(2);
    const uint64_t context = Communicator();
    Complete(context);
    Enter(context);
    if (!Eventually([] { return Load(Current()->header->stalls[0].what) != 0; })) _exit(3);
    usleep(300000);
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
  EXPECT_THAT(child.Stderr(), HasSubstr("recording in memory only"));
}

TEST_F(ProcessTest, LimitOnFileSizes) {
  Child child([] {
    rlimit limit = {65536, 65536};
    setrlimit(RLIMIT_FSIZE, &limit);
    if (!Start()) _exit(1);
    if (!(Load(Current()->header->state) & flight::kStatePrivateMemory)) _exit(2);
    Complete(Communicator());
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();  // not SIGXFSZ
  EXPECT_THAT(child.Stderr(), HasSubstr("ulimit -f"));
}

TEST_F(ProcessTest, NoDescriptorsLeft) {
  Child child([] {
    rlimit before, none;
    getrlimit(RLIMIT_NOFILE, &before);
    none = {3, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    if (!Start()) _exit(1);
    if (!(Load(Current()->header->state) & flight::kStatePrivateMemory)) _exit(2);
    Complete(Communicator());
    setrlimit(RLIMIT_NOFILE, &before);
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
}

// A small tmpfs of our own in a mount namespace of our own; false where that is not allowed.
bool MountSmall(const std::string& where, const char* size) {
  mkdir(where.c_str(), 0700);
  if (unshare(CLONE_NEWNS) != 0) return false;
  mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  return mount("small", where.c_str(), "tmpfs", MS_NODEV | MS_NOSUID,
               (std::string("mode=700,size=") + size).c_str()) == 0;
}

constexpr int kSkip = 99;
#define SKIP_IF_NOT_ALLOWED(child)                                       \
  if (WIFEXITED((child).Wait()) && WEXITSTATUS((child).Wait()) == kSkip) \
  GTEST_SKIP() << "needs the right to mount a tmpfs"

TEST_F(ProcessTest, EightProcessesIn64MiBOfSharedMemoryLeaveNcclItsRoom) {
  Child child([this] {
    if (!MountSmall(flight_, "64m")) _exit(kSkip);
    pid_t pids[8];
    for (pid_t& pid : pids) {
      pid = fork();
      if (pid == 0) {
        if (!Start()) _exit(1);
        const uint64_t context = Communicator();
        Complete(context);
        usleep(500000);
        if (Load(Current()->header->state) & flight::kStatePrivateMemory) _exit(2);
        // Half the tables: 1/32 of what is free is 2 MiB and less.
        if (Current()->op_rows != flight::kOpRows / 2 || Current()->comm_rows != 256) _exit(5);
        _exit(0);
      }
    }
    usleep(300000);
    // NCCL's own segments: what is left must be nearly all.
    const int fd = open((flight_ + "/nccl-abc").c_str(), O_CREAT | O_RDWR, 0600);
    if (posix_fallocate(fd, 0, 48 << 20) != 0) _exit(3);
    for (const pid_t pid : pids) {
      int status;
      waitpid(pid, &status, 0);
      if (!WIFEXITED(status) || WEXITSTATUS(status)) _exit(4);
    }
    _exit(0);
  });
  SKIP_IF_NOT_ALLOWED(child);
  EXPECT_TRUE(child.ExitedWell()) << WEXITSTATUS(child.Wait()) << child.Stderr();
  EXPECT_EQ(child.Stderr(), "");
}

TEST_F(ProcessTest, TheSmallestTablesHoldAWholeJobsLife) {
  Child child([this] {
    if (!MountSmall(flight_, "17m")) _exit(kSkip);
    if (!Start()) _exit(1);
    Image* image = Current();
    if (image->op_rows != 2048 || image->comm_rows != 64 || image->edge_mask != 511) _exit(2);
    // More of everything than there is room for: counted, never written beyond.
    for (uint64_t id = 1; id <= 100; ++id) {
      const uint64_t context = Communicator(2, id);
      for (int i = 0; i < 40; ++i) Complete(context);
    }
    uint64_t lost = Load(image->counters[static_cast<uint32_t>(flight::Counter::kCommNoRow)]);
    if (lost != 100 - 64) _exit(3);
    _exit(0);
  });
  SKIP_IF_NOT_ALLOWED(child);
  EXPECT_TRUE(child.ExitedWell()) << WEXITSTATUS(child.Wait()) << child.Stderr();
}

TEST_F(ProcessTest, TooLittleIsFreeForTheSmallestTables) {
  Child child([this] {
    if (!MountSmall(flight_, "15m")) _exit(kSkip);
    if (!Start()) _exit(1);
    _exit(0);
  });
  SKIP_IF_NOT_ALLOWED(child);
  EXPECT_TRUE(child.ExitedWell()) << WEXITSTATUS(child.Wait()) << child.Stderr();
  EXPECT_THAT(child.Stderr(), HasSubstr("too little is free there"));
}

TEST_F(ProcessTest, FullDiskForTraces) {
  Stall("0.2");
  Child child([this] {
    if (!MountSmall(traces_, "16k")) _exit(kSkip);
    if (!Start()) _exit(1);
    const uint64_t context = Communicator();
    for (int i = 0; i < 300; ++i) Complete(context);
    for (uint64_t id = 10; id < 18; ++id) {
      const uint64_t other = Communicator(2, id);
      for (int i = 0; i < 300; ++i) Complete(other);
    }
    Enter(context);
    if (!Eventually([] {
          return Load(Current()->counters[static_cast<uint32_t>(flight::Counter::kTraceFailed)]) >
                 0;
        })) {
      _exit(2);
    }
    if (!Traces().empty()) _exit(3);  // no half of a trace
    Complete(context);
  });
  SKIP_IF_NOT_ALLOWED(child);
  EXPECT_TRUE(child.ExitedWell()) << WEXITSTATUS(child.Wait());
  int said = 0;
  for (const std::string& line : child.StderrLines())
    said += line.find("no space left") != std::string::npos;
  EXPECT_EQ(said, 1);
  EXPECT_THAT(Flights(), SizeIs(1));
}

TEST_F(ProcessTest, FullDiskForTheFlightFileIsNoBusError) {
  Child child([this] {
    if (!MountSmall(flight_, "1m")) _exit(kSkip);
    setenv("RINGSCOPE_DIR", (flight_ + "/traces").c_str(), 1);
    if (!Start()) _exit(1);
    if (!(Load(Current()->header->state) & flight::kStatePrivateMemory)) _exit(2);
    for (uint64_t id = 10; id < 60; ++id) Complete(Communicator(2, id));
    _exit(0);
  });
  SKIP_IF_NOT_ALLOWED(child);
  EXPECT_TRUE(child.ExitedWell()) << WEXITSTATUS(child.Wait());
}

}  // namespace
}  // namespace ringscope::recorder
