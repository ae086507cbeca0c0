// Folders of their own for each test, and what a flight file says, read by the words of recorder/flight/format.h.
#ifndef RINGSCOPE_TESTS_MANNERS_FIXTURE_H_
#define RINGSCOPE_TESTS_MANNERS_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "recorder/flight/format.h"
#include "recorder/flight/owner.h"
#include "tests/manners/host.h"
#include "tests/unit/recorder/in_child.h"

namespace ringscope::manners {

using testing::SizeIs;

class MannersTest : public testing::Test {
 protected:
  MannersTest() : flight_(dir_.path() + "/flight"), traces_(dir_.path() + "/traces") {
    Set("RINGSCOPE_FLIGHT_DIR", flight_);
    Set("RINGSCOPE_DIR", traces_);
    Set("RINGSCOPE_JOB", "j");
    Set("RINGSCOPE_HOST", "h");
    Set("RINGSCOPE_STALL_SECONDS", "1");  // a heartbeat takes an eighth of it
    Set("RANK", "0");
    for (const char* name : {"RINGSCOPE", "RINGSCOPE_TRACES", "LOCAL_RANK", "RINGSCOPE_VERBOSE", "RINGSCOPE_EVENTS"})
      unsetenv(name);
  }
  static void Set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }
  std::vector<std::string> Flights() const { return FilesBelow(flight_); }
  std::vector<std::string> Traces() const { return FilesBelow(traces_); }
  std::string FlightOf(pid_t pid) const {
    for (const std::string& f : Flights()) {
      if (f.find("-" + std::to_string(pid) + "-") != std::string::npos) return f;
    }
    return "";
  }
  // What callbacks write: threads, communicators, operations, edges. (Header and siblings are our own thread's.)
  static std::string Tables(const std::string& path) {
    const std::string bytes = ReadAll(path);
    return bytes.size() < 32768 ? "" : bytes.substr(32768);
  }
  static bool Locked(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool held = flight::ProbeOwnerLock(fd) == flight::OwnerLock::kHeld;
    close(fd);
    return held;
  }
  static int StatusOf(pid_t pid) {
    int status = -1;
    if (waitpid(pid, &status, 0) != pid) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  TempDir dir_;
  std::string flight_, traces_;
};

// Waits in a child for word from the test, and the other way round.
class Gate {
 public:
  Gate() {
    if (pipe(fds_) != 0) abort();
  }
  ~Gate() {
    close(fds_[0]);
    close(fds_[1]);
  }
  bool Has(int fd) const { return fd == fds_[0] || fd == fds_[1]; }
  void Pass() const {
    if (write(fds_[1], "x", 1) != 1) abort();
  }
  void Wait() const {
    char c;
    if (read(fds_[0], &c, 1) != 1) abort();
  }

 private:
  int fds_[2];
};

#define EXPECT_ENDED_WELL(child) \
  EXPECT_TRUE((child).ExitedWell()) << std::hex << (child).Wait() << " " << (child).Stderr()

}  // namespace ringscope::manners

#endif  // RINGSCOPE_TESTS_MANNERS_FIXTURE_H_
