// What hosts do to themselves: closing descriptors, exec, exit in odd ways, limits, other users and roots. The host must not
// notice the recorder; the record must stay right.
#include <grp.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <atomic>
#include <thread>

#include "analyzer/ingest/owner_probe.h"
#include "tests/manners/fixture.h"

#if defined(__SANITIZE_ADDRESS__)
// The leak checker runs at exit(), starts a thread and reads /proc: not where a host has closed every descriptor, changed its
// root or limited itself. Our code allocates nothing.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
#endif

namespace ringscope::manners {
namespace {

// A file is created and locked before it is given its size and its header: until then it reads as a header of zeros.
const flight::FileHeader& HeaderIn(const std::string& bytes) {
  alignas(flight::FileHeader) static const char kNone[sizeof(flight::FileHeader)] = {};
  const char* data = bytes.size() < sizeof(flight::FileHeader) ? kNone : bytes.data();
  return *reinterpret_cast<const flight::FileHeader*>(data);
}

ingest::OwnerState Probe(const std::string& path) {
  const std::string bytes = ReadAll(path);
  const flight::FileHeader& header = HeaderIn(bytes);
  ingest::Owner owner;
  owner.boot_id = header.boot_id;
  owner.pid = header.pid;
  owner.start_ticks = header.process_start;
  owner.stack = header.process_stack;
  owner.created_realtime_ns = static_cast<int64_t>(header.first_anchor.realtime_ns.load());
  return ingest::ProbeOwner(path, owner);
}

// ---- exec

TEST_F(MannersTest, AfterExecTheOldRecordHasEnded) {
  Gate ready;
  Child child([&] {
    Host host(RINGSCOPE_LIBRARY);
    host.Complete(host.Init());
    ready.Pass();
    execl("/bin/sleep", "sleep", "60", nullptr);
    _exit(1);
  });
  ready.Wait();
  ASSERT_TRUE(Eventually([&] { return Flights().size() == 1 && !Locked(Flights()[0]); }));
  // Same pid, same start time, and it lives: but it is not the one that wrote the file.
  const ingest::OwnerState state = Probe(Flights()[0]);
  EXPECT_TRUE(state.known);
  EXPECT_FALSE(state.exists);
  EXPECT_EQ(state.letter, 0);
  EXPECT_EQ(kill(child.pid(), 0), 0);
}

TEST_F(MannersTest, AfterExecTheNewProgramHasItsOwnRecord) {
  Gate ready;
  Child child([&] {
    Host host(RINGSCOPE_LIBRARY);
    host.Complete(host.Init());
    ready.Pass();
    execl(MANNERS_HOST, "manners_host", RINGSCOPE_LIBRARY, "hang", nullptr);
    _exit(1);
  });
  ready.Wait();
  ASSERT_TRUE(Eventually([&] { return Flights().size() == 2; }));
  ASSERT_TRUE(Eventually([&] { return Locked(Flights()[0]) + Locked(Flights()[1]) == 1; }));
  for (const std::string& f : Flights()) {
    EXPECT_TRUE(Eventually([&] { return HeaderIn(ReadAll(f)).pid == child.pid(); }));
    EXPECT_TRUE(Eventually([&] { return Probe(f).known; }));
    EXPECT_EQ(Probe(f).exists, Locked(f));
  }
}

// ---- descriptors

// A host that closes everything and opens files of its own: the lock comes back, nothing of ours goes into its files.
TEST_F(MannersTest, AHostThatClosesAllDescriptors) {
  const std::string files = dir_.path() + "/files";
  mkdir(files.c_str(), 0700);
  Gate ready, go;
  Child child([&] {
    Host host(RINGSCOPE_LIBRARY);
    void* context = host.Init();
    host.Complete(context);
    for (int fd = 0; fd < 1024; ++fd) {
      if (!ready.Has(fd) && !go.Has(fd)) close(fd);
    }
    // Every number up to 400 is a file of the host's now.
    std::vector<int> own;
    for (int i = 0; i < 400; ++i) {
      const int fd = open((files + "/" + std::to_string(i)).c_str(), O_RDWR | O_CREAT, 0600);
      if (fd < 400) own.push_back(fd);
    }
    ready.Pass();
    go.Wait();
    // A child must not close what has our number now; nor the parent when it ends.
    const pid_t pid = fork();
    if (pid == 0) {
      for (const int fd : own) {
        if (fcntl(fd, F_GETFD) < 0) _exit(3);
      }
      host.Complete(host.Init(8));
      exit(0);
    }
    if (const int status = StatusOf(pid)) _exit(status);
    for (const int fd : own) {
      if (fcntl(fd, F_GETFD) < 0) _exit(4);
    }
    host.Finalize(context);
  });
  ready.Wait();
  ASSERT_THAT(Flights(), SizeIs(1));
  EXPECT_TRUE(Eventually([&] { return Locked(Flights()[0]); })) << "the lock must come back";
  EXPECT_TRUE(Probe(Flights()[0]).exists);
  go.Pass();
  EXPECT_TRUE(child.ExitedWell()) << child.Wait();
  for (const std::string& f : FilesBelow(files)) EXPECT_EQ(ReadAll(f), "") << f;
  EXPECT_THAT(Traces(), SizeIs(2));
}

TEST_F(MannersTest, StandardStreamsAreLeftToTheHost) {
  Child child([] {
    for (int fd = 0; fd < 3; ++fd) close(fd);
    Host host(RINGSCOPE_LIBRARY);
    void* context = host.Init();
    host.Complete(context);
    for (int fd = 0; fd < 3; ++fd) {
      if (fcntl(fd, F_GETFD) >= 0) _exit(10 + fd);
    }
    host.Finalize(context);
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait();
  EXPECT_THAT(Flights(), SizeIs(0));
}

// ---- stderr

TEST_F(MannersTest, AClosedPipeAsStderrKillsNobody) {
  Set("RINGSCOPE_FLIGHT_DIR", "/proc/nowhere");  // something to say
  Child child([] {
    int fds[2];
    if (pipe(fds) != 0) _exit(2);
    dup2(fds[1], 2);
    close(fds[0]);
    close(fds[1]);
    signal(SIGPIPE, SIG_DFL);
    Host host(RINGSCOPE_LIBRARY);
    host.Complete(host.Init());
    sigset_t pending;
    sigpending(&pending);
    _exit(sigismember(&pending, SIGPIPE) ? 3 : 0);
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait();
}

TEST_F(MannersTest, AFullPipeAsStderrHoldsNobody) {
  Set("RINGSCOPE_FLIGHT_DIR", "/proc/nowhere");
  Child child([] {
    int fds[2];
    if (pipe(fds) != 0) _exit(2);
    fcntl(fds[1], F_SETFL, O_NONBLOCK);
    char page[4096] = {};
    while (write(fds[1], page, sizeof(page)) > 0) {
    }
    fcntl(fds[1], F_SETFL, 0);
    dup2(fds[1], 2);
    Host host(RINGSCOPE_LIBRARY);
    host.Complete(host.Init());  // alarm() ends this process if it does not come back
    _exit(0);
  });
  EXPECT_TRUE(child.ExitedWell()) << child.Wait();
}

// ---- rights and limits

TEST_F(MannersTest, AnyUmask) {
  for (const mode_t mask : {0777u, 0u, 077u}) {
    Child child([this, mask] {
      umask(mask);
      Host host(RINGSCOPE_LIBRARY);
      void* context = host.Init();
      host.Complete(context);
      struct stat st;
      if (stat(flight_.c_str(), &st) != 0 || (st.st_mode & 0777) != 0700) _exit(2);
      if (stat(FlightOf(getpid()).c_str(), &st) != 0 || (st.st_mode & 0777) != 0600) _exit(3);
      host.Finalize(context);
    });
    EXPECT_ENDED_WELL(child);
    ASSERT_THAT(Traces(), SizeIs(1));
    struct stat st;
    ASSERT_EQ(stat(Traces()[0].c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 0777, 0600u);
    ASSERT_EQ(stat(traces_.c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 0700, 0700u);
    EXPECT_EQ(st.st_mode & 022, 0u);
    TempDir::Remove(traces_);
    TempDir::Remove(flight_);
  }
}

TEST_F(MannersTest, LimitsThatComeLater) {
  for (const auto resource : {RLIMIT_NOFILE, RLIMIT_FSIZE}) {
    Child child([resource] {
      Host host(RINGSCOPE_LIBRARY);
      void* context = host.Init();
      host.Complete(context);
      const rlimit none = {resource == RLIMIT_NOFILE ? 3u : 1u, RLIM_INFINITY};
      rlimit now = none;
      rlimit old;
      getrlimit(resource, &old);
      now.rlim_max = old.rlim_max;
      setrlimit(resource, &now);
      host.Finalize(context);
    });
    EXPECT_TRUE(child.ExitedWell()) << std::hex << child.Wait();  // no SIGXFSZ
    EXPECT_THAT(Flights(), SizeIs(1)) << "the only record left";
    EXPECT_THAT(Traces(), SizeIs(0));
    TempDir::Remove(flight_);
  }
}

TEST_F(MannersTest, AnotherWorkingDirectory) {
  Set("RINGSCOPE_DIR", "traces");
  Set("RINGSCOPE_FLIGHT_DIR", "flight");
  Child child([this] {
    if (chdir(dir_.path().c_str()) != 0) _exit(2);
    Host host(RINGSCOPE_LIBRARY);
    void* context = host.Init();
    host.Complete(context);
    if (chdir("/") != 0) _exit(3);
    host.Finalize(context);
  });
  EXPECT_ENDED_WELL(child);
  EXPECT_THAT(Traces(), SizeIs(1));
  EXPECT_THAT(Flights(), SizeIs(0));
}

TEST_F(MannersTest, AnotherUserAfterTheStart) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  Child child([] {
    Host host(RINGSCOPE_LIBRARY);
    void* context = host.Init();
    host.Complete(context);
    // glibc has every thread do it, by a signal of its own: ours must take that one.
    if (setgroups(0, nullptr) != 0 || setgid(65534) != 0 || setuid(65534) != 0) _exit(2);
    host.Complete(context);
    host.Finalize(context);
  });
  EXPECT_ENDED_WELL(child);
  EXPECT_LE(child.StderrLines().size(), 1u);
  EXPECT_THAT(Flights(), SizeIs(1)) << "it could not be removed: its folder is root's";
}

TEST_F(MannersTest, AnotherRoot) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can chroot";
  Child child([this] {
    Host host(RINGSCOPE_LIBRARY);
    void* context = host.Init();
    host.Complete(context);
    const std::string root = dir_.path() + "/root";
    mkdir(root.c_str(), 0700);
    // Something with the name of our folder is there, too.
    const std::string twin = root + flight_;
    for (size_t at = root.size() + 1; at != std::string::npos; at = twin.find('/', at + 1))
      mkdir(twin.substr(0, at).c_str(), 0700);
    mkdir(twin.c_str(), 0700);
    if (chroot(root.c_str()) != 0 || chdir("/") != 0) _exit(2);
    host.Finalize(context);
  });
  EXPECT_ENDED_WELL(child);
  EXPECT_THAT(Flights(), SizeIs(1));
}

// ---- ends

TEST_F(MannersTest, ManyThreadsExitAtOnce) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the address sanitizer turns glibc's own crash here into an exit status";
#endif
  for (int round = 0; round < 5; ++round) {
    Child child([] {
      Host host(RINGSCOPE_LIBRARY);
      host.Complete(host.Init());
      std::atomic<int> at_door{0};
      for (int t = 0; t < 4; ++t) {
        std::thread([&at_door] {
          ++at_door;
          while (at_door < 4) {
          }
          exit(0);
        }).detach();
      }
      for (;;) pause();
    });
    // glibc before 2.41 itself may crash where two threads run its exit handlers (its bug 31997), with
    // and without us: what we owe is that nobody waits for ever (SIGALRM after a minute).
    const int status = child.Wait();
    EXPECT_FALSE(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) << child.Stderr();
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << std::hex << status;
  }
}

TEST_F(MannersTest, ExitWhileCallbacksRun) {
  Child child([] {
    Host host(RINGSCOPE_LIBRARY);
    void* context = host.Init();
    for (int t = 0; t < 3; ++t) std::thread([&host, context] { host.Complete(context, UINT64_MAX); }).detach();
    usleep(50000);
    exit(0);
  });
  EXPECT_ENDED_WELL(child);
}

TEST_F(MannersTest, UnderscoreExit) {
  for (const bool open : {false, true}) {
    Child child([open] {
      Host host(RINGSCOPE_LIBRARY);
      void* context = host.Init();
      host.Complete(context, 3);
      if (open) host.Open(context);
      _exit(0);
    });
    EXPECT_ENDED_WELL(child);
    ASSERT_THAT(Flights(), SizeIs(1));
    EXPECT_FALSE(Probe(Flights()[0]).exists);
    EXPECT_EQ(HeaderIn(ReadAll(Flights()[0])).state.load() & (flight::kStateClean | flight::kStateExiting), 0u);
    TempDir::Remove(flight_);
  }
  EXPECT_THAT(Traces(), SizeIs(0));
}

TEST_F(MannersTest, UnloadedAndLoadedAgain) {
  Child child([this] {
    Host host(RINGSCOPE_LIBRARY);
    std::string first;
    for (int i = 0; i < 5; ++i) {
      void* context = host.Init();
      if (host.mask() == 0) _exit(2);
      host.Complete(context, 3);
      const std::string now = FlightOf(getpid());
      if (i == 0) first = now;
      if (now != first || Flights().size() != 1) _exit(3);
      host.Finalize(context);
      host.Unload();
      host.Load();
    }
  });
  EXPECT_ENDED_WELL(child);
  EXPECT_THAT(Flights(), SizeIs(0));
  EXPECT_THAT(Traces(), SizeIs(1));
}

// A signal sent to the process is for its own threads.
TEST_F(MannersTest, SignalsAreForTheHost) {
  Child child([] {
    Host host(RINGSCOPE_LIBRARY);
    host.Complete(host.Init());
    sigset_t all, pending;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, nullptr);
    for (const int signal : {SIGUSR1, SIGTERM, SIGINT, SIGCHLD, SIGALRM, SIGPROF, SIGRTMIN + 3}) {
      kill(getpid(), signal);
      usleep(20000);
      sigpending(&pending);
      if (!sigismember(&pending, signal)) _exit(2);  // somebody took it
    }
    _exit(0);
  });
  EXPECT_ENDED_WELL(child);
}

}  // namespace
}  // namespace ringscope::manners
