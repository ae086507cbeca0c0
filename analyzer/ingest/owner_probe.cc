#include "analyzer/ingest/owner_probe.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "recorder/flight/owner.h"

namespace ringscope::ingest {
namespace {

// procfs files say size 0: read until the end.
std::string ReadProc(const std::string& path) {
  std::string text;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char buffer[4096];
  ssize_t n;
  while ((n = read(fd, buffer, sizeof(buffer))) > 0) text.append(buffer, static_cast<size_t>(n));
  close(fd);
  return text;
}

std::string BootId() {
  std::string id = ReadProc("/proc/sys/kernel/random/boot_id");
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

// State letter of the process if pid and start time are the owner's, else 0. The name in the line
// may hold anything, so fields are counted from its last ')'.
char ProcState(const Owner& owner) {
  const std::string stat = ReadProc(absl::StrCat("/proc/", owner.pid, "/stat"));
  size_t at = stat.rfind(')');
  if (at == std::string::npos || at + 2 >= stat.size()) return 0;
  const char letter = stat[at + 2];
  for (int field = 3; field < 22 && at != std::string::npos; ++field)
    at = stat.find(' ', at + (field == 3 ? 2 : 1));
  if (at == std::string::npos) return 0;
  return strtoull(stat.c_str() + at, nullptr, 10) == owner.start_ticks ? letter : 0;
}

// True when the file was born well after its owner says it made it: a copy.
bool IsCopy(int fd, int64_t created_realtime_ns) {
  constexpr int64_t kSlack =
      2000000000;  // between creation of the file and the first reading of the clock
  struct statx st;
  if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &st) != 0 || (st.stx_mask & STATX_BTIME) == 0)
    return false;
  const int64_t born = st.stx_btime.tv_sec * 1000000000 + st.stx_btime.tv_nsec;
  return created_realtime_ns > 0 && born > created_realtime_ns + kSlack;
}

}  // namespace

int64_t RealtimeNs() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
}

OwnerState ProbeOwner(const std::string& path, const Owner& owner) {
  OwnerState state;
  if (owner.boot_id.empty() || owner.boot_id != BootId()) return state;
  state.same_machine = true;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return state;
  const flight::OwnerLock lock = flight::ProbeOwnerLock(fd);
  const bool copy = IsCopy(fd, owner.created_realtime_ns);
  close(fd);
  state.letter = owner.pid > 0 ? ProcState(owner) : 0;
  // A zombie runs nothing any more: its lock is gone and so is its work.
  const bool in_proc = state.letter != 0 && state.letter != 'Z' && state.letter != 'X';
  state.exists = lock == flight::OwnerLock::kHeld || in_proc;
  state.known = state.exists || (lock == flight::OwnerLock::kFree && !copy);
  return state;
}

}  // namespace ringscope::ingest
