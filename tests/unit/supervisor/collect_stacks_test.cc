// Stacks and the user's command: both are other programs, run at a stall only.
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/collect.h"
#include "supervisor/collector.h"
#include "tests/unit/supervisor/collecting.h"

namespace ringscope::supervisor {
namespace {

using ::testing::HasSubstr;
using testing::Named;
using ::testing::Not;
using ::testing::StartsWith;
using testing::TempDir;
using testing::TextOf;
using testing::Variable;

class AtStall : public ::testing::Test {
 protected:
  AtStall() { options_.of_host = false; }
  ~AtStall() override {
    if (sleeper_ > 0) {
      kill(sleeper_, SIGKILL);
      waitpid(sleeper_, nullptr, 0);
    }
  }
  int Sleeper() {
    sleeper_ = fork();
    if (sleeper_ == 0) {
      while (true) pause();
    }
    return sleeper_;
  }
  void PySpy(const std::string& text) { chmod(dir_.Write("bin/py-spy", "#!/bin/sh\n" + text).c_str(), 0755); }

  TempDir dir_;
  CollectOptions options_ = testing::OptionsOf(dir_);
  const Variable path_{"PATH", dir_ / "bin:/usr/bin:/bin"};

 private:
  pid_t sleeper_ = -1;
};

TEST_F(AtStall, PySpyOfEachProcess) {
  PySpy(
      "[ \"$1 $2 $3\" = 'dump --nonblocking --pid' ] || exit 9\necho \"Process $4: python train.py\"\n"
      "echo \"Thread $4 (idle): \\\"MainThread\\\"\"\necho '    load (train.py:88)'\n");
  options_.processes = {{4711, 3, true}, {4712, -1, false}};
  const Collected got = Named(CollectEvidence(options_), "stacks");
  EXPECT_EQ("", got.why_not);
  EXPECT_EQ(
      "=== rank 3 (pid 4711) ===\nProcess 4711: python train.py\nThread 4711 (idle): \"MainThread\"\n    load (train.py:88)\n\n"
      "=== pid 4712 ===\nProcess 4712: python train.py\nThread 4712 (idle): \"MainThread\"\n    load (train.py:88)\n\n",
      TextOf(got.file));
}

TEST_F(AtStall, ProcfsWherePySpyIsRefused) {
  PySpy("echo 'Error: Permission Denied: Try running again with elevated permissions' >&2\nexit 1\n");
  options_.procfs = "/proc";
  options_.processes = {{Sleeper(), 0, true}, {0x3ffffffe, 1, true}};
  const Collected got = Named(CollectEvidence(options_), "stacks");
  EXPECT_EQ("stacks of 0 of 2 processes; of 1 only what procfs tells (py-spy: exit code 1)", got.why_not);
  const std::string text = TextOf(got.file), pid = std::to_string(options_.processes[0].pid);
  EXPECT_THAT(text, StartsWith("=== rank 0 (pid " + pid + ") ===\npy-spy: exit code 1 Error: Permission Denied"));
  EXPECT_THAT(text, HasSubstr("\nthread " + pid + " "));
  EXPECT_THAT(text, HasSubstr(": state S (sleeping)"));
  EXPECT_THAT(text, HasSubstr("=== rank 1 (pid 1073741822) ===\nno such process\n"));
}

TEST_F(AtStall, ProcfsInEveryPart) {
  const std::string task = "proc/77/task/77/";
  dir_.Write("proc/77/status", "Name:\tpython\nState:\tD (disk sleep)\nTracerPid:\t5\nThreads:\t2\nVmRSS:\t 100 kB\n");
  dir_.Write(task + "status", "State:\tD (disk sleep)\n");
  dir_.Write(task + "comm", "python\n");
  dir_.Write(task + "wchan", "rpc_wait_bit_killable");
  dir_.Write(task + "syscall", "0 0x3 0x7ffe 0x1000 0x0 0x0 0x0 0x7ffe 0x7f31\n");
  dir_.Write(task + "stack", "[<0>] rpc_wait_bit_killable+0x1e/0xb0 [sunrpc]\n[<0>] nfs4_do_close+0x2a/0x80 [nfsv4]\n");
  dir_.Write("proc/77/task/80/status", "State:\tS (sleeping)\n");
  dir_.Write("proc/77/task/80/comm", "pt_data_worker\n");
  options_.processes = {{77, 2, true}};
  EXPECT_EQ(
      "=== rank 2 (pid 77) ===\npy-spy: exit code 127 \n"
      "[<0>] rpc_wait_bit_killable+0x1e/0xb0 [sunrpc]\n[<0>] nfs4_do_close+0x2a/0x80 [nfsv4]\n"
      "process python: state D (disk sleep), threads 2, traced by 5, resident 100 kB\n"
      "thread 77 python: state D (disk sleep), in rpc_wait_bit_killable, system call 0 0x3 0x7ffe 0x1000 0x0 0x0 0x0 0x7ffe "
      "0x7f31, "
      "kernel stack rpc_wait_bit_killable < nfs4_do_close\n"
      "thread 80 pt_data_worker: state S (sleeping)\n\n",
      (PySpy("exit 127\n"), TextOf(Named(CollectEvidence(options_), "stacks").file)));
}

TEST_F(AtStall, APySpyThatHangsLeavesTimeForProcfs) {
  PySpy("[ $4 = 1 ] || { echo \"Process $4: python\"; exit 0; }\nsleep 100\n");
  options_.seconds = 5;
  options_.procfs = "/proc";
  options_.processes = {{1, 0, true}, {getpid(), 1, true}};
  const Collected got = Named(CollectEvidence(options_), "stacks");
  EXPECT_EQ("stacks of 1 of 2 processes; of 1 only what procfs tells (py-spy: not done in 3 s)", got.why_not);
  EXPECT_THAT(TextOf(got.file), HasSubstr(absl::StrCat("Process ", getpid(), ": python\n")));
}

TEST_F(AtStall, TheUsersCommandKnowsWhoStalled) {
  options_.processes = {{11, 0, true}, {12, 1, false}, {13, -1, true}};
  options_.on_stall =
      "echo \"$RINGSCOPE_STALLED_PIDS / $RINGSCOPE_STALLED_RANKS\"; echo oops >&2; touch $RINGSCOPE_EVIDENCE_DIR/mine; exit 3";
  const Collected got = Named(CollectEvidence(options_), "command");
  EXPECT_EQ("the command ended with exit code 3", got.why_not);
  EXPECT_THAT(TextOf(got.file), HasSubstr("\n11 13 / 0 -1\noops\n"));
  EXPECT_EQ(0, access((dir_ / "evidence/mine").c_str(), F_OK));
}

TEST_F(AtStall, AUsersCommandThatSleepsForEver) {
  options_.on_stall = "echo begun; sleep 1000 & sleep 1000";
  options_.seconds = 1;
  const double before = testing::Seconds();
  const Collected got = Named(CollectEvidence(options_), "command");
  EXPECT_LT(testing::Seconds() - before, 2.5);
  EXPECT_THAT(got.why_not, StartsWith("it took longer than its 1 seconds and was killed"));
  EXPECT_THAT(TextOf(got.file), HasSubstr("\nbegun\n"));
}

TEST_F(AtStall, NeitherAtOtherTimes) {
  options_.processes = {{getpid(), 0, false}};
  options_.on_stall = "echo never";
  for (const char* when : {"start", "end"}) {
    options_.when = when;
    for (const Collected& c : CollectEvidence(options_)) ADD_FAILURE() << when << ": " << c.name;
  }
}

}  // namespace
}  // namespace ringscope::supervisor
