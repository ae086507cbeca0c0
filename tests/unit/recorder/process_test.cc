// The recorder as a process has it: files, thread, ends of all kinds. Each case runs in a child.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include <thread>
#include <vector>

#include "recorder/clock.h"
#include "recorder/flight/owner.h"
#include "recorder/flight/rows.h"
#include "recorder/hot_comm.h"
#include "recorder/hot_op.h"
#include "recorder/runtime.h"
#include "recorder/siblings.h"
#include "recorder/state.h"
#include "tests/unit/recorder/in_child.h"
#include "tests/unit/recorder/trace_file.h"

namespace ringscope::recorder {
namespace {

using flight::Load;
using testing::HasSubstr;
using testing::SizeIs;

#if defined(__SANITIZE_THREAD__)
#define SKIP_UNDER_TSAN(why) GTEST_SKIP() << "the thread sanitizer does not support it: " << (why)
#else
#define SKIP_UNDER_TSAN(why) static_cast<void>(why)
#endif

class ProcessTest : public testing::Test {
 protected:
  ProcessTest() {
    flight_ = dir_.path() + "/flight";
    traces_ = dir_.path() + "/traces";
    setenv("RINGSCOPE_FLIGHT_DIR", flight_.c_str(), 1);
    setenv("RINGSCOPE_DIR", traces_.c_str(), 1);
    setenv("RINGSCOPE_JOB", "j", 1);
    setenv("RINGSCOPE_HOST", "h", 1);
    setenv("RANK", "0", 1);
    for (const char* name : {"RINGSCOPE", "RINGSCOPE_STALL_SECONDS", "RINGSCOPE_TRACES", "LOCAL_RANK",
                             "RINGSCOPE_VERBOSE", "RINGSCOPE_EVENTS"}) {
      unsetenv(name);
    }
  }

  static uint64_t Communicator(int ranks = 2, uint64_t id = 7) {
    return OpenCommunicator(Current(), {id, "world", 1, ranks, 0, 5, true, true});
  }
  static void Stall(const char* seconds) { setenv("RINGSCOPE_STALL_SECONDS", seconds, 1); }
  static uint64_t Enter(uint64_t context) {
    return ApiStart(Current(), context, {flight::Func::kAllReduce, flight::DataType::kFloat32, 16, -1, 0, 0});
  }
  // One operation through all of its callbacks.
  static void Complete(uint64_t context) {
    const OpCall call = {flight::Func::kAllReduce, flight::DataType::kFloat32, 16, -1, 0, 0};
    const uint64_t api = ApiStart(Current(), context, call);
    ApiStop(Current(), api);
    const uint64_t op = LaunchStart(Current(), context, api, call,
                                    {flight::Algo::kRing, flight::Proto::kSimple, 1, 16, 0, -1});
    LaunchStop(Current(), op);
    KernelStop(Current(), KernelStart(Current(), op, 0, 1));
  }
  std::vector<std::string> Traces() const { return FilesBelow(traces_); }
  std::vector<std::string> Flights() const { return FilesBelow(flight_); }
  trace::Trace OnlyTrace() const {
    const auto files = Traces();
    EXPECT_THAT(files, SizeIs(1));
    if (files.empty()) return {};
    const TraceFile file = ReadTrace(ReadAll(files[0]));
    EXPECT_TRUE(file.Complete()) << file.error;
    return file.trace;
  }
  trace::Trace FlightTrace(const std::string& path) const {
    const std::string bytes = ReadAll(path);
    std::vector<uint64_t> words((bytes.size() + 7) / 8);
    memcpy(words.data(), bytes.data(), bytes.size());
    std::string error;
    const TraceFile file = ReadTrace(Encode(words.data(), bytes.size(), {}, &error));
    EXPECT_EQ(error, "");
    EXPECT_TRUE(file.Complete());
    return file.trace;
  }

