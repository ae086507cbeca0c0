// What runs the collectors: budgets, deaths, directories. The collectors of this file are registered for these tests only.
#include "supervisor/collect.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>

#include "supervisor/collector.h"
#include "tests/unit/supervisor/collecting.h"

namespace ringscope::supervisor {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::Named;
using ::testing::StartsWith;
using testing::TempDir;
using testing::TextOf;

bool ForThis(const CollectOptions& options) { return options.when == "test"; }
bool ForHang(const CollectOptions& options) { return options.when == "hang"; }
bool ForFlood(const CollectOptions& options) { return options.when == "flood"; }

const RegisterCollector kGood({"test-good", ForThis, [](const CollectOptions& options, Output* out) {
                                 out->Write("of " + options.host + "\n");
                                 return absl::OkStatus();
                               }});
const RegisterCollector kSilent({"test-silent", ForThis, [](const CollectOptions&, Output*) { return absl::OkStatus(); }});
const RegisterCollector kRefuses({"test-refuses", ForThis,
                                  [](const CollectOptions&, Output*) { return absl::NotFoundError("no such thing"); }});
const RegisterCollector kThrows({"test-throws", ForThis,
                                 [](const CollectOptions&, Output*) -> absl::Status { throw std::runtime_error("x"); }});
const RegisterCollector kCrashes({"test-crashes", ForThis, [](const CollectOptions&, Output* out) {
                                    out->Write("first half\n");
                                    raise(SIGSEGV);
                                    return absl::OkStatus();
                                  }});
// Deaf to everything that can be ignored, with a child that is deaf, too.
const RegisterCollector kHangs({"test-hangs", ForHang, [](const CollectOptions&, Output* out) {
                                  for (int s = 1; s < NSIG; ++s) signal(s, SIG_IGN);
                                  const pid_t child = fork();
                                  if (child > 0) out->Write("child " + std::to_string(child) + "\n");
                                  while (true) pause();
                                  return absl::OkStatus();
                                }});
const RegisterCollector kOpenFiles({"test-open-files", ForThis, [](const CollectOptions&, Output* out) {
                                      for (const std::string& fd : Names("/proc/self/fd")) {
                                        std::error_code error;
                                        const auto target = std::filesystem::read_symlink("/proc/self/fd/" + fd, error);
                                        if (!error) out->Write(fd + " " + target.string() + "\n");
                                      }
                                      return absl::OkStatus();
                                    }});
const RegisterCollector kFlood({"test-flood", ForFlood, [](const CollectOptions&, Output* out) {
                                  const std::string piece(1 << 20, 'x');
                                  for (int i = 0; i < 70; ++i) out->Write(piece);
                                  return absl::OkStatus();
                                }});

class Collect : public ::testing::Test {
 protected:
  Collect() {
    options_ = testing::OptionsOf(dir_);
    options_.when = "test";
    options_.of_host = false;
  }
  TempDir dir_;
  CollectOptions options_;
};

TEST_F(Collect, EachSaysWhatCameOfIt) {
  const auto all = CollectEvidence(options_);
  ASSERT_EQ(6u, all.size());
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](const Collected& a, const Collected& b) { return a.name < b.name; }));

  const Collected good = Named(all, "test-good");
  EXPECT_EQ(dir_ / "evidence/node1.test.test-good.txt", good.file);
  EXPECT_EQ("of node1\n", TextOf(good.file));
  EXPECT_EQ("", good.why_not);
  EXPECT_LT(good.seconds, options_.seconds);
  EXPECT_EQ("", Named(all, "test-silent").file + Named(all, "test-silent").why_not);
  EXPECT_EQ("no such thing", Named(all, "test-refuses").why_not);
  EXPECT_EQ("its collector failed", Named(all, "test-throws").why_not);

  const Collected crashed = Named(all, "test-crashes");
  EXPECT_THAT(crashed.why_not, HasSubstr("signal 11"));
  EXPECT_THAT(crashed.why_not, HasSubstr("until then"));
  EXPECT_EQ("first half\n", TextOf(crashed.file));
}

