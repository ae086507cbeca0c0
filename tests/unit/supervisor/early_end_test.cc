#include "supervisor/early_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace ringscope::supervisor {
namespace {

using ::testing::HasSubstr;

class EarlyEnd : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/early_end_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((std::filesystem::path(folder_) / name).parent_path());
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
  }
  std::string folder_;
};

TEST_F(EarlyEnd, FindsATraceOfTheRunOnly) {
  EXPECT_FALSE(LeftATrace(folder_ + "/none", "77-1000", 0));
  Write("job.0/node0/rank0-1.trace", std::string("\0RINGSCOPE_RUN\0"
                                                 "76-1000 ",
                                                 23));
  Write("job.0/node0/program.log", "77-1000");
  EXPECT_FALSE(LeftATrace(folder_, "77-1000", 0)) << "another run's, and no trace";
  Write("job.0/node1/rank1-1.trace", std::string(1000, '\0') + "RINGSCOPE_RUN" + std::string("\x12\x07", 2) + "77-1000");
  EXPECT_TRUE(LeftATrace(folder_, "77-1000", 0));
  EXPECT_FALSE(LeftATrace(folder_, "77-1000", int64_t{4000000000} * 1000000000)) << "older than the run";
}

TEST_F(EarlyEnd, WhatIsNoFileIsPassedBy) {
  std::filesystem::create_directories(folder_ + "/folder.trace");
  ASSERT_EQ(mkfifo((folder_ + "/fifo.trace").c_str(), 0600), 0);
  std::filesystem::create_symlink("nowhere", folder_ + "/link.trace");
  std::filesystem::create_directory_symlink(folder_, folder_ + "/round");
  EXPECT_FALSE(LeftATrace(folder_, "77-1000", 0));
}

TEST_F(EarlyEnd, OneLineWithCodeAndRank) {
  const std::string path = NoteEarlyEnd(folder_, {{"SLURM_PROCID", "5"}, {"RINGSCOPE_HOST", "a/b c"}}, 64);
  EXPECT_THAT(path, HasSubstr("/evidence/a_b_c.end."));
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(
      text.str(),
      "ringscope run: rank 5: the command ended with exit code 64, and none of its processes left a record of a communicator\n");
  std::ifstream other(NoteEarlyEnd(folder_, {{"RANK", "5; rm -rf"}}, 1));
  std::string line;
  std::getline(other, line);
  EXPECT_THAT(line, ::testing::StartsWith("ringscope run: the command ended with exit code 1,")) << "a rank that is none";
}

TEST_F(EarlyEnd, AFolderThatCannotBeMade) {
  Write("evidence", "a file");
  EXPECT_EQ(NoteEarlyEnd(folder_, {}, 2), "");
}

}  // namespace
}  // namespace ringscope::supervisor
