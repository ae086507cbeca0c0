#include "analyzer/encyclopedia/write.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace ringscope::encyclopedia {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Write : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/encyclopedia-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    above_ = name;
    folder_ = name + "/pages";
  }
  void TearDown() override { fs::remove_all(above_); }
  static File Page(const std::string& name, const std::string& text) { return {name, kMarker + text}; }
  std::string Read(const std::string& name) {
    std::ostringstream text;
    text << std::ifstream(folder_ + "/" + name, std::ios::binary).rdbuf();
    return text.str();
  }
  void Put(const std::string& name, const std::string& text) { std::ofstream(folder_ + "/" + name, std::ios::binary) << text; }
  size_t Count() { return std::distance(fs::directory_iterator(folder_), fs::directory_iterator()); }

  std::string above_, folder_;
};

TEST_F(Write, MakesTheFolderAndReplacesItsOwn) {
  ASSERT_TRUE(WritePages(folder_, {Page("index.html", "1"), Page("AA-01.html", "old")}).ok());
  EXPECT_EQ(Read("index.html"), std::string(kMarker) + "1");
  // An entry that is no more leaves no page behind.
  ASSERT_TRUE(WritePages(folder_, {Page("index.html", "22"), Page("BB-01.html", "new")}).ok());
  EXPECT_EQ(Read("index.html"), std::string(kMarker) + "22");
  EXPECT_FALSE(fs::exists(folder_ + "/AA-01.html"));
  EXPECT_EQ(Count(), 2u);
}

TEST_F(Write, RefusesWhatItDidNotWrite) {
  const std::vector<File> pages = {Page("index.html", "1")};
  const auto refused = [&](const std::string& name) {
    const absl::Status status = WritePages(folder_, pages);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr("holds " + name));
    EXPECT_THAT(std::string(status.message()), HasSubstr("Move it away"));
    EXPECT_EQ(Count(), 1u) << "something was written or removed";
    fs::remove_all(folder_ + "/" + name);
  };
  fs::create_directory(folder_);
  Put("thesis.txt", "years of work");
  refused("thesis.txt");
  Put("index.html", "<!DOCTYPE html>\n<title>somebody's own</title>" + std::string(300, ' '));
  EXPECT_THAT(Read("index.html"), HasSubstr("somebody's own"));
  refused("index.html");
  Put(".hidden", "");
  refused(".hidden");
  fs::create_directory(folder_ + "/sub");
  refused("sub");
  ASSERT_EQ(mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  refused("pipe");
}

TEST_F(Write, NeverWritesThroughALink) {
  const std::string other = above_ + "/other";
  std::ofstream(other) << kMarker << "of another";
  fs::create_directory(folder_);
  fs::create_symlink(other, folder_ + "/index.html");
  EXPECT_EQ(WritePages(folder_, {Page("index.html", "1")}).code(), absl::StatusCode::kFailedPrecondition);
  fs::remove(folder_ + "/index.html");
  fs::create_hard_link(other, folder_ + "/index.html");
  EXPECT_EQ(WritePages(folder_, {Page("index.html", "1")}).code(), absl::StatusCode::kFailedPrecondition);
  std::ostringstream text;
  text << std::ifstream(other).rdbuf();
  EXPECT_EQ(text.str(), std::string(kMarker) + "of another");
}

TEST_F(Write, ARunThatWasKilledIsRepaired) {
  fs::create_directory(folder_);
  Put("index.html", "");  // as opened, before its first byte
  Put("AA-01.html", std::string(kMarker) + "half of");
  EXPECT_TRUE(WritePages(folder_, {Page("index.html", "1"), Page("AA-01.html", "whole")}).ok());
  EXPECT_EQ(Read("AA-01.html"), std::string(kMarker) + "whole");
}

TEST_F(Write, PlacesThatCannotBe) {
  EXPECT_THAT(std::string(WritePages(above_ + "/no/pages", {}).message()), HasSubstr("make the folder above it first"));
  std::ofstream(above_ + "/file") << "x";
  EXPECT_THAT(std::string(WritePages(above_ + "/file", {}).message()), HasSubstr("give a folder"));
}

}  // namespace
}  // namespace ringscope::encyclopedia
