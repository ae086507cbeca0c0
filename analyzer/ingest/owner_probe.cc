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

// The number behind `blanks` more blanks; *at moves to the last of them. npos and 0 when there are
// not so many.
uint64_t Skip(const std::string& stat, int blanks, size_t* at) {
  for (; blanks > 0 && *at != std::string::npos; --blanks) *at = stat.find(' ', *at + 1);
  return *at == std::string::npos ? 0 : strtoull(stat.c_str() + *at, nullptr, 10);
}

// State letter of the process if pid, start time and program image are the owner's, else 0. The name
// in the line may hold anything, so fields are counted from its last ')'.
char ProcState(const Owner& owner) {
  const std::string stat = ReadProc(absl::StrCat("/proc/", owner.pid, "/stat"));
  size_t at = stat.rfind(')');
  if (at == std::string::npos || at + 2 >= stat.size()) return 0;
  const char letter = stat[at + 2];
  ++at;                                          // the blank before field 3
  const uint64_t start = Skip(stat, 22 - 3, &at);  // to the one before field 22
  if (at == std::string::npos || start != owner.start_ticks) return 0;
  const uint64_t stack = Skip(stat, 28 - 22, &at);  // 0 where it is not for us to know
  return stack != 0 && owner.stack != 0 && stack != owner.stack ? 0 : letter;
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
