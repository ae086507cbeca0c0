// What the tests of whole processes share: directories of their own, a recorder's callbacks in
// short, what was left behind.
#ifndef RINGSCOPE_TESTS_UNIT_RECORDER_PROCESS_FIXTURE_H_
#define RINGSCOPE_TESTS_UNIT_RECORDER_PROCESS_FIXTURE_H_

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
#include "recorder/marker.h"
#include "recorder/runtime.h"
#include "recorder/siblings.h"
#include "recorder/state.h"
#include "tests/unit/recorder/in_child.h"
#include "tests/unit/recorder/trace_file.h"

namespace ringscope::recorder {

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
    for (const char* name : {"RINGSCOPE", "RINGSCOPE_STALL_SECONDS", "RINGSCOPE_TRACES",
                             "LOCAL_RANK", "RINGSCOPE_VERBOSE", "RINGSCOPE_EVENTS"}) {
      unsetenv(name);
    }
  }

  static uint64_t Communicator(int ranks = 2, uint64_t id = 7) {
    return OpenCommunicator(Current(), {id, "world", 1, ranks, 0, 5, true, true});
  }
  static void Stall(const char* seconds) { setenv("RINGSCOPE_STALL_SECONDS", seconds, 1); }
  static uint64_t Enter(uint64_t context) {
    return ApiStart(Current(), context,
                    {flight::Func::kAllReduce, flight::DataType::kFloat32, 16, -1, 0, 0});
  }
  // One operation through all of its callbacks.
  static void Complete(uint64_t context) { FinishCall(context, Enter(context)); }
  // The rest of them, after Enter().
  static void FinishCall(uint64_t context, uint64_t api) {
    const OpCall call = {flight::Func::kAllReduce, flight::DataType::kFloat32, 16, -1, 0, 0};
    ApiStop(Current(), api);
    const uint64_t op = LaunchStart(Current(), context, api, call,
                                    {flight::Algo::kRing, flight::Proto::kSimple, 1, 16, 0, -1});
    LaunchStop(Current(), op);
    KernelStop(Current(), KernelStart(Current(), op, 0, 1));
  }
  // What lies in the trace directory, without the marker file.
  std::vector<std::string> Traces() const {
    std::vector<std::string> files = FilesBelow(traces_);
    files.erase(std::remove_if(files.begin(), files.end(),
                               [](const std::string& path) {
                                 return path.substr(path.rfind('/') + 1) == kMarkerName;
                               }),
                files.end());
    return files;
  }
  // Those whose path contains `part`.
  std::vector<std::string> TracesNamed(const std::string& part) const {
    std::vector<std::string> named;
    for (const std::string& path : Traces()) {
      if (path.find(part) != std::string::npos) named.push_back(path);
    }
    return named;
  }
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

}  // namespace ringscope::recorder

#endif  // RINGSCOPE_TESTS_UNIT_RECORDER_PROCESS_FIXTURE_H_
