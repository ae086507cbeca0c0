// What a collector is, and how it makes itself known. A new source of evidence is one file with a static RegisterCollector, and
// its test; no other file changes. Internal to supervisor/collect*.cc.
#ifndef RINGSCOPE_SUPERVISOR_COLLECTOR_H_
#define RINGSCOPE_SUPERVISOR_COLLECTOR_H_

#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/collect.h"

namespace ringscope::supervisor {

// The file of a collector: made by the first Write, so that nothing to say leaves no empty file. What was written is in the file
// even if the collector is killed afterwards, so write what belongs together (a GPU, a row) in one call: half of it could be
// taken for the whole.
class Output {
 public:
  // `opened` is told the file's path once. `name`: HOST.WHEN.NAME.txt without ".txt" and what is between HOST.WHEN and NAME.
  Output(std::string directory, std::string before, std::string name, std::function<void(const std::string&)> opened);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Beyond 64 MiB what comes is dropped and the file says so.
  void Write(std::string_view text);
  // Of the first thing that went wrong: the directory cannot be made, the disk is full.
  const absl::Status& status() const { return status_; }
  bool empty() const { return bytes_ == 0; }

 private:
  void Open();

  std::string directory_, before_, name_;
  std::function<void(const std::string&)> opened_;
  absl::Status status_;
  int fd_ = -1;
  uint64_t bytes_ = 0;
  bool cut_ = false;
};

struct Collector {
  std::string name;  // part of the file's name
  bool (*wanted)(const CollectOptions& options);
  // Runs in a process of its own, with the whole budget; may block and crash. An error's message is one phrase for people, and
  // does not mean that nothing was written. `options.host` is set.
  absl::Status (*collect)(const CollectOptions& options, Output* out);
};

struct RegisterCollector {
  explicit RegisterCollector(Collector collector);
};

// By name.
const std::vector<Collector>& Collectors();

// For Collector::wanted.
bool WantedOfHost(const CollectOptions& options);   // what is the same for all supervisors of a host
bool WantedAtStall(const CollectOptions& options);  // what costs the job something, or makes sense only then

// "2026-08-05T03:12:01.123456+0000", as journalctl prints it. `ns` since 1970.
std::string IsoTime(int64_t ns);
// The line that a terminal would show above a tool's output, with the time: the analyzer takes host and time of what follows from
// it.
std::string Prompt(const CollectOptions& options, std::string_view command);

// The first line of a small file (procfs, sysfs) without blanks at its end; empty when it cannot be read.
std::string FirstLine(const std::string& path);
// All of a small file, at most `most` bytes; empty when it cannot be read.
std::string SmallFile(const std::string& path, size_t most = 65536);
// Names in a directory, sorted; numbers by value.
std::vector<std::string> Names(const std::string& directory);

}  // namespace ringscope::supervisor

#endif  // RINGSCOPE_SUPERVISOR_COLLECTOR_H_
