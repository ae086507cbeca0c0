// Small shared memory: NCCL's own segments come first, and no store may ever meet a full disk.
#include <sched.h>
#include <sys/mount.h>
#include <sys/vfs.h>

#include <iostream>

#include "tests/manners/fixture.h"

namespace ringscope::manners {
namespace {

constexpr int kProcesses = 8;
constexpr int kSkip = 77;

// A tmpfs of its own in a mount namespace of its own; as another user, in a user namespace too. False where neither may be had.
bool Mount(const std::string& where, const std::string& size) {
  mkdir(where.c_str(), 0700);
  const uid_t uid = geteuid();
  if (unshare(CLONE_NEWNS) != 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    const int map = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
    const std::string line = std::to_string(uid) + " " + std::to_string(uid) + " 1";
    if (map < 0 || write(map, line.data(), line.size()) < 0) return false;
    close(map);
  }
  mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  return mount("small", where.c_str(), "tmpfs", MS_NODEV | MS_NOSUID, ("mode=700,size=" + size).c_str()) == 0;
}

uint64_t Free(const std::string& path) {
  struct statfs fs;
  return statfs(path.c_str(), &fs) == 0 ? static_cast<uint64_t>(fs.f_bavail) * static_cast<uint64_t>(fs.f_bsize) : 0;
}

void Occupy(const std::string& path, uint64_t bytes) {
  const int fd = open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0 || posix_fallocate(fd, 0, static_cast<off_t>(bytes)) != 0) _exit(40);
  close(fd);
}

struct Wanted {
  const char* size;
  uint64_t taken;       // by others, before
  int least_files;      // in the small file system
  uint64_t least_free;  // there, when all record
  bool second_place;    // the trace directory is elsewhere
};

class TmpfsTest : public MannersTest, public testing::WithParamInterface<Wanted> {
 protected:
  TmpfsTest() : report_path_(dir_.path() + "/report") {
    report_fd_ = open(report_path_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  }
  ~TmpfsTest() override { close(report_fd_); }
  std::string report_path_;
  int report_fd_;
};

TEST_P(TmpfsTest, RoomForNcclAndNoBusError) {
  const Wanted& wanted = GetParam();
  if (!wanted.second_place) Set("RINGSCOPE_DIR", flight_ + "/traces");
  Set("RINGSCOPE_TRACES", "0");
  Child child([&] {
    if (!Mount(flight_, wanted.size)) _exit(kSkip);
    if (wanted.taken) Occupy(flight_ + "/nccl-0", wanted.taken);
    Gate ready, full, end;
    pid_t pids[kProcesses];
    for (int i = 0; i < kProcesses; ++i) {
      if ((pids[i] = fork()) != 0) continue;
      Host host(RINGSCOPE_LIBRARY);
      host.Complete(host.Init(1));
      ready.Pass();
      full.Wait();
      // Not a byte is free now. Every table is written to its end, and over.
      for (uint64_t id = 2; id < 600; ++id) host.Complete(host.Init(id), id < 100 ? 300 : 2);
      ready.Pass();
      end.Wait();
      _exit(0);
    }
    for (int i = 0; i < kProcesses; ++i) ready.Wait();
    int files = 0;
    for (const std::string& f : FilesBelow(flight_)) files += f.find(".flight") != std::string::npos;
    const uint64_t free = Free(flight_);
    if (free) Occupy(flight_ + "/nccl-1", free);
    for (int i = 0; i < kProcesses; ++i) full.Pass();
    for (int i = 0; i < kProcesses; ++i) ready.Wait();
    for (int i = 0; i < kProcesses; ++i) end.Pass();
    for (const pid_t pid : pids) {
      if (const int status = StatusOf(pid)) _exit(status == 128 + SIGBUS ? 50 : 51);
    }
    const std::string line = std::to_string(files) + " " + std::to_string(free) + "\n";
    if (write(report_fd_, line.data(), line.size()) < 0) _exit(52);
    _exit(0);
  });
  const int status = child.Wait();
  if (WIFEXITED(status) && WEXITSTATUS(status) == kSkip) GTEST_SKIP() << "needs the right to mount a tmpfs";
  ASSERT_TRUE(child.ExitedWell()) << std::hex << status << child.Stderr();
  const std::string said = ReadAll(report_path_);
  int files = 0;
  unsigned long long free = 0;
  ASSERT_EQ(sscanf(said.c_str(), "%d %llu", &files, &free), 2) << said;
  std::cout << wanted.size << " (" << (wanted.taken >> 20) << " MiB taken before): " << files << " flight files in it, "
            << free / 1048576.0 << " MiB free; " << FilesBelow(traces_).size() << " in the trace directory\n";
  EXPECT_GE(files, wanted.least_files);
  EXPECT_GE(free, wanted.least_free);
  if (wanted.second_place) {
    EXPECT_EQ(files + static_cast<int>(FilesBelow(traces_).size()), kProcesses);
  }
  // One line a process that has no file there, none else.
  EXPECT_EQ(child.StderrLines().size(), static_cast<size_t>(kProcesses - files)) << child.Stderr();
}

constexpr uint64_t kMiB = 1 << 20;
INSTANTIATE_TEST_SUITE_P(Sizes, TmpfsTest,
                         testing::Values(Wanted{"64m", 0, kProcesses, 32 * kMiB, true},
                                         Wanted{"64m", 20 * kMiB, kProcesses, 32 * kMiB, true},
                                         Wanted{"16m", 0, 1, 8 * kMiB, true}, Wanted{"16m", 0, 1, 8 * kMiB, false},
                                         Wanted{"64m", 63 * kMiB, 0, 0, true}, Wanted{"64m", 63 * kMiB, 0, 0, false},
                                         Wanted{"1m", 0, 0, 0, false}),
                         [](const auto& of) {
                           return std::string(of.param.size) + "_" + std::to_string(of.param.taken / kMiB) + "_taken_" +
                                  (of.param.second_place ? "traces_elsewhere" : "nowhere_else");
                         });

}  // namespace
}  // namespace ringscope::manners
