// Flight files: whole, cut, damaged, of a living and of a dead process.
#include "analyzer/ingest/flight_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <sstream>

#include "analyzer/ingest/owner_probe.h"
#include "recorder/flight/owner.h"
#include "tests/unit/ingest/temp_dir.h"
#include "tests/unit/testing/flight_image.h"

namespace ringscope::ingest {
namespace {

using testing::FlightImage;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TempDir;

FlightImage Hanging() {
  FlightImage image;
  image.Text("rank=3");
  image.Text("world_size=4");
  image.Text("job=job7");
  image.AddComm(0, 0xabcdef, 3, 4);
  for (int i = 0; i < 10; ++i) {
    auto& op = image.AddAllReduce(0, true);
    op.kernel = (op.stamp & 0xffffffff) | uint64_t{2} << 32 | uint64_t{2} << 48;
    op.started = op.enqueued + 5;
    op.finished = op.enqueued + 50;
  }
  auto& open = image.AddAllReduce(0, true);
  open.kernel = (open.stamp & 0xffffffff) | uint64_t{2} << 32;
  open.started = open.enqueued + 5;
  return image;
}

TEST(FlightReader, ReadsTheHungOperation) {
  auto file = ParseFlight(Hanging().Bytes(), "x.flight");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE(file->torn);
  EXPECT_THAT(file->notes, IsEmpty());
  const trace::Trace& t = file->trace;
  EXPECT_EQ(t.reason(), trace::REASON_FLIGHT_FILE);
  EXPECT_EQ(t.process().pid(), 4711);
  EXPECT_EQ(t.process().rank(), 3);
  EXPECT_EQ(t.process().job_id(), "job7");
  EXPECT_FALSE(t.liveness().lock_known());
  ASSERT_EQ(t.communicators_size(), 1);
  const auto& ops = t.communicators(0).operations();
  ASSERT_FALSE(ops.empty());
  const auto& last = ops[ops.size() - 1];
  EXPECT_EQ(last.position(), 11u);
  EXPECT_TRUE(last.unfinished());
  EXPECT_EQ(last.kernels_started(), 2u);
  EXPECT_EQ(last.kernels_stopped(), 0u);
}

TEST(FlightReader, NamesWhatIsWrongWithTheHeader) {
  const auto message = [](const std::string& bytes) {
    return std::string(ParseFlight(bytes, "x").status().message());
  };
  const std::string good = Hanging().Bytes();
  EXPECT_THAT(message(""), HasSubstr("x: byte 0: the file is empty"));
  EXPECT_THAT(message("#!/bin/sh"), HasSubstr("not a Ringscope flight file"));
  EXPECT_THAT(message(good.substr(0, 100)),
              HasSubstr("x: byte 100: the file ends inside its header"));
  std::string bytes = good;
  bytes[8] = 99;
  EXPECT_THAT(message(bytes), HasSubstr("version 99"));
  bytes = good;
  std::swap(bytes[12], bytes[15]);
  std::swap(bytes[13], bytes[14]);
  EXPECT_THAT(message(bytes), HasSubstr("other byte order"));
}

TEST(FlightReader, ACutFileGivesWhatIsThere) {
  const std::string good = Hanging().Bytes();
  for (size_t n : {sizeof(flight::FileHeader), size_t{4096}, size_t{20000}, size_t{70000},
                   size_t{200000}, good.size() - 1}) {
    auto file = ParseFlight(good.substr(0, n), "cut.flight");
    ASSERT_TRUE(file.ok()) << n << ": " << file.status();
    EXPECT_TRUE(file->torn) << n;
    ASSERT_FALSE(file->notes.empty());
    EXPECT_THAT(file->notes[0], HasSubstr("cut.flight: byte " + std::to_string(n)));
    EXPECT_EQ(file->trace.process().pid(), 4711) << n;
  }
}

// Whatever the bytes say, the reader ends and its answer can be printed. (Crashes and reads outside
// show under the sanitizers.)
TEST(FlightReader, SurvivesDamageAnywhere) {
  const std::string good = Hanging().Bytes();
  std::mt19937_64 random(5);
  for (int round = 0; round < 150; ++round) {
    std::string bytes = good;
    const int hits = 1 << (round % 8);
    for (int i = 0; i < hits; ++i) {
      // The header and the first rows of each table are hit more often than their share.
      const size_t range = i % 2 == 0 ? 4096 : i % 3 == 0 ? bytes.size() : 300000;
      const size_t at = random() % range;
      bytes[at] = static_cast<char>(random());
      if (i % 5 == 0 && at + 8 < bytes.size()) memset(bytes.data() + at, i % 2 ? 0xff : 0, 8);
    }
    auto file = ParseFlight(bytes, "damaged.flight");
    if (file.ok()) {
      EXPECT_GT(file->trace.DebugString().size(), 0u);
    }
  }
}

std::string ThisBoot() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string id;
  in >> id;
  return id;
}

uint64_t StartTicks(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(in)), {});
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string word;
  for (int i = 3; i <= 22; ++i) fields >> word;
  return std::stoull(word);
}

