// Shared by the tests of collectors: options in which this machine's own GPUs, adapters and logs play no part.
#ifndef RINGSCOPE_TESTS_UNIT_SUPERVISOR_COLLECTING_H_
#define RINGSCOPE_TESTS_UNIT_SUPERVISOR_COLLECTING_H_

#include <stdlib.h>
#include <time.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "supervisor/collect.h"
#include "tests/unit/ingest/temp_dir.h"

namespace ringscope::testing {

// Sets a variable for a test; children inherit it.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = getenv(name); before != nullptr) {
      before_ = before;
      had_ = true;
    }
    setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (had_) {
      setenv(name_, before_.c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::string before_;
  bool had_ = false;
};

inline supervisor::CollectOptions OptionsOf(const TempDir& dir) {
  supervisor::CollectOptions options;
  options.directory = dir / "evidence";
  options.host = "node1";
  options.sysfs = dir / "sys";
  options.procfs = dir / "proc";
  options.kernel_log = dir / "kmsg";
  if (!std::filesystem::exists(options.kernel_log)) dir.Write("kmsg", "6,1,1000000,-;nvidia 0000:1b:00.0: enabling device\n");
  options.nvml = RINGSCOPE_BINARY_DIR "/sim/libnvidia-ml.so.1";
  return options;
}

inline supervisor::Collected Named(const std::vector<supervisor::Collected>& all, const std::string& name) {
  for (const supervisor::Collected& c : all) {
    if (c.name == name) return c;
  }
  supervisor::Collected none;
  none.why_not = "no such collector ran";
  return none;
}

inline std::string TextOf(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

inline double Seconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

}  // namespace ringscope::testing

#endif  // RINGSCOPE_TESTS_UNIT_SUPERVISOR_COLLECTING_H_
