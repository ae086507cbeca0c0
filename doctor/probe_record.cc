// Whether Ringscope itself could record here: does this machine's loader take the library, can traces be written.
#include <absl/strings/str_cat.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>

#include "doctor/probe.h"

namespace ringscope::doctor {
namespace {

// Where it would be made when it is not there yet.
std::string Existing(std::filesystem::path path) {
  std::error_code error;
  while (!std::filesystem::exists(path, error) && path.has_parent_path() && path != path.parent_path()) path = path.parent_path();
  return path.string();
}

std::string WhyNotWritable(const std::string& folder) {
  const std::string file = absl::StrCat(folder, "/.ringscope-doctor-", getpid());
  const int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return absl::StrCat("cannot be written: ", strerror(errno));
  // A full file system lets a file be made, and takes nothing into it.
  const bool takes = write(fd, "x", 1) == 1 && fsync(fd) == 0;
  const int why = errno;
  close(fd);
  unlink(file.c_str());
  return takes ? "" : absl::StrCat("takes no data: ", strerror(why));
}

absl::Status Directory(const Place& place, node::Node* node) {
  if (place.directory.empty()) return absl::NotFoundError("no directory was named");
  node::Record* record = node->mutable_record();
  record->set_directory(place.directory);
  const std::string folder = Existing(place.directory);
  record->set_directory_trouble(WhyNotWritable(folder));
  struct statvfs info;
  if (statvfs(folder.c_str(), &info) == 0) record->set_directory_free(uint64_t{info.f_bavail} * info.f_frsize);
  return absl::OkStatus();
}

absl::Status Library(const Place& place, node::Node* node) {
  node::Record* record = node->mutable_record();
  record->set_library(place.library);
  if (place.library.empty()) {
    record->set_library_trouble(place.library_missing);
    return place.library_missing.empty() ? absl::NotFoundError("no library was named") : absl::OkStatus();
  }
  if (dlopen(place.library.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) {
    const char* why = dlerror();
    record->set_library_trouble(why == nullptr ? "it cannot be loaded" : why);
  }
  return absl::OkStatus();
}

const RegisterProbe kDirectory({"directory", Directory});
const RegisterProbe kLibrary({"library", Library});

}  // namespace
}  // namespace ringscope::doctor