// A child that holds the lock of a flight file that bears its own identity.
class Child {
 public:
  explicit Child(const std::string& path) {
    int ready[2];
    if (pipe(ready) != 0) abort();
    pid_ = fork();
    if (pid_ == 0) {
      FlightImage image = Hanging();
      image.header().pid = getpid();
      image.header().process_start = StartTicks(getpid());
      strcpy(image.header().boot_id, ThisBoot().c_str());
      const int64_t now = RealtimeNs();
      image.header().first_anchor.realtime_ns = static_cast<uint64_t>(now);
      const std::string bytes = image.Bytes();
      const int fd = open(path.c_str(), O_RDWR | O_CREAT, 0600);
      const bool locked = flight::TakeOwnerLock(fd);
      if (write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) || !locked)
        _exit(1);
      if (write(ready[1], "x", 1) != 1) _exit(1);
      for (;;) pause();
    }
    char c;
    if (read(ready[0], &c, 1) != 1) abort();
    close(ready[0]);
    close(ready[1]);
  }
  ~Child() { Kill(); }
  void Stop() {
    kill(pid_, SIGSTOP);
    int status;
    waitpid(pid_, &status, WUNTRACED);
  }
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    int status;
    waitpid(pid_, &status, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
};

TEST(FlightReader, TellsLivingStoppedAndDeadOwners) {
  TempDir dir;
  const std::string path = dir / "x.flight";
  Child child(path);
  auto file = ReadFlight(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->trace.liveness().lock_known());
  EXPECT_TRUE(file->trace.liveness().lock_held());
  EXPECT_THAT(file->trace.liveness().process_state(), ::testing::AnyOf("S", "R", "D"));
  EXPECT_NE(file->read_realtime_ns, 0);
  child.Stop();
  file = ReadFlight(path);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->trace.liveness().process_state(), "T");
  child.Kill();
  file = ReadFlight(path);
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->trace.liveness().lock_known());
  EXPECT_FALSE(file->trace.liveness().lock_held());
  EXPECT_EQ(file->trace.liveness().process_state(), "");
}

TEST(FlightReader, AnotherMachinesFileSaysNothingOfItsOwner) {
  TempDir dir;
  auto file = ReadFlight(dir.Write("x.flight", Hanging().Bytes()));
  ASSERT_TRUE(file.ok());
  EXPECT_FALSE(file->trace.liveness().lock_known());
  EXPECT_EQ(file->read_realtime_ns, 0);
}

TEST(FlightReader, ACopyOfADeadOwnersFileIsNoWitnessOfALock) {
  TempDir dir;
  FlightImage image = Hanging();
  strcpy(image.header().boot_id, ThisBoot().c_str());
  image.header().first_anchor.realtime_ns =
      static_cast<uint64_t>(RealtimeNs()) - 3600000000000;  // made an hour ago
  const std::string path = dir.Write("copy.flight", image.Bytes());
  struct statx st;
  if (statx(AT_FDCWD, path.c_str(), 0, STATX_BTIME, &st) != 0 || (st.stx_mask & STATX_BTIME) == 0) {
    GTEST_SKIP() << "this file system keeps no time of birth";
  }
  auto file = ReadFlight(path);
  ASSERT_TRUE(file.ok());
  EXPECT_FALSE(file->trace.liveness().lock_known());
}

}  // namespace
}  // namespace ringscope::ingest
