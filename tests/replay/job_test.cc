// The job as a whole: ends of processes, kills, cuts, what is left, wrong usage.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "tests/replay/child.h"
#include "tests/replay/options.h"
#include "tests/replay/shared.h"
#include "tests/replay/test_support.h"

namespace ringscope::replay {
namespace {

using testing::HasSubstr;
using testing::Not;

class JobTest : public testing::Test {
 protected:
  RunResult Play(const std::string& capture, std::vector<std::string> more,
                 const std::string& stall = "0.1") {
    std::vector<std::string> arguments = {CaptureFolder(capture), "--out", out_ / "job", "--plugin",
                                          EchoPlugin()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunReplay(arguments, {{"ECHO_OUT", echo_.path()}, {"RINGSCOPE_STALL_SECONDS", stall}});
  }

  std::unique_ptr<Capture> Played(const std::string& capture) {
    auto played = ReadEcho(CaptureFolder(capture), echo_);
    EXPECT_TRUE(played.ok()) << played.status();
    return played.ok() ? *std::move(played) : nullptr;
  }

  ScratchFolder out_, echo_;
};

TEST_F(JobTest, ProcessesEndAsCaptured) {
  RunResult run = Play("e1_rank1_sigkill_before_op10_abort", {"--speed", "20"});
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("rank 0, pid"));
  EXPECT_THAT(run.output, testing::ContainsRegex("rank 1, pid [0-9]+ on node-1: killed by Killed"));
  EXPECT_THAT(run.output, testing::ContainsRegex("rank 2, pid [0-9]+ on node-2: exit code 0"));
}

TEST_F(JobTest, AStoppedProcessStaysStopped) {
  const RunResult run = Play("d1_rank1_sigstop_before_op10", {"--speed", "20"});
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, testing::ContainsRegex(
                              "rank 1, pid [0-9]+ on node-1: stopped, then ended from outside"));
  EXPECT_THAT(run.output, testing::ContainsRegex(
                              "rank 0, pid [0-9]+ on node-0: lived on, then ended from outside"));
}

TEST_F(JobTest, AContinuedProcessGoesOn) {
  const RunResult run = Play("r3_ras_rank1_sigstop", {"--speed", "20"});
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, testing::ContainsRegex("rank 1, pid [0-9]+ on node-1: exit code 0"));
  auto played = Played("r3_ras_rank1_sigstop");
  ASSERT_NE(played, nullptr);
  // Ten seconds of stop are half a second here, less what a busy machine was late with before: no
  // callback of the process came meanwhile. Without the stop nothing takes longer than 60 ms.
  uint64_t longest = 0;
  const std::vector<Event>& events = played->processes[1].events;
  for (size_t i = 1; i < events.size(); ++i)
    longest = std::max(longest, events[i].t - events[i - 1].t);
  EXPECT_GT(longest, 200'000'000u);
}

TEST_F(JobTest, TimesAreScaledAndAligned) {
  const RunResult run = Play("p1_pxn_2hosts_x_2gpus", {"--speed", "5"});
  EXPECT_EQ(run.exit_code, 0) << run.output;
  auto original = ReadCapture(CaptureFolder("p1_pxn_2hosts_x_2gpus"));
  auto played = Played("p1_pxn_2hosts_x_2gpus");
  ASSERT_TRUE(original.ok() && played != nullptr);
  for (size_t p = 0; p < played->processes.size(); ++p) {
    for (size_t i = 0; i < played->processes[p].events.size(); ++i) {
      const uint64_t t = (*original)->processes[p].events[i].t - (*original)->first_t;
      const uint64_t got = played->processes[p].events[i].t - played->first_t;
      // Calls may be late on a busy machine, the very first one too: then the others look early.
      ASSERT_GT(got + 100'000'000, t / 5) << p << " " << i;
    }
  }
}

TEST_F(JobTest, HostsAndBootIds) {
  EXPECT_NE(BootId("job", "a"), BootId("job", "b"));
  EXPECT_NE(BootId("job", "a"), BootId("other", "a"));
  EXPECT_EQ(BootId("job", "a"), BootId("job", "a"));
  EXPECT_EQ(BootId("job", "a").size(), 36u);
  const RunResult run = Play("p1_pxn_2hosts_x_2gpus", {"--speed", "max"});
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("on hA:"));
  EXPECT_THAT(run.output, HasSubstr("on hB:"));
  std::ifstream file(echo_ / "rank2.jsonl");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("\"job\":\"p1_pxn_2hosts_x_2gpus\""));
  if (geteuid() == 0) {
    EXPECT_THAT(text.str(), testing::AnyOf(HasSubstr("\"host\":\"hB\""), HasSubstr("\"host\":\"")));
  }
}

