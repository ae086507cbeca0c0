// The analyzer reads what the collectors wrote: no reader of its own, so the shapes must be right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/wait.h>

#include "supervisor/collect.h"
#include "tests/unit/supervisor/collecting.h"

namespace ringscope::supervisor {
namespace {

using ::testing::HasSubstr;
using testing::Named;
using ::testing::Not;
using testing::TempDir;
using testing::Variable;

class Diagnose : public ::testing::Test {
 protected:
  std::string On(const std::string& state) {
    const Variable machine("RINGSCOPE_SIM_MACHINE", RINGSCOPE_SOURCE_DIR "/tests/sim/machines/hgx_h100x4.machine");
    const Variable since("RINGSCOPE_SIM_MACHINE_STATE", dir_.Write("state", state));
    CollectEvidence(options_);
    FILE* said = popen((RINGSCOPE_BINARY_DIR "/ringscope diagnose --format=json " + options_.directory).c_str(), "r");
    std::string text;
    char piece[4096];
    for (size_t n; (n = fread(piece, 1, sizeof(piece), said)) > 0;) text.append(piece, n);
    status_ = pclose(said);
    return text;
  }
  TempDir dir_;
  CollectOptions options_ = testing::OptionsOf(dir_);
  int status_ = 0;
};

TEST_F(Diagnose, AHealthyMachineIsHealthy) {
  dir_.Write("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  dir_.Write("sys/class/infiniband/mlx5_0/ports/1/counters/link_downed", "0\n");
  options_.procfs = "/proc";
  options_.processes = {{getpid(), 0, true}};
  const std::string said = On("");
  EXPECT_THAT(said, Not(HasSubstr("\"title\""))) << said;
}

TEST_F(Diagnose, TheGpuWithLanesDown) {
  // A host whose name the analyzer cannot guess from a file's name.
  options_.host = "trainer-a17";
  const std::string said = On("lanes 1 12\n");
  EXPECT_THAT(said, HasSubstr("GPU 1 on trainer-a17 has NVLink links 12-17 inactive (12 of 18 active)"));
  EXPECT_EQ(1, WEXITSTATUS(status_));
}

TEST_F(Diagnose, TheGpuThatIsLost) {
  for (const char* bus : {"0000:1b:00.0", "0000:43:00.0", "0000:9d:00.0", "0000:c3:00.0"})
    dir_.Write(std::string("proc/driver/nvidia/gpus/") + bus + "/information", "");
  const std::string said = On("lost 1\n");
  EXPECT_THAT(said, HasSubstr("0000:43:00.0 on node1 is lost"));
}

TEST_F(Diagnose, ThePortThatWentDownSinceTheStart) {
  const std::string port = "sys/class/infiniband/mlx5_0/ports/1/";
  options_.host = "trainer-a17";
  dir_.Write(port + "state", "4: ACTIVE\n");
  dir_.Write(port + "counters/link_downed", "1\n");
  options_.when = "start";
  CollectEvidence(options_);
  dir_.Write(port + "state", "1: DOWN\n");
  dir_.Write(port + "counters/link_downed", "3\n");
  options_.when = "stall";
  const std::string said = On("");
  EXPECT_THAT(said, HasSubstr("mlx5_0:1 on trainer-a17"));
  EXPECT_THAT(said, HasSubstr("link_downed"));
}

}  // namespace
}  // namespace ringscope::supervisor
