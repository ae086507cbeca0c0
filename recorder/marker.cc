#include "recorder/marker.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "recorder/snapshot.h"
#include "recorder/sys.h"

namespace ringscope::recorder {
namespace {

void AddMarkerFolder(Text& out, const Identity& identity) {
  out.AddName(identity.job, "nojob").AddChar('.').AddUint(identity.restart);
}

// Modification time of the marker in ns; 0: not there. Every part of the way is opened and not only
// looked up: an NFS client asks its server again when something is opened, and answers from what it
// remembers otherwise.
int64_t MarkerTime(const Runtime& runtime) {
  constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  const int root = open(runtime.settings.dir, kFolder);
  if (root < 0) return 0;
  TextBuffer<256> name;
  AddMarkerFolder(name, runtime.identity);
  const int run = openat(root, name.c_str(), kFolder | O_NOFOLLOW);
  close(root);
  if (run < 0) return 0;
  int64_t time = 0;
  struct stat st;
  // A FIFO or a device of that name is not opened: to open one may do something.
  if (StatNoFollow(run, kMarkerName, &st) == 0 && S_ISREG(st.st_mode)) {
    const int fd = openat(run, kMarkerName, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0) {
      (void)StatFd(fd, &st);
      close(fd);
    }
    time = static_cast<int64_t>(st.st_mtim.tv_sec) * 1000000000 + st.st_mtim.tv_nsec;
    if (time == 0) time = 1;
  }
  close(run);
  return time;
}

}  // namespace

void Marker::Init(Runtime* runtime, uint64_t stall_ticks, uint64_t period_ticks) {
  memset(static_cast<void*>(this), 0, sizeof(*this));
  runtime_ = runtime;
  wanted_ = runtime->settings.traces != 0;
  const flight::FileHeader& header = *runtime->image.header;
  uint64_t base = stall_ticks / 8;
  const uint64_t most = NsToTicks(header, 5000000000);
  if (base > most) base = most;
  if (base < period_ticks) base = period_ticks;
  pause_ticks_ = base + base * (header.process_nonce & 1023) / 1024;
  stall_ticks_ = stall_ticks;
  if (wanted_) (void)Look(0);
}

bool Marker::Look(uint64_t now) {
  InFileSystem in_call(runtime_->image.header);
  const int64_t time = MarkerTime(*runtime_);
  const bool changed = time != 0 && time != seen_ns_;
  seen_ns_ = time;
  if (changed) changed_at_ = now;
  return changed;
}

bool Marker::Poll(uint64_t now) {
  if (!wanted_ || now < next_) return false;
  next_ = now + pause_ticks_;
  return Look(now);
}

void Marker::Raise(uint64_t now) {
  if (!wanted_) return;
  next_ = now + pause_ticks_;
  (void)Look(now);
  if (changed_at_ && now - changed_at_ < stall_ticks_) return;
  changed_at_ = now;
  InFileSystem in_call(runtime_->image.header);
  TextBuffer<1024> path;
  path.Add(runtime_->settings.dir).AddChar('/');
  AddMarkerFolder(path, runtime_->identity);
  if (path.cut() || !MakeDirectories(path.c_str(), 0755)) return;
  path.AddChar('/').Add(kMarkerName);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
  if (fd < 0 || path.cut()) {
    if (fd >= 0) close(fd);
    return;
  }
  struct stat st;
  if (StatFd(fd, &st) == 0 && S_ISREG(st.st_mode)) {
    (void)futimens(fd, nullptr);  // the server's own time
    if (StatFd(fd, &st) == 0) {
      seen_ns_ = static_cast<int64_t>(st.st_mtim.tv_sec) * 1000000000 + st.st_mtim.tv_nsec;
    }
  }
  close(fd);
}

}  // namespace ringscope::recorder
