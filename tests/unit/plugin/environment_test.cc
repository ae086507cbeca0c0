// One flight file for all tests of this binary, in a folder of its own.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace {

class Folder : public ::testing::Environment {
 public:
  void SetUp() override {
    char pattern[] = "/tmp/ringscope-plugin-test-XXXXXX";
    dir_ = mkdtemp(pattern);
    setenv("RINGSCOPE_DIR", dir_.c_str(), 1);
    setenv("RINGSCOPE_FLIGHT_DIR", (dir_ + "/flight").c_str(), 1);
    setenv("RINGSCOPE_TRACES", "0", 1);
    unsetenv("RINGSCOPE");
    unsetenv("RINGSCOPE_EVENTS");
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

 private:
  std::string dir_;
};

const auto* const kFolder = ::testing::AddGlobalTestEnvironment(new Folder);

}  // namespace