TEST_F(JobTest, CutKillsEverybodyAndDeliversNothingLater) {
  const RunResult run = Play("b1_rank2_skips_op10", {"--speed", "20", "--cut", "hang:0.5"}, "60");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_LT(run.seconds, 30) << "no waiting for a stall";
  EXPECT_THAT(run.output, Not(HasSubstr("exit code")));
  auto original = ReadCapture(CaptureFolder("b1_rank2_skips_op10"));
  auto played = Played("b1_rank2_skips_op10");
  ASSERT_TRUE(original.ok() && played != nullptr);
  size_t all = 0, made = 0;
  for (size_t p = 0; p < 4; ++p) {
    all += (*original)->processes[p].events.size();
    made += played->processes[p].events.size();
  }
  EXPECT_LT(made, all);
  EXPECT_GT(made, all * 9 / 10) << "the hang comes near the end";
}

TEST_F(JobTest, KillAtEndWaitsForTheStallTimeThenKillsAll) {
  const RunResult run = Play("b1_rank2_skips_op10", {"--speed", "40", "--kill"}, "0.5");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_GT(run.seconds, 1.2);
  EXPECT_THAT(run.output, Not(HasSubstr("exit code")));
  // In a healthy job too nobody gets to say good-bye.
  ScratchFolder other;
  const RunResult healthy = RunReplay({CaptureFolder("m6_nonblocking"), "--out", other / "x",
                                       "--kill", "--speed", "max", "--plugin", EchoPlugin()},
                                      {{"RINGSCOPE_STALL_SECONDS", "0.1"}});
  EXPECT_EQ(healthy.exit_code, 0) << healthy.output;
  EXPECT_THAT(healthy.output, Not(HasSubstr("exit code")));
}

TEST_F(JobTest, KillAtCallCountsReturnedCallbacks) {
  const RunResult run = Play("m6_nonblocking", {"--speed", "max", "--kill=57"});
  EXPECT_EQ(run.exit_code, 0) << run.output;
  auto played = Played("m6_nonblocking");
  ASSERT_NE(played, nullptr);
  for (int p = 0; p < 2; ++p) {
    auto rows = ReadReturned(out_ / "job", p);
    ASSERT_TRUE(rows.ok()) << rows.status();
    uint64_t entered = 0, returned = 0;
    std::map<uint64_t, uint64_t> by_order;
    for (const ReturnedCounts& row : *rows) {
      entered += row.entered;
      returned += row.returned;
    }
    EXPECT_EQ(returned, 57u);
    EXPECT_EQ(entered, 57u);
    EXPECT_EQ(played->processes[static_cast<size_t>(p)].events.size(), 57u);
  }
}

TEST_F(JobTest, RandomKillsHitAtAndInsideCallbacks) {
  auto original = ReadCapture(CaptureFolder("m6_nonblocking"));
  ASSERT_TRUE(original.ok());
  std::set<uint64_t> points;
  uint64_t inside = 0;
  for (int seed = 0; seed < 10; ++seed) {
    ScratchFolder out;
    const RunResult run =
        RunReplay({CaptureFolder("m6_nonblocking"), "--out", out / "job", "--plugin", EchoPlugin(),
                   "--speed", "max", absl::StrCat("--kill=random:", seed)});
    ASSERT_EQ(run.exit_code, 0) << run.output;
    for (int p = 0; p < 2; ++p) {
      auto rows = ReadReturned(out / "job", p);
      ASSERT_TRUE(rows.ok()) << rows.status();
      uint64_t returned = 0;
      for (const ReturnedCounts& row : *rows) {
        inside += row.entered - row.returned;
        EXPECT_LE(row.returned, row.entered);
        EXPECT_LE(row.entered, row.returned + 1);
        returned += row.returned;
      }
      EXPECT_LE(returned, (*original)->processes[static_cast<size_t>(p)].events.size());
      points.insert(returned);
    }
  }
  EXPECT_GT(points.size(), 8u);
  EXPECT_GT(inside, 0u);
}

TEST_F(JobTest, DropRankTakesEverythingOfThatProcess) {
  // A plugin that leaves files like the recorder's is not needed: logs are dropped in the same way.
  const RunResult run = Play("p4_nvlink_only_rank2_skips", {"--speed", "max", "--drop-rank", "1"});
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_TRUE(FilesWith(out_ / "job", "nccl-debug.rank1").empty());
  EXPECT_EQ(FilesWith(out_ / "job", "nccl-debug.rank").size(), 3u);
  ScratchFolder other;
  const RunResult wrong =
      RunReplay({CaptureFolder("m6_nonblocking"), "--out", other / "x", "--speed", "max",
                 "--plugin", EchoPlugin(), "--drop-rank", "7"});
  EXPECT_EQ(wrong.exit_code, 64);
  EXPECT_THAT(wrong.output, HasSubstr("no process holds that rank; there are 0, 1"));
}

