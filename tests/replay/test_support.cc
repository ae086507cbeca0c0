#include "tests/replay/test_support.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "tests/replay/clock.h"

namespace ringscope::replay {

namespace fs = std::filesystem;

ScratchFolder::ScratchFolder() {
  std::string name = (fs::temp_directory_path() / "replay_test.XXXXXX").string();
  EXPECT_NE(mkdtemp(name.data()), nullptr);
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void ScratchFolder::Write(const std::string& name, const std::string& text) const {
  std::ofstream(*this / name, std::ios::binary) << text;
}

std::string CaptureFolder(const std::string& name) {
  return absl::StrCat(RINGSCOPE_SOURCE_DIR, "/tests/replay/captures/", name);
}

std::string EchoPlugin() { return REPLAY_ECHO_PLUGIN; }

RunResult RunReplay(const std::vector<std::string>& arguments,
                    const std::map<std::string, std::string>& environment) {
  std::string command = "env -u RINGSCOPE_PLUGIN";
  for (const auto& [name, value] : environment)
    absl::StrAppend(&command, " ", name, "='", value, "'");
  absl::StrAppend(&command, " ", REPLAY_PROGRAM);
  for (const std::string& argument : arguments) absl::StrAppend(&command, " '", argument, "'");
  command += " 2>&1";
  RunResult result;
  const uint64_t begun = NowNs();
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return result;
  char block[4096];
  size_t got;
  while ((got = fread(block, 1, sizeof block, pipe)) > 0) result.output.append(block, got);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  result.seconds = static_cast<double>(NowNs() - begun) / 1e9;
  return result;
}

absl::StatusOr<std::unique_ptr<Capture>> ReadEcho(const std::string& original,
                                                  const ScratchFolder& echo) {
  for (const auto& entry : fs::directory_iterator(original)) {
    const std::string name = entry.path().filename().string();
    if (name == "expected.json" || name.rfind("app.", 0) == 0) {
      fs::copy_file(entry.path(), echo / name, fs::copy_options::overwrite_existing);
    }
  }
  return ReadCapture(echo.path());
}

std::vector<std::string> FilesWith(const std::string& folder, const std::string& part) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().string().find(part) != std::string::npos) {
      files.push_back(entry.path().string());
    }
  }
  return files;
}

}  // namespace ringscope::replay
