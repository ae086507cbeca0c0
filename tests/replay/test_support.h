// Small helpers of the tests in this folder.
#ifndef RINGSCOPE_TESTS_REPLAY_TEST_SUPPORT_H_
#define RINGSCOPE_TESTS_REPLAY_TEST_SUPPORT_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/replay/capture.h"

namespace ringscope::replay {

// A folder that is removed with this object.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  void Write(const std::string& name, const std::string& text) const;

 private:
  std::string path_;
};

// The captures kept in this folder.
std::string CaptureFolder(const std::string& name);

struct RunResult {
  int exit_code = -1;
  std::string output;  // stdout and stderr
  double seconds = 0;
};

// Runs the built `replay` with these arguments and these variables added to the environment.
RunResult RunReplay(const std::vector<std::string>& arguments,
                    const std::map<std::string, std::string>& environment = {});

// The plugin that writes down what it is called with.
std::string EchoPlugin();

// A capture that another replay wrote through that plugin: its callbacks beside the layout and logs
// of the original.
absl::StatusOr<std::unique_ptr<Capture>> ReadEcho(const std::string& original,
                                                  const ScratchFolder& echo);

// Files below a folder whose path contains `part`.
std::vector<std::string> FilesWith(const std::string& folder, const std::string& part);

}  // namespace ringscope::replay

#endif  // RINGSCOPE_TESTS_REPLAY_TEST_SUPPORT_H_