TEST_F(JobTest, ACaptureWithoutCallbacksLeavesItsLogs) {
  const RunResult run = Play("i1_init_rank2_absent", {"--speed", "20"});
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(FilesWith(out_ / "job", "nccl-debug").size(), 3u);
  EXPECT_TRUE(FilesWith(out_ / "job", "app.rank").empty()) << "they hold the answer";
}

TEST_F(JobTest, NobodySurvivesTheParent) {
  const std::string mark = out_ / "job";
  // The replay is killed in the middle; its processes must go with it.
  const std::string command =
      absl::StrCat("RINGSCOPE_STALL_SECONDS=30 timeout -s KILL 1.5 ", REPLAY_PROGRAM, " ",
                   CaptureFolder("d1_rank1_sigstop_before_op10"), " --speed 20 --out ", mark,
                   " --plugin ", EchoPlugin(), " > ", out_ / "log", " 2>&1");
  EXPECT_NE(system(command.c_str()), 0);
  usleep(200'000);
  FILE* pipe = popen(absl::StrCat("grep -lz 'RINGSCOPE_DIR=", mark,
                                  "' /proc/[0-9]*/environ 2> /dev/null; "
                                  "grep -l -- '",
                                  mark, "' /proc/[0-9]*/cmdline 2> /dev/null | grep -v self")
                         .c_str(),
                     "r");
  char line[256] = "";
  std::string alive;
  while (fgets(line, sizeof line, pipe) != nullptr) {
    std::ifstream cmdline(std::string(line, strcspn(line, "\n")));
    std::string name;
    std::getline(cmdline, name, '\0');
    if (name == REPLAY_PROGRAM) alive += line;
  }
  pclose(pipe);
  EXPECT_EQ(alive, "");
}

TEST(Usage, ErrorsNameTheRemedy) {
  ScratchFolder folder;
  const std::string capture = CaptureFolder("m6_nonblocking");
  folder.Write("occupied", "x");
  struct Case {
    std::vector<std::string> arguments;
    int code;
    const char* said;
  };
  for (const Case& c : std::vector<Case>{
           {{}, 64, "no capture given"},
           {{capture}, 64, "no --out DIR given"},
           {{capture, "--out"}, 64, "a value is missing"},
           {{capture, "--out", folder / "a", "--sped", "3"}, 64, "unknown option --sped"},
           {{capture, "--out", folder / "a", "--speed", "-1"}, 64, "give a factor above 0"},
           {{capture, "--out", folder / "a", "--kill=soon"}, 64, "write --kill, --kill=N"},
           {{capture, "--out", folder / "a", "--cut", "hang:7"}, 64, "a fraction from 0 to 1"},
           {{capture, capture, "--out", folder / "a"}, 64, "one at a time"},
           {{capture, "--out", folder.path(), "--plugin", EchoPlugin()}, 64, "is not empty"},
           {{capture, "--out", "/proc/x", "--plugin", EchoPlugin()}, 64, "cannot be made"},
           {{folder / "nothing", "--out", folder / "a"}, 66, "no such folder"},
           {{capture, "--out", folder / "a", "--plugin", "/nowhere.so"},
            66,
            "name one with --plugin"},
           {{capture, "--out", folder / "b", "--plugin", "/etc/passwd"}, 1, "cannot be loaded"},
           {{capture, "--out", folder / "c", "--plugin", "/lib/x86_64-linux-gnu/libm.so.6"},
            1,
            "exports no ncclProfiler_v6"},
       }) {
    const RunResult run = RunReplay(c.arguments);
    EXPECT_EQ(run.exit_code, c.code) << run.output;
    EXPECT_THAT(run.output, HasSubstr(c.said));
  }
  EXPECT_EQ(RunReplay({"--help"}).exit_code, 0);
}

TEST(Options, BothFormsOfValues) {
  auto options = ParseOptions({"c", "--out=o", "--speed", "20", "--drop-rank=3", "--permute", "9",
                               "--cut", "hang:0.25", "--kill"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->out, "o");
  EXPECT_EQ(options->speed, 20);
  EXPECT_EQ(options->drop_rank, 3);
  EXPECT_EQ(options->permute_seed, 9u);
  EXPECT_EQ(options->cut, "hang:0.25");
  EXPECT_EQ(options->kill, Options::kAtEnd);
  options = ParseOptions({"--kill", "c", "--out", "o"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->capture, "c") << "bare --kill takes no value";
  EXPECT_EQ(ParseOptions({"c", "--out", "o", "--kill=random:4"})->kill_seed, 4u);
  EXPECT_EQ(ParseOptions({"c", "--out", "o", "--kill=12"})->kill_at, 12u);
}

}  // namespace
}  // namespace ringscope::replay
