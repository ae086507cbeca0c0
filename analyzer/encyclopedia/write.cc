#include "analyzer/encyclopedia/write.h"

#include <absl/strings/str_cat.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

namespace ringscope::encyclopedia {
namespace {

absl::Status Failed(const std::string& what, const std::string& path, const std::string& remedy) {
  return absl::UnavailableError(absl::StrCat(what, " ", path, ": ", strerror(errno), "; ", remedy));
}

// A plain file that begins as our pages do; an empty one with a page's name was left by a run that was killed or had no room.
bool Ours(int folder, const std::string& name, const std::vector<File>& files) {
  const int fd = openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return false;
  struct stat info;
  std::string start(strlen(kMarker), '\0');
  const bool plain = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink == 1;
  const ssize_t n = plain ? read(fd, start.data(), start.size()) : -1;
  close(fd);
  if (n == 0) return std::any_of(files.begin(), files.end(), [&](const File& f) { return f.name == name; });
  return n == static_cast<ssize_t>(start.size()) && start == kMarker;
}

absl::Status WriteOne(int folder, const std::string& path, const File& file) {
  const std::string remedy = "free room, or choose a folder that you may write";
  const int fd = openat(folder, file.name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (fd < 0) return Failed("cannot write", absl::StrCat(path, "/", file.name), remedy);
  size_t done = 0;
  while (done < file.content.size()) {
    const ssize_t n = write(fd, file.content.data() + done, file.content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const absl::Status failed = Failed("cannot write", absl::StrCat(path, "/", file.name), remedy);
      close(fd);
      return failed;
    }
    done += n;
  }
  if (close(fd) != 0) return Failed("cannot write", absl::StrCat(path, "/", file.name), remedy);
  return absl::OkStatus();
}

}  // namespace

absl::Status WritePages(const std::string& path, const std::vector<File>& files) {
  if (mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) return Failed("cannot make", path, "make the folder above it first");
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
  if (folder == nullptr) return Failed("cannot open", path, "give a folder");
  const int fd = dirfd(folder.get());
  std::vector<std::string> old;
  while (const dirent* entry = readdir(folder.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (!Ours(fd, name, files)) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, " holds ", name,
                       ", which is no page of this encyclopedia: nothing was written. Move it away, or "
                       "give a folder that is new, empty or holds only an earlier encyclopedia"));
    }
    old.push_back(name);
  }
  for (const std::string& name : old) {
    if (std::none_of(files.begin(), files.end(), [&](const File& f) { return f.name == name; }) &&
        unlinkat(fd, name.c_str(), 0) != 0)
      return Failed("cannot remove", absl::StrCat(path, "/", name), "remove it");
  }
  for (const File& file : files) {
    if (absl::Status status = WriteOne(fd, path, file); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace ringscope::encyclopedia