  TempDir dir_;
  std::string flight_, traces_;
};

TEST_F(ProcessTest, OffIsOff) {
  setenv("RINGSCOPE", "0", 1);
  Child child([] {
    if (Start() || Start() || Current()) _exit(1);
    AskSnapshot(flight::Reason::kRequest);
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
  EXPECT_EQ(child.Stderr(), "");
  EXPECT_THAT(FilesBelow(dir_.path()), SizeIs(0));
}

TEST_F(ProcessTest, ACleanEndLeavesOneTraceAndNoFlightFile) {
  Child child([this] {
    errno = 77;
    if (!Start() || errno != 77) _exit(1);
    struct stat st;
    const auto files = FilesBelow(flight_);
    if (files.size() != 1 || stat(files[0].c_str(), &st) != 0 || (st.st_mode & 0777) != 0600) _exit(2);
    if (st.st_size > 3 << 20 || st.st_blocks * 512 < st.st_size) _exit(3);  // reserved
    if (stat(flight_.c_str(), &st) != 0 || (st.st_mode & 0777) != 0700) _exit(4);
    const uint64_t context = Communicator();
    Complete(context);
    CloseCommunicator(Current(), context);
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
  EXPECT_EQ(child.Stderr(), "");
  EXPECT_THAT(Flights(), SizeIs(0));
  const trace::Trace t = OnlyTrace();  // that of the finalize was replaced
  EXPECT_EQ(t.reason(), trace::REASON_EXIT);
  EXPECT_TRUE(t.liveness().clean());
  EXPECT_TRUE(t.liveness().exiting());
  EXPECT_TRUE(t.liveness().unloaded());
  EXPECT_EQ(t.communicators_size(), 1);
  EXPECT_EQ(t.process().pid(), child.pid());
  EXPECT_THAT(Traces()[0], HasSubstr("/traces/j.0/h/rank0-pid" + std::to_string(child.pid()) + "-"));
}

TEST_F(ProcessTest, ExitWithAnOpenOperationKeepsTheFlightFile) {
  Child child([] {
    if (!Start()) _exit(1);
    Enter(Communicator());
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
  ASSERT_THAT(Flights(), SizeIs(1));
  const trace::Trace t = OnlyTrace();
  EXPECT_EQ(t.reason(), trace::REASON_EXIT);
  EXPECT_FALSE(t.liveness().clean());
  EXPECT_TRUE(t.liveness().exiting());
  EXPECT_TRUE(t.communicators(0).operations(0).unfinished());
  EXPECT_TRUE(FlightTrace(Flights()[0]).liveness().exiting());
}

TEST_F(ProcessTest, AnAbortIsATraceOfItsOwn) {
  Child child([this] {
    if (!Start()) _exit(1);
    const uint64_t context = Communicator();
    Enter(context);
    CloseCommunicator(Current(), context);
    if (!Eventually([this] { return Traces().size() == 2; })) _exit(2);
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
  ASSERT_THAT(Traces(), SizeIs(2));
  EXPECT_THAT(Traces()[0], HasSubstr("-1-abort.trace"));
  EXPECT_THAT(Traces()[1], HasSubstr("-exit.trace"));
  EXPECT_THAT(Flights(), SizeIs(1));
  EXPECT_FALSE(ReadTrace(ReadAll(Traces()[1])).trace.liveness().clean());
}

TEST_F(ProcessTest, KilledProcessesLeaveTheirRecord) {
  Child child([] {
    if (!Start()) _exit(1);
    const uint64_t context = Communicator();
    for (int i = 0; i < 5; ++i) Complete(context);
    Enter(context);
    kill(getpid(), SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(child.Wait()));
  ASSERT_THAT(Flights(), SizeIs(1));
  EXPECT_THAT(Traces(), SizeIs(0));
  const trace::Trace t = FlightTrace(Flights()[0]);
  ASSERT_EQ(t.communicators_size(), 1);
  ASSERT_EQ(t.communicators(0).operations_size(), 6);
  EXPECT_TRUE(t.communicators(0).operations(5).unfinished());
  EXPECT_FALSE(t.communicators(0).operations(4).unfinished());
  EXPECT_FALSE(t.liveness().exiting());
  const int fd = open(Flights()[0].c_str(), O_RDONLY);
  EXPECT_EQ(flight::ProbeOwnerLock(fd), flight::OwnerLock::kFree);
  close(fd);
}

TEST_F(ProcessTest, UnderscoreExitLeavesItsRecord) {
  Child child([] {
    if (!Start()) _exit(1);
    Communicator();
    _exit(0);
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
  EXPECT_THAT(Flights(), SizeIs(1));
}

TEST_F(ProcessTest, TheLockShowsTheOwnerAlive) {
  Child child([] {
    if (!Start()) _exit(1);
    // A child of the owner must not keep the lock alive.
    if (fork() == 0) {
      sleep(30);
      _exit(0);
    }
    pause();
  });
  ASSERT_TRUE(Eventually([this] { return Flights().size() == 1; }));
  const int fd = open(Flights()[0].c_str(), O_RDONLY);
  EXPECT_TRUE(Eventually([fd] { return flight::ProbeOwnerLock(fd) == flight::OwnerLock::kHeld; }));
  kill(child.pid(), SIGKILL);
  child.Wait();
  EXPECT_EQ(flight::ProbeOwnerLock(fd), flight::OwnerLock::kFree);
  close(fd);
}

TEST_F(ProcessTest, AStallIsNoticedAndSaid) {
  Stall("0.3");
  Child child([this] {
    if (!Start()) _exit(1);
    const uint64_t context = Communicator();
    Complete(context);
    Enter(context);
    if (!Eventually([this] { return Traces().size() == 1; })) _exit(2);
    kill(getpid(), SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(child.Wait()));
  const trace::Trace t = OnlyTrace();
  EXPECT_EQ(t.reason(), trace::REASON_STALL);
  ASSERT_EQ(t.stalls_size(), 1);
  EXPECT_EQ(t.stalls(0).position(), 2u);
  EXPECT_GE(t.stalls(0).noticed_ns() - t.stalls(0).since_ns(), 300000000);
  EXPECT_LE(t.stalls(0).noticed_ns() - t.stalls(0).since_ns(), 3000000000);
  EXPECT_EQ(t.sequence(), 1u);
  // The line may be lost between the rename and the kill; if it is there it is this one.
  for (const std::string& line : child.StderrLines()) {
    EXPECT_THAT(line, HasSubstr("ringscope: rank 0 (h): AllReduce #2 of communicator world (0x7) has made no progress for "));
    EXPECT_THAT(line, HasSubstr("Next: ringscope diagnose " + traces_ + "/j.0"));
  }
}

TEST_F(ProcessTest, ARecoveryIsWrittenAndSaid) {
  Stall("0.3");
  Child child([this] {
    if (!Start()) _exit(1);
    const uint64_t context = Communicator();
    Complete(context);
    const uint64_t api = Enter(context);
    if (!Eventually([this] { return Traces().size() == 1; })) _exit(2);
    ApiStop(Current(), api);
    if (!Eventually([this] { return Traces().size() == 2; })) _exit(3);
    usleep(200000);
    kill(getpid(), SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(child.Wait()));
  ASSERT_THAT(Traces(), SizeIs(testing::Ge(2u)));
  EXPECT_THAT(Traces()[1], HasSubstr("-2-recovered.trace"));
  EXPECT_GT(ReadTrace(ReadAll(Traces()[1])).trace.stalls(0).resolved_ns(), 0);
  EXPECT_THAT(child.Stderr(), HasSubstr("AllReduce #2 of communicator world (0x7) went on after "));
}

TEST_F(ProcessTest, AFallbackToTheNetworkIsSaidOnce) {
  Child child([] {
    if (!Start()) _exit(1);
    for (uint64_t id = 7; id < 10; ++id) Communicator(4, id);
    for (uint32_t i = 0; i < 3; ++i) Current()->comms[i].flags.fetch_or(flight::kCommFallbackNoted);
    usleep(1300000);
    _exit(0);
  });
  EXPECT_TRUE(child.ExitedWell());
  EXPECT_THAT(child.StderrLines(), SizeIs(1));
  EXPECT_THAT(child.Stderr(), HasSubstr("has all of its 4 ranks on one node, yet its data goes through the network"));
}

TEST_F(ProcessTest, NoMoreTracesThanAsked) {
  setenv("RINGSCOPE_TRACES", "3", 1);
  Child child([] {
    if (!Start()) _exit(1);
    for (int i = 0; i < 20; ++i) {
      const uint64_t written = Load(g_runtime.image.header->heartbeats);
      AskSnapshot(flight::Reason::kRequest);
      Eventually([&] { return Load(g_runtime.image.header->heartbeats) > written; });
    }
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
  EXPECT_THAT(Traces(), SizeIs(4));  // three, and that of the exit
  EXPECT_EQ(child.Stderr(), "");
}

TEST_F(ProcessTest, NoTracesWantedMeansTheFlightFileStays) {
  setenv("RINGSCOPE_TRACES", "0", 1);
  Child child([] {
    if (!Start()) _exit(1);
    const uint64_t context = Communicator();
    Complete(context);
    CloseCommunicator(Current(), context);
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
  EXPECT_THAT(Traces(), SizeIs(0));
  EXPECT_THAT(Flights(), SizeIs(1));
}

TEST_F(ProcessTest, ManyThreadsStartOnce) {
  Child child([this] {
    std::vector<std::thread> threads;
    std::atomic<int> good{0};
    for (int i = 0; i < 16; ++i) {
      threads.emplace_back([&good] { good += Start() && Current() != nullptr; });
    }
    for (auto& t : threads) t.join();
    if (good != 16 || FilesBelow(flight_).size() != 1) _exit(1);
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait() << " " << child.Stderr();
}

TEST_F(ProcessTest, OneThreadThatTakesNoSignal) {
  Child child([] {
    if (!Start()) _exit(1);
    std::string names;
    uint64_t blocked = 0;
    Eventually([&] {
      names.clear();
      DIR* dir = opendir("/proc/self/task");
      while (dirent* e = readdir(dir)) {
        if (e->d_name[0] == '.') continue;
        const std::string task = std::string("/proc/self/task/") + e->d_name;
        const std::string name = ReadAll(task + "/comm");
        names += name;
        const std::string status = ReadAll(task + "/status");
        const size_t at = status.find("SigBlk:");
        if (name == "ringscope\n") blocked = strtoull(status.c_str() + at + 7, nullptr, 16);
      }
      closedir(dir);
      return names.find("ringscope\n") != std::string::npos;
    });
#if !defined(__SANITIZE_THREAD__)  // it has a thread of its own
    if (std::count(names.begin(), names.end(), '\n') != 2) _exit(2);
#endif
    // All but KILL and STOP, which cannot be, and the two that the C library keeps for itself.
    const uint64_t must = 0x7fffffff & ~(1u << (SIGKILL - 1)) & ~(1u << (SIGSTOP - 1));
    if ((blocked & must) != must) _exit(3);
    sigset_t mine;
    pthread_sigmask(SIG_SETMASK, nullptr, &mine);
    if (sigismember(&mine, SIGTERM)) _exit(4);
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait();
}

TEST_F(ProcessTest, AForkedChildStartsAfresh) {
  SKIP_UNDER_TSAN("starts a thread in a forked child");
  Child child([this] {
    if (!Start()) _exit(1);
    const uint64_t context = Communicator();
    Complete(context);
    const Image* parents = Current();
    const std::string before = ReadAll(FilesBelow(flight_)[0]).substr(65536);
    const pid_t pid = fork();
    if (pid == 0) {
      if (Current() != nullptr) _exit(10);
      AskSnapshot(flight::Reason::kRequest);  // nobody's
      if (!Start()) _exit(11);
      if (FilesBelow(flight_).size() != 2) _exit(12);
      if (Current()->header->pid != getpid()) _exit(13);
      if (Load(Current()->counters[static_cast<uint32_t>(flight::Counter::kForked)]) != 1) _exit(14);
      Complete(Communicator(4, 9));
      exit(0);
    }
    int status;
    waitpid(pid, &status, 0);
    if (!WIFEXITED(status)) _exit(2);
    if (WEXITSTATUS(status)) _exit(WEXITSTATUS(status));
    if (Current() != parents || Load(Current()->comms[0].comm_id) != 7) _exit(3);
    const auto files = FilesBelow(flight_);  // the child's was removed: it ended well
    if (files.size() != 1 || ReadAll(files[0]).substr(65536) != before) _exit(4);
    CloseCommunicator(Current(), context);
  });
  EXPECT_TRUE(child.ExitedWell()) << WEXITSTATUS(child.Wait()) << child.Stderr();
  EXPECT_THAT(Traces(), SizeIs(2));
}

TEST_F(ProcessTest, AChildOfARawCloneStartsAfreshToo) {
  SKIP_UNDER_TSAN("starts a thread in a forked child");
  Child child([] {
    if (!Start()) _exit(1);
    const pid_t pid = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    if (pid == 0) {
      // No fork handler ran: Start() must find out by itself.
      if (!Start()) _exit(11);
      _exit(Current()->header->pid == static_cast<pid_t>(syscall(SYS_getpid)) ? 0 : 12);
    }
    int status;
    waitpid(pid, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 3);
  });
  EXPECT_TRUE(child.ExitedWell()) << WEXITSTATUS(child.Wait());
  EXPECT_THAT(Flights(), SizeIs(2));
}

TEST_F(ProcessTest, ExitOfAForkedChildWritesNothing) {
  Child child([] {
    if (!Start()) _exit(1);
    Communicator();
    const pid_t pid = fork();
    if (pid == 0) exit(0);
    int status;
    waitpid(pid, &status, 0);
    kill(getpid(), SIGKILL);
  });
  child.Wait();
  EXPECT_THAT(Traces(), SizeIs(0));
  EXPECT_THAT(Flights(), SizeIs(1));
}

// ------------------------------------------------------------------------------------------------- places that are no good

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
  return mount("small", where.c_str(), "tmpfs", MS_NODEV | MS_NOSUID, (std::string("mode=700,size=") + size).c_str()) == 0;
}

constexpr int kSkip = 99;
#define SKIP_IF_NOT_ALLOWED(child) \
  if (WIFEXITED((child).Wait()) && WEXITSTATUS((child).Wait()) == kSkip) GTEST_SKIP() << "needs the right to mount a tmpfs"

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
    if (!Eventually([] { return Load(Current()->counters[static_cast<uint32_t>(flight::Counter::kTraceFailed)]) > 0; })) {
      _exit(2);
    }
    if (!FilesBelow(traces_).empty()) _exit(3);  // no half of a trace
    Complete(context);
  });
  SKIP_IF_NOT_ALLOWED(child);
  EXPECT_TRUE(child.ExitedWell()) << WEXITSTATUS(child.Wait());
  int said = 0;
  for (const std::string& line : child.StderrLines()) said += line.find("no space left") != std::string::npos;
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

// -------------------------------------------------------------------------------------------------------------- siblings

class SiblingTest : public ProcessTest {
 protected:
  void SetUp() override { Stall("1"); }
  static std::function<void()> Lives(const char* rank) {
    return [rank] {
      setenv("RANK", rank, 1);
      if (!Start()) _exit(1);
      Communicator();
      pause();
    };
  }
  static std::function<void()> EndsWell(const char* rank) {
    return [rank] {
      setenv("RANK", rank, 1);
      if (!Start()) _exit(1);
      Complete(Communicator());
      usleep(1500000);
    };
  }
  const trace::Sibling* Of(const trace::Trace& t, int rank) {
    for (const auto& s : t.siblings()) {
      if (s.rank() == rank) return &s;
    }
    return nullptr;
  }
};

TEST_F(SiblingTest, TheSurvivorTellsKilledStoppedAliveAndEndedApart) {
  Child alive(Lives("1")), stopped(Lives("2")), killed(Lives("3")), ends(EndsWell("4"));
  ASSERT_TRUE(Eventually([this] { return Flights().size() == 4; }));
  Child witness([this] {
    if (!Start()) _exit(1);
    const uint64_t context = Communicator();
    Complete(context);
    Enter(context);
    if (!Eventually([this] { return !Traces().empty() && Traces().back().find("stall") != std::string::npos; })) _exit(2);
    usleep(3000000);  // the witness looks on; what it sees later stands in its flight file
    kill(getpid(), SIGKILL);
  });
  usleep(300000);
  kill(stopped.pid(), SIGSTOP);
  kill(killed.pid(), SIGKILL);
  killed.Wait();
  witness.Wait();
  std::string file;
  for (const std::string& f : Flights()) {
    if (f.find("-rank0-") != std::string::npos) file = f;
  }
  ASSERT_NE(file, "");
  const trace::Trace t = FlightTrace(file);
  ASSERT_EQ(t.siblings_size(), 4);
  ASSERT_TRUE(Of(t, 1) && Of(t, 2) && Of(t, 3) && Of(t, 4));
  EXPECT_EQ(Of(t, 1)->state(), trace::Sibling::ALIVE);
  EXPECT_EQ(Of(t, 2)->state(), trace::Sibling::FROZEN);
  EXPECT_EQ(Of(t, 2)->process_state(), "T");
  EXPECT_EQ(Of(t, 3)->state(), trace::Sibling::GONE);
  EXPECT_EQ(Of(t, 3)->pid(), killed.pid());
  EXPECT_EQ(Of(t, 4)->state(), trace::Sibling::EXITED);
  EXPECT_GT(Of(t, 3)->heartbeat_realtime_ns(), 0);
  kill(stopped.pid(), SIGCONT);
}

TEST_F(SiblingTest, OtherJobsAreNotSiblingsOtherHostNamesAre) {
  Child other([] {
    setenv("RINGSCOPE_JOB", "k", 1);
    if (!Start()) _exit(1);
    pause();
  });
  Child restarted([] {
    setenv("TORCHELASTIC_RESTART_COUNT", "1", 1);
    if (!Start()) _exit(1);
    pause();
  });
  Child container([] {  // one directory in memory is one kernel, whatever the names
    setenv("RINGSCOPE_HOST", "h2", 1);
    setenv("RANK", "5", 1);
    if (!Start()) _exit(1);
    pause();
  });
  ASSERT_TRUE(Eventually([this] { return Flights().size() == 3; }));
  usleep(100000);
  Child witness([&] {
    if (!Start()) _exit(1);
    LookAtSiblings(&g_runtime, Ticks());
    const flight::SiblingRow* rows = Current()->siblings;
    if (Load(rows[0].who) != (static_cast<uint32_t>(container.pid()) | uint64_t{5} << 32)) _exit(2);
    _exit(Load(rows[1].who) == 0 ? 0 : 3);
  });
  EXPECT_TRUE(witness.ExitedWell()) << WEXITSTATUS(witness.Wait());
}

TEST_F(SiblingTest, TheDeadOfAnEarlierRunAreNotSiblings) {
  Child before([] {
    setenv("RANK", "1", 1);
    if (!Start()) _exit(1);
    usleep(200000);
    kill(getpid(), SIGKILL);
  });
  before.Wait();
  usleep(3500000);
  Child witness([] {
    if (!Start()) _exit(1);
    LookAtSiblings(&g_runtime, Ticks());
    _exit(Load(Current()->siblings[0].who) == 0 ? 0 : 2);
  });
  EXPECT_TRUE(witness.ExitedWell());
}

TEST_F(SiblingTest, AStoppedProcessNotesItsFreeze) {
  Child child([] {
    Stall("2");
    if (!Start()) _exit(1);
    const uint64_t context = Communicator();
    Complete(context);
    Enter(context);
    pause();
  });
  ASSERT_TRUE(Eventually([this] { return Flights().size() == 1; }));
  usleep(500000);
  kill(child.pid(), SIGSTOP);
  usleep(3500000);
  kill(child.pid(), SIGCONT);
  trace::Trace t;
  EXPECT_TRUE(Eventually([&] {
    t = FlightTrace(Flights()[0]);
    return t.liveness().freezes() > 0;
  }));
  EXPECT_GE(t.liveness().freeze_ns(), 3000000000);
  EXPECT_EQ(t.stalls_size(), 0);  // the time in which it stood still is not held against its operation
}

// --------------------------------------------------------------------------------------------------------------- reaping

TEST_F(ProcessTest, OldFilesOfDeadProcessesAreRemoved) {
  const auto die = [](const char* rank) {
    Child child([rank] {
      setenv("RANK", rank, 1);
      if (!Start()) _exit(1);
      usleep(200000);
      kill(getpid(), SIGKILL);
    });
    child.Wait();
  };
  for (int i = 0; i < 4; ++i) die("0");
  die("1");
  Child alive([] {
    if (!Start()) _exit(1);
    pause();
  });
  ASSERT_TRUE(Eventually([this] { return Flights().size() <= 4; }));
  // Things that are none of our business.
  const std::string foreign = flight_ + "/ringscope-j.0-h-rank0-1-2.flight";
  std::ofstream(foreign) << "not a flight file, but a name like one";
  const std::string link = flight_ + "/ringscope-j.0-h-rank0-3-4.flight";
  ASSERT_EQ(symlink("/etc/hostname", link.c_str()), 0);
  for (int i = 0; i < 3; ++i) die("0");
  int dead0 = 0, dead1 = 0;
  for (const std::string& f : Flights()) {
    dead0 += f.find("-rank0-") != std::string::npos;
    dead1 += f.find("-rank1-") != std::string::npos;
  }
  // The last one removed all but two of those before it; itself, the living one, the two odd ones.
  EXPECT_EQ(dead0, 2 + 1 + 1 + 2);
  EXPECT_EQ(dead1, 1);
  struct stat st;
  EXPECT_EQ(lstat(foreign.c_str(), &st), 0);
  EXPECT_EQ(lstat(link.c_str(), &st), 0);
}

// ------------------------------------------------------------------------------------------------------------------ cost

// CPU time of our thread while a job with eight communicators does nothing: < 0.1 % of a core.
TEST_F(ProcessTest, IdleCostsNothing) {
  char report[] = "/tmp/ringscope-idle-XXXXXX";
  close(mkstemp(report));
  Child child([&] {
    if (!Start()) _exit(1);
    for (uint64_t id = 0; id < 8; ++id) {
      const uint64_t context = Communicator(2, id);
      for (int i = 0; i < 300; ++i) Complete(context);
    }
    usleep(1200000);
    timespec before, after;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    usleep(4000000);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    const double ns = double(after.tv_sec - before.tv_sec) * 1e9 + double(after.tv_nsec - before.tv_nsec);
    std::ofstream(report) << ns / 4e9;
    _exit(0);
  });
  ASSERT_TRUE(child.ExitedWell());
  const double share = std::stod(ReadAll(report));
  unlink(report);
  std::cout << "idle: " << share * 100 << " % of a core\n";
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's cost is not ours";
#endif
  EXPECT_LT(share, 0.001);
}

}  // namespace
}  // namespace ringscope::recorder
