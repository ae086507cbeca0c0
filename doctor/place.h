// Where the things are that a node is examined by. Other values than these are for tests: a stand-in node is a directory.
#ifndef RINGSCOPE_DOCTOR_PLACE_H_
#define RINGSCOPE_DOCTOR_PLACE_H_

#include <cstdint>
#include <map>
#include <string>

namespace ringscope::doctor {

struct Space {
  uint64_t bytes = 0, free = 0;
};

struct Place {
  std::string sysfs = "/sys", procfs = "/proc", dev = "/dev";
  std::string root;  // in front of the folders of libraries
  std::string nvml = "libnvidia-ml.so.1";
  std::string host;  // empty: the machine's own name
  std::map<std::string, std::string> environment;
  // Of Ringscope: the library that a job would load (empty: none was found, and why), where its traces would go (empty: not
  // asked).
  std::string library, library_missing, directory;
  // False: there is no such path. Default: of statvfs.
  bool (*space)(const std::string& path, Space* space) = nullptr;
  // 1 synchronised, 0 not, -1 not known. Default: of adjtimex.
  int (*clock_state)() = nullptr;

  std::string Variable(const std::string& name) const {
    const auto found = environment.find(name);
    return found == environment.end() ? "" : found->second;
  }
};

}  // namespace ringscope::doctor

#endif  // RINGSCOPE_DOCTOR_PLACE_H_
