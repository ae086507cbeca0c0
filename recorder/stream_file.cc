#include "recorder/stream_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "recorder/clock.h"
#include "recorder/flight/crc32c.h"
#include "recorder/flight/stream_pack.h"
#include "recorder/flight_file.h"
#include "recorder/snapshot.h"
#include "recorder/sys.h"

namespace ringscope::recorder {
namespace {

constexpr size_t kMagicBytes = 8;
// A burst of so many bytes is let through in any case: a chunk must fit.
constexpr uint64_t kLeastBurst = 256 << 10;

// Our thread is in a call that a network file system may keep for long; readers of the flight file must not take it for a
// frozen process.
class InCall {
 public:
  explicit InCall(flight::FileHeader* header) : word_(header->thread_in_call) {
    word_.store(Ticks(), std::memory_order_relaxed);
  }
  ~InCall() { word_.store(0, std::memory_order_relaxed); }
  InCall(const InCall&) = delete;

 private:
  flight::Word& word_;
};

}  // namespace

void StreamFiles::Init(Runtime* runtime) {
  memset(static_cast<void*>(this), 0, sizeof(*this));
  runtime_ = runtime;
}

void StreamFiles::PathOf(uint32_t number, Text* path) const {
  path->Add(runtime_->settings.dir).AddChar('/');
  AddRunDirectory(*path, runtime_->identity);
  path->AddChar('/');
  AddRank(*path, runtime_->identity.rank);
  path->Add("-pid").AddInt(runtime_->identity.pid).AddChar('-').AddUint(number).Add(".stream");
}

bool StreamFiles::BeginsFile(size_t bytes) const {
  if (kept_count_ == 0 || anew_) return true;
  const uint64_t share = runtime_->settings.stream_bytes / kStreamFiles;
  return kept_[kept_count_ - 1].bytes + kStreamFrame + bytes > share;
}

bool StreamFiles::WithinRate(size_t bytes, uint64_t now_ns) {
  const uint64_t rate = runtime_->settings.stream_rate;
  const uint64_t burst = rate > kLeastBurst ? rate : kLeastBurst;
  const uint64_t passed = now_ns - refilled_ns_;
  if (refilled_ns_ == 0 || passed > 1000000000 * (burst / rate + 1)) {
    tokens_ = burst;
  } else {
    tokens_ += static_cast<uint64_t>(static_cast<unsigned __int128>(passed) * rate / 1000000000);
    if (tokens_ > burst) tokens_ = burst;
  }
  refilled_ns_ = now_ns;
  return tokens_ >= bytes + kStreamFrame;
}

void StreamFiles::RemoveOldest() {
  TextBuffer<1280> path;
  PathOf(kept_[0].number, &path);
  (void)unlink(path.c_str());
  kept_bytes_ -= kept_[0].bytes;
  removed_ += kept_[0].bytes;
  --kept_count_;
  for (uint32_t i = 0; i < kept_count_; ++i) kept_[i] = kept_[i + 1];
}

// Under the next number that no file has: without a job id runs share a directory, and in containers their pids are alike.
// A descriptor, or -1.
int StreamFiles::Create() {
  TextBuffer<1280> directory;
  directory.Add(runtime_->settings.dir).AddChar('/');
  AddRunDirectory(directory, runtime_->identity);
  if (directory.cut()) {
    errno = ENAMETOOLONG;
    return -1;
  }
  if (!MakeDirectories(directory.c_str(), 0755)) return -1;
  int fd = -1;
  for (int tries = 0; fd < 0 && tries < 1000; ++tries) {
    TextBuffer<1280> path;
    PathOf(++number_, &path);
    fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 && errno != EEXIST) return -1;
  }
  struct stat st;
  if (fd < 0 || StatFd(fd, &st) != 0 || !WriteAll(fd, flight::kStreamMagic, kMagicBytes)) {
    const int why = errno;
    if (fd >= 0) close(fd);
    errno = why;
    return -1;
  }
  inode_ = st.st_ino;
  anew_ = false;
  if (kept_count_ == kStreamFiles + 1) RemoveOldest();
  kept_[kept_count_++] = {number_, kMagicBytes};
  kept_bytes_ += kMagicBytes;
  written_ += kMagicBytes;
  return fd;
}

// The newest file, if it still is as it was left. A descriptor, or -1.
int StreamFiles::Reopen() const {
  TextBuffer<1280> path;
  PathOf(number_, &path);
  const int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return -1;
  struct stat st;
  if (StatFd(fd, &st) == 0 && st.st_ino == inode_ &&
      static_cast<uint64_t>(st.st_size) == kept_[kept_count_ - 1].bytes) {
    return fd;
  }
  close(fd);
  return -1;
}

StreamFiles::Result StreamFiles::Write(unsigned char* chunk, size_t bytes, bool begins_file) {
  InCall in_call(runtime_->image.header);
  const uint64_t more = kStreamFrame + bytes;
  while (kept_count_ > (begins_file ? 0u : 1u) &&
         kept_bytes_ + more + kMagicBytes > runtime_->settings.stream_bytes) {
    RemoveOldest();
  }
  const int fd = begins_file ? Create() : Reopen();
  if (fd < 0) {
    if (!begins_file && !anew_) {
      anew_ = true;
      return Result::kAnew;
    }
    Fail(errno);
    return Result::kFailed;
  }
  const uint32_t words[2] = {static_cast<uint32_t>(bytes),
                             flight::Crc32c(chunk + kStreamFrame, bytes)};
  for (int i = 0; i < 8; ++i) chunk[i] = static_cast<uint8_t>(words[i / 4] >> 8 * (i % 4));
  Kept& file = kept_[kept_count_ - 1];
  bool good = WriteAll(fd, chunk, more);
  int why = errno;
  // What was written of the chunk is of no use to anybody.
  if (!good) (void)!ftruncate(fd, static_cast<off_t>(file.bytes));
  if (close(fd) != 0 && good) {  // a quota on NFS
    good = false;
    why = errno;
  }
  if (!good) {
    Fail(why);
    return Result::kFailed;
  }
  file.bytes += more;
  kept_bytes_ += more;
  written_ += more;
  tokens_ -= tokens_ < more ? tokens_ : more;
  return Result::kYes;
}

void StreamFiles::Fail(int error) {
  failed_ = true;
  TextBuffer<1536> line;
  line.Add("streaming is off: no stream could be written in ").Add(runtime_->settings.dir);
  line.Add(": ");
  if (const char* text = ErrorText(error)) {
    line.Add(text);
  } else {
    line.Add("error ").AddInt(error);
  }
  Say(line.Add("; recording goes on").c_str());
}

}  // namespace ringscope::recorder
