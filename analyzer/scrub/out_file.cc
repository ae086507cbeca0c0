#include "analyzer/scrub/out_file.h"

#include <absl/strings/str_cat.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>

namespace ringscope::scrub {
namespace {

absl::Status WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return absl::UnavailableError(strerror(errno));
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

}  // namespace

OutFile::~OutFile() { Close().IgnoreError(); }

absl::Status OutFile::Failed(const char* why) const {
  return absl::UnavailableError(absl::StrCat(
      path_, ": ", why, errno == EEXIST ? "; give an empty directory to --out" : "; look at the disk and its rights"));
}

absl::Status OutFile::Open(const std::string& path, bool gzip) {
  path_ = path;
  fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (fd_ < 0) return Failed(strerror(errno));
  if (!gzip) return absl::OkStatus();
  gzip_ = gzdopen(dup(fd_), "wb6");
  return gzip_ == nullptr ? Failed("no memory") : absl::OkStatus();
}

absl::Status OutFile::Write(std::string_view bytes) {
  if (gzip_ == nullptr) {
    const absl::Status status = WriteAll(fd_, bytes);
    return status.ok() ? status : Failed(std::string(status.message()).c_str());
  }
  while (!bytes.empty()) {
    const auto part = static_cast<unsigned>(std::min<size_t>(bytes.size(), 1u << 30));
    if (gzwrite(gzip_, bytes.data(), part) != static_cast<int>(part)) return Failed(strerror(errno));
    bytes.remove_prefix(part);
  }
  return absl::OkStatus();
}

absl::Status OutFile::Close() {
  bool failed = false;
  if (gzip_ != nullptr) failed = gzclose(gzip_) != Z_OK;
  gzip_ = nullptr;
  if (fd_ >= 0) failed = close(fd_) != 0 || failed;
  fd_ = -1;
  return failed ? Failed("could not be written to its end") : absl::OkStatus();
}

absl::Status ReplacePrivate(const std::string& path, std::string_view text) {
  const std::string beside = absl::StrCat(path, ".tmp.", getpid());
  const int fd = open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  const auto failed = [&] {
    const std::string why = strerror(errno);
    unlink(beside.c_str());
    return absl::UnavailableError(absl::StrCat(path, ": ", why, "; give --map a file that can be written"));
  };
  if (fd < 0) return failed();
  // Whatever the umask.
  const bool written = fchmod(fd, 0600) == 0 && WriteAll(fd, text).ok() && fsync(fd) == 0;
  if (close(fd) != 0 || !written || rename(beside.c_str(), path.c_str()) != 0) return failed();
  return absl::OkStatus();
}

}  // namespace ringscope::scrub