TEST_F(Collect, WhatHangsIsKilledWithItsChildren) {
  options_.when = "hang";
  options_.seconds = 1;
  const double before = testing::Seconds();
  const Collected hung = Named(CollectEvidence(options_), "test-hangs");
  EXPECT_LT(testing::Seconds() - before, 2.5);
  EXPECT_EQ("it took longer than its 1 seconds and was killed; the file holds what it wrote until then", hung.why_not);
  EXPECT_GE(hung.seconds, 1);
  const std::string text = TextOf(hung.file);
  ASSERT_THAT(text, StartsWith("child "));
  // Its parent is gone; whoever inherits it may not have reaped it yet.
  const std::string file = "/proc/" + std::to_string(std::stoi(text.substr(6))) + "/stat";
  std::string stat;
  for (int i = 0; i < 100; ++i) {
    stat = FirstLine(file);
    if (stat.empty() || stat.find(") Z ") != stat.npos || stat.find(") X ") != stat.npos) return;
    usleep(20000);
  }
  FAIL() << stat;
}

TEST_F(Collect, NothingOfTheCallersStaysWithAChild) {
  int held[2];
  ASSERT_EQ(0, pipe(held));
  const Collected files = Named(CollectEvidence(options_), "test-open-files");
  const std::string text = TextOf(files.file);
  EXPECT_THAT(text, StartsWith("0 /dev/null\n1 /dev/null\n2 /dev/null\n"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("pipe:")));
  close(held[0]);
  close(held[1]);
}

TEST_F(Collect, OtherChildrenAreLeftAlone) {
  const pid_t other = fork();
  if (other == 0) _exit(7);
  CollectEvidence(options_);
  int status = 0;
  ASSERT_EQ(other, waitpid(other, &status, 0));
  EXPECT_EQ(7, WEXITSTATUS(status));
  EXPECT_EQ(-1, waitpid(-1, &status, WNOHANG)) << "a child of a collector is left";
}

TEST_F(Collect, WhereTheCallerIgnoresItsChildrenTheResultsAreTheSame) {
  const auto before = signal(SIGCHLD, SIG_IGN);
  const auto all = CollectEvidence(options_);
  signal(SIGCHLD, before);
  EXPECT_EQ("of node1\n", TextOf(Named(all, "test-good").file));
  EXPECT_EQ("no such thing", Named(all, "test-refuses").why_not);
}

TEST_F(Collect, NothingIsOverwritten) {
  CollectEvidence(options_);
  const Collected again = Named(CollectEvidence(options_), "test-good");
  EXPECT_EQ(dir_ / "evidence/node1.test.2.test-good.txt", again.file);
  EXPECT_EQ("of node1\n", TextOf(dir_ / "evidence/node1.test.test-good.txt"));
}

TEST_F(Collect, ADirectoryThatCannotBeWrittenTo) {
  // Below a file: refused to root, too.
  options_.directory = dir_.Write("file", "") + "/evidence";
  const Collected good = Named(CollectEvidence(options_), "test-good");
  EXPECT_EQ("", good.file);
  EXPECT_THAT(good.why_not, StartsWith("cannot be written to " + options_.directory));
}

TEST_F(Collect, NamesCannotLeaveTheDirectory) {
  options_.host = "../no de/1";
  const Collected good = Named(CollectEvidence(options_), "test-good");
  EXPECT_EQ(dir_ / "evidence/.._no_de_1.test.test-good.txt", good.file);
}

TEST_F(Collect, AFloodIsCut) {
  options_.when = "flood";
  options_.seconds = 20;
  const Collected flood = Named(CollectEvidence(options_), "test-flood");
  EXPECT_LT(std::filesystem::file_size(flood.file), uint64_t{65} << 20);
  EXPECT_THAT(TextOf(flood.file), EndsWith("[cut here: more than 64 MiB]\n"));
}

}  // namespace
}  // namespace ringscope::supervisor
