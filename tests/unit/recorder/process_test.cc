// The recorder as a process has it: files, thread, ends of all kinds. Each case runs in a child.
#include "tests/unit/recorder/process_fixture.h"

namespace ringscope::recorder {
namespace {

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
    if (files.size() != 1 || stat(files[0].c_str(), &st) != 0 || (st.st_mode & 0777) != 0600)
      _exit(2);
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
  EXPECT_THAT(Traces()[0],
              HasSubstr("/traces/j.0/h/rank0-pid" + std::to_string(child.pid()) + "-"));
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
    EXPECT_THAT(line, HasSubstr("ringscope: rank 0 (h): AllReduce #2 of communicator world (0x7) "
                                "has made no progress for "));
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
    usleep(500000);  // until it was said
    FinishCall(context, api);
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

TEST_F(ProcessTest, WithoutAJobRankTheLineNamesThePidAndTheRankInTheCommunicator) {
  Stall("0.3");
  Child child([this] {
    unsetenv("RANK");
    if (!Start()) _exit(1);
    const uint64_t context = Communicator();
    Complete(context);
    Enter(context);
    if (!Eventually([this] { return Traces().size() == 1; })) _exit(2);
    usleep(500000);  // until it was said
    kill(getpid(), SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(child.Wait()));
  EXPECT_THAT(child.Stderr(), testing::ContainsRegex("ringscope: pid [0-9]+ \\(h\\): AllReduce #2 of communicator "
                                                     "world \\(0x7\\) \\(rank [0-9]+ of [0-9]+ there\\) has made"));
}

TEST_F(ProcessTest, AFallbackToTheNetworkIsSaidOnce) {
  Child child([] {
    if (!Start()) _exit(1);
    for (uint64_t id = 7; id < 10; ++id) Communicator(4, id);
    for (uint32_t i = 0; i < 3; ++i) Current()->comms[i].flags.fetch_or(flight::kCommFallbackNoted);
    usleep(3000000);
    _exit(0);
  });
  EXPECT_TRUE(child.ExitedWell());
  EXPECT_THAT(child.StderrLines(), SizeIs(1));
  EXPECT_THAT(
      child.Stderr(),
      HasSubstr("has all of its 4 ranks on one node, yet its data goes through the network"));
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
    const std::string before = ReadAll(FilesBelow(flight_)[0]).substr(32768);
    const pid_t pid = fork();
    if (pid == 0) {
      if (Current() != nullptr) _exit(10);
      AskSnapshot(flight::Reason::kRequest);  // nobody's
      if (!Start()) _exit(11);
      if (FilesBelow(flight_).size() != 2) _exit(12);
      if (Current()->header->pid != getpid()) _exit(13);
      if (Load(Current()->counters[static_cast<uint32_t>(flight::Counter::kForked)]) != 1)
        _exit(14);
      Complete(Communicator(4, 9));
      exit(0);
    }
    int status;
    waitpid(pid, &status, 0);
    if (!WIFEXITED(status)) _exit(2);
    if (WEXITSTATUS(status)) _exit(WEXITSTATUS(status));
    if (Current() != parents || Load(Current()->comms[0].comm_id) != 7) _exit(3);
    const auto files = FilesBelow(flight_);  // the child's was removed: it ended well
    if (files.size() != 1 || ReadAll(files[0]).substr(32768) != before) _exit(4);
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

// ---- reaping

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

// ---- cost

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
    const double ns =
        double(after.tv_sec - before.tv_sec) * 1e9 + double(after.tv_nsec - before.tv_nsec);
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
