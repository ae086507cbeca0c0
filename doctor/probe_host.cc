// Limits of this process, shared memory, the kernel's command line, the clock.
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <sys/statvfs.h>
#include <sys/timex.h>

#include "doctor/probe.h"
#include "supervisor/collector.h"

namespace ringscope::doctor {
namespace {

// "Max locked memory         8388608              8388608              bytes": the soft limit.
std::string Limit(const std::string& limits, absl::string_view name) {
  for (const absl::string_view line : absl::StrSplit(limits, '\n')) {
    if (!absl::StartsWith(line, name)) continue;
    const std::vector<std::string> words = absl::StrSplit(line.substr(name.size()), ' ', absl::SkipEmpty());
    return words.empty() ? "" : words[0];
  }
  return "";
}

bool StatSpace(const std::string& path, Space* space) {
  struct statvfs info;
  if (statvfs(path.c_str(), &info) != 0) return false;
  space->bytes = uint64_t{info.f_blocks} * info.f_frsize;
  space->free = uint64_t{info.f_bavail} * info.f_frsize;
  return true;
}

int KernelClock() {
  timex clock = {};
  const int state = adjtimex(&clock);
  return state < 0 ? -1 : (clock.status & STA_UNSYNC) == 0 && state != TIME_ERROR ? 1 : 0;
}

absl::Status Limits(const Place& place, node::Node* node) {
  node::Host* host = node->mutable_limits();
  host->set_kernel_command_line(supervisor::FirstLine(place.procfs + "/cmdline"));
  const int clock = (place.clock_state == nullptr ? KernelClock : place.clock_state)();
  host->set_clock_known(clock >= 0);
  host->set_clock_synchronised(clock > 0);
  const std::string limits = supervisor::SmallFile(place.procfs + "/self/limits");
  if (limits.empty()) return absl::UnavailableError("the limits of a process cannot be read here (/proc)");
  host->set_memlock(Limit(limits, "Max locked memory"));
  host->set_open_files(Limit(limits, "Max open files"));
  return absl::OkStatus();
}

absl::Status Shm(const Place& place, node::Node* node) {
  Space space;
  if (!(place.space == nullptr ? StatSpace : place.space)(place.dev + "/shm", &space))
    return absl::NotFoundError("there is no /dev/shm");
  // "none" as a file system without a size limit has it: memory is the limit then.
  node->mutable_limits()->set_shm_bytes(space.bytes);
  node->mutable_limits()->set_shm_free(space.free);
  return absl::OkStatus();
}

const RegisterProbe kLimits({"limits", Limits});
const RegisterProbe kShm({"shm", Shm});

}  // namespace
}  // namespace ringscope::doctor
