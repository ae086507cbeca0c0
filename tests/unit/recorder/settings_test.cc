#include "recorder/settings.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <set>
#include <string>
#include <vector>

namespace ringscope::recorder {
namespace {

std::vector<std::string>* g_lines;
void Collect(const char* line) { g_lines->push_back(line); }

class SettingsTest : public testing::Test {
 protected:
  void SetUp() override {
    for (size_t i = 0; i < kSettingCount; ++i) unsetenv(kSettings[i].name);
    g_lines = &lines_;
  }
  void TearDown() override { SetUp(); }
  Settings Read() {
    Settings s;
    ReadSettings(&s, Collect);
    return s;
  }
  std::vector<std::string> lines_;
};

TEST_F(SettingsTest, Defaults) {
  const Settings s = Read();
  EXPECT_EQ(s.enabled, 1u);
  EXPECT_EQ(s.stall_ns, 60000000000u);
  EXPECT_EQ(s.first_stall_ns, 300000000000u);
  EXPECT_EQ(s.events, kEventsByRelease);
  EXPECT_EQ(s.traces, 8u);
  EXPECT_EQ(s.verbose, 0u);
  char cwd[512];
  ASSERT_NE(getcwd(cwd, sizeof(cwd)), nullptr);
  EXPECT_EQ(s.dir, std::string(cwd) + "/ringscope-traces");
  EXPECT_EQ(s.flight_dir, "/dev/shm/ringscope-" + std::to_string(geteuid()));
  EXPECT_EQ(std::string(s.job), "");
  EXPECT_TRUE(lines_.empty());
}

TEST_F(SettingsTest, Values) {
  setenv("RINGSCOPE", "off", 1);
  setenv("RINGSCOPE_STALL_SECONDS", "2.25", 1);
  setenv("RINGSCOPE_EVENTS", "0xf1B", 1);
  setenv("RINGSCOPE_TRACES", "0", 1);
  setenv("RINGSCOPE_DIR", "/somewhere", 1);
  setenv("RINGSCOPE_JOB", "a job/with:odd characters", 1);
  const Settings s = Read();
  EXPECT_EQ(s.enabled, 0u);
  EXPECT_EQ(s.stall_ns, 2250000000u);
  EXPECT_EQ(s.events, 0xf1bu);
  EXPECT_EQ(s.traces, 0u);
  EXPECT_STREQ(s.dir, "/somewhere");
  EXPECT_STREQ(s.job, "a job/with:odd characters");
  EXPECT_TRUE(lines_.empty());
}

TEST_F(SettingsTest, EmptyIsTheDefault) {
  setenv("RINGSCOPE_STALL_SECONDS", "", 1);
  EXPECT_EQ(Read().stall_ns, 60000000000u);
  EXPECT_TRUE(lines_.empty());
}

TEST_F(SettingsTest, BadValuesKeepTheDefaultAndAreSaidOnce) {
  const std::pair<const char*, const char*> bad[] = {
      {"RINGSCOPE", "maybe"},
      {"RINGSCOPE_STALL_SECONDS", "0"},
      {"RINGSCOPE_STALL_SECONDS", "-5"},
      {"RINGSCOPE_STALL_SECONDS", "1e3"},
      {"RINGSCOPE_STALL_SECONDS", "99999999999999999999"},
      {"RINGSCOPE_STALL_SECONDS", "60s"},
      {"RINGSCOPE_STALL_SECONDS", "."},
      {"RINGSCOPE_EVENTS", "0x"},
      {"RINGSCOPE_EVENTS", "0x1ffffffff"},
      {"RINGSCOPE_EVENTS", "all"},
      {"RINGSCOPE_TRACES", "many"},
      {"RINGSCOPE_TRACES", "18446744073709551616"},
      {"RINGSCOPE_JOB", "a\nb"},
  };
  const Settings defaults = Read();
  for (const auto& [name, value] : bad) {
    lines_.clear();
    setenv(name, value, 1);
    const Settings s = Read();
    EXPECT_EQ(0, memcmp(&s, &defaults, sizeof(s))) << name << "=" << value;
    ASSERT_EQ(lines_.size(), 1u) << name << "=" << value;
    EXPECT_NE(lines_[0].find(name), std::string::npos);
    unsetenv(name);
  }
}

TEST_F(SettingsTest, LongTextsDoNotOverflow) {
  const std::string longest(5000, 'x');
  for (const char* name :
       {"RINGSCOPE_DIR", "RINGSCOPE_FLIGHT_DIR", "RINGSCOPE_JOB", "RINGSCOPE_HOST"}) {
    setenv(name, longest.c_str(), 1);
  }
  const Settings s = Read();
  EXPECT_EQ(lines_.size(), 4u);
  EXPECT_LT(strnlen(s.dir, sizeof(s.dir)), sizeof(s.dir));
  EXPECT_STREQ(s.job, "");
}

// What is printed can be set again and gives the same settings.
TEST_F(SettingsTest, FormatRoundTrips) {
  setenv("RINGSCOPE_STALL_SECONDS", "0.125", 1);
  setenv("RINGSCOPE_EVENTS", "3903", 1);
  setenv("RINGSCOPE_HOST", "node-7", 1);
  const Settings first = Read();
  for (size_t i = 0; i < kSettingCount; ++i) {
    char text[1024];
    FormatSetting(first, kSettings[i], text, sizeof(text));
    setenv(kSettings[i].name, text, 1);
  }
  const Settings second = Read();
  for (size_t i = 0; i < kSettingCount; ++i) {
    char before[1024], after[1024];
    FormatSetting(first, kSettings[i], before, sizeof(before));
    FormatSetting(second, kSettings[i], after, sizeof(after));
    EXPECT_STREQ(before, after) << kSettings[i].name;
  }
  EXPECT_EQ(second.stall_ns, 125000000u);
  EXPECT_EQ(second.events, 3903u);
  EXPECT_TRUE(lines_.empty());
}

TEST_F(SettingsTest, TableIsWellFormed) {
  std::set<std::string> names;
  for (size_t i = 0; i < kSettingCount; ++i) {
    const SettingInfo& info = kSettings[i];
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(std::string(info.name).compare(0, 9, "RINGSCOPE"), 0);
    EXPECT_LE(info.offset + info.size, sizeof(Settings));
    EXPECT_GT(strlen(info.meaning), 10u);
  }
}

}  // namespace
}  // namespace ringscope::recorder
