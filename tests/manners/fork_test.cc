// Children of every kind: none writes into its parent's tables, takes its file, writes a trace or hangs.
#include <sched.h>
#include <spawn.h>
#include <sys/syscall.h>

#include <atomic>
#include <thread>

#include "tests/manners/fixture.h"

extern char** environ;

namespace ringscope::manners {
namespace {

pid_t RawClone() { return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); }

TEST_F(MannersTest, ChildrenLeaveTheParentsRecordAlone) {
  Child child([this] {
    Host host(RINGSCOPE_LIBRARY);
    void* context = host.Init();
    host.Complete(context, 10);
    host.Open(context);
    const std::string own = FlightOf(getpid()), before = Tables(own);
    for (int kind = 0; kind < 8; ++kind) {
      const pid_t pid = kind % 2 ? RawClone() : fork();
      if (pid == 0) {
        if (kind >= 4) {  // whatever it inherited may still be called
          host.Complete(context, 5);
          host.Finalize(context);
        }
        if (kind >= 6 && fork() == 0) exit(0);
        if (kind % 4 < 2) exit(0);
        _exit(0);
      }
      if (StatusOf(pid) != 0) _exit(10 + kind);
      if (Tables(own) != before) _exit(20 + kind);
      if (Flights().size() != 1 || !Traces().empty()) _exit(30 + kind);
    }
    host.Complete(context);
    if (Tables(own) == before) _exit(2);
    _exit(0);
  });
  EXPECT_ENDED_WELL(child);
}

TEST_F(MannersTest, AChildThatUsesNcclHasItsOwnRecord) {
  Child child([this] {
    Host host(RINGSCOPE_LIBRARY);
    void* context = host.Init();
    host.Complete(context, 10);
    const std::string own = FlightOf(getpid()), before = Tables(own);
    for (int kind = 0; kind < 2; ++kind) {
      const pid_t pid = kind % 2 ? RawClone() : fork();
      if (pid == 0) {
        void* mine = host.Init(8);
        if (host.mask() == 0 || FlightOf(static_cast<pid_t>(syscall(SYS_getpid))).empty()) _exit(3);
        host.Complete(mine, 10);
        host.Complete(context, 10);  // the parent's handle
        const pid_t grandchild = fork();
        if (grandchild == 0) {
          host.Complete(host.Init(9), 10);
          exit(0);
        }
        if (StatusOf(grandchild) != 0) _exit(4);
        host.Finalize(mine);
        exit(0);
      }
      if (const int status = StatusOf(pid)) _exit(status);
      if (Tables(own) != before) _exit(20 + kind);
    }
    host.Finalize(context);
  });
  EXPECT_ENDED_WELL(child);
  // Each wrote its last trace; each took its file away but those that left their communicator open.
  EXPECT_THAT(Traces(), SizeIs(5));
}

struct Shared {
  Host* host;
  void* context;
  int mask;
};
int InSharedMemory(void* arg) {
  auto* shared = static_cast<Shared*>(arg);
  (void)shared->host->Init(8);
  shared->mask = shared->host->mask();
  return 0;
}

// Not a thing that anybody should do with NCCL; the parent must survive it.
TEST_F(MannersTest, AChildInTheParentsMemoryChangesNothing) {
  Child child([this] {
    Host host(RINGSCOPE_LIBRARY);
    Shared shared = {&host, host.Init(), -1};
    host.Complete(shared.context, 10);
    const std::string own = FlightOf(getpid());
    alignas(16) static char stack[256 << 10];
    const pid_t pid = clone(InSharedMemory, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, &shared);
    if (StatusOf(pid) != 0 || shared.mask != 0) _exit(2);
    const std::string before = Tables(own);
    host.Complete(shared.context);
    if (Tables(own) == before || Flights().size() != 1) _exit(3);
    host.Finalize(shared.context);
  });
  EXPECT_ENDED_WELL(child);
  EXPECT_THAT(Traces(), SizeIs(1));
  EXPECT_THAT(Flights(), SizeIs(0));
}

TEST_F(MannersTest, SpawnedProgramsDoNotTakeTheLock) {
  Gate ready, go;
  Child child([&] {
    Host host(RINGSCOPE_LIBRARY);
    host.Complete(host.Init());
    for (int kind = 0; kind < 2; ++kind) {
      pid_t pid = -1;
      char name[] = "/bin/true";
      char* arguments[] = {name, nullptr};
      if (kind == 0) {
        if (posix_spawn(&pid, name, nullptr, nullptr, arguments, environ) != 0) _exit(2);
      } else if ((pid = vfork()) == 0) {
        // As Python's subprocess with close_fds. Its descriptors are a table of its own.
        syscall(SYS_close_range, 3, ~0u, 0);
        execv(name, arguments);
        _exit(3);
      }
      if (StatusOf(pid) != 0) _exit(4);
    }
    ready.Pass();
    go.Wait();
    _exit(0);
  });
  ready.Wait();
  ASSERT_THAT(Flights(), SizeIs(1));
  EXPECT_TRUE(Locked(Flights()[0]));
  go.Pass();
  EXPECT_ENDED_WELL(child);
}

// fork() while another thread makes the record for the first time: the child must neither hang nor be confused.
TEST_F(MannersTest, ForkDuringTheFirstInit) {
  for (int round = 0; round < 30; ++round) {
    Child child([round] {
      Host host(RINGSCOPE_LIBRARY);
      std::thread first([&host] { host.Complete(host.Init()); });
      usleep(static_cast<useconds_t>(round * 250));  // it takes some 8 ms
      const pid_t pid = fork();
      if (pid == 0) {
        alarm(20);
        if (round % 2) exit(0);
        void* context = host.Init(8);
        if (host.mask() == 0) _exit(3);
        host.Complete(context, 3);
        host.Finalize(context);
        exit(0);
      }
      const int status = StatusOf(pid);
      first.join();
      _exit(status);
    });
    ASSERT_TRUE(child.ExitedWell()) << "round " << round << " " << child.Wait() << child.Stderr();
  }
}

// fork() while other threads hold the pool's lock half of the time.
TEST_F(MannersTest, ForkWhileCommunicatorsComeAndGo) {
  Set("RINGSCOPE_TRACES", "0");
  Child child([] {
    Host host(RINGSCOPE_LIBRARY);
    void* keep = host.Init();
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        for (uint64_t id = 100 * t; !stop; ++id) {
          void* context = host.Init(id);
          host.Complete(context, 2);
          host.Finalize(context);
        }
      });
    }
    int bad = 0;
    for (int i = 0; i < 30 && !bad; ++i) {
      const pid_t pid = fork();
      if (pid == 0) {
        alarm(20);
        void* context = host.Init(7);
        host.Complete(context, 3);
        host.Finalize(context);
        _exit(host.mask() == 0);
      }
      bad = StatusOf(pid);
    }
    stop = true;
    for (auto& t : threads) t.join();
    host.Finalize(keep);
    _exit(bad);
  });
  EXPECT_ENDED_WELL(child);
}

TEST_F(MannersTest, ADaemonThatUsesNccl) {
  Gate ready, go;
  Child child([&] {
    Host host(RINGSCOPE_LIBRARY);
    host.Complete(host.Init());
    if (fork() != 0) _exit(0);
    setsid();
    if (fork() != 0) _exit(0);
    // The pipes to the test live on; all else goes, standard streams too.
    for (int fd = 0; fd < 1024; ++fd) {
      if (!ready.Has(fd) && !go.Has(fd)) close(fd);
    }
    alarm(60);
    host.Complete(host.Init(8), 20);
    ready.Pass();
    go.Wait();
    _exit(0);
  });
  EXPECT_ENDED_WELL(child);
  ready.Wait();
  ASSERT_THAT(Flights(), SizeIs(2));
  const std::string first = FlightOf(child.pid());
  ASSERT_NE(first, "");
  for (const std::string& f : Flights()) EXPECT_EQ(Locked(f), f != first) << f;
  go.Pass();
}

}  // namespace
}  // namespace ringscope::manners
