#include "analyzer/ingest/file_bytes.h"

#include <absl/strings/str_cat.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace ringscope::ingest {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

absl::Status Failure(const std::string& path, int error) {
  const std::string reason = strerror(error);
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(absl::StrCat(path, ": no such file or directory; check the path"));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(
          absl::StrCat(path, ": ", reason, "; read it as the user that ran the job, or as root"));
    default:
      return absl::UnavailableError(absl::StrCat(path, ": cannot be read: ", reason,
                                                 "; copy the file to a local disk and try again"));
  }
}

// O_NONBLOCK: opening a FIFO without a writer would otherwise wait for ever.
absl::StatusOr<uint64_t> CheckRegular(const std::string& path, int fd) {
  if (fd < 0) return Failure(path, errno);
  struct stat st;
  if (fstat(fd, &st) != 0) return Failure(path, errno);
  if (!S_ISREG(st.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": not a regular file; give files or directories"));
  }
  return static_cast<uint64_t>(st.st_size);
}

absl::StatusOr<std::string> ReadUpTo(const std::string& path, int fd, uint64_t want,
                                     const Progress& progress) {
  constexpr size_t kPiece = size_t{4} << 20;
  std::string bytes;
  while (bytes.size() < want) {
    const size_t at = bytes.size();
    const size_t piece = static_cast<size_t>(std::min<uint64_t>(kPiece, want - at));
    bytes.resize(at + piece);
    const ssize_t got = read(fd, bytes.data() + at, piece);
    bytes.resize(at + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0) {
      if (errno == EINTR) continue;
      return Failure(path, errno);
    }
    if (got == 0) break;  // shorter than stat said: it is being written or was cut
    if (progress) progress(path, bytes.size(), want);
  }
  return bytes;
}

}  // namespace

absl::StatusOr<std::string> ReadHead(const std::string& path, size_t limit) {
  Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  auto size = CheckRegular(path, fd.get());
  if (!size.ok()) return size.status();
  return ReadUpTo(path, fd.get(), std::min<uint64_t>(limit, *size), nullptr);
}

absl::StatusOr<std::string> ReadWhole(const std::string& path, uint64_t limit,
                                      const Progress& progress) {
  Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  auto size = CheckRegular(path, fd.get());
  if (!size.ok()) return size.status();
  if (*size > limit) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, ": ", *size, " bytes, more than the ", limit,
                     " a file of this kind can have; it was not written by "
                     "Ringscope or is damaged: leave it out"));
  }
  return ReadUpTo(path, fd.get(), *size, progress);
}

}  // namespace ringscope::ingest
